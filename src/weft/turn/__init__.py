"""One turn: `run` is where everything meets, `build` makes the context."""
