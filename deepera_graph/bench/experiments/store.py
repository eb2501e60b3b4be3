"""A store of all passages of a data set, with look-alikes put in at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bench.dataset import Dataset

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one question looks for: places in `Store.texts`.

    `pairs` holds the place of a golden passage and that of a look-alike of it.
    """

    question: str
    golden: frozenset[int]
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Store:
    """The passages of all questions, each text once.

    Attributes:
        texts: Shape (n_texts,).
        look_alikes: Places of texts that are a look-alike of some question's evidence, and
            evidence for none.
        questions: Shape (n_questions,).
    """

    texts: tuple[str, ...]
    look_alikes: frozenset[int]
    questions: tuple[Wanted, ...]

    def with_share(self, share: float, seed: int) -> Places:
        """Return the places of a store with that share of the look-alikes, in random order.

        Args:
            share: In [0, 1]; all other passages are always in.
            seed: The same seed gives the same store, and a larger share all of a smaller one.
        """
        rng = np.random.default_rng(seed)
        drawn = rng.permutation(sorted(self.look_alikes))
        chosen = drawn[: round(share * len(drawn))]
        plain = [place for place in range(len(self.texts)) if place not in self.look_alikes]
        return np.asarray(rng.permutation([*plain, *chosen]), dtype=np.int64)


def gather(dataset: Dataset) -> Store:
    """Put the passages of all questions into one store.

    Raises:
        DatasetError: The data cannot be read.
    """
    places: dict[str, int] = {}
    look_alikes: set[int] = set()
    golden: set[int] = set()
    questions = []
    for instance in dataset:
        of = {one.id: places.setdefault(one.text, len(places)) for one in instance.contexts}
        mine = frozenset(of[one.id] for one in instance.contexts if one.is_golden)
        look_alikes.update(of[one.id] for one in instance.contexts if one.is_distractor)
        golden |= mine
        pairs = [
            (of[one.parent_id], of[one.id])
            for one in instance.contexts
            if one.is_distractor and one.parent_id in of
        ]
        questions.append(Wanted(instance.question, mine, tuple(pairs)))
    return Store(tuple(places), frozenset(look_alikes - golden), tuple(questions))


def ranks(scores: NDArray[np.float64], store: Places) -> Mapping[int, int]:
    """Return place to rank in a store, from 1; equal scores keep the order of the store.

    Args:
        scores: One a text, in the order of `Store.texts`.
        store: See `Store.with_share`.
    """
    order = np.argsort(-scores[store], kind="stable")
    return {int(place): rank for rank, place in enumerate(store[order], start=1)}


def first_places(scores: NDArray[np.float64], store: Places, k: int) -> Sequence[int]:
    """Return the places of the first *k*, best first; see `ranks`."""
    return [int(place) for place in store[np.argsort(-scores[store], kind="stable")[:k]]]
