"""A language model in all four roles: any LangChain chat model, one call a passage."""

from deepera_graph.backends.llm.backend import llm_backend, llm_backend_from_spec

__all__ = ["llm_backend", "llm_backend_from_spec"]
