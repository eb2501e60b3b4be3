"""Rankers to compare, all behind the protocol of `deepera_graph.bench.rankers.base`."""
