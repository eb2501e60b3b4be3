"""Readers that turn files into instances, line by line."""
