"""A language model in all four roles: any LangChain chat model."""

from deepera_graph.judges.llm.backend import Mode, llm_backend, llm_backend_from_spec

__all__ = ["Mode", "llm_backend", "llm_backend_from_spec"]
