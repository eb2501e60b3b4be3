"""From the options of a command to what it works with, a file a kind of it."""
