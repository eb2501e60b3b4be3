"""Abstracts of papers with questions on them: which sentences answer, and what none answers."""

import gzip
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.calibration.instance import DatasetError, read_rows
from deepera_graph.errors import InputError
from deepera_graph.schema import Direction
from deepera_graph.text.files.jsonl import parse_object, read_objects, read_raw_lines

_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")  # what the numbers of sentences go by
_OF_DECISION: Mapping[str, tuple[Direction, ...]] = {
    "yes": ("supports",),
    "no": ("contradicts", "no_difference"),
}


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    answer: list[int] = Field(min_length=1)  # sentences, from 0
    direction: Direction | None = None


class _Row(BaseModel):
    """Labels of one abstract; its text is in the data set that *paper* names."""

    model_config = ConfigDict(extra="forbid")

    paper: str = Field(pattern=r"^(?:scifact|papers|question_titles):.+$")
    sentences: int = Field(ge=1)  # how many there are, to tell another version of the text
    questions: list[_Question] = []
    unanswered: list[str] = []
    labels: str = ""  # a letter a sentence: background, aim, method, answer (R), other result
    decision: str = ""  # what it answers to its title, if that is a question
    title_answer: list[int] = []  # sentences that answer the title


class AskedAbstract(NamedTuple):
    """A question, an abstract in sentences, and those of them that answer it."""

    question: str
    sentences: tuple[str, ...]
    answering: frozenset[int]  # places, from 0; empty if nothing answers
    directions: tuple[Direction, ...]  # one of which is right; empty if none is known
    source: str  # of the abstract
    title: str


def read_abstracts(path: Path, data: Path) -> Iterator[AskedAbstract]:
    """Yield the questions of a file of labels on the abstracts that a folder of data sets holds.

    An `InputError` names an abstract that is not there, or is there in another wording.
    """
    texts: dict[str, tuple[str, tuple[str, ...]]] = {}
    rows = list(read_rows(path, _Row))
    for source in sorted({row.paper.partition(":")[0] for row in rows}):
        texts.update(_READ[source](data))
    for row in rows:
        title, sentences = texts.get(row.paper, ("", ()))
        if len(sentences) != row.sentences:
            raise DatasetError(
                f"{path}: {row.paper} has {row.sentences} sentences, but {len(sentences)} in {data}"
            )
        yield from _ask(row, title, sentences)


def _ask(row: _Row, title: str, sentences: tuple[str, ...]) -> Iterator[AskedAbstract]:
    source = row.paper.partition(":")[0]
    if row.title_answer:
        known = _OF_DECISION.get(row.decision, ())
        yield AskedAbstract(title, sentences, frozenset(row.title_answer), known, source, title)
    for one in row.questions:
        if not all(0 <= place < len(sentences) for place in one.answer):
            raise DatasetError(f"{row.paper}: no sentence {one.answer} for {one.question!r}")
        known = (one.direction,) if one.direction else ()
        answer = frozenset(one.answer)
        yield AskedAbstract(one.question, sentences, answer, known, source, title)
    for question in row.unanswered:
        yield AskedAbstract(question, sentences, frozenset(), (), source, title)


def _read_scifact(data: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    rows = read_objects(data / "scifact/corpus_sentences.jsonl")
    return {f"scifact:{row['doc_id']}": (row["title"], tuple(row["abstract"])) for row in rows}


def _read_titles(data: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    rows = read_objects(data / "question_titles/dev_labels.jsonl")
    return {
        f"question_titles:{row['paper']}": (row["title"], tuple(row["sentences"])) for row in rows
    }


def read_papers(data: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return title and sentences of all papers that have an abstract, by ``papers:`` and id."""
    path = data / "papers/papers.jsonl.gz"
    try:
        with gzip.open(path, "rb") as file:
            rows: list[dict[str, Any]] = [parse_object(one.text) for one in read_raw_lines(file)]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return {
        f"papers:{row['id']}": (row["title"], split_abstract(row["abstract"]))
        for row in rows
        if row["abstract"]
    }


def split_abstract(text: str) -> tuple[str, ...]:
    """Cut an abstract where a capital letter follows the end of a sentence."""
    return tuple(one for one in _BREAK.split(" ".join(text.split())) if one)


_READ = {"scifact": _read_scifact, "papers": read_papers, "question_titles": _read_titles}
