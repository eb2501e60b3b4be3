"""Metrics of the benchmark, exactly as defined in each file, and what to make of their spread."""
