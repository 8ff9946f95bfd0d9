"""Each offers sections for one layer of a recipe."""
