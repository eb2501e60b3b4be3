"""Benchmarks of searches for papers: topics in, questions with graded papers out, and an audit."""
