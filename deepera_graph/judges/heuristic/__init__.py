"""Prompts of a judge that gives the summary along with its score; filled as those around it."""
