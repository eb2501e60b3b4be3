"""Rankers to compare, each a `Ranker` of `deepera_graph.bench.rankers.base`."""
