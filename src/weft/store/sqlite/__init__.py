"""The store in one SQLite file. Nowhere else is there SQL."""
