"""The local backend: a small trained judge, or rules and word counts; no download, no key."""

from deepera_graph.backends.local.backend import local_backend, local_backend_from_spec
from deepera_graph.backends.local.weights import local_model

__all__ = ["local_backend", "local_backend_from_spec", "local_model"]
