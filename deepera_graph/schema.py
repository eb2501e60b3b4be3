"""The roles a backend fills, and what each of them is given.

A role is any LangChain `Runnable`. It sees the question, the intent and, of a passage, its text,
title and section: never an id, a position, a score, a label or other metadata.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Protocol,
    Self,
    TypedDict,
    runtime_checkable,
)

from langchain_core.runnables import Runnable
from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.errors import BudgetError, CallError, RoleError, SettingsError
from deepera_graph.usage import Usage

IntentKind = Literal[
    "definition", "mechanism", "comparison", "causal inference", "functional role", "other"
]
AnswerType = Literal["numeric", "categorical", "procedural", "descriptive", "other"]
# What each class means, as the intent prompt says it.
INTENT_KINDS: Mapping[IntentKind, str] = {
    "definition": "what something is",
    "mechanism": "how or why it works",
    "comparison": "how things differ",
    "causal inference": "whether or how much one thing changes another",
    "functional role": "what something does in a system",
    "other": "",
}
ANSWER_TYPES: Mapping[AnswerType, str] = {
    "numeric": "a quantity",
    "categorical": "yes or no, or one of several classes",
    "procedural": "how to do something",
    "descriptive": "a statement in words",
    "other": "",
}


class RoleAnswer(BaseModel):
    """Base of what a role gives back."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    usage: Usage | None = Field(
        default=None,
        exclude=True,
        description="What the answer cost; None counts as one call of unknown size.",
    )
    repaired: bool = Field(
        default=False, exclude=True, description="The first reply was unusable and asked again."
    )
    problem: str = Field(
        default="", exclude=True, description="What was wrong with the first reply, if repaired."
    )


class Intent(RoleAnswer):
    """What a question asks for (DeepEra, section 3.2)."""

    topic: str = Field(description="The scientific domain, e.g. 'molecular biology'.")
    entity_type: str = Field(
        description="The central entities as 'kind: name', in the question's own words."
    )
    intent: IntentKind = Field(description="What kind of relation the question asks about.")
    expected_answer_type: AnswerType = Field(description="What form the answer has.")


class Survey(RoleAnswer):
    """What the passages of one question show when they are seen together."""

    notes: list[dict[str, Annotated[float, Field(strict=True)]]] = Field(
        description="Finite numbers by name, one set a passage, in the order given."
    )


class Judgement(RoleAnswer):
    """How far one passage gives direct evidence for one question."""

    score: float = Field(ge=0, le=1, strict=True, description="Relevance as evidence, in [0, 1].")
    reason: str = Field(default="", description="Why, in a few words.")
    quote: str = Field(default="", description="The evidence, in the passage's own words.")
    summary: str = Field(
        default="", description="A summary given along with the score; empty if there is none."
    )


class Unjudged(RoleAnswer):
    """Why one passage of a group has no judgement."""

    cause: str = Field(description="What went wrong.")
    is_skipped: bool = Field(default=False, description="It was not asked: the budget is spent.")
    unusable: bool = Field(default=False, description="No passage can succeed; see `CallError`.")

    @classmethod
    def of(cls, error: RoleError) -> Self:
        """Write an error down, with what it cost."""
        return cls(
            cause=str(error),
            is_skipped=isinstance(error, BudgetError),
            unusable=isinstance(error, CallError) and error.unusable,
            usage=error.usage,
        )


class GroupJudgement(RoleAnswer):
    """Verdicts on passages that were judged in one call; `usage` is what they cost together."""

    verdicts: list[Judgement | Unjudged] = Field(
        description="One a passage, in the order given; their `usage` adds up to that of all."
    )


class Summary(RoleAnswer):
    """One or two sentences that keep the passage's own terms."""

    text: str = Field(description="The summary; empty when the passage answers nothing.")


class Answer(RoleAnswer):
    """An answer drawn from kept evidence."""

    text: str = Field(description="The answer; evidence is cited as [1], [2], ...")
    citations: list[int] = Field(description="Numbers of the evidence used, each >= 1.")


def told_with(words: str, answer: RoleAnswer) -> str:
    """Return some words about an answer; with why it was asked for twice, if it was."""
    again = f"asked twice, as {answer.problem}" if answer.problem else ""
    return "; ".join(filter(None, (words, again)))


PROMISE = "promise"  # among notes: how likely a passage is evidence; its judge is not told
_OF_NO_EFFECT = frozenset(
    {"api_key_env", "batch_size", "limits", "max_retries", "retry", "threads", "timeout"}
)


class IntentFields(TypedDict):
    """An intent as the other roles see it; all fields empty or 'other' if it is not known."""

    topic: str
    entity_type: str
    intent: IntentKind
    expected_answer_type: AnswerType


def intent_fields(intent: Intent) -> IntentFields:
    """Return what the other roles see of an intent."""
    return {
        "topic": intent.topic,
        "entity_type": intent.entity_type,
        "intent": intent.intent,
        "expected_answer_type": intent.expected_answer_type,
    }


class IntentTask(TypedDict):
    """What the intent recognizer is given.

    `problem` is empty at first; if the first intent was unusable it says why, once.
    """

    question: str
    problem: str


class PassageText(TypedDict):
    """One passage as the roles see it; `title` and `section` may be empty."""

    text: str
    title: str
    section: str


class SurveyTask(TypedDict):
    """What the surveyor is given: what will be judged of a question, all of it together.

    `passages` are distinct, not empty, and in an order of their own: neither the place of one nor
    how often it came in tells anything. Among the notes it gives, `PROMISE` puts passages in order
    where they are judged in waves: the highest first.
    """

    question: str
    intent: IntentFields
    passages: list[PassageText]


class PassageTask(PassageText):
    """What the relevance judge and the evidence summarizer are given.

    The judge is given `notes`, too, if a surveyor has read the passages: what it found for this
    one. A judge does without them when they are missing or empty. A judge that can give the summary
    along with its score is given `summary_from`, the lowest score in [0, 1] for which it is wanted;
    where that is missing, none is.
    """

    question: str
    intent: IntentFields
    notes: NotRequired[Mapping[str, float]]
    summary_from: NotRequired[float]


class GroupTask(TypedDict):
    """What a judge of groups is given: passages of one question, distinct, at least one.

    Their order tells nothing, as for `SurveyTask`.
    """

    tasks: list[PassageTask]


@runtime_checkable
class JudgesGroups(Protocol):
    """A relevance judge that can judge several passages of a question in one call.

    `group_size` is the most passages a call, >= 1.
    """

    group_size: int

    def of_groups(self) -> Runnable[GroupTask, GroupJudgement]:
        """Return the role that judges a group: a judgement a passage, or why there is none."""


@runtime_checkable
class ReadsAhead(Protocol):
    """A surveyor that can begin before the intent is known."""

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Begin to read passages, in the background, and return at once.

        The survey is asked for soon, most likely. Nothing is lost if it is not, or if reading
        fails: the survey then says so.
        """


def gives_summaries(judge: object) -> bool:
    """Whether a relevance judge says (`gives_summaries`) that it can give a summary along."""
    return bool(getattr(judge, "gives_summaries", False))


def takes_place_of(judge: object) -> Callable[[PassageTask], bool]:
    """Return what a judge says (`takes_place`) of which passages need one in a call or a wave.

    By default all do. What needs none is judged apart, in a group of any size, and with the first
    wave.
    """
    found: Callable[[PassageTask], bool] = getattr(judge, "takes_place", lambda task: True)
    return found


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

    `dataclasses.replace` mixes roles: ``replace(local_backend(), summarizer=llm.summarizer)``. Who
    takes another judge takes its surveyor, or None, with it.

    Attributes:
        name: Short name for people, e.g. ``"local"``.
        intent: Reads a question.
        judge: Scores one passage.
        summarizer: Shortens one kept passage.
        answerer: Answers from the kept evidence; None when the backend cannot.
        surveyor: Reads all passages of a question together, and gives each of them notes for this
            backend's judge and no other; None when the judge needs none.
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
    surveyor: Runnable[SurveyTask, Survey] | None = None
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
