"""How well a text answers a query: pure ranking."""
