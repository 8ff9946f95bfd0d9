"""Memory blocks."""
