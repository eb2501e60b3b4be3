"""Going on with a run that was cut short: what is left of it, by what its saver has."""

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Literal

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.passages import read_passages
from deepera_graph.roles import Backend
from deepera_graph.settings import Settings
from deepera_graph.state import Question

if TYPE_CHECKING:
    from langgraph.types import StateSnapshot

MADE_BY = "deepera_made_by"  # the key among the metadata of a saved state
Left = Literal["all", "rest", "nothing"]
_OF_NO_EFFECT = ("budget", "max_concurrency")


def made_by(backend: Backend, settings: Settings) -> str:
    """Return 16 hex digits that name who judges and how it is filtered, without any secret.

    What a run may cost and how much it does at once make no difference.
    """
    plain = settings.to_dict()
    about = {"name": backend.name, "about": dict(backend.about)}
    judge = about if backend.spec is None else backend.fingerprint()
    if backend.surveyor is not None:
        judge = {**judge, "surveyor": True}
    whole = [judge, {name: plain[name] for name in plain if name not in _OF_NO_EFFECT}]
    return sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:16]


def left_of(saved: "StateSnapshot", asked: Question, by: str) -> Left:
    """Return what is still to be done of a question.

    Args:
        saved: The last state of its thread.
        asked: The question and its passages, as for a new run.
        by: What `made_by` says now.

    Raises:
        InputError: The thread is of another question, or of other passages.
        SettingsError: The thread was begun by another backend or with other settings, so that its
            verdicts are not those asked for.
    """
    values = saved.values
    if "question" not in values or "passages" not in values:
        return "all"
    if values["question"] != asked["question"]:
        raise InputError(
            f"the thread to resume is of another question: {values['question']!r:.80}, "
            f"not {asked['question']!r:.80}"
        )
    before, now = read_passages(values["passages"]), read_passages(asked["passages"])
    if [(one.id, one.text) for one in before] != [(one.id, one.text) for one in now]:
        raise InputError("the thread to resume is of other passages")
    if (saved.metadata or {}).get(MADE_BY, by) != by:
        raise SettingsError(
            "the thread to resume was begun by another backend or with other settings; take "
            "another thread_id, or the reranker as it was"
        )
    return "rest" if saved.next else "nothing"
