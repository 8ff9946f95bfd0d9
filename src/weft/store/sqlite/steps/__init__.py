"""The steps of the file's shape, one a file. A step is only ever added, never changed."""
