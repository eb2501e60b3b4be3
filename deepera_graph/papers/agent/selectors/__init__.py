"""Who judges the papers that were found: marks, scores, and the sentence that says why.

A selector orders and marks. It takes out only what breaks a limit; a paper that it cannot judge
stays, marked as unjudged, at the place its searches gave it.
"""

from typing import Any, NamedTuple

from langchain_core.runnables import Runnable, RunnableLambda

from deepera_graph.errors import SettingsError
from deepera_graph.papers.agent.roles import PaperRoles
from deepera_graph.papers.agent.selectors.evidence import EvidenceSelector
from deepera_graph.papers.agent.selectors.sentences import select_by_vectors, select_by_words
from deepera_graph.papers.agent.state import Selected, SelectTask
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Backend
from deepera_graph.settings import suggest_value

NAMES = ("deepera", "vectors", "rules", "llm")
_WITHOUT_SCORES = {"vectors": select_by_vectors, "rules": select_by_words}


class Selector(NamedTuple):
    """Who judges, and how.

    Attributes:
        name: ``deepera``, ``vectors``, ``rules``, ``llm``, or ``own``.
        role: Judges a list of papers.
        scores: Whether it says how well papers fit, so that all of them are worth its while; the
            others only look for what breaks a limit, and for a reason.
        is_costly: Whether judging a paper is a call of a model that somebody pays for.
        about: What the manifest says of it.
    """

    name: str
    role: Runnable[SelectTask, Selected]
    scores: bool = True
    is_costly: bool = False
    about: str = ""


def make_selector(selector: Any, roles: PaperRoles | None) -> Selector:
    """Return a selector.

    Args:
        selector: ``deepera``: this package's own graph with the local judge; an `EvidenceReranker`
            or a `Backend`: the same with another judge. ``vectors``: by vectors of sentences;
            ``rules``: by words, nothing to load; ``llm``: the chat model; or a runnable or function
            of `SelectTask`. None: the chat model if there is one, else ``vectors``.
        roles: Those of a chat model, or None.

    Raises:
        SettingsError: There is no such selector, or no chat model for it.
    """
    if selector is None:
        selector = "vectors" if roles is None else "llm"
    if selector == "deepera":
        selector = EvidenceReranker("local")
    if isinstance(selector, EvidenceReranker | Backend):
        made = EvidenceSelector(selector)
        return Selector("deepera", made, is_costly=made.is_costly, about=made.about)
    if isinstance(selector, str):
        return _find(selector, roles)
    if isinstance(selector, Runnable):
        return Selector("own", selector)
    if callable(selector):
        return Selector("own", RunnableLambda(selector))
    raise SettingsError(
        f"selector must be {', '.join(NAMES)}, an EvidenceReranker, a Backend, a function or a "
        f"runnable, got {selector!r:.80}"
    )


def _find(name: str, roles: PaperRoles | None) -> Selector:
    if name in _WITHOUT_SCORES:
        return Selector(name, RunnableLambda(_WITHOUT_SCORES[name]), scores=False)
    if name == "llm":
        if roles is None:
            raise SettingsError("selector 'llm' needs a chat model")
        return Selector(name, roles.judge, is_costly=True)
    if name == "local":
        raise SettingsError(
            "selector 'local' is called 'vectors' now, as it compares vectors of sentences; the "
            "local judge selects as 'deepera'"
        )
    raise SettingsError(
        f"selector must be one of {', '.join(NAMES)}, got {name!r}{suggest_value(name, NAMES)}"
    )
