"""What the commands do; imports the core, which takes a second or two."""
