"""What a ranker is, and what it is shown: never a label, a real id or a first-stage score."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from math import isnan
from threading import Lock
from typing import Any, NamedTuple, Protocol, TypedDict, TypeVar, runtime_checkable

import numpy as np

from deepera_graph.bench.data.instance import Instance, RankingError, UnavailableError
from deepera_graph.errors import DeepEraError
from deepera_graph.judges.cross_encoder.models import brief, versions, weights
from deepera_graph.usage import Usage

__all__ = ["brief", "foreign", "imported", "need", "same_logging", "versions", "weights"]
T = TypeVar("T")


def need(module: str, *, install: str) -> None:
    """Check that a package is installed, without importing it: some take many seconds."""
    if find_spec(module.partition(".")[0]) is None:
        raise UnavailableError(f"{module} is not installed: pip install '{install}'")


def imported(module: str) -> Any:
    """Import a package that was checked with `need`."""
    return foreign(f"{module} cannot be imported", lambda: import_module(module))


def foreign(what: str, work: Callable[[], T]) -> T:
    """Let code of another package work, and tell its errors in one line."""
    try:
        return work()
    except DeepEraError:
        raise
    except Exception as error:  # the boundary to foreign code
        raise UnavailableError(f"{what}: {brief(error)}") from error


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


Ranking = list[tuple[str, float]]


class Passage(TypedDict):
    """A candidate as a ranker sees it.

    `id` is its place in the first-stage order, counted from 1; `title` and `section` may be empty.
    """

    id: str
    text: str
    title: str
    section: str


Job = tuple[str, Sequence[Passage]]


@runtime_checkable
class Ranker(Protocol):
    """Orders the passages of a question.

    A ranker may also have `rank_many(jobs)`, which is then used instead of `rank`; `prepare()`,
    which loads what it needs; `usage`, the running total of model calls and tokens; `problems`,
    what it could not judge; `notes`, why it judged as it did; and `repeat(number)`, which gives
    the ranker for one of several independent runs.
    """

    @property
    def name(self) -> str:
        """What the table calls it."""

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """All that its rankings depend on, as plain data; None if that is not known.

        Rankings are cached under it, so a ranker without one runs anew every time.
        """

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return (id, score) of the passages, best first; a passage left out counts as a miss.

        The order counts, not the score.
        """


@runtime_checkable
class BatchRanker(Ranker, Protocol):
    """A ranker that takes many questions at once."""

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Return one ranking a job, in the same order."""


@runtime_checkable
class CountedRanker(Ranker, Protocol):
    """A ranker that counts what its model calls cost."""

    @property
    def usage(self) -> Usage:
        """Model calls and tokens since the ranker was made."""


@runtime_checkable
class PreparedRanker(Ranker, Protocol):
    """A ranker that has something to load, which is not to count as time of the first question."""

    def prepare(self) -> None:
        """Load it, unless that is done."""


@runtime_checkable
class EvidenceRanker(Ranker, Protocol):
    """A ranker that makes evidence out of the passages, such as summaries."""

    def evidence_many(self, jobs: Sequence[Job], n: int) -> list[list[str]]:
        """Return the best *n* pieces of evidence a job, best first, in the same order."""


class Problems:
    """Counts the passages that a ranker could not judge, and keeps the last reason.

    Such passages are never left out: they keep their first-stage order among themselves.
    """

    def __init__(self) -> None:
        self.n_failed = 0
        self.reason = ""
        self._lock = Lock()

    def note(self, n: int, reason: str) -> None:
        """Note that *n* more passages could not be judged."""
        with self._lock:
            self.n_failed += n
            self.reason = reason


@runtime_checkable
class FallibleRanker(Ranker, Protocol):
    """A ranker that says which passages it could not judge."""

    @property
    def problems(self) -> Problems:
        """What failed since the ranker was made."""


class Note(NamedTuple):
    """Why a passage got its score; `proven` tells whether it may pass a filter at all."""

    reason: str
    quote: str
    proven: bool


@runtime_checkable
class NotingRanker(Ranker, Protocol):
    """A ranker that says why."""

    @property
    def notes(self) -> Sequence[Mapping[str, Note]]:
        """Passage id to note, one mapping a question of the last `rank` or `rank_many`."""


@runtime_checkable
class RepeatedRanker(Ranker, Protocol):
    """A ranker whose rankings differ from run to run."""

    def repeat(self, number: int) -> Ranker:
        """Return the ranker of one run; number 0 is this one."""


def passages_of(instance: Instance) -> list[Passage]:
    """Return what a ranker is shown of an instance, in first-stage order."""
    return [
        Passage(id=str(place), text=one.text, title=one.title, section=one.section)
        for place, one in enumerate(instance.contexts, start=1)
    ]


def check_ranking(name: str, passages: Sequence[Passage], ranking: Ranking) -> None:
    """Raise `RankingError` unless every id is one of the passages, at most once, with a number."""
    ids = [id for id, _ in ranking]
    unknown = set(ids) - {passage["id"] for passage in passages}
    if unknown:
        raise RankingError(f"ranker {name!r} returned unknown passages {sorted(unknown)[:3]}")
    if len(set(ids)) < len(ids):
        raise RankingError(f"ranker {name!r} returned a passage twice: {ids}")
    if any(isnan(score) for _, score in ranking):
        raise RankingError(f"ranker {name!r} returned a score that is not a number")


def by_score(passages: Sequence[Passage], scores: Sequence[float]) -> Ranking:
    """Return a ranking by falling score; ties stay in first-stage order."""
    pairs = [(one["id"], float(score)) for one, score in zip(passages, scores, strict=True)]
    return sorted(pairs, key=lambda pair: -pair[1])


def texts_of(passages: Sequence[Passage]) -> list[str]:
    """Return title and text of each passage; a title that all of them share is left out."""
    titles = {passage["title"] for passage in passages}
    if len(titles) < 2:
        return [passage["text"] for passage in passages]
    return [f"{passage['title']} {passage['text']}".strip() for passage in passages]


@dataclass(frozen=True)
class Absent:
    """Stands in a table for a ranker that could not be made."""

    name: str
    reason: str

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """It has none: it may be there the next time."""
        return None

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Raise `UnavailableError`."""
        raise UnavailableError(self.reason)


class Again:
    """Does what a ranker does, under a fingerprint of its own."""

    def __init__(self, ranker: Ranker, number: int) -> None:
        self.ranker, self.number = ranker, number

    @property
    def name(self) -> str:
        """That of the ranker."""
        return self.ranker.name

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """That of the ranker, with the number of the run; None if it has none."""
        inner = self.ranker.fingerprint
        return None if inner is None else {**inner, "run": self.number}

    @property
    def usage(self) -> Usage:
        """That of the ranker."""
        return self.ranker.usage if isinstance(self.ranker, CountedRanker) else Usage()

    @property
    def problems(self) -> Problems:
        """Those of the ranker."""
        return self.ranker.problems if isinstance(self.ranker, FallibleRanker) else Problems()

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Ask the ranker."""
        return self.ranker.rank(question, passages)

    def rank_many(self, jobs: Sequence[Job]) -> list[Ranking]:
        """Ask the ranker, many questions at once if it can."""
        if isinstance(self.ranker, BatchRanker):
            return self.ranker.rank_many(jobs)
        return [self.ranker.rank(*job) for job in jobs]


class NotingAgain(Again):
    """The same for a ranker that says why."""

    @property
    def notes(self) -> Sequence[Mapping[str, Note]]:
        """Those of the ranker."""
        return self.ranker.notes if isinstance(self.ranker, NotingRanker) else []


def again(ranker: Ranker, number: int) -> Again:
    """Return a ranker asked for the *number*-th time, counted from 0."""
    return (
        NotingAgain(ranker, number) if isinstance(ranker, NotingRanker) else Again(ranker, number)
    )


@dataclass(frozen=True)
class FirstStage:
    """Leaves the passages as they are."""

    name: str = "first stage"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """It depends on nothing."""
        return {"kind": "first stage"}

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return the passages in the order they came."""
        return by_score(passages, [-float(place) for place in range(1, len(passages) + 1)])


@dataclass(frozen=True)
class Random:
    """Shuffles the passages, each question its own way, whatever the order of the questions."""

    seed: int = 0
    name: str = "random"

    @property
    def fingerprint(self) -> Mapping[str, Any]:
        """It depends on its seed."""
        return {"kind": "random", "seed": self.seed}

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Return the passages by a random number in [0, 1)."""
        words = np.frombuffer(sha256(question.encode()).digest(), dtype=np.uint32)
        rng = np.random.default_rng([self.seed, *map(int, words)])
        return by_score(passages, list(rng.random(len(passages))))

    def repeat(self, number: int) -> "Random":
        """Return the shuffle with the next seed but *number*."""
        return Random(self.seed + number, self.name)
