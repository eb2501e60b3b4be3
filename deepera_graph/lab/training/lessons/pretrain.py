"""Lessons of relevance, before the judge's own: public pairs in which people said what answers.

A folder of such sets has a file each, JSON lines compressed by gzip. ``squad_sentences`` has
``question``, ``positive`` and ``negative``; ``squad_contrast`` a ``context`` with an
``answerable_question`` and an ``unanswerable_question``; the others pairs of ``query`` and
``passage`` with ``label`` (1 for evidence), ``kind``, and ``split`` where they have one. Sets that
are not there are left out. Of each that is taught, what `measure_relevance` goes by is held out.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import numpy as np

from deepera_graph.errors import InputError
from deepera_graph.lab.training.lessons.groups import Group, Lesson, draw, list_directions
from deepera_graph.lab.training.lessons.snippets import (
    AskedSnippets,
    Row,
    is_held_out,
    read_pairs,
    read_questions,
)
from deepera_graph.lab.training.weights import import_package
from deepera_graph.schema import Direction

Read = Callable[[Sequence[tuple[str, str]]], Sequence[float]]  # pairs -> log odds of evidence

MOST_SNIPPETS, A_GROUP = 6, 2  # of a question; of a group
NEAREST: Final = 14  # snippets of other questions that may stand beside
N_NEAR: Final = 10  # snippets of other questions beside a golden one, where it is measured
LONGEST: Final = 900  # characters of a paragraph or passage
EASY: Final = 12_000  # triples whose right sentence shares most words with the question
N_MEASURED: Final = 300  # rows of each set
_BLANKS = (
    (re.compile(r"\s+([.,;:?!%)\]])"), r"\1"),
    (re.compile(r"([(\[])\s+"), r"\1"),
    (re.compile(r"\s+('s|n't|'re|'ve)\b"), r"\1"),
    (re.compile(r"-LRB-\s?"), "("),
    (re.compile(r"\s?-RRB-"), ")"),
)
_YES: Final[tuple[Direction, ...]] = ("supports",)
_NO: Final[tuple[Direction, ...]] = ("contradicts",)
_NOT_YES: Final[tuple[Direction, ...]] = ("contradicts", "no_difference")


class _PairSet(NamedTuple):
    """How a set of pairs is taught."""

    splits: tuple[str, ...] = ()  # all, if it has none
    directions: Mapping[str, tuple[Direction, ...]] = {}  # of each kind of evidence
    most_wrong: int = 3  # passages that do not answer, of a group
    most: int | None = None  # groups


_CLAIMED: Final = {"supports": _YES, "refutes": _NO}
_PAIR_SETS: Final[Mapping[str, _PairSet]] = {
    "citation_integrity": _PairSet(("train",), {"support": _YES, "refute": _NO}),
    "fool_me_twice": _PairSet((), _CLAIMED, 1),
    "fever_symmetric": _PairSet((), _CLAIMED),
    "fever_dev": _PairSet((), _CLAIMED, 1, 4500),
    "cad_nli": _PairSet(("train", "dev"), {"entailment": _YES, "contradiction": _NO}, 2),
    "condaqa": _PairSet((), {"yes": _YES, "no": _NOT_YES}, 1, 2000),
    "selqa": _PairSet(),
}


class Relevance(NamedTuple):
    """What a reader that has seen none of our own data reaches, in [0, 1]; None where no set is."""

    triples: float | None  # share in which the sentence that answers is above the other
    answerable: float | None  # area under the curve, answerable against not, one paragraph
    snippets: float | None  # MAP of a golden snippet among `N_NEAR` near ones
    citations: float | None  # area under the curve, evidence against the rest of the cited paper


def teach_relevance(
    folder: Path, chance: Random, answers: Mapping[str, bool] | None = None
) -> list[Group]:
    """Return the groups of a folder of public pairs: the hard triples of sentences first.

    *answers* are those of yes/no questions, by the ids that ``bioasq_snippets`` has; its snippets
    then teach a direction, too. An `InputError` if the folder holds none of the sets.
    """
    hard, easy = _teach_sentences(folder)
    chance.shuffle(hard)
    chance.shuffle(easy)
    snippets = read_questions(folder)
    rest = [
        *easy[:EASY],
        *chain.from_iterable(_teach_snippets(one, chance, answers or {}) for one in snippets),
        *chain.from_iterable(
            _teach_pairs(folder, name, how, chance) for name, how in _PAIR_SETS.items()
        ),
        *_teach_contrast(folder),
    ]
    first = len(hard) // 3
    rest += hard[first:]
    chance.shuffle(rest)
    if not (hard or rest):
        raise InputError(f"{folder} holds none of the sets to learn relevance from")
    return [*hard[:first], *rest]


def measure_relevance(folder: Path, read: Read) -> Relevance:
    """Measure a reader on the parts of a folder of public pairs that `teach_relevance` leaves."""
    chance = Random(0)
    triples = [row for row in read_pairs(folder, "squad_sentences") if is_held_out(row["article"])]
    paragraphs = [row for row in read_pairs(folder, "squad2_dev") if len(row["context"]) <= LONGEST]
    cited = [row for row in read_pairs(folder, "citation_integrity") if row.get("split") == "dev"]
    held = [one for one in read_questions(folder) if is_held_out(one.id)]
    return Relevance(
        _measure_triples(draw(triples, N_MEASURED, chance), read),
        _area(
            read,
            [
                (row["question"], row["context"], bool(row["answerable"]))
                for row in draw(paragraphs, N_MEASURED, chance)
            ],
        ),
        _measure_snippets(draw(held, N_MEASURED, chance), read),
        _area(
            read,
            [
                (mend_blanks(row["query"]), mend_blanks(row["passage"]), bool(row["label"]))
                for row in draw(cited, N_MEASURED, chance)
            ],
        ),
    )


def mend_blanks(text: str) -> str:
    """Return a tokenised text as it is written: its blanks would tell of which set it is."""
    for pattern, instead in _BLANKS:
        text = pattern.sub(instead, text)
    return text.replace("`` ", '"').replace(" ''", '"')


def _teach_sentences(folder: Path) -> tuple[list[Group], list[Group]]:
    """Return the triples whose wrong sentence shares as many words as the right one; the others."""
    hard: list[Group] = []
    easy: list[Group] = []
    for row in read_pairs(folder, "squad_sentences"):
        if not is_held_out(row["article"]):
            asked = row["question"]
            group = (Lesson(asked, row["positive"], 1), Lesson(asked, row["negative"], 0))
            (hard if row["overlap_neg"] >= row["overlap_pos"] else easy).append(group)
    return hard, easy


def _teach_contrast(folder: Path) -> Iterator[Group]:
    """Yield a paragraph with two questions, one that it answers; spelling must not tell them."""
    for row in read_pairs(folder, "squad_contrast"):
        text = row["context"]
        if len(text) <= LONGEST and not is_held_out(row["article"]):
            unanswered = mend_blanks(row["unanswerable_question"].lower())
            yield (Lesson(row["answerable_question"].lower(), text, 1), Lesson(unanswered, text, 0))


def _teach_pairs(folder: Path, name: str, how: _PairSet, chance: Random) -> list[Group]:
    asked: dict[str, list[Row]] = defaultdict(list)
    for row in read_pairs(folder, name):
        if len(row["passage"]) <= LONGEST and (not how.splits or row.get("split") in how.splits):
            asked[row["query"]].append(row)
    groups: list[Group] = []
    for rows in asked.values():
        wrong = [row for row in rows if not row["label"]]
        chosen = [row for row in rows if row["label"]][:4]
        chosen += draw(wrong, how.most_wrong, chance)
        groups.append(tuple(_pair_lesson(row, how.directions) for row in chosen))
    return draw(groups, how.most or len(groups), chance)


def _pair_lesson(row: Row, directions: Mapping[str, tuple[Direction, ...]]) -> Lesson:
    known = list_directions(directions.get(row["kind"], ()))
    return Lesson(mend_blanks(row["query"]), mend_blanks(row["passage"]), int(row["label"]), known)


def _teach_snippets(
    asked: AskedSnippets, chance: Random, answers: Mapping[str, bool]
) -> Iterator[Group]:
    """Yield groups of two golden snippets and three near ones of other questions."""
    if is_held_out(asked.id):
        return
    known: tuple[Direction, ...] = ()
    if asked.id in answers:
        known = _YES if answers[asked.id] else _NOT_YES
    golden = draw(asked.golden, MOST_SNIPPETS, chance)
    for start in range(0, len(golden), A_GROUP):
        some = golden[start : start + A_GROUP]
        wrong = draw(asked.near[:NEAREST], len(some) + 1, chance)
        yield (
            *(Lesson(asked.question, text, 1, list_directions(known)) for text in some),
            *(Lesson(asked.question, text, 0) for text in wrong),
        )


def _measure_triples(rows: Sequence[Row], read: Read) -> float | None:
    right = read([(row["question"], row["positive"]) for row in rows])
    wrong = read([(row["question"], row["negative"]) for row in rows])
    above = [one > other for one, other in zip(right, wrong, strict=True)]
    return float(np.mean(above)) if above else None


def _measure_snippets(asked: Sequence[AskedSnippets], read: Read) -> float | None:
    found = []
    for one in asked:
        texts = [one.golden[0], *one.near[:N_NEAR]]
        golden, *others = read([(one.question, text) for text in texts])
        found.append(1 / (1 + sum(score >= golden for score in others)))
    return float(np.mean(found)) if found else None


def _area(read: Read, labelled: Sequence[tuple[str, str, bool]]) -> float | None:
    """Return the area under the curve: how often evidence is above what is none."""
    scores = read([(question, text) for question, text, _ in labelled])
    right = [score for score, (*_, label) in zip(scores, labelled, strict=True) if label]
    wrong = [score for score, (*_, label) in zip(scores, labelled, strict=True) if not label]
    if not (right and wrong):
        return None
    metrics = import_package("sklearn.metrics", "measuring the reader")
    labels = [1] * len(right) + [0] * len(wrong)
    return float(metrics.roc_auc_score(labels, [*right, *wrong]))
