"""Lines of a question file, and what the report counts of each question."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple, TypedDict

from deepera_graph.errors import InputError
from deepera_graph.passages import PassageLike
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.text.jsonl import RawLine, parse_object, read_raw_lines
from deepera_graph.text.terms import missing_terms
from deepera_graph.usage import UsageRecord

_PASSAGE_FIELDS = ("passages", "contexts")
_SCORE_FIELDS = ("score", "first_stage_score")


class QuestionStats(TypedDict):
    """What the report counts of a question, as plain data."""

    outcome: str
    subject: str | None  # what the question belongs to, if that is known
    n_passages: int
    n_kept: int
    n_passed: int  # those that passed the filter, without those that `on_empty` filled in
    statuses: dict[str, int]  # of passages
    causes: dict[str, int]  # why passages could not be judged
    usage: dict[str, UsageRecord]  # a stage
    seconds: dict[str, float]  # of wall time, a stage
    intent: str  # its status
    scores: list[float]  # of the passages judged, in rank order, each in [0, 1]
    threshold: float
    summary_statuses: dict[str, int]
    summary_terms: dict[str, int]  # ``numbers`` and ``names`` in the summaries handed out
    retained_terms: dict[str, int]  # those of them that the passage has, too


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLine:
    """One question of a file."""

    number: int  # of the line in the file, from 1
    end: int  # bytes of the file up to the end of this line
    id: str  # the line's number when the line has none
    question: str
    passages: list[PassageLike]
    metadata: dict[str, Any]  # every other field of the line
    digest: str = field(default="", compare=False, repr=False)

    @property
    def subject(self) -> str | None:
        """What the question belongs to, if its metadata say so."""
        subject = self.metadata.get("subject")
        return subject if isinstance(subject, str) and subject else None

    def fail(self, error: str) -> "BadLine":
        """Say what is wrong with the question as a whole."""
        return BadLine(self.number, self.end, self.id, error, self.digest)


class BadLine(NamedTuple):
    """A line that cannot be used: its number, its end, its id if that could be read, and why."""

    number: int
    end: int
    id: str | None
    error: str
    digest: str = ""


class DoneLine(NamedTuple):
    """A line that an earlier run is done with: either its stats or its error says how it went."""

    number: int
    end: int
    id: str | None
    stats: QuestionStats | None = None
    error: str = ""


def hash_line(text: bytes) -> str:
    """Return the SHA-256 of a line without the white space around it, in hexadecimal."""
    return sha256(text.strip()).hexdigest()


def read_lines(source: BinaryIO) -> Iterator[QuestionLine | BadLine]:
    """Read one JSON object a line, with an id of its own; of a line only the id stays in memory."""
    seen: dict[str, int] = {}
    return (_read(line, seen) for line in read_raw_lines(source))


def read_rest(
    source: BinaryIO, find_done: Callable[[RawLine], DoneLine | None]
) -> Iterator[QuestionLine | BadLine | DoneLine]:
    """Do what `read_lines` does, but do not parse the lines that *find_done* knows."""
    seen: dict[str, int] = {}
    for line in read_raw_lines(source):
        done = find_done(line)
        if done is not None and done.id is not None:
            seen.setdefault(done.id, done.number)
        yield done or _read(line, seen)


def _read(line: RawLine, seen: dict[str, int]) -> QuestionLine | BadLine:
    name: str | None = None
    digest = hash_line(line.text)
    try:
        fields = parse_object(line.text)
        name = _read_id(fields.pop("id", None), line.number)
        earlier = seen.setdefault(name, line.number)
        if earlier != line.number:
            raise InputError(f"id {name!r} is used twice, first in line {earlier}")
        return QuestionLine(
            number=line.number,
            end=line.end,
            id=name,
            question=_take_question(fields),
            passages=_take_passages(fields),
            metadata=_take_metadata(fields),
            digest=digest,
        )
    except InputError as error:
        return BadLine(line.number, line.end, name, str(error), digest)


def _read_id(value: object, number: int) -> str:
    if value is None:
        return str(number)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError(f"id must be a string, got {value!r:.80}")
    return str(value)


def _take_question(fields: dict[str, Any]) -> str:
    question = fields.pop("question", None)
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"question must be a text, not blank, got {question!r:.80}")
    return question


def _take_passages(fields: dict[str, Any]) -> list[PassageLike]:
    name = next((name for name in _PASSAGE_FIELDS if name in fields), None)
    if name is None:
        raise InputError(f"has no passages, only {', '.join(fields) or 'a question'}")
    items = fields.pop(name)
    if not isinstance(items, list):
        raise InputError(f"{name} must be a list, got {items!r:.80}")
    return [_with_score(item) for item in items]


def _with_score(item: Any) -> Any:
    """Give a passage the first score it has; what else is wrong with it, the reranker says."""
    if not isinstance(item, Mapping):
        return item
    scores = [item[name] for name in _SCORE_FIELDS if item.get(name) is not None]
    others = {name: value for name, value in item.items() if name not in _SCORE_FIELDS}
    return {**others, "score": scores[0]} if scores else others


def _take_metadata(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = fields.pop("metadata", None)
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata must be an object, got {metadata!r:.80}")
    return {**fields, **(metadata or {})}


def count_question(result: RerankResult, subject: str | None = None) -> QuestionStats:
    """Return what is counted of a question, and the subject it belongs to if that is known."""
    terms, retained = _count_terms(result.passages)
    stats: QuestionStats = {
        "outcome": result.outcome,
        "subject": subject,
        "n_passages": len(result.all_passages),
        "n_kept": len(result.kept),
        "n_passed": 0 if result.fallback else len(result.kept),
        "statuses": dict(Counter(one.status for one in result.all_passages)),
        "causes": dict(Counter(one.reason for one in result.failed)),
        "usage": {stage: used.record() for stage, used in result.usage.items()},
        "seconds": dict(result.seconds),
        "intent": result.intent["status"],
        "scores": [one.score for one in result.passages if one.score is not None],
        "threshold": result.threshold,
        "summary_statuses": dict(
            Counter(one.summary_status for one in result.passages if one.summary_status)
        ),
        "summary_terms": terms,
        "retained_terms": retained,
    }
    return stats


def _count_terms(passages: tuple[RankedPassage, ...]) -> tuple[dict[str, int], dict[str, int]]:
    """Count the numbers and names of the summaries, and those that stand in their passages."""
    terms, retained = Counter[str](), Counter[str]()
    for passage in passages:
        if passage.summary_status in {"", "failed", "skipped_budget"}:
            continue
        title = str(passage.metadata.get("title") or "")
        missing = set(missing_terms(passage.summary, f"{passage.text} {title}"))
        for term in missing_terms(passage.summary, ""):
            kind = "numbers" if any(letter.isdigit() for letter in term) else "names"
            terms[kind] += 1
            retained[kind] += term not in missing
    return dict(terms), dict(retained)
