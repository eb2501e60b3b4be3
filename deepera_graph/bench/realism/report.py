"""The realism report: can distractors be told from other passages without reading the question?"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.bench.build.tells import TELLS
from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.metrics.resample import Interval
from deepera_graph.bench.realism.features import (
    FAMILIES,
    LENGTH,
    OPENING,
    STYLE,
    Features,
    features,
)
from deepera_graph.bench.realism.sample import Sample, golden_sample, sample
from deepera_graph.bench.realism.separate import Telling, separability, telling
from deepera_graph.bench.realism.similarity import Similarity, similarities

LIMIT = 0.65
JUDGED = (LENGTH, OPENING, STYLE)
_LEAST_POOLS = 20


@dataclass(frozen=True, slots=True)
class Family:
    """What one family of features tells.

    Attributes:
        name: See `deepera_graph.bench.realism.features`.
        judged: Whether it may raise the flag.
        auc: Of distractors against the other passages, in [0, 1].
        golden: Of the golden passages against the same, as a yardstick: sections that report
            results differ from others without anybody having written them to order. None where
            no pool has one.
        telling: Its strongest features.
    """

    name: str
    judged: bool
    auc: Interval
    golden: Interval | None
    telling: tuple[Telling, ...]


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of distractor: how many, and the AUC of length and of style against the others."""

    name: str
    n_distractors: int
    length: Interval
    style: Interval


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of text written to order, and the share that bears it, in [0, 1]."""

    name: str
    distractors: float
    others: float


@dataclass(frozen=True, slots=True)
class Realism:
    """What was found on one data set.

    Attributes:
        name: Name of the data set.
        n_questions: Pools with distractors and other passages.
        n_distractors: Distractors in them.
        n_others: Passages that are neither golden nor distractors.
        families: One a family of features.
        kinds: Types with distractors in at least 20 pools, the most frequent first.
        similarities: To the question.
        marks: As the gates of the builder find them.
    """

    name: str
    n_questions: int
    n_distractors: int
    n_others: int
    families: tuple[Family, ...]
    kinds: tuple[Kind, ...]
    similarities: tuple[Similarity, ...]
    marks: tuple[Mark, ...]

    @property
    def flagged(self) -> tuple[str, ...]:
        """The judged families whose AUC is above 0.65."""
        return tuple(one.name for one in self.families if one.judged and one.auc.mean > LIMIT)


def realism(dataset: Dataset, *, kinds: Collection[str] | None = None) -> Realism:
    """Measure a data set; the same data gives the same report.

    Args:
        dataset: With labelled distractors.
        kinds: Only distractors of these types; None takes all.

    Raises:
        DatasetError: It cannot be read, or not two pools have distractors beside other passages.
    """
    found, golden = sample(dataset, kinds=kinds), golden_sample(dataset)
    with threadpool_limits(1):  # small matrices; more threads take longer
        return _report(dataset.name, found, golden)


def _report(name: str, found: Sample, golden: Sample | None) -> Realism:
    families = features(found.texts)
    yardsticks = _yardsticks(golden)
    return Realism(
        name=name,
        n_questions=found.n_questions,
        n_distractors=int(found.is_distractor.sum()),
        n_others=int((~found.is_distractor).sum()),
        families=tuple(
            Family(
                name=family,
                judged=family in JUDGED,
                auc=separability(found, families[family]),
                golden=yardsticks.get(family),
                telling=tuple(telling(found, families[family])),
            )
            for family in FAMILIES
        ),
        kinds=tuple(_kinds(found, families)),
        similarities=tuple(similarities(found)),
        marks=tuple(_marks(found)),
    )


def _yardsticks(golden: Sample | None) -> dict[str, Interval]:
    if golden is None:
        return {}
    return {name: separability(golden, family) for name, family in features(golden.texts).items()}


def _kinds(found: Sample, families: dict[str, Features]) -> list[Kind]:
    counts = found.kinds()
    frequent = [kind for kind, _ in counts.most_common() if _n_pools(found, kind) >= _LEAST_POOLS]
    if len(counts) < 2:
        return []
    return [
        Kind(
            kind,
            counts[kind],
            separability(found, families[LENGTH], kept=found.of_kind(kind)),
            separability(found, families[STYLE], kept=found.of_kind(kind)),
        )
        for kind in frequent
    ]


def _n_pools(found: Sample, kind: str) -> int:
    return len({int(pool) for pool, one in zip(found.pool, found.kind, strict=True) if one == kind})


def _marks(found: Sample) -> list[Mark]:
    marks = []
    for name, holds in TELLS.items():
        bears = np.array([holds(text) for text in found.texts])[found.text]
        marks.append(
            Mark(
                name,
                float(bears[found.is_distractor].mean()),
                float(bears[~found.is_distractor].mean()),
            )
        )
    return marks
