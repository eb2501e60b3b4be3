"""Papers: a base of them in one file, searched by words, by meaning and along citations.

Names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase as PaperBase
    from deepera_graph.papers.paper import Paper as Paper
    from deepera_graph.papers.results import Hit as Hit
    from deepera_graph.papers.results import Hits as Hits
    from deepera_graph.papers.results import Neighbours as Neighbours
    from deepera_graph.papers.results import Scope as Scope
    from deepera_graph.papers.results import TitleMatch as TitleMatch

_HOME = {"Paper": "paper", "PaperBase": "base"}  # of the others it is `results`
__all__ = ["Hit", "Hits", "Neighbours", "Paper", "PaperBase", "Scope", "TitleMatch"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME.get(name, 'results')}"), name)


def __dir__() -> list[str]:
    return __all__
