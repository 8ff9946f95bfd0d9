"""Message in, reply out: the terminal first, others beside it."""
