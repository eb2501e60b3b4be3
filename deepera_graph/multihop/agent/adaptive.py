"""Retrieval that follows the neighbours of what it scored well: neighbourhood-aware retrieval.

A first stage misses passages that share nothing with the question, though they lie next to passages
that it found. Under a budget of passages to score, `search_adaptively` takes turns: a batch of the
first stage, then a batch of the frontier, the neighbours of what was scored so far.

Source:
    MacAvaney, Tonellotto and Macdonald (2022), Adaptive Re-Ranking with a Corpus Graph, algorithm
    1; the feedback of answers is that of Venktesh, Rathee and Anand, SUNAR: Semantic Uncertainty
    based Neighborhood Aware Retrieval for Complex QA.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, NamedTuple, get_args

from deepera_graph.agents.twin import TwinCall, Work, ado, as_work, do
from deepera_graph.errors import SettingsError
from deepera_graph.multihop.settings import Feedback
from deepera_graph.settings.budget import ado_many, do_many
from deepera_graph.settings.ranges import check_at_least, check_choice

BUDGET, BATCH_SIZE = 50, 16
Affinity = Callable[[str, str], float]
Priority = Literal["rescored", "scored"]
Score = float | None  # None: it could not be scored
FindNeighbours = Callable[[str], Sequence[str]]
ScoreBatch = Callable[[str, Sequence[str]], Sequence[Score]]
Rescore = Callable[[str, Sequence[str], Sequence[float]], Sequence[float]]
_RESCORED_AT_ONCE = 8


class Scored(NamedTuple):
    """One passage that was scored."""

    id: str  # the passage's
    score: float  # what ranks it: after `rescore`, if there is one
    iteration: int  # the turn it was scored in, from 0: even for the first stage, odd for the graph
    via: str | None  # the passage whose neighbour it is, where it is from the graph
    raw_score: float  # the score before `rescore`


class Unscored(NamedTuple):
    """One passage that could not be scored; it counts toward the budget, and has no neighbours."""

    id: str
    iteration: int
    via: str | None


@dataclass(frozen=True, slots=True)
class AdaptiveResult:
    """What was scored, in which order, and what was left."""

    passages: tuple[Scored, ...]  # best first; of equal scores what was scored earlier is first
    unscored: tuple[Unscored, ...]  # what was asked about, and has no score
    batches: tuple[tuple[str, ...], ...]  # the ids of each turn, in the order they were scored in
    rest: tuple[str, ...]  # of the first stage what the budget did not reach, in its order
    # when scores were revised: ``each`` batch before the next, or ``after`` all
    feedback: Feedback | None = None

    @property
    def n_asked(self) -> int:
        """How many passages were given to the scorer, each of them once."""
        return sum(map(len, self.batches))


def search_adaptively(
    question: str,  # given to *score* and *rescore*
    first: Sequence[str],  # ids of the first stage, best first; one that comes twice counts once
    # from an id to the ids of its neighbours, nearest first. The passage itself, and what was
    # scored before, are passed over.
    neighbours: FindNeighbours,
    # from the question and ids to one score each, None for a passage that failed
    score: ScoreBatch,
    *,
    budget: int = BUDGET,  # most passages scored, >= 1
    batch_size: int = BATCH_SIZE,  # passages scored at once, >= 1
    # from the question, the ids of a batch that have scores, and these scores, which must be in [0,
    # 1], to those that count; see `Uncertainty`
    rescore: Rescore | None = None,
    # whether *rescore* is called for ``each`` batch, so that the next one goes by it, or ``after``
    # all, which lets a model be asked about all of them at once
    feedback: Feedback = "each",
    # whether the frontier goes by scores that *rescore* revised, or as ``scored``
    priority: Priority = "rescored",
    # how near a passage and a neighbour of it are, in [0, 1]. With it a passage of the frontier has
    # the sum of its sources' scores, each times their affinity, in the way of QuAM (Rathee,
    # MacAvaney and Anand 2025).
    affinity: Affinity | None = None,
) -> AdaptiveResult:
    """Score the first stage and, in turns with it, the neighbours of what was scored."""
    # A passage of the frontier has the score of its best source. Of equal ones the one that came
    # first goes first: sources best first, their neighbours nearest first; one that a better source
    # raises keeps its place. A turn whose pool is empty passes to the other.
    # Source: SUNAR's algorithm 1 ("ranking score of the source document" follows the rescoring
    # there); as in the code of GAR the empty pool is skipped, but its pruning of the frontier is
    # not done.
    # Raises `SettingsError` if a number is out of range, or scores cannot be revised; `ValueError`
    # if *score* or *rescore* gave another number of scores than ids.
    options = AdaptiveOptions(budget, batch_size, feedback, priority, affinity)
    revise = None if rescore is None else as_work(rescore)
    work = adapt(question, first, neighbours, as_work(score), rescore=revise, options=options)
    return do(work)


def adapt(
    question: str,
    first: Sequence[str],
    neighbours: FindNeighbours,
    score: Callable[[str, Sequence[str]], Work[Sequence[Score]]],
    *,
    rescore: Callable[[str, Sequence[str], Sequence[float]], Work[Sequence[float]]] | None,
    options: "AdaptiveOptions",
) -> Work[AdaptiveResult]:
    """Return the work of `search_adaptively`, whose scores may be work themselves."""
    search = _Search(first, neighbours, options)

    def revise(turn: _Turn) -> Work[Sequence[float]]:
        assert rescore is not None
        return rescore(question, turn.ids, turn.checked_scores())

    while batch := search.take():
        turn = search.record(batch, (yield from score(question, batch)))
        if rescore is not None and options.feedback == "each" and turn.scored:
            search.revise(turn, (yield from revise(turn)))
        search.follow(turn)
    if rescore is not None and options.feedback == "after":
        turns = search.turns_to_revise()
        found = yield TwinCall(
            lambda: do_many(lambda turn: do(revise(turn)), turns, _RESCORED_AT_ONCE),
            lambda: ado_many(lambda turn: ado(revise(turn)), turns, _RESCORED_AT_ONCE),
        )
        for turn, scores in zip(turns, found, strict=True):
            search.revise(turn, scores)
    return search.result(None if rescore is None else options.feedback)


class AdaptiveOptions(NamedTuple):
    """The numbers of `search_adaptively`."""

    budget: int
    batch_size: int
    feedback: Feedback = "each"
    priority: Priority = "rescored"
    affinity: Affinity | None = None

    def check(self) -> None:
        """Raise `SettingsError` for what is out of range."""
        check_at_least("budget", self.budget, 1)
        check_at_least("batch_size", self.batch_size, 1)
        check_choice("feedback", self.feedback, get_args(Feedback))
        check_choice("priority", self.priority, get_args(Priority))


@dataclass(slots=True)
class _Turn:
    iteration: int
    asked: tuple[str, ...]
    via: dict[str, str]
    scored: dict[str, float]  # as the judge said, in the order of `asked`
    revised: dict[str, float]

    @property
    def ids(self) -> list[str]:
        """The ids that have a score, in the order they were asked about."""
        return [*self.scored]

    def checked_scores(self) -> list[float]:
        """Return the scores; one that is not in [0, 1] would grow when it is divided."""
        for name, score in self.scored.items():
            if not 0 <= score <= 1:
                raise SettingsError(
                    f"scores that are revised must be in [0, 1], got {score!r} for {name!r}: map "
                    "logits by the logistic function first"
                )
        return [*self.scored.values()]


class _Edge(NamedTuple):
    priority: float
    place: int  # in the order of coming
    via: str


class _Search:
    """The state between two calls of a scorer: both pools, and what was scored."""

    def __init__(
        self, first: Sequence[str], neighbours: FindNeighbours, options: AdaptiveOptions
    ) -> None:
        options.check()
        self._options, self._neighbours = options, neighbours
        self._first = dict.fromkeys(first)
        self._frontier: dict[str, _Edge] = {}
        self._asked: set[str] = set()
        self._turns: list[_Turn] = []
        self._next_place = 0

    def take(self) -> tuple[str, ...]:
        """Take the next batch out of both pools; nothing if the budget or the pools are empty."""
        n = min(self._options.batch_size, self._options.budget - len(self._asked))
        iteration = self._choose_pool()
        if n < 1 or iteration is None:
            return ()
        from_graph = iteration % 2 == 1
        pool = self._order_frontier() if from_graph else self._first
        batch = tuple(islice(pool, n))
        via = {name: self._frontier[name].via for name in batch if from_graph}
        for name in batch:
            self._first.pop(name, None)
            self._frontier.pop(name, None)
        self._asked.update(batch)
        self._turns.append(_Turn(iteration, batch, via, {}, {}))
        return batch

    def _choose_pool(self) -> int | None:
        """Return the number of the next turn, even for the first stage; None if nothing is left."""
        last = self._turns[-1].iteration if self._turns else -1
        for iteration in (last + 1, last + 2):
            if self._frontier if iteration % 2 else self._first:
                return iteration
        return None

    def _order_frontier(self) -> list[str]:
        frontier = self._frontier
        return sorted(frontier, key=lambda name: (-frontier[name].priority, frontier[name].place))

    def record(self, batch: Sequence[str], scores: Sequence[Score]) -> _Turn:
        """Note what the scorer said of a batch; a score that is no number is none."""
        turn = self._turns[-1]
        if len(scores) != len(batch):
            raise ValueError(f"{len(scores)} scores for {len(batch)} passages")
        for name, score in zip(batch, scores, strict=True):
            if score is not None and math.isfinite(score):
                turn.scored[name] = float(score)
        turn.revised.update(turn.scored)
        return turn

    def revise(self, turn: _Turn, scores: Sequence[float]) -> None:
        if len(scores) != len(turn.scored):
            raise ValueError(f"{len(scores)} revised scores for {len(turn.scored)} passages")
        if not all(map(math.isfinite, scores)):
            raise ValueError(f"a revised score must be a number, got {list(scores)!r:.200}")
        turn.revised.update(zip(turn.scored, map(float, scores), strict=True))

    def follow(self, turn: _Turn) -> None:
        """Add the neighbours of what a turn scored to the frontier, those of the best first."""
        scores = turn.revised if self._options.priority == "rescored" else turn.scored
        for source in sorted(scores, key=lambda name: -scores[name]):
            for name in self._neighbours(source):
                if name not in self._asked:
                    self._reach(name, scores[source], source)

    def _reach(self, name: str, priority: float, via: str) -> None:
        known, affinity = self._frontier.get(name), self._options.affinity
        if affinity is not None:
            priority = priority * affinity(via, name) + (known.priority if known else 0)
        if known is None:
            self._frontier[name] = _Edge(priority, self._next_place, via)
            self._next_place += 1
        elif priority > known.priority:
            self._frontier[name] = _Edge(priority, known.place, via)

    def turns_to_revise(self) -> list[_Turn]:
        return [turn for turn in self._turns if turn.scored]

    def result(self, feedback: Feedback | None) -> AdaptiveResult:
        scored, unscored = [], []
        for turn in self._turns:
            for name in turn.asked:
                via = turn.via.get(name)
                if name in turn.scored:
                    score, raw = turn.revised[name], turn.scored[name]
                    scored.append(Scored(name, score, turn.iteration, via, raw))
                else:
                    unscored.append(Unscored(name, turn.iteration, via))
        return AdaptiveResult(
            passages=tuple(sorted(scored, key=lambda one: -one.score)),
            unscored=tuple(unscored),
            batches=tuple(turn.asked for turn in self._turns),
            rest=tuple(self._first),
            feedback=feedback,
        )


def penalise(scores: Sequence[float | None], n_sets: int | None) -> list[float | None]:
    """Divide the scores of a batch by the number of meanings of its sampled answers, if known."""
    # A division would raise a negative score, such as the raw output of a cross-encoder, so that
    # scores have to be in (0, 1), or None where one failed: give the judge a sigmoid.
    # Source: SUNAR, equation 5.
    for score in scores:
        if score is not None and not (math.isfinite(score) and 0 <= score <= 1):
            raise SettingsError(
                f"a score must be in (0, 1) to be divided by an uncertainty, got {score!r}; raw "
                "outputs of a cross-encoder need a sigmoid"
            )
    divisor = 1 if n_sets is None else n_sets
    return [None if score is None else score / divisor for score in scores]
