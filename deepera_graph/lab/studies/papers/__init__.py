"""Searches for papers, compared."""
