"""What the reader learns from: groups of passages of one question, labelled.

A group is compared within itself: evidence, look-alikes of its question, and a few other passages.
They come from pools, and from abstracts with questions on them: which sentences answer, and what
none answers.
"""

import gzip
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.calibration.instance import DatasetError, read_rows
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.direction.model import DIRECTIONS
from deepera_graph.lab.training.fitting.sentences import MarkedText
from deepera_graph.lab.training.lessons.pools import OTHER_PAPER, Pool, hash_question
from deepera_graph.lab.training.lessons.snippets import find_near
from deepera_graph.schema import Direction
from deepera_graph.text.jsonl import parse_object, read_objects, read_raw_lines

MAX_EVIDENCE, MAX_ALIKE, MAX_OTHER = 4, 8, 3  # passages of a group
MAX_SMALL = 15  # passages of a pool that is like a library of abstracts
MAX_RUN = 4  # sentences of an abstract that are read as one passage
_WRITTEN = ("misleading", "speculative")  # kinds of passages written to mislead
_RUNS_TRIED = 3  # for each run that is wanted
_WORDS = re.compile(r"\w{4,}")

T = TypeVar("T")
Marks = tuple[tuple[int, int, int], ...]  # start, end, and 1 for a sentence that answers
_BREAK = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")  # what the numbers of sentences go by
NOT_YES: tuple[Direction, ...] = ("contradicts", "no_difference")  # one of which is right
_OF_DECISION: Mapping[str, tuple[Direction, ...]] = {"yes": ("supports",), "no": NOT_YES}
_OF_OTHERS: Mapping[tuple[str, str], tuple[Direction, ...]] = {  # and of other studies
    ("yes", "agree"): ("supports",),
    ("yes", "contrary"): ("contradicts",),
    ("yes", "null"): ("no_difference",),
    ("yes", "mixed"): ("mixed",),
    ("no", "agree"): NOT_YES,
    ("no", "contrary"): ("supports",),
    ("no", "null"): ("no_difference",),
    ("no", "mixed"): ("mixed",),
    ("maybe", "mixed"): ("mixed",),
    ("maybe", "null"): ("no_difference",),
}


class _AbstractQuestion(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    answer: list[int] = Field(min_length=1)  # sentences, from 0
    direction: Direction | None = None


class _AbstractRow(BaseModel):
    """Labels of one abstract; its text is in the data set that *paper* names."""

    model_config = ConfigDict(extra="forbid")

    paper: str = Field(pattern=r"^(?:scifact|papers|question_titles):.+$")
    sentences: int = Field(ge=1)  # how many there are, to tell another version of the text
    questions: list[_AbstractQuestion] = []
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
    rows = list(read_rows(path, _AbstractRow))
    for source in sorted({row.paper.partition(":")[0] for row in rows}):
        texts.update(_READ[source](data))
    for row in rows:
        title, sentences = texts.get(row.paper, ("", ()))
        if len(sentences) != row.sentences:
            raise DatasetError(
                f"{path}: {row.paper} has {row.sentences} sentences, but {len(sentences)} in {data}"
            )
        yield from _ask(row, title, sentences)


def _ask(row: _AbstractRow, title: str, sentences: tuple[str, ...]) -> Iterator[AskedAbstract]:
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


class Lesson(NamedTuple):
    """One passage for one question."""

    question: str
    text: str
    label: int  # 1 for evidence
    directions: tuple[int, ...] = ()  # places in `DIRECTIONS` of which one is right
    marks: Marks = ()


Group = tuple[Lesson, ...]


def list_directions(known: Iterable[Direction]) -> tuple[int, ...]:
    """Return the places of directions that the reader tells apart."""
    return tuple(DIRECTIONS.index(one) for one in known if one in DIRECTIONS)


class SaidByEvidence(NamedTuple):
    """Which way evidence of PubMedQA points."""

    set: str
    question: str
    text: str
    directions: tuple[Direction, ...]  # one of which is right; not empty


def read_directions(folder: Path) -> Iterator[SaidByEvidence]:
    """Yield the evidence of PubMedQA's sets whose direction is known; none of a set not there."""
    for name in ("natural", "multi"):
        path = folder / f"{name}.jsonl"
        for row in read_objects(path) if path.exists() else ():
            decision = row["decision"]
            for one in row["contexts"]:
                way = decision, one.get("direction", "")
                known = _OF_OTHERS.get(way) if name == "multi" else _OF_DECISION.get(decision)
                if one["is_golden"] and known:
                    yield SaidByEvidence(name, row["question"], one["text"], known)


def teach_pools(
    pools: Iterable[Pool], known: Mapping[tuple[str, str], tuple[int, ...]], chance: Random
) -> Iterator[Group]:
    """Yield a group of each pool: its evidence, its look-alikes, the nearest of other papers.

    Of an article, whose passages are all of one paper, those count as look-alikes that share most
    words with the question; of a pool as small as a library of abstracts, in which no look-alike is
    marked, all others do.
    """
    for pool in pools:
        evidence = [one for one in pool.passages if one.label]
        rest = [one for one in pool.passages if not one.label]
        alike = [one.read_text for one in rest if one.kind != OTHER_PAPER]
        other = [one.read_text for one in rest if one.kind == OTHER_PAPER]
        if not alike and len(pool.passages) <= MAX_SMALL:
            alike, other = other, []
        if pool.of_one_paper:
            asked = set(_WORDS.findall(pool.question.lower()))
            alike.sort(key=lambda text: -len(asked.intersection(_WORDS.findall(text.lower()))))
            alike, other = alike[:MAX_ALIKE], []
        elif any(one.kind.startswith(_WRITTEN) for one in rest):
            alike = [one.read_text for one in rest if one.kind.startswith(_WRITTEN)]
        lessons = [
            Lesson(pool.question, one.read_text, 1, known.get((pool.question, one.text), ()))
            for one in draw(evidence, MAX_EVIDENCE, chance)
        ]
        texts = draw(alike, MAX_ALIKE, chance) + draw(other[:10], MAX_OTHER, chance)
        yield (*lessons, *(Lesson(pool.question, text, 0) for text in texts))


def teach_abstracts(asked: Sequence[AskedAbstract | MarkedText], chance: Random) -> Iterator[Group]:
    """Yield a group of each question on an abstract: runs of its sentences, and of others'."""
    ends = {one.sentences: " ".join(one.sentences[-2:]) for one in asked}
    for one in asked:
        known = list_directions(one.directions) if isinstance(one, AskedAbstract) else ()
        found = [
            lesson._replace(directions=known if lesson.label else ())
            for lesson in _cut_runs(one.question, one.sentences, one.answering, chance)
        ]
        others = [ends[its] for its in chance.sample(list(ends), min(3, len(ends)))
                  if its != one.sentences]  # fmt: skip
        yield (*found, *(Lesson(one.question, text, 0) for text in others[:2]))


def _cut_runs(
    question: str, sentences: Sequence[str], answering: frozenset[int], chance: Random
) -> Iterator[Lesson]:
    """Yield up to two runs that answer and three that do not."""
    wanted = {1: 2, 0: 3}
    seen: set[str] = set()
    for _ in range(_RUNS_TRIED * sum(wanted.values())):
        n = chance.randint(1, min(MAX_RUN, len(sentences)))
        first = chance.randint(0, len(sentences) - n)
        run = sentences[first : first + n]
        text, label = " ".join(run), int(not answering.isdisjoint(range(first, first + n)))
        if text not in seen and wanted[label]:
            seen.add(text)
            wanted[label] -= 1
            own = frozenset(place - first for place in answering)
            yield Lesson(question, text, label, (), mark(run, own) if n > 1 else ())


def mark(sentences: Sequence[str], answering: Collection[int]) -> Marks:
    """Return where each sentence stands in the text that a space joins, and whether it answers."""
    found, start = [], 0
    for place, one in enumerate(sentences):
        found.append((start, start + len(one), int(place in answering)))
        start += len(one) + 1
    return tuple(found)


def teach_papers(data: Path, n_papers: int, chance: Random) -> Iterator[Group]:
    """Yield weak lessons: a title asks, the end of its abstract answers, its beginning does not.

    And the ends of the abstracts that share most words with it are of other papers. They prepare
    the reader for real labels; about three in ten are wrong.
    """
    papers = [one for one in read_papers(data).values() if len(one[1]) > 5]
    chance.shuffle(papers)
    ends = [" ".join(sentences[-2:]) for _, sentences in papers]
    near = find_near([title for title, _ in papers[:n_papers]], ends, 8)
    for place, (title, sentences) in enumerate(islice(papers, n_papers)):
        half = len(sentences) // 2
        n = chance.randint(1, 3)
        begin = chance.randint(0, max(0, half - n))
        texts = [" ".join(sentences[begin : begin + n])]
        texts += [ends[one] for one in chance.sample(near[place], 2) if one != place]
        answer = " ".join(sentences[max(half, len(sentences) - n) :])
        yield (Lesson(title, answer, 1), *(Lesson(title, text, 0) for text in texts))


def leave_out(groups: Iterable[Group], held_out: Collection[str]) -> list[Group]:
    """Return the groups of other questions than those, which are named by `hash_question`."""
    return [one for one in groups if one and hash_question(one[0].question) not in held_out]


def draw(some: Sequence[T], most: int, chance: Random) -> list[T]:
    """Return as many of them as there are, by chance and in any order, but not more than *most*."""
    return chance.sample(list(some), min(most, len(some)))
