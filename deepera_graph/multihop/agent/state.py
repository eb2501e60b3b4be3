"""What travels through the agent's graph, and what the caller can turn."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from langchain_core.documents import Document
from typing_extensions import TypedDict

from deepera_graph.budget import Budget
from deepera_graph.multihop.agent.uncertainty import BatchUncertainty, Uncertainty
from deepera_graph.multihop.path import PathStep, StepStatus, Support
from deepera_graph.pipeline.state import Span, append
from deepera_graph.settings import AgentSettings
from deepera_graph.usage import UsageRecord, merge_usage

StopReason = Literal["", "complete", "max_steps", "repetition", "plan_failed", "budget"]
AnswerStatus = Literal["answered", "insufficient_evidence", "failed", "budget_stop"]


_BEGINNING = 60  # characters of a passage that stand for its title
READ_AT_ONCE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHopSettings(AgentSettings):
    """How far the agent goes.

    Attributes:
        max_steps: Most sub-questions that are asked, >= 1.
        step_passages: Most passages a step is answered from, >= 1 (SUNAR: 10).
        read_at_once: How many of them are read first, >= 1; the others only if these do not have
            the answer.
        final_passages: Most passages the question is answered from in the end, >= 1 (SUNAR: 10).
        passages_a_step: How many of each step without a proven answer are among them beside the
            cited ones, >= 0 (SUNAR's code: 2, of every step).
        max_concurrency: Most model calls in flight, >= 1.
        budget: What a question may cost; None is no limit.
        uncertainty: How the uncertainty of answers is measured; None does not, and costs nothing.

    Raises:
        SettingsError: A value is out of range.
    """

    max_steps: int = 6
    step_passages: int = 10
    read_at_once: int = READ_AT_ONCE
    final_passages: int = 10
    passages_a_step: int = 2
    max_concurrency: int = 16
    budget: Budget | None = None
    uncertainty: Uncertainty | None = None

    _LEAST = MappingProxyType({"passages_a_step": 0})
    _READ = MappingProxyType({"budget": Budget, "uncertainty": Uncertainty})

    @property
    def readings(self) -> int:
        """How often the passages of a step may be read, part after part."""
        return -(-self.step_passages // self.read_at_once)


class MultiHopKwargs(TypedDict, total=False):
    """The settings as keyword arguments; see `MultiHopSettings`."""

    max_steps: int
    step_passages: int
    read_at_once: int
    final_passages: int
    passages_a_step: int
    max_concurrency: int
    budget: Budget | Mapping[str, Any] | None
    uncertainty: Uncertainty | Mapping[str, Any] | None


class CitedRecord(TypedDict):
    """Words of a passage that carry an answer, and their character offsets in its text."""

    id: str
    title: str
    quote: str
    span: Span


class StepRecord(TypedDict):
    """One step of the path.

    `number` runs from 1. `status` is ``open`` until passages were looked for and ``found`` until
    they were read; then ``answered``, ``uncited`` (an answer that names no sentence), ``not_found``
    (the passages do not have it, or there are none), ``failed`` or ``skipped_budget``. `support` is
    ``proven``, ``likely`` (the passages do not say it, yet hardly anything else fits; or no
    sentence was named) or ``none``. `cause` says why there is no answer, and otherwise why it is
    this one. `passages` are those that were read, best first, the first `n_read` of those found
    while it is ``found``; `uncertainty` has a record for each batch that was measured.
    """

    number: int
    question: str
    status: StepStatus | Literal["open", "found"]
    answer: str
    support: Support
    cause: str
    passages: list[Document]
    n_read: int
    evidence: list[CitedRecord]
    uncertainty: list[BatchUncertainty]


class StepTask(TypedDict):
    """A step on its way to the retriever or to the replier; `path` is what was known before it.

    `passed_over` are ids of passages that it need not read again.
    """

    question: str
    path: list[PathStep]
    step: StepRecord
    passed_over: list[str]


class CorrectionRecord(TypedDict):
    """A step that the final answer does not agree with; both answers are kept."""

    step: int
    before: str
    after: str


class FinalRecord(TypedDict):
    """The answer to the question; `cause` says why there is none, or what is wrong with it.

    `support` is ``proven``, ``likely`` (a link of the way is not said) or ``none``. `citations` are
    passage ids in the order of first mention, `evidence` the words they stand for.
    """

    text: str
    status: AnswerStatus
    support: Support
    cause: str
    citations: list[str]
    evidence: list[CitedRecord]
    corrections: list[CorrectionRecord]
    check: str


def merge_steps(old: list[StepRecord] | None, new: list[dict[str, Any]] | None) -> list[StepRecord]:
    """Write what a branch found into its step, by number; None as *new* starts again from none."""
    if new is None:
        return []
    by_number: dict[int, dict[str, Any]] = {one["number"]: dict(one) for one in old or []}
    for one in new:
        by_number[one["number"]] = {**by_number.get(one["number"], {}), **one}
    return [by_number[number] for number in sorted(by_number)]  # type: ignore[misc]


class MultiHopInput(TypedDict):
    """What is asked."""

    question: str


class MultiHopOutput(TypedDict):
    """The path, the answer, and how the path ended."""

    question: str
    steps: Annotated[list[StepRecord], merge_steps]
    answer: FinalRecord | None
    evidence: list[Document]
    stopped: StopReason
    problems: Annotated[list[str], append]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class MultiHopState(MultiHopOutput):
    """Everything that travels; `thought` is what the planner said last.

    `pending` are sub-questions of its plan that wait for the answers of others, `is_retry` and
    `is_complete` what it said of the plan, and `n_before` how many steps there were before it.
    """

    thought: str
    pending: list[str]
    is_retry: bool
    is_complete: bool
    n_before: int


def open_step(number: int, question: str) -> StepRecord:
    """Return a step that nothing is known about yet."""
    return {
        "number": number,
        "question": question,
        "status": "open",
        "answer": "",
        "support": "none",
        "cause": "",
        "passages": [],
        "n_read": 0,
        "evidence": [],
        "uncertainty": [],
    }


def path_of(steps: list[StepRecord]) -> list[PathStep]:
    """Return the steps as roles see them; those that are still open are left out."""
    return [
        {
            "question": one["question"],
            "answer": one["answer"],
            "status": one["status"],  # type: ignore[typeddict-item]  # as `if` says
            "support": one["support"],
            "cause": one["cause"],
            "titles": [] if one["answer"] else [*dict.fromkeys(map(_title, one["passages"]))],
        }
        for one in steps
        if one["status"] not in ("open", "found")
    ]


def _title(passage: Document) -> str:
    """Return the title of a passage, or else its beginning."""
    return str(passage.metadata.get("title") or passage.page_content[:_BEGINNING])
