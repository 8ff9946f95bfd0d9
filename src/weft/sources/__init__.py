"""Sources: each offers pieces of text for one layer of a recipe."""
