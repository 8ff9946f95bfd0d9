"""What `weft bench` measures, apart from how it is shown."""
