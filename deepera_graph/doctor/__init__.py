"""What is wrong with an installation, a server, a store or a cache, and what to do about it."""

from deepera_graph.doctor.checks import Finding, examine

__all__ = ["Finding", "examine"]
