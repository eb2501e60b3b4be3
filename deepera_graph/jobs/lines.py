"""Lines of a question file, and what the report counts of each question."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypedDict, TypeVar

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.literature.paper_keys import RETRACTED
from deepera_graph.passages import (
    ID_FIELDS,
    TEXT_FIELDS,
    PassageLike,
    check_length,
    has_value,
    read_id,
    take_field,
)
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.text.jsonl import (
    RawLine,
    measure,
    open_records,
    parse_object,
    read_raw_lines,
    suffix_of,
)
from deepera_graph.text.records import (
    CANDIDATE_FIELDS,
    MOST_BAD,
    QUESTION_FIELDS,
    TABLES,
    UNREADABLE,
    describe_wrong_file,
    guess_kind,
)
from deepera_graph.text.terms import missing_terms
from deepera_graph.usage import UsageRecord

_ID_FIELDS = ("id", "_id", "qid", "query_id")
_SCORE_FIELDS = ("score", "first_stage_score")


class QuestionStats(TypedDict):
    """What the report counts of a question, as plain data."""

    outcome: str
    subject: str | None  # what the question belongs to, if that is known
    n_passages: int
    n_kept: int
    n_passed: int  # those that passed the filter, without those that `on_empty` filled in
    n_evidence: int  # those of them that are evidence, and not possible evidence alone
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
    kind: str = ""  # what `guess_kind` takes it for


class DoneLine(NamedTuple):
    """A line that an earlier run is done with: either its stats or its error says how it went."""

    number: int
    end: int
    id: str | None
    stats: QuestionStats | None = None
    error: str = ""


@contextmanager
def open_questions(path: Path) -> Iterator[tuple[BinaryIO, int | None]]:
    """Open a file of questions as JSON lines; also give their size in bytes, if it is known.

    - ``.json``: a list of questions, or one. A line is the place in the list.
    - ``.csv``, ``.tsv``: a row a passage, with the columns `question` (or `query`), `text` (or
      another name of it), and if known `qid`, `docid`, `score`, `label` and others. Rows of one
      question may stand apart. A line is the first row of a question.
    - Any of these, or JSON lines, with ``.gz`` behind it.

    Raises:
        InputError: The file cannot be read.
    """
    suffix = suffix_of(path)
    with open_records(path) as (source, raw):
        if suffix != ".json" and suffix not in TABLES:
            yield source, measure(path, raw)
            return
        from deepera_graph.jobs.forms import read_form  # noqa: PLC0415 - imports all readers

        yield read_form(source, suffix)


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


LineT = TypeVar("LineT", bound="QuestionLine | BadLine | DoneLine")


def refuse_wrong_file(lines: Iterable[LineT]) -> Iterator[LineT]:
    """Give the lines on, unless there are none, or those at the beginning are all bad."""
    held: list[LineT] = []
    n_good, line = 0, None
    for line in lines:
        held.append(line)
        n_good += not isinstance(line, BadLine)
        if n_good:
            yield from held
            held.clear()
        elif len(held) == MOST_BAD:
            raise _wrong_file(held, whole=False)
    if held:
        raise _wrong_file(held, whole=True)
    if line is None:
        raise InputError("holds no question, so there is nothing to rerank")


def _wrong_file(lines: "Sequence[QuestionLine | BadLine | DoneLine]", *, whole: bool) -> InputError:
    bad = [line for line in lines if isinstance(line, BadLine)]
    is_corpus = bad[0].kind == "corpus"
    hint = "This looks like a corpus: see deepera index" if is_corpus else ""
    errors = [(line.number, line.error) for line in bad]
    return InputError(describe_wrong_file(errors, whole=whole, hint=hint))


def _read(line: RawLine, seen: dict[str, int]) -> QuestionLine | BadLine:
    name: str | None = None
    keys: tuple[str, ...] = ()
    digest = hash_line(line.text)
    try:
        fields = _unfold_query(parse_object(line.text))
        if UNREADABLE in fields:
            raise InputError(str(fields[UNREADABLE]))
        keys = tuple(fields)
        name = read_id(_take_first(fields, _ID_FIELDS), line.number)
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
        return BadLine(line.number, line.end, name, str(error), digest, guess_kind(keys))


def _unfold_query(fields: dict[str, Any]) -> dict[str, Any]:
    """Put id and text of a query in the place of the query, as rank_llm has it."""
    query = fields.get("query")
    if not isinstance(query, Mapping) or "question" in fields:
        return fields
    return {"id": query.get("qid"), **fields, "query": query.get("text")}


def _take_first(fields: dict[str, Any], names: Sequence[str]) -> Any:
    """Take out the first of the fields that is there."""
    name = next((name for name in names if fields.get(name) is not None), None)
    return None if name is None else fields.pop(name)


def _take_question(fields: dict[str, Any]) -> str:
    found = ", ".join(fields) or "nothing"
    question = _take_first(fields, QUESTION_FIELDS)
    if question is None:
        raise InputError(f"has no {' or '.join(QUESTION_FIELDS)}, found {found:.120}")
    if not isinstance(question, str) or not question.strip():
        raise InputError(f"question must be a text, not blank, got {question!r:.80}")
    check_length(question)
    return question


def _take_passages(fields: dict[str, Any]) -> list[PassageLike]:
    name = next((name for name in CANDIDATE_FIELDS if name in fields), None)
    if name is None:
        raise InputError(
            f"has no {', '.join(CANDIDATE_FIELDS)}; found {', '.join(fields) or 'a question alone'}"
        )
    items = fields.pop(name)
    if not isinstance(items, list):
        raise InputError(f"{name} must be a list, got {items!r:.80}")
    return _mark_blank([_read_candidate(item) for item in items])


def _mark_blank(items: list[Any]) -> list[Any]:
    """Make a document without text of a passage that has none, so that it costs itself alone."""
    # If no passage has a text, the field is called otherwise: then they stay, and that is told.
    blank = [_is_blank(item) for item in items]
    if all(blank):
        return items
    return [
        _to_blank(item, place) if is_blank else item
        for place, (item, is_blank) in enumerate(zip(items, blank, strict=True), start=1)
    ]


def _is_blank(item: Any) -> bool:
    return not has_value(take_field(dict(item), TEXT_FIELDS) if isinstance(item, Mapping) else item)


def _to_blank(item: Any, place: int) -> Any:
    fields = dict(item) if isinstance(item, Mapping) else {}
    name, about = take_field(fields, ID_FIELDS), fields.pop("metadata", None)
    if not isinstance(name, str | int | None) or not isinstance(about, Mapping | None):
        return item
    known = {one: value for one, value in fields.items() if has_value(value) and one != "score"}
    score = fields.get("score")
    metadata = {**known, **(about or {}), **({} if score is None else {"retrieval_score": score})}
    return Document(id=str(place if name is None else name), page_content="", metadata=metadata)


def _read_candidate(item: Any) -> Any:
    """Give a passage the first score it has, and the text that rank_llm has under `doc`."""
    # What else is wrong with it, the reranker says.
    if not isinstance(item, Mapping):
        return item
    scores = [item[name] for name in _SCORE_FIELDS if item.get(name) is not None]
    others = {name: value for name, value in item.items() if name not in _SCORE_FIELDS}
    document = others.get("doc")
    if isinstance(document, str | Mapping):
        del others["doc"]
        text = document if isinstance(document, Mapping) else {"text": document}
        name = next(
            (others.pop(one) for one in ("docid", "id") if has_value(others.get(one))), None
        )
        others = {**others, **text, **({} if name is None else {"id": name})}
    return {**others, "score": scores[0]} if scores else others


def _take_metadata(fields: dict[str, Any]) -> dict[str, Any]:
    metadata = fields.pop("metadata", None)
    if not isinstance(metadata, Mapping | None):
        raise InputError(f"metadata must be an object, got {metadata!r:.80}")
    return {**fields, **(metadata or {})}


def count_question(result: RerankResult, subject: str | None = None) -> QuestionStats:
    """Return what is counted of a question, and the subject it belongs to if that is known."""
    terms, retained = _count_terms(result.passages)
    sure = [one for one in result.evidence if one.paper_status != RETRACTED]
    stats: QuestionStats = {
        "outcome": result.outcome,
        "subject": subject,
        "n_passages": len(result.all_passages),
        "n_kept": len(result.kept),
        "n_passed": 0 if result.fallback else len(result.kept),
        "n_evidence": 0 if result.fallback else len(sure),
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
