"""Agents that search for papers: one graph, several planners, and a selector that marks."""
