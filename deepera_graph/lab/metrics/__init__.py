"""Metrics of rankings and of answers, and statistics over questions."""
