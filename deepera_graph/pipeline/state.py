"""What travels through the graph: plain data and LangChain documents; and what is told of it."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Annotated, Any, Literal, NotRequired, Protocol, cast

from langchain_core.documents import Document
from pydantic import Field, WithJsonSchema
from typing_extensions import TypedDict

from deepera_graph.errors import InputError
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import PaperStatus
from deepera_graph.passages import RETRIEVAL_KEYS, PassageLike, WindowRecord
from deepera_graph.schema import POSSIBLE, Band, Batch, Direction, IntentFields, PassageTask
from deepera_graph.settings import Content
from deepera_graph.usage import UsageRecord, merge_usage

PassageStatus = Literal["scored", "repaired", "failed", "skipped_budget", "not_needed"]
Outcome = Literal["ok", "no_evidence", "nothing_retrieved", "degraded", "budget_stop"]
Span = list[int]
Update = dict[str, Any]


def read_outcome(name: str) -> Outcome:
    """Return an outcome that was stored; ``over_filtered``, of versions up to 0.5, is no_evidence.

    Any other name is returned as it is.
    """
    return "no_evidence" if name == "over_filtered" else cast("Outcome", name)


class IntentRecord(TypedDict):
    """The intent, and whether it was recognised, repaired, or had to fall back to the question.

    `cause` says why, except for one recognised at once.
    """

    fields: IntentFields
    status: Literal["recognised", "repaired", "fallback"]
    cause: str


class ScoreTask(TypedDict):
    """A batch on its way to the judge, which sees `batch` alone.

    `members` are, for each window of the batch, all that have its text.
    """

    batch: Batch
    members: list[list[WindowRecord]]


class JudgementRecord(WindowRecord):
    """The verdict on one window; `score` is None when the call failed, or there was none.

    `summary`, `direction` and `position` are there if the judge gave them along with its score, and
    `evidence_unknown` if it named evidence that the passage does not have. A first score,
    on which a later round decides, has the status ``candidate``, and `by` says which part of the
    judge gave it.
    """

    score: float | None
    status: PassageStatus | Literal["candidate"]
    reason: str
    quote: str
    unusable: bool
    summary: NotRequired[str]
    evidence_unknown: NotRequired[bool]
    direction: NotRequired[Direction]
    position: NotRequired[str]


class CandidateRecord(TypedDict):
    """A first score of a window, on which a later round decides; `by` is the part that gave it."""

    index: int
    start: int
    score: float
    by: str


QuoteStatus = Literal["verbatim", "normalised", "not_found", ""]


class RankRecord(TypedDict):
    """One passage in the ranking.

    `rank` runs from 1 without gaps, and is 0 for a passage left out; `score` is in [0, 1] or None;
    `quote_span` are character offsets into the passage, None when the quote does not occur in it;
    `quote_status` says how it was found there, empty when there is no quote, and ``not_found``
    without one where the judge named a sentence that the passage does not have; `window` is the
    stretch of text that was scored, None when it was the whole passage; `direction` is None, and
    `position` empty, where the judge gave none; `band` is None for what is not kept, or by
    `on_empty` alone; `study` is a number that all passages of one study share, and `paper_status`
    what became of its paper.
    """

    index: int
    id: str
    rank: int
    score: float | None
    kept: bool
    band: Band | None
    status: PassageStatus
    reason: str
    direction: Direction | None
    position: str
    quote: str
    quote_span: Span | None
    quote_status: QuoteStatus
    window: Span | None
    unusable: bool
    retrieval_rank: int
    retrieval_score: float | None
    summary: str
    summary_status: str
    study: NotRequired[int]
    paper_status: NotRequired[PaperStatus | None]


class SummaryTask(TypedDict):
    """One kept passage on its way to the summarizer; only `task` reaches the role."""

    index: int
    id: str
    quote: str
    task: PassageTask


SummaryStatus = Literal["ok", "repaired", "drifted", "failed", "none", "skipped_budget"]


class SummaryRecord(TypedDict):
    """The summary of one passage.

    `status` is ``ok``, ``repaired`` (the first reply was unusable), ``drifted`` (a number or name
    is not in the passage), ``failed``, ``none`` (the summarizer found nothing that answers the
    question), or ``skipped_budget``; `cause` says why, except for ``ok``.
    """

    index: int
    id: str
    summary: str
    status: SummaryStatus
    cause: str


class AnswerQuote(TypedDict):
    """Words of an answer that stand in quotation marks, and where a kept passage has them.

    `id` and `span`, character offsets into that passage, are None when none of them has.
    """

    text: str
    id: str | None
    span: Span | None
    status: Literal["verbatim", "normalised", "not_found"]


class UncitedStudy(TypedDict):
    """A study that is evidence, and no passage of which an answer cites.

    `id` and `direction` are those of its first passage; `cause` is empty where only the answerer
    knows it.
    """

    id: str
    direction: Direction | None
    cause: str


class AnswerRecord(TypedDict):
    """The answer; `citations` are passage ids in the order of their first mention.

    `cause` says why there is none, why the answerer was asked twice, or that it quotes what no
    kept passage says. `quotes` is there if it quotes, `uncited` if evidence is not in it.
    """

    text: str
    citations: list[str]
    status: Literal["answered", "insufficient_evidence", "failed"]
    cause: str
    quotes: NotRequired[list[AnswerQuote]]
    uncited: NotRequired[list[UncitedStudy]]


def append(old: list[Any] | None, new: list[Any] | None) -> list[Any]:
    """Append what a branch wrote; None as *new* starts again from an empty list."""
    return [] if new is None else [*(old or []), *new]


def merge_by(
    key: str, old: list[Any] | None, new: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """Write what a branch found into the record with its key; None as *new* starts from none."""
    if new is None:
        return []
    merged: dict[Any, dict[str, Any]] = {one[key]: dict(one) for one in old or []}
    for one in new:
        merged[one[key]] = {**merged.get(one[key], {}), **one}
    return [*merged.values()]


def replace_keys(old: dict[str, Any] | None, new: dict[str, Any] | None) -> dict[str, Any]:
    """Put what a branch wrote in the place of what its keys had; None as *new* forgets all."""
    return {} if new is None else {**(old or {}), **new}


_PASSAGES_SCHEMA = {
    "type": "array",
    "description": "Candidates in first-stage order: texts, or objects with a text.",
    "items": {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "description": "Names the passage in the ranking."},
                    "text": {"type": "string"},
                    "metadata": {"type": "object", "description": "Such as title, year and doi."},
                    "score": {"type": "number", "description": "Of the first stage."},
                },
                "anyOf": [{"required": ["text"]}, {"required": ["page_content"]}],
            },
        ]
    },
}


class Question(TypedDict):
    """A question and its candidate passages."""

    question: Annotated[
        str, Field(description="One complete scientific question that names what it is about.")
    ]
    passages: Annotated[Sequence[PassageLike], WithJsonSchema(_PASSAGES_SCHEMA)]


class Output(TypedDict):
    """The kept passages, the ranking of all, and the answer if one was asked for."""

    question: str
    intent: Annotated[IntentRecord, Field(description="What kind of question it is.")]
    ranking: Annotated[list[RankRecord], Field(description="Every passage once, best first.")]
    left_out: Annotated[
        list[RankRecord], Field(description="Failed passages that the settings do not rank.")
    ]
    warnings: Annotated[
        list[str], Field(description="Why scores may mean little, e.g. the question's language.")
    ]
    documents: Annotated[list[Document], Field(description="The kept passages, best first.")]
    threshold: Annotated[float, Field(description="Lowest score kept, as applied; in [0, 1].")]
    evidence_point: Annotated[
        float | None, Field(description="From this score on what is kept is evidence; or all is.")
    ]
    missing_words: Annotated[
        list[str], Field(description="Of the question, in no passage: then none is evidence.")
    ]
    outcome: Annotated[Outcome, Field(description="How it went; ok if evidence was kept.")]
    fallback: Annotated[str | None, Field(description="The on_empty choice, if it was needed.")]
    answer: Annotated[AnswerRecord | None, Field(description="With citations, if asked for.")]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


class State(Output):
    """Everything that travels; `windows` are what is judged of `passages`, in their order."""

    passages: list[Document]
    windows: list[WindowRecord]
    judgements: Annotated[list[JudgementRecord], append]
    candidates: Annotated[list[CandidateRecord], append]
    summaries: Annotated[list[SummaryRecord], append]


def read_judgements(state: State) -> list[JudgementRecord]:
    """Return the verdicts so far.

    Raises:
        InputError: Versions up to 0.9 began the thread with a cascade: they kept its first scores
            among the verdicts.
    """
    judgements = state["judgements"]
    if any(one["status"] == "candidate" for one in judgements):
        raise InputError(
            "the thread to resume was begun by version 0.9 or older, with a cascade, and cannot be "
            "continued; take another thread_id"
        )
    return judgements


_RECORD_KEYS = (
    "rank", "band", "reason", "direction", "position", "quote", "quote_span", "quote_status",
    "status", "window", "summary", "summary_status", "retrieval_rank", "retrieval_score", "study",
    "paper_status",
)  # fmt: skip


def cite_record(record: RankRecord, passages: Sequence[Document]) -> Citation:
    """Return where a passage is from, as it says by itself, with what became of its paper."""
    metadata = passages[record["index"]].metadata
    source = Citation.of(metadata, record["id"], record["quote_span"])
    return replace(source, status=record.get("paper_status") or source.status)


def kept_document(
    passage: Document,
    record: Mapping[str, Any],
    content: Content,
    source: Citation,
) -> Document:
    """Return a copy of a kept passage with its verdict, a `RankRecord` or like it.

    `metadata` keeps every key and gains `relevance_score` in [0, 1] and one `deepera` key with the
    rest, JSON-serialisable. Where `page_content` is the summary, that has the passage as `text`.
    *source* is how it is cited.
    """
    verdict: dict[str, Any] = {key: record.get(key) for key in _RECORD_KEYS}
    for key in ("quote_span", "window"):
        verdict[key] = None if record[key] is None else list(record[key])
    verdict["citation"] = str(source)
    shown = passage.page_content
    if content == "summary" and record["summary"]:
        shown, verdict["text"] = record["summary"], passage.page_content
    rest = {name: value for name, value in passage.metadata.items() if name not in RETRIEVAL_KEYS}
    return Document(
        id=passage.id,
        page_content=shown,
        metadata={**deepcopy(rest), "relevance_score": record["score"], "deepera": verdict},
    )


_TOLD = (
    ("judgements", "scored", ("id", "score", "status", "reason", "direction")),
    ("summaries", "summarized", ("id", "summary", "status")),
)


def tell(node: str, update: Update) -> None:
    """Write to the stream of events what a node did, each judgement and each summary."""
    from langgraph.config import get_stream_writer  # noqa: PLC0415  # messages need none of it

    write = get_stream_writer()
    if node == "intent":
        intent = update["intent"]
        write({"event": "intent", "intent": intent["fields"], "status": intent["status"]})
    elif node == "select":
        ranking = update["ranking"]
        write(
            {
                "event": "selected",
                "threshold": update["threshold"],
                "kept": [one["id"] for one in ranking if one["kept"]],
                "possible": [one["id"] for one in ranking if one["band"] == POSSIBLE],
                "outcome": update["outcome"],
                "warnings": update["warnings"],
            }
        )
    elif node == "answer":
        said = {name: update["answer"][name] for name in ("text", "citations", "status")}
        write({"event": "answered", **said})
    for key, event, names in _TOLD:
        for one in update.get(key, ()):
            write({"event": event, **{name: one.get(name) for name in names}})


class PlainNode(Protocol):
    """A node that calls no role."""

    def __call__(self, state: State) -> Update:
        """Run the node."""
        ...


def announced(name: str, node: PlainNode) -> PlainNode:
    """Wrap a node that calls no role, so that it tells what it did."""

    def run(state: State) -> Update:
        update = node(state)
        tell(name, update)
        return update

    return run
