"""How the limits of a question are read, and what of a paper breaks them, by rules."""
