"""What a ranker is, and what it is shown: never a label, a real id or a first-stage score."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import sha256
from math import isnan
from threading import Lock
from typing import Any, NamedTuple, TypedDict

import numpy as np
from langchain_core.documents import Document

from deepera_graph.calibration.instance import Instance, RankingError, UnavailableError
from deepera_graph.settings.thresholds import OPERATING_POINT, Threshold
from deepera_graph.usage import Usage

N_SHUFFLES = 3  # runs of a random ranker, where nothing else is said
Ranking = list[tuple[str, float]]


class CandidatePassage(TypedDict):
    """A passage as a ranker sees it."""

    id: str  # its place in the first-stage order, from 1
    text: str
    title: str  # maybe empty
    section: str  # maybe empty


Job = tuple[str, Sequence[CandidatePassage]]


class Note(NamedTuple):
    """Why a passage got its score; `proven` tells whether it may pass a filter at all."""

    reason: str
    quote: str
    proven: bool
    summary: str = ""  # that the judge gave along with the score


class Problems:
    """Counts the passages that a ranker could not judge, and keeps the last reason."""

    def __init__(self) -> None:
        self.n_failed = 0
        self.reason = ""
        self._lock = Lock()

    def note(self, n: int, reason: str) -> None:
        """Note that *n* more passages could not be judged."""
        with self._lock:
            self.n_failed += n
            self.reason = reason


class Ranker:
    """Orders the passages of a question; a subclass has a name, and `rank` or `rank_many`.

    It is what a benchmark compares, and no `Judge`: an order over a whole pool, on any scale or on
    none (BM25, a random order, a listwise prompt, another package's compressor), which may leave
    passages out, costs something and may differ from run to run. `DeepEra` makes one of a judge.
    """

    name: str = ""
    # all that rankings depend on; None: made anew each time
    fingerprint: Mapping[str, Any] | None = None
    is_random: bool = False  # then `repeat` gives each run's
    asks_model: bool = False  # may differ from run to run, and each call of `repeat` asks anew
    says_why: bool = False  # leaves `notes`, and scores in [0, 1] say what to keep
    marks_failures: bool = False  # a passage that could not be judged has a score below 0
    operating_point: Threshold = OPERATING_POINT  # what it keeps where nothing else is said
    notes: Sequence[Mapping[str, Note]] = ()  # a question of the last `rank_many`
    intents: Sequence[Mapping[str, str]] = ()  # what each of them asks for; empty if not known

    def prepare(self) -> None:
        """Load what it needs, unless that is done: it is not to count as time of a question."""

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return (id, score), best first; the order counts, and one left out counts as a miss."""
        return self.rank_many([(question, passages)])[0]

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Return one ranking a question, in the same order."""
        return [self.rank(*job) for job in jobs]

    def repeat(self, number: int) -> "Ranker":
        """Return the ranker of one run; number 0 is this one."""
        return self

    def runs(self, n_repeats: int | None) -> list["Ranker"]:
        """Return the ranker of each run: *n_repeats* of one that may differ from run to run."""
        # None is `N_SHUFFLES` of a random one, and a single run of one that asks a model.
        n_runs = 1
        if self.is_random:
            n_runs = n_repeats or N_SHUFFLES
        elif self.asks_model:
            n_runs = n_repeats or 1
        return [self.repeat(number) for number in range(n_runs)]

    @property
    def usage(self) -> Usage:
        """Model calls and tokens since the ranker was made."""
        return Usage()

    @cached_property
    def problems(self) -> Problems:
        """What it could not judge since it was made."""
        return Problems()


class UnavailableRanker(Ranker):
    """Stands in a table for a ranker that could not be made."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Raise `UnavailableError`."""
        raise UnavailableError(self.reason)


class RepeatedRun(Ranker):
    """A ranker asked once more, under a fingerprint of its own; runs count from 0."""

    def __init__(self, ranker: Ranker, number: int) -> None:
        self._ranker = ranker
        self.name, self.says_why = ranker.name, ranker.says_why
        self.marks_failures = ranker.marks_failures
        self.operating_point = ranker.operating_point
        if ranker.fingerprint is not None:
            self.fingerprint = {**ranker.fingerprint, "run": number}

    @property
    def usage(self) -> Usage:
        """That of the ranker."""
        return self._ranker.usage

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Ask the ranker."""
        self.problems = self._ranker.problems
        rankings = self._ranker.rank_many(jobs)
        self.notes, self.intents = self._ranker.notes, self._ranker.intents
        return rankings


class FirstStage(Ranker):
    """Leaves the passages as they are."""

    name = "first stage"
    fingerprint: Mapping[str, Any] = {"kind": "first stage"}

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return the passages in the order they came."""
        return rank_by_score(passages, [-float(place) for place in range(1, len(passages) + 1)])


class Random(Ranker):
    """Shuffles the passages, each question its own way, whatever the order of the questions."""

    is_random = True

    def __init__(self, seed: int = 0) -> None:
        self.name, self.seed = "random", seed
        self.fingerprint = {"kind": "random", "seed": seed}

    def rank(self, question: str, passages: Sequence[CandidatePassage]) -> Ranking:
        """Return the passages by a random number in [0, 1)."""
        words = np.frombuffer(sha256(question.encode()).digest(), dtype=np.uint32)
        rng = np.random.default_rng([self.seed, *map(int, words)])
        return rank_by_score(passages, list(rng.random(len(passages))))

    def repeat(self, number: int) -> "Random":
        """Return the shuffle with the next seed but *number*."""
        return Random(self.seed + number)


def candidates_of(instance: Instance) -> list[CandidatePassage]:
    """Return what a ranker is shown of an instance, in first-stage order."""
    return [
        CandidatePassage(id=str(place), text=one.text, title=one.title, section=one.section)
        for place, one in enumerate(instance.contexts, start=1)
    ]


def as_document(passage: CandidatePassage, **metadata: str) -> Document:
    """Return a passage as a document, with title and section where there are any."""
    known = {key: passage[key] for key in ("title", "section") if passage[key]}
    return Document(id=passage["id"], page_content=passage["text"], metadata={**known, **metadata})


def check_ranking(name: str, passages: Sequence[CandidatePassage], ranking: Ranking) -> None:
    """Raise `RankingError` unless every id is one of the passages, at most once, with a number."""
    ids = [id for id, _ in ranking]
    unknown = set(ids) - {passage["id"] for passage in passages}
    if unknown:
        raise RankingError(f"ranker {name!r} returned unknown passages {sorted(unknown)[:3]}")
    if len(set(ids)) < len(ids):
        raise RankingError(f"ranker {name!r} returned a passage twice: {ids}")
    if any(isnan(score) for _, score in ranking):
        raise RankingError(f"ranker {name!r} returned a score that is not a number")


def rank_by_score(passages: Sequence[CandidatePassage], scores: Sequence[float]) -> Ranking:
    """Return a ranking by falling score; ties stay in first-stage order."""
    pairs = [(one["id"], float(score)) for one, score in zip(passages, scores, strict=True)]
    return sorted(pairs, key=lambda pair: -pair[1])


def texts_of(passages: Sequence[CandidatePassage]) -> list[str]:
    """Return title and text of each passage; a title that all of them share is left out."""
    titles = {passage["title"] for passage in passages}
    if len(titles) < 2:
        return [passage["text"] for passage in passages]
    return [f"{passage['title']} {passage['text']}".strip() for passage in passages]


@contextmanager
def same_logging() -> Iterator[None]:
    """Undo what a package does to the root logger within the block: that is the program's."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
