"""What travels through the graph: plain data and LangChain documents."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from langchain_core.documents import Document

from deepera_graph.passages import PassageLike
from deepera_graph.schema import IntentFields, PassageTask
from deepera_graph.usage import UsageRecord, merge_usage

PassageStatus = Literal["scored", "repaired", "failed", "skipped_budget", "not_needed"]
Outcome = Literal["ok", "over_filtered", "nothing_retrieved", "degraded", "budget_stop"]
Span = list[int]
Update = dict[str, Any]


class IntentRecord(TypedDict):
    """The intent, and whether it was recognised, repaired, or had to fall back to the question.

    `cause` says why, except for one recognised at once.
    """

    fields: IntentFields
    status: Literal["recognised", "repaired", "fallback"]
    cause: str


class SurveyRecord(TypedDict):
    """How the survey of the passages went.

    `status` is ``read``, ``repaired`` (the first reply was unusable), ``failed`` or
    ``skipped_budget`` (after both the passages are judged without notes), or ``none`` (there was
    nothing to judge); `cause` says why, except for ``read``.
    """

    status: Literal["read", "repaired", "failed", "skipped_budget", "none"]
    cause: str


class ScoreTask(TypedDict):
    """One window of one passage, on its way to the judge; only `task` reaches the role.

    `promise` is there if a surveyor told it: how likely the window is evidence.
    """

    index: int
    id: str
    start: int
    end: int
    task: PassageTask
    promise: NotRequired[float]


class ScoreGroup(TypedDict):
    """Windows of one question that are judged together."""

    members: list[ScoreTask]


class JudgementRecord(TypedDict):
    """The verdict on one window; `score` is None when the call failed, or there was none.

    `summary` is there if the judge gave one along with its score.
    """

    index: int
    id: str
    start: int
    end: int
    score: float | None
    status: PassageStatus
    reason: str
    quote: str
    unusable: bool
    summary: NotRequired[str]


class RankRecord(TypedDict):
    """One passage in the ranking.

    `rank` runs from 1 without gaps, and is 0 for a passage left out; `score` is in [0, 1] or None;
    `quote_span` are character offsets into the passage, None when the quote does not occur in it;
    `quote_status` says how it was found there, empty when there is no quote; `window` is the
    stretch of text that was scored, None when it was the whole passage.
    """

    index: int
    id: str
    rank: int
    score: float | None
    kept: bool
    status: PassageStatus
    reason: str
    quote: str
    quote_span: Span | None
    quote_status: Literal["verbatim", "normalised", "not_found", ""]
    window: Span | None
    unusable: bool
    retrieval_rank: int
    retrieval_score: float | None
    summary: str
    summary_status: str


class SummaryTask(TypedDict):
    """One kept passage on its way to the summarizer; only `task` reaches the role."""

    index: int
    id: str
    quote: str
    task: PassageTask


class SummaryRecord(TypedDict):
    """The summary of one passage.

    `status` is ``ok``, ``repaired`` (the first reply was unusable), ``drifted`` (a number or name
    is not in the passage), ``failed``, ``none`` (the summarizer found nothing that answers the
    question), or ``skipped_budget``; `cause` says why, except for ``ok``.
    """

    index: int
    id: str
    summary: str
    status: Literal["ok", "repaired", "drifted", "failed", "none", "skipped_budget"]
    cause: str


class AnswerQuote(TypedDict):
    """Words of an answer that stand in quotation marks, and where a kept passage has them.

    `id` and `span`, character offsets into that passage, are None when none of them has.
    """

    text: str
    id: str | None
    span: Span | None
    status: Literal["verbatim", "normalised", "not_found"]


class AnswerRecord(TypedDict):
    """The answer; `citations` are passage ids in the order of their first mention.

    `cause` says why there is none, why the answerer was asked twice, or that it quotes what no
    kept passage says. `quotes` is there if it quotes.
    """

    text: str
    citations: list[str]
    status: Literal["answered", "insufficient_evidence", "failed"]
    cause: str
    quotes: NotRequired[list[AnswerQuote]]


def collect(old: list[Any] | None, new: list[Any] | None) -> list[Any]:
    """Append what a branch wrote; None as *new* starts again from an empty list."""
    return [] if new is None else [*(old or []), *new]


class Question(TypedDict):
    """What goes in: a question and its passages, in first-stage order.

    Passages are documents (which may carry `retrieval_rank` and `retrieval_score` in their
    metadata), strings, or dicts with a ``text``.
    """

    question: str
    passages: Sequence[PassageLike]


class Output(TypedDict):
    """What comes out.

    `documents` are the kept passages, best first; `left_out` are the failed ones that the settings
    take out of the ranking. `survey` is there if the backend has a surveyor.
    """

    question: str
    intent: IntentRecord
    ranking: list[RankRecord]
    left_out: list[RankRecord]
    documents: list[Document]
    threshold: float
    outcome: Outcome
    fallback: str | None
    answer: AnswerRecord | None
    survey: NotRequired[SurveyRecord]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class State(Output):
    """Everything that travels.

    `notes` is there if the backend has a surveyor: one set of notes for each of `judged_windows`,
    in their order; empty if the survey failed.
    """

    passages: list[Document]
    notes: NotRequired[list[dict[str, float]]]
    judgements: Annotated[list[JudgementRecord], collect]
    summaries: Annotated[list[SummaryRecord], collect]
