"""Passage stores on Qdrant, and the files passages are read from.

Nothing else in the package imports this folder while it is being imported: Qdrant takes about a
second to load.
"""
