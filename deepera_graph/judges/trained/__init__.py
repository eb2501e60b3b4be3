"""The local backend: a small trained judge, or rules and word counts; no download, no key."""

from deepera_graph.judges.trained.backend import local_backend, local_backend_from_spec, local_model

__all__ = ["local_backend", "local_backend_from_spec", "local_model"]
