"""How ranks are made of numbers, and probabilities of ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.measures import Measures
from deepera_graph.judge.odds import probability
from deepera_graph.judge.surroundings import SURROUNDINGS, Company
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
FEWEST, MANY = 10, 20  # passages; of 320 articles trained on, three have fewer than 15
MOST_COUNTED = 40  # passages; most questions trained on have 30 to 45
_SUPPORT, _TOPIC = SURROUNDINGS.index("support"), SURROUNDINGS.index("topic")
_POOL = [i for i, name in enumerate(SURROUNDINGS) if name.startswith("pool_")]
N_POOL = len(_POOL)
_OF_BEST = [Measures._fields.index(name) for name in ("cosine", "match", "strength")]


@dataclass(frozen=True, slots=True)
class Line:
    """A logistic regression.

    Attributes:
        SEEN: How many numbers it sees.
        weights: What each of them weighs.
        start: Added to their sum.
    """

    SEEN: ClassVar[int]
    weights: Sequence[float]
    start: float

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"weights": list(self.weights), "start": self.start}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return it of its plain form; a `ValueError` if it sees another number of things."""
        if len(plain["weights"]) != cls.SEEN:
            raise ValueError(f"{cls.__name__} sees {cls.SEEN} numbers, not {len(plain['weights'])}")
        return cls(plain["weights"], plain["start"])

    def _probability(self, numbers: Floats) -> Floats:
        total = numbers @ np.array(self.weights) + self.start
        return probability(np.asarray(total, np.float64))


@dataclass(frozen=True, slots=True)
class Scale(Line):
    """Turns the ranks of one question's passages into probabilities; it sees what `seen` gives."""

    SEEN = 4

    def probabilities(self, ranks: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1]."""
        return self._probability(seen(ranks))


def seen(ranks: Floats) -> Floats:
    """Return what the scale sees of each passage: its rank value, and its lead over the others.

    Returns:
        Shape (n, 4): the value; how far it is above the best other, at most 3; how far below, at
        most 3; `size` of n. All but the value are 0 for a passage alone.
    """
    if len(ranks) < 2:
        return np.column_stack([ranks, np.zeros((len(ranks), 3))])
    order = np.argsort(-ranks, kind="stable")
    best = np.full(len(ranks), ranks[order[0]])
    best[order[0]] = ranks[order[1]]
    lead = ranks - best
    sizes = np.full(len(ranks), size(len(ranks)))
    return np.column_stack([ranks, np.clip(lead, 0, 3), np.clip(-lead, 0, 3), sizes])


def size(n: int) -> float:
    """Return what a number of passages counts as: its natural logarithm, at most that of 40.

    Few questions are trained on with more, so what more would say is not known.
    """
    return log(min(n, MOST_COUNTED))


@dataclass(frozen=True, slots=True)
class Presence(Line):
    """Tells how likely there is evidence among some passages at all; it sees `best_of`."""

    SEEN = 9

    def probability(self, ranks: Floats, found: Company, around: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        return float(self._probability(best_of(ranks, found, around)))


def best_of(ranks: Floats, found: Company, around: Floats) -> Floats:
    """Return what `Presence` sees: the passage that is ranked first, and its lead.

    Returns:
        Shape (9,): its rank value, its lead over the second (at most 3), how likely it is on
        topic, of one study with a passage on topic (both 0 where there is no other), and a report
        of results; its `cosine`, `match` and `strength`; `size` of the number of passages.
    """
    first = int(ranks.argmax())
    lead = seen(ranks)[first, 1]
    support = np.nan_to_num(around[first, _SUPPORT])
    return np.array(
        [
            ranks[first],
            lead,
            np.nan_to_num(around[first, _TOPIC]),
            support,
            found.results[first],
            *found.measures[first, _OF_BEST],
            size(len(ranks)),
        ]
    )


@dataclass(frozen=True, slots=True)
class OnePaper(Line):
    """Tells how likely all passages of a question are of one paper; it sees `pool_numbers`.

    A paper has many passages, and a few on one subject look like one paper's, too. So up to
    `FEWEST` are never taken for one, and from `MANY` on the regression alone decides.
    """

    SEEN = N_POOL

    def probability(self, around: Floats) -> float:
        """Return the probability for the passages of one question, in [0, 1]."""
        known = (len(around) - FEWEST) / (MANY - FEWEST)
        if known <= 0:
            return 0.0
        return min(1.0, known) * float(self._probability(pool_numbers(around)))


def pool_numbers(around: Floats) -> Floats:
    """Return what `OnePaper` sees: numbers that all passages of a question share, shape (N_POOL,).

    Args:
        around: Shape (n, len(SURROUNDINGS)); not all of it NaN.
    """
    known = np.flatnonzero(~np.isnan(around[:, _POOL[0]]))[0]  # a passage without others has none
    return np.asarray(around[known, _POOL], np.float64)


@dataclass(frozen=True, slots=True)
class Ranking:
    """How the passages of one kind of question are ranked together, and how that is read."""

    trees: Trees
    scale: Scale
    presence: Presence

    def evidence(self, numbers: Floats, found: Company, around: Floats) -> Floats:
        """Return how likely each passage is evidence, in [0, 1], shape (n,)."""
        ranks = self.trees.log_odds(numbers)
        return self.scale.probabilities(ranks) * self.presence.probability(ranks, found, around)

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "trees": self.trees.plain(),
            "scale": self.scale.plain(),
            "presence": self.presence.plain(),
        }

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return it of its plain form."""
        scale, presence = Scale.of(plain["scale"]), Presence.of(plain["presence"])
        return cls(Trees.of(plain["trees"]), scale, presence)


@dataclass(frozen=True, slots=True)
class Lone:
    """How a passage is judged that has no other beside it."""

    trees: Trees
    scale: Scale

    def evidence(self, found: Company) -> Floats:
        """Return how likely each passage is evidence, by itself, in [0, 1], shape (n,)."""
        return self.scale.probabilities(self.trees.log_odds(found.alone()))

    def plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"trees": self.trees.plain(), "scale": self.scale.plain()}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Return it of its plain form."""
        return cls(Trees.of(plain["trees"]), Scale.of(plain["scale"]))
