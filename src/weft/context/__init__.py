"""Pure decisions about a context: what is shown, in which order, within which limits, and why."""
