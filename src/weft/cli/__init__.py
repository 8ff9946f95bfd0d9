"""What a person types: one command, or group of commands, a file."""
