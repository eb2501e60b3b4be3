"""The realism report: can distractors be told from other passages without reading the question?"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.calibration.instance import Dataset
from deepera_graph.calibration.statistics import Interval, tell_few
from deepera_graph.lab.bench.realism import (
    FAMILIES,
    LENGTH,
    OPENING,
    STYLE,
    Features,
    FeatureWeight,
    PassageSample,
    Similarity,
    extract_features,
    measure_separability,
    measure_similarities,
    sample_golden,
    sample_passages,
    strongest_features,
)
from deepera_graph.lab.build.writing.gates import ARTEFACT_PATTERNS
from deepera_graph.lab.studies.experiment import About, StudyResult, as_estimate
from deepera_graph.lab.tables import Column, Grid

LIMIT = 0.65
REALISM = About.named("realism")
JUDGED = (LENGTH, OPENING, STYLE)
_LEAST_POOLS = 20
_N_TELLING = 5


@dataclass(frozen=True, slots=True)
class FamilyResult:
    """What one family of features tells."""

    name: str
    judged: bool
    auc: Interval
    golden: Interval | None
    telling: tuple[FeatureWeight, ...]


class DistractorKind(NamedTuple):
    """One type of distractor: how many, and the AUC of length and of style against the others."""

    name: str
    n_distractors: int
    length: Interval
    style: Interval


class ArtefactShare(NamedTuple):
    """A mark of text written to order, and the share that bears it, in [0, 1]."""

    name: str
    distractors: float
    others: float


@dataclass(frozen=True, slots=True)
class RealismReport:
    """What was found on one data set."""

    name: str
    n_questions: int
    n_distractors: int
    n_others: int
    families: tuple[FamilyResult, ...]
    kinds: tuple[DistractorKind, ...]
    similarities: tuple[Similarity, ...]
    marks: tuple[ArtefactShare, ...]

    @property
    def flagged(self) -> tuple[str, ...]:
        """The judged families whose AUC is above 0.65."""
        return tuple(one.name for one in self.families if one.judged and one.auc.mean > LIMIT)

    @property
    def is_measured(self) -> bool:
        """Whether enough texts are in some pools alone, so that there is a verdict."""
        return all(isfinite(one.auc.mean) for one in self.families if one.judged)


def measure_realism(dataset: Dataset, *, kinds: Collection[str] | None = None) -> RealismReport:
    """Measure a data set; the same data gives the same report."""
    found, golden = sample_passages(dataset, kinds=kinds), sample_golden(dataset)
    with threadpool_limits(1):  # small matrices; more threads take longer
        return _build_report(dataset.name, found, golden)


def _build_report(name: str, found: PassageSample, golden: PassageSample | None) -> RealismReport:
    families = extract_features(found.texts)
    yardsticks: dict[str, Interval] = {}
    if golden is not None:
        for feature, family in extract_features(golden.texts).items():
            yardsticks[feature] = measure_separability(golden, family)
    return RealismReport(
        name=name,
        n_questions=found.n_questions,
        n_distractors=int(found.is_distractor.sum()),
        n_others=int((~found.is_distractor).sum()),
        families=tuple(
            FamilyResult(
                name=family,
                judged=family in JUDGED,
                auc=measure_separability(found, families[family]),
                golden=yardsticks.get(family),
                telling=tuple(strongest_features(found, families[family])),
            )
            for family in FAMILIES
        ),
        kinds=tuple(_measure_kinds(found, families)),
        similarities=tuple(measure_similarities(found)),
        marks=tuple(_count_artefacts(found)),
    )


def _measure_kinds(found: PassageSample, families: dict[str, Features]) -> list[DistractorKind]:
    counts = found.kinds()
    if len(counts) < 2:
        return []
    pools = Counter(kind for _, kind in set(zip(found.pool.tolist(), found.kind, strict=True)))
    frequent = [kind for kind, _ in counts.most_common() if pools[kind] >= _LEAST_POOLS]
    return [
        DistractorKind(
            kind,
            counts[kind],
            measure_separability(found, families[LENGTH], kept=found.of_kind(kind)),
            measure_separability(found, families[STYLE], kept=found.of_kind(kind)),
        )
        for kind in frequent
    ]


def _count_artefacts(found: PassageSample) -> list[ArtefactShare]:
    marks = []
    for name, holds in ARTEFACT_PATTERNS.items():
        bears = np.array([holds(text) for text in found.texts])[found.text]
        here, elsewhere = bears[found.is_distractor], bears[~found.is_distractor]
        marks.append(ArtefactShare(name, float(here.mean()), float(elsewhere.mean())))
    return marks


def tabulate(reports: Sequence[RealismReport]) -> StudyResult:
    """Return what was found on data sets as tables, with a verdict on each."""
    return StudyResult(
        grids=tuple(one for one in _tables(reports) if one.rows),
        findings=tuple(map(_judge, reports)),
    )


def _judge(report: RealismReport) -> str:
    few = tell_few(report.n_questions) if report.is_measured else ""
    return f"{report.name}: {_find(report)}.{few and f' {few}'}"


def _find(report: RealismReport) -> str:
    counts = (
        f"{report.n_distractors} distractors among {report.n_others} other passages that are not "
        f"golden, in the pools of {report.n_questions} questions"
    )
    if not report.is_measured:
        return (
            "**could not be measured**: the pools share nearly all their texts, and too few are "
            f"left to learn from; take smaller pools or more documents; {counts}"
        )
    if report.flagged:
        told = f"{', '.join(report.flagged)} tell the distractors apart (AUC above {LIMIT})"
        return f"**flagged**: {told}; {counts}"
    none = f"neither {', '.join(JUDGED[:-1])} nor {JUDGED[-1]} tells the distractors apart"
    return f"not flagged: {none} (AUC up to {LIMIT}); {counts}"


def _tables(reports: Sequence[RealismReport]) -> Iterator[Grid]:
    yield Grid.told(
        "families",
        columns=(
            *Column.several("text", "data set", "features"),
            *Column.several("number", "AUC", "AUC of golden passages"),
            *Column.several("text", "marks of a distractor", "marks of another passage"),
        ),
        rows=tuple(
            (
                report.name,
                one.name if one.judged else f"{one.name} (not judged)",
                as_estimate(one.auc),
                one.golden and as_estimate(one.golden),
                *(_join_names(one.telling, sign) for sign in (1, -1)),
            )
            for report in reports
            for one in report.families
        ),
        limit=LIMIT,
    )
    yield Grid(
        name="types",
        title="By type",
        columns=(
            *Column.several("text", "data set", "type"),
            Column("distractors", "count"),
            *Column.several("number", "AUC of length", "AUC of style"),
        ),
        rows=tuple(
            (report.name, *one[:2], *map(as_estimate, one[2:]))
            for report in reports
            for one in report.kinds
        ),
    )
    yield Grid(
        name="similarity",
        title="Similarity to the question",
        columns=(
            *Column.several("text", "data set", "measure"),
            *Column.several("number", "distractors", "5 hardest others", "all others"),
            Column("reach the 10th percentile", "percent"),
            Column("closer than another", "number"),
        ),
        rows=tuple(
            (report.name, *one[:-1], as_estimate(one.closer))
            for report in reports
            for one in report.similarities
        ),
    )
    yield Grid(
        name="marks",
        title="Marks of text written to order",
        columns=(
            *Column.several("text", "data set", "mark"),
            *Column.several("percent", "distractors", "others"),
        ),
        rows=tuple(
            (report.name, *one)
            for report in reports
            for one in report.marks
            if one.distractors or one.others
        ),
    )


def _join_names(telling: Sequence[FeatureWeight], sign: int) -> str:
    return "; ".join([one.name for one in telling if one.weight * sign > 0][:_N_TELLING])
