"""Passages along a graph of neighbours, for questions of several hops."""
