"""Providers: what asks a model, over HTTP, in a process, or from a script."""
