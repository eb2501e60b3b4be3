"""Options of `deepera judge` and its commands."""
