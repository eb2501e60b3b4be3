"""Questions in other forms than JSON lines: JSON, tables and TREC runs; each becomes them.

What a line may hold, such as Cohere's `documents` and rank_llm's `candidates`, is in `lines`.
"""

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.passages import TEXT_FIELDS, field_key, take_field
from deepera_graph.retrieval.files import Skipped
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.text.jsonl import (
    RawRecord,
    open_records,
    parse_object,
    read_raw_lines,
    suffix_of,
)
from deepera_graph.text.records import QUESTION_FIELDS, UNREADABLE, read_records

_TREC_TAG = "deepera"
_MOST_SKIPPED = 5  # records of a corpus that are named
_TREC_STEP = 1e-6  # between two scores, so that nobody orders them otherwise
_QUERY_ID_FIELDS = ("qid", "query_id", "id", "_id")
_PASSAGE_ID_FIELDS = ("docid", "passage_id", "pid")

_NUMBERS: Mapping[str, Callable[[str], Any]] = {"score": float, "label": int, "isgolden": int}


def read_form(source: BinaryIO, suffix: str) -> tuple[BinaryIO, int | None]:
    """Return the questions of a JSON file or a table, told by its suffix, as JSON lines."""
    # See `deepera_graph.jobs.lines.open_questions`.
    if suffix == ".json":
        return _to_lines(read_records(source, suffix))
    return _to_lines(_group_rows(read_records(source, suffix, to_value=_to_value)))


def _to_lines(records: Iterable[RawRecord]) -> tuple[BinaryIO, int | None]:
    """Return JSON lines in which each record stands in the line of its number."""
    lines, n_before = io.BytesIO(), 0
    for record in records:
        lines.write(b"\n" * (record.number - n_before - 1))
        value = {UNREADABLE: record.error} if record.error else record.fields
        lines.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        n_before = record.number
    size = lines.tell()
    lines.seek(0)
    return lines, size or None


def _to_value(name: str, cell: str) -> object:
    try:
        return _NUMBERS.get(field_key(name), str)(cell)
    except ValueError:
        return cell  # whoever reads it says what is wrong with it


def _group_rows(rows: Iterable[RawRecord]) -> list[RawRecord]:
    """Make one question of the rows that have it, in the place of the first of them."""
    found: list[RawRecord] = []
    questions: dict[tuple[Any, Any], RawRecord] = {}
    for row in rows:
        fields = {name.lower(): value for name, value in row.fields.items()}
        question = take_field(fields, QUESTION_FIELDS)
        name = take_field(fields, _QUERY_ID_FIELDS)
        if row.error or question is None:
            found.append(row)
            continue
        if (name, question) not in questions:
            line = {"id": name, "question": question, "passages": []}
            questions[name, question] = RawRecord(row.number, line)
            found.append(questions[name, question])
        passage = {"id": take_field(fields, _PASSAGE_ID_FIELDS), **fields}
        questions[name, question].fields["passages"].append(passage)
    return found


class RunSource(NamedTuple):
    """A TREC run, and where the texts of its queries and documents are."""

    run: Path
    queries: Path  # JSON lines or a table, of `qid` and `query`
    corpus: Path  # a file or folder as `deepera index` reads it, or one in the layout of BEIR


@contextmanager
def open_run(
    source: RunSource, *, tell: Callable[[str], None] = lambda message: None
) -> Iterator[tuple[BinaryIO, int | None]]:
    """Give a TREC run as JSON lines, queries in the order of the run, documents by score."""
    # A line is the first one of a query. Only documents of the run are held in memory; those that
    # the corpus does not have are left out and counted by *tell*. A query with a line that cannot
    # be used is a record with an error. Raises `InputError` if a file cannot be read.
    wanted = _read_rankings(source.run)
    names = {name for ranking in wanted.values() for name in ranking.lines}
    skipped: list[Skipped] = []
    of_beir = source.corpus / "corpus.jsonl"
    corpus = of_beir if of_beir.is_file() else source.corpus
    texts: dict[str | None, dict[str, Any]] = {
        document.id: {"text": document.page_content, "metadata": document.metadata}
        for document in read_passages(corpus, max_words=None, on_skip=skipped.append)
        if document.id in names
    }
    for one in skipped[:_MOST_SKIPPED]:
        tell(f"skipped {one}")
    if len(skipped) > _MOST_SKIPPED:
        tell(f"skipped {len(skipped) - _MOST_SKIPPED} more of {source.corpus}")
    missing = names - texts.keys()
    if missing:
        tell(
            f"{len(missing)} of {len(names)} documents of {source.run} are not in {source.corpus}, "
            f"or cannot be used there, and left out, e.g. {min(missing)!r}"
        )
    queries = _read_queries(source.queries)
    yield _to_lines(
        _run_line(query, queries.get(query), ranking, texts) for query, ranking in wanted.items()
    )


def _run_line(
    query: str,
    question: str | None,
    ranking: "_Ranking",
    texts: Mapping[str | None, Mapping[str, Any]],
) -> RawRecord:
    number = min((*ranking.lines.values(), *(line for line, _ in ranking.problems)))
    if ranking.problems:
        line, problem = ranking.problems[0]
        place = "" if line == number else f"line {line} of the same query: "
        return RawRecord(number, {}, f"{place}{problem}")
    if question is None:
        return RawRecord(number, {}, f"query {query!r} is not in the file of queries")
    passages = [
        {"id": name, "score": score, **texts[name]}
        for name, score in ranking.by_score()
        if name in texts
    ]
    return RawRecord(number, {"id": query, "question": question, "passages": passages})


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The documents of a query, the line that each is in first, and what is wrong with others."""

    scores: dict[str, float] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)  # (line, what is wrong with it)

    def add(self, cells: Sequence[str], line: int) -> None:
        """Add a document."""
        # Source: Columns as `trec_eval` reads them: query, ``Q0``, document, rank, score, name of
        # the run.
        try:
            query, _, document, _, score, _ = cells
            number = float(score)
        except ValueError:
            wanted = "not a line of a TREC run (query, Q0, document, rank, score, name), got "
            self.problems.append((line, f"{wanted}{' '.join(cells):.80}"))
            return
        if document in self.lines:
            problem = f"query {query!r} has document {document!r} twice, first in line "
            self.problems.append((line, f"{problem}{self.lines[document]}"))
            return
        self.scores[document], self.lines[document] = number, line

    def by_score(self) -> list[tuple[str, float]]:
        """Return each document with its score, the highest first."""
        return sorted(self.scores.items(), key=lambda one: -one[1])


def read_run(path: Path) -> dict[str, list[tuple[str, float]]]:
    """Return (document id, score) of each query id, the highest score first."""
    # Raises `InputError` if a line has not six columns, or a query has a document twice.
    rankings = _read_rankings(path)
    for ranking in rankings.values():
        for line, problem in ranking.problems:
            raise InputError(f"{path}, line {line}: {problem}")
    return {query: ranking.by_score() for query, ranking in rankings.items()}


def _read_rankings(path: Path) -> dict[str, _Ranking]:
    rankings: dict[str, _Ranking] = {}
    with open_records(path) as (source, _):
        for line in read_raw_lines(source):
            cells = line.text.decode("utf-8", "replace").split()
            rankings.setdefault(cells[0] if cells else "", _Ranking()).add(cells, line.number)
    return rankings


def _read_queries(path: Path) -> dict[str, str]:
    queries: dict[str, str] = {}
    with open_records(path) as (source, _):
        for record in read_records(source, suffix_of(path)):
            fields = dict(record.fields)
            name = take_field(fields, _QUERY_ID_FIELDS)
            text = take_field(fields, (*QUESTION_FIELDS, *TEXT_FIELDS, "title"))
            if record.error or name is None or not isinstance(text, str):
                reason = record.error or f"needs a qid and a query, found {', '.join(fields)}"
                raise InputError(f"{path}, line {record.number}: {reason}")
            queries[str(name)] = text
    return queries


def write_run(ranked: Path, run: Path) -> None:
    """Write the rankings of an output file as a TREC run."""
    with ranked.open("rb") as source, run.open("w", encoding="utf-8") as out:
        for line in read_raw_lines(source):
            fields = parse_object(line.text)
            ranking = ((one["id"], one["score"]) for one in fields["ranking"])
            out.writelines(trec_lines(str(fields["id"]), ranking, above=1.0 + _TREC_STEP))


def trec_lines(
    query: str, ranking: Iterable[tuple[str, float | None]], *, above: float = math.inf
) -> Iterator[str]:
    """Yield the lines of a query in a TREC run; *above* is more than any score."""
    # White space in an id is written as ``_``. Each score is at least a little below the one before
    # it, so that nobody breaks a tie, or sorts anew what is not in the order of its scores; so is
    # that of a passage without a score.
    for rank, (document, score) in enumerate(ranking, start=1):
        below = above - _TREC_STEP
        above = below if score is None else min(score, below)
        ids = ("_".join(query.split()), "Q0", "_".join(document.split()))
        yield f"{' '.join(ids)} {rank} {above:.6f} {_TREC_TAG}\n"
