"""The pages of `weft serve` and `weft inspect`: who may see what, and what forms do."""
