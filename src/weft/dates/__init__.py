"""The days that texts speak of, in six languages."""
