"""What lasts: protocols, and what implements them."""
