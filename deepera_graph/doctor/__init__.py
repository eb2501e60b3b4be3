"""What is wrong with an installation, a server, a store or a cache, and what to do about it."""

from deepera_graph.doctor.examine import examine
from deepera_graph.doctor.finding import Finding

__all__ = ["Finding", "examine"]
