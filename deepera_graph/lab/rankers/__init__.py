"""Rankers to compare, each a `Ranker` of `deepera_graph.lab.rankers.base`."""
