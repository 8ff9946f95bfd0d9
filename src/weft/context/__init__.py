"""Decides, purely: what is shown, in which order, within which limits, and why."""
