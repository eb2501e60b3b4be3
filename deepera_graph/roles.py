"""The roles a backend fills, and what each of them is given.

A role is any LangChain `Runnable`. It sees the question, the intent and, of a passage, its text,
title and section: never an id, a position, a score, a label or other metadata.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict

from langchain_core.runnables import Runnable

from deepera_graph.errors import SettingsError
from deepera_graph.schema import Answer, AnswerType, Intent, IntentKind, Judgement, Summary

_OF_NO_EFFECT = frozenset(
    {"api_key_env", "batch_size", "limits", "max_retries", "patience", "threads", "timeout"}
)


class IntentFields(TypedDict):
    """An intent as the other roles see it; all fields empty or 'other' if it is not known."""

    topic: str
    entity_type: str
    intent: IntentKind
    expected_answer_type: AnswerType


class IntentTask(TypedDict):
    """What the intent recognizer is given.

    `problem` is empty at first; if the first intent was unusable it says why, once.
    """

    question: str
    problem: str


class PassageTask(TypedDict):
    """What the relevance judge and the evidence summarizer are given; `title` may be empty."""

    question: str
    intent: IntentFields
    text: str
    title: str
    section: str


class EvidenceItem(TypedDict):
    """One kept passage as the answerer sees it; `summary` is empty when there is none."""

    text: str
    summary: str
    quote: str
    title: str
    section: str


class AnswerTask(TypedDict):
    """What the answerer is given: kept evidence, best first, not empty, cited by number from 1."""

    question: str
    intent: IntentFields
    evidence: list[EvidenceItem]


@dataclass(frozen=True, kw_only=True)
class Backend:
    """The roles that judge passages, and how to build them again.

    `dataclasses.replace` mixes roles: ``replace(local_backend(), summarizer=llm.summarizer)``.

    Attributes:
        name: Short name for people, e.g. ``"local"``.
        intent: Reads a question.
        judge: Scores one passage.
        summarizer: Shortens one kept passage.
        answerer: Answers from the kept evidence; None when the backend cannot.
        about: What the manifest records: model, prompt hash, what kind of judge it is.
        spec: Plain data that builds this backend again; None if it was made from live objects.
        needs_evidence: Whether its judge must show a quote for a passage to pass, unless the
            settings say otherwise.
    """

    name: str
    intent: Runnable[IntentTask, Intent]
    judge: Runnable[PassageTask, Judgement]
    summarizer: Runnable[PassageTask, Summary]
    answerer: Runnable[AnswerTask, Answer] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] | None = None
    needs_evidence: bool = False

    def fingerprint(self) -> dict[str, Any]:
        """Return what judgements of this backend depend on, as plain data.

        How long to wait, how fast to ask and where the key is kept do not change a judgement.

        Raises:
            SettingsError: The backend was made from live objects and cannot be told from others.
        """
        if self.spec is None:
            raise SettingsError(
                f"backend {self.name!r} was made from live objects, so its judgements cannot be "
                "told from those of others; give it a spec, or name it 'package.module:factory'"
            )
        return {"name": self.name, "about": dict(self.about), "spec": _without(self.spec)}


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(part) for key, part in value.items() if key not in _OF_NO_EFFECT}
    return value
