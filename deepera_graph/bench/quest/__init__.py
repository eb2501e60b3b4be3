"""Benchmarks of searches for papers: made from topics, judged, and audited by people."""
