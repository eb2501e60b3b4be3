"""The roles a backend fills, and what each of them is given and gives.

The judge is a `deepera_graph.judges.base.Judge`, which is given a list of windows; or, as the other
roles, any LangChain `Runnable`, which is then given one passage after the other. A role sees the
question, the intent and, of a passage, its text, title and section: never an id, a position, a
label or other metadata.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Self, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import CoreSchema, core_schema
from typing_extensions import TypedDict

from deepera_graph.errors import BudgetError, CallError, RoleError, SettingsError
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable  # takes half a second

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
# What a passage says to a question that can be answered with yes or no, or to a claim.
Direction = Literal["supports", "contradicts", "no_difference", "mixed", "unclear"]
# How sure a judge is of what it keeps: of the second kind it cannot tell.
Band = Literal["evidence", "possible"]
EVIDENCE: Band = "evidence"
POSSIBLE: Band = "possible"
# How some models, and sentences about several passages, say it.
FOR_MANY: Mapping[str, str] = {"supports": "support", "contradicts": "contradict"}
LONGEST_POSITION = 40  # characters, about four words
_OF_WHAT = re.compile(r"_(?:it|(?:this|that|the)(?:_(?:claim|question|statement|hypothesis))?)$")


def read_direction(said: object) -> Direction | None:
    """Read a direction, whatever its capitals and spaces, or "supports the claim"; else None."""
    word = re.sub(r"[\W_]+", "_", said.lower()).strip("_") if isinstance(said, str) else ""
    word = _OF_WHAT.sub("", word)
    return next((one for one in get_args(Direction) if word in (one, FOR_MANY.get(one))), None)


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
    """What a question asks for (DeepEra, section 3)."""

    topic: str = Field(description="The scientific domain, e.g. 'molecular biology'.")
    entity_type: str = Field(
        description="The central entities as 'kind: name', in the question's own words."
    )
    intent: IntentKind = Field(description="What kind of relation the question asks about.")
    expected_answer_type: AnswerType = Field(description="What form the answer has.")


class Judgement(RoleAnswer):
    """How far one passage gives direct evidence for one question."""

    score: float = Field(ge=0, le=1, strict=True, description="Relevance as evidence, in [0, 1].")
    reason: str = Field(default="", description="Why, in a few words.")
    quote: str = Field(default="", description="The evidence, in the passage's own words.")
    evidence_unknown: bool = Field(
        default=False,
        description="It named as evidence what the passage does not have, such as sentence 9 of 3; "
        "then there is no quote.",
    )
    summary: str = Field(
        default="", description="A summary given along with the score; empty if there is none."
    )
    direction: Annotated[Direction | None, BeforeValidator(read_direction)] = Field(
        default=None,
        description="What it says to a yes/no question or a claim; None if it is neither, and for "
        "any other word.",
    )
    position: str = Field(
        default="",
        max_length=LONGEST_POSITION,
        description="What it says to any other question, in a few words; empty if nothing.",
    )


class Candidate(RoleAnswer):
    """A first score of a window that a later round of its judge decides on; no verdict yet."""

    first_score: float = Field(ge=0, le=1, strict=True, description="On the way, in [0, 1].")
    by: str = Field(default="", description="The part of the judge that gave it.")


class Unjudged(RoleAnswer):
    """Why one window of a batch has no judgement."""

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


Verdict = Judgement | Candidate | Unjudged


def cost_of(answer: RoleAnswer | Sequence[RoleAnswer]) -> Usage:
    """Return what an answer, or all together, cost; None is one call of unknown size."""
    every = [answer] if isinstance(answer, RoleAnswer) else answer
    costs = [one.usage or Usage(calls=1) for one in every]
    return costs[0] if len(costs) == 1 else sum(costs, Usage())


class Summary(RoleAnswer):
    """One or two sentences that keep the passage's own terms."""

    text: str = Field(description="The summary; empty when the passage answers nothing.")


class Answer(RoleAnswer):
    """An answer drawn from kept evidence."""

    text: str = Field(description="The answer; evidence is cited as [1], [2], ...")
    citations: list[int] = Field(description="Numbers of the evidence used, each >= 1.")
    uncited: dict[int, str] = Field(
        default_factory=dict, description="Why evidence is not used, by its number, where known."
    )


def with_repair_note(words: str, answer: RoleAnswer) -> str:
    """Add to some words about an answer why it was asked for twice, if it was."""
    again = f"asked twice, as {answer.problem}" if answer.problem else ""
    return "; ".join(filter(None, (words, again)))


class Rewritten(RoleAnswer):
    """The next query for a question."""

    text: str = Field(description="The query; empty if no other would help.")


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


class Window(TypedDict):
    """A passage, or a stretch of a long one, as a judge sees it; title and section may be empty."""

    text: str
    title: str
    section: str


class PassageTask(Window):
    """What the summarizer, and a judge of single passages, is given.

    A judge that can give the summary along with its score is given `summary_from`, the lowest score
    in [0, 1] for which it is wanted; where that is missing, none is. A summarizer is given `quote`,
    what the judge quoted of the text, word for word, if it did.
    """

    question: str
    intent: IntentFields
    summary_from: NotRequired[float]
    quote: NotRequired[str]


class Batch(TypedDict):
    """Windows of one question that a judge is given together: distinct, at least one.

    They are in the order of their texts: neither the place of one nor how often it came in tells
    the judge anything.

    `numbers` name the windows among all distinct ones of the question; `part` is the judge's own
    word for what it wants to do with them; `scores` are first scores of them, if it asked for them;
    `is_joint` says that a verdict depends on the other windows, too; `summary_from` is that of a
    `PassageTask`.
    """

    question: str
    intent: IntentFields
    windows: list[Window]
    numbers: list[int]
    part: str
    is_joint: bool
    scores: NotRequired[list[float]]
    summary_from: NotRequired[float]


def passage_task(question: str, intent: IntentFields, window: Window) -> PassageTask:
    """Return what is asked about one window."""
    return {
        "question": question, "intent": intent, "text": window["text"], "title": window["title"],
        "section": window["section"],
    }  # fmt: skip


def passage_tasks(batch: Batch) -> list[PassageTask]:
    """Return the windows of a batch one by one."""
    tasks = [passage_task(batch["question"], batch["intent"], one) for one in batch["windows"]]
    if "summary_from" in batch:
        for task in tasks:
            task["summary_from"] = batch["summary_from"]
    return tasks


def fail_all(batch: Batch, error: RoleError) -> list[Verdict]:
    """Leave all windows of a batch unjudged; what that cost is written beside the first."""
    unjudged = Unjudged.of(error)
    free = unjudged.model_copy(update={"usage": Usage()})
    return [unjudged, *[free] * (len(batch["windows"]) - 1)]


class EvidenceItem(TypedDict):
    """One kept passage as the answerer sees it.

    `summary` is empty when there is none; `direction` or `position` are there if the judge gave
    one; passages of one study have one number as `study`.
    """

    text: str
    summary: str
    quote: str
    direction: NotRequired[Direction]
    position: NotRequired[str]
    title: str
    section: str
    study: NotRequired[int]


class AnswerTask(TypedDict):
    """What the answerer is given: kept evidence, best first, not empty, cited by number from 1."""

    question: str
    intent: IntentFields
    evidence: list[EvidenceItem]


class RewriteTask(TypedDict):
    """What a rewriter is given: the question, the queries tried, and the nearest passages."""

    question: str
    tried: list[str]
    nearest: list[str]


@dataclass(frozen=True, kw_only=True)
class RoleSet:
    """Roles under a name, which can be told from others.

    Attributes:
        name: Short name for people.
        about: What the manifest records, e.g. the model and a hash of the prompts.
        spec: Plain data that tells these roles from all others; None if they are live objects.
    """

    name: str
    about: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] | None = None

    def fingerprint(self) -> dict[str, Any]:
        """Return what the answers of these roles depend on, as plain data."""
        # How long to wait, how fast to ask and where the key is kept do not change an answer.
        if self.spec is None:
            raise SettingsError(
                f"backend {self.name!r} was made from live objects, so its judgements cannot be "
                "told from those of others; give it a spec, or name it 'package.module:factory'"
            )
        return {"name": self.name, "about": dict(self.about), "spec": _without(self.spec)}


@dataclass(frozen=True, kw_only=True)
class Backend(RoleSet):
    """The roles that judge passages, and how to build them again.

    `dataclasses.replace` mixes roles: ``replace(local_backend(), summarizer=llm.summarizer)``.

    Attributes:
        name: Short name for people, e.g. ``"local"``.
        intent: Reads a question.
        judge: Scores passages: a `Judge`, or a Runnable or function that scores one.
        summarizer: Shortens one kept passage.
        answerer: Answers from the kept evidence; None when the backend cannot.
        about: What the manifest records: model, prompt hash, what kind of judge it is.
        spec: Plain data that builds this backend again; None if it was made from live objects.
        needs_evidence: Whether its judge must show a quote for a passage to pass, unless the
            settings say otherwise.
        names_evidence: Whether its judge names the evidence of what it scores high: a passage that
            passes without any is flagged in its `reason` and in `warnings`.
    """

    intent: "Runnable[IntentTask, Intent]"
    judge: Any  # typed by `judges.base.as_judge`: `Judge` stands in a layer above
    summarizer: "Runnable[PassageTask, Summary]"
    answerer: "Runnable[AnswerTask, Answer] | None" = None
    needs_evidence: bool = False
    names_evidence: bool = False

    @property
    def asks_model(self) -> bool:
        """Whether a role may ask a chat model; taken for granted of one that does not say."""
        roles = (self.intent, self.judge, self.summarizer, self.answerer)
        return any(getattr(role, "asks_model", True) for role in roles if role is not None)

    @property
    def reads_by_rules(self) -> bool:
        """Whether the question is read by hand-written rules."""
        return bool(getattr(self.intent, "reads_by_rules", False))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """Let a model of pydantic's hold a backend as it is, without reading its annotations."""
        return core_schema.is_instance_schema(cls)


_OF_NO_EFFECT = frozenset(
    {"api_key_env", "batch_size", "keep_in", "keep_mb", "limits", "max_retries", "retry"}
    | {"threads", "timeout"}
)


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(part) for key, part in value.items() if key not in _OF_NO_EFFECT}
    return value
