"""DeepEra in Haystack: a ranker that keeps the documents that give evidence."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from haystack_deepera.ranker import DeepEraRanker

_HOME = {"DeepEraRanker": "ranker"}

__all__ = ["DeepEraRanker"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "haystack":
            raise
        raise ImportError(f"{name} needs Haystack: pip install haystack-ai") from error


def __dir__() -> list[str]:
    return __all__
