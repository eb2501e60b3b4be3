"""What the commands of `deepera judge` do."""
