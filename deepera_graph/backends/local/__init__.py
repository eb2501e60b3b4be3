"""The local backend: rules and word counts, no model, no download, no key."""

from deepera_graph.backends.local.backend import local_backend

__all__ = ["local_backend"]
