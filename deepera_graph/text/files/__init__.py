"""Texts in files: lines, records, references."""
