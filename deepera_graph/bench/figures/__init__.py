"""Figures of the benchmark; the same numbers give the same bytes."""
