"""Context to one vendor's JSON and back, purely."""
