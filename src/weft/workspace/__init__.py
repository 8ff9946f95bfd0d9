"""Files of a workspace: paths, reading, skills."""
