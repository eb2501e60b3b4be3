"""Prompts of a judge of several passages at once; filled as those around it."""
