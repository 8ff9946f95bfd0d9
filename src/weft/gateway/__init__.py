"""Between a channel and a turn: what comes in is made fit to be answered."""
