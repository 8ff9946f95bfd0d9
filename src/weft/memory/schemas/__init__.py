"""The kinds of memory blocks, one file each."""
