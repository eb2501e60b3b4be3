"""Data sets: instances with their labels, and readers of the formats they come in."""
