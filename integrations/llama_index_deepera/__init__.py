"""DeepEra in LlamaIndex: a node postprocessor that keeps the nodes that give evidence."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llama_index_deepera.rerank import DeepEraRerank

_HOME = {"DeepEraRerank": "rerank"}

__all__ = ["DeepEraRerank"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "llama_index":
            raise
        raise ImportError(f"{name} needs LlamaIndex: pip install llama-index-core") from error


def __dir__() -> list[str]:
    return __all__
