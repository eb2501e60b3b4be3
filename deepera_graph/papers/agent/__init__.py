"""Agents that search for papers: one graph, several planners, and a selector that marks.

Names are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepera_graph.papers.agent.found import Found as Found
    from deepera_graph.papers.agent.found import FoundPaper as FoundPaper
    from deepera_graph.papers.agent.graph import PaperSearch as PaperSearch
    from deepera_graph.papers.agent.limits.reading import read_limits as read_limits
    from deepera_graph.papers.agent.roles import PaperRoles as PaperRoles
    from deepera_graph.papers.agent.roles import paper_roles as paper_roles
    from deepera_graph.papers.agent.state import Action as Action
    from deepera_graph.papers.agent.state import PaperSearchSettings as PaperSearchSettings
    from deepera_graph.papers.agent.state import PaperVerdict as PaperVerdict
    from deepera_graph.papers.agent.state import SearchPlan as SearchPlan
    from deepera_graph.papers.agent.state import Selected as Selected
    from deepera_graph.papers.agent.trace import Limits as Limits

_HOME = {
    "Action": "state",
    "Found": "found",
    "FoundPaper": "found",
    "Limits": "trace",
    "PaperRoles": "roles",
    "PaperSearch": "graph",
    "PaperVerdict": "state",
    "SearchPlan": "state",
    "PaperSearchSettings": "state",
    "Selected": "state",
    "paper_roles": "roles",
    "read_limits": "limits.reading",
}
__all__ = [
    "Action",
    "Found",
    "FoundPaper",
    "Limits",
    "PaperRoles",
    "PaperSearch",
    "PaperSearchSettings",
    "PaperVerdict",
    "SearchPlan",
    "Selected",
    "paper_roles",
    "read_limits",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
