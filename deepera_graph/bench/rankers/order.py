"""Rankers that read no passage: first-stage order and chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from deepera_graph.bench.rankers.ranker import Passage, Ranking, by_score


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
