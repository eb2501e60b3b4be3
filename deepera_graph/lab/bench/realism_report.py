"""The realism report: can distractors be told from other passages without reading the question?"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.calibration.instance import Dataset
from deepera_graph.calibration.statistics import Interval
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
from deepera_graph.lab.tables import format_rows

LIMIT = 0.65
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


@dataclass(frozen=True, slots=True)
class DistractorKind:
    """One type of distractor: how many, and the AUC of length and of style against the others."""

    name: str
    n_distractors: int
    length: Interval
    style: Interval


@dataclass(frozen=True, slots=True)
class ArtefactShare:
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


def measure_realism(dataset: Dataset, *, kinds: Collection[str] | None = None) -> RealismReport:
    """Measure a data set; the same data gives the same report."""
    found, golden = sample_passages(dataset, kinds=kinds), sample_golden(dataset)
    with threadpool_limits(1):  # small matrices; more threads take longer
        return _build_report(dataset.name, found, golden)


def _build_report(name: str, found: PassageSample, golden: PassageSample | None) -> RealismReport:
    families = extract_features(found.texts)
    golden_families = {} if golden is None else extract_features(golden.texts)
    yardsticks = {
        name: measure_separability(golden, family)
        for name, family in golden_families.items()
        if golden is not None
    }
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
        marks.append(
            ArtefactShare(
                name,
                float(bears[found.is_distractor].mean()),
                float(bears[~found.is_distractor].mean()),
            )
        )
    return marks


def to_markdown(report: RealismReport) -> str:
    """Return the report as a section of Markdown."""
    return "\n".join(
        [
            _format_head(report),
            _format_families(report),
            *_format_kinds(report),
            _format_similarity(report),
            _format_artefacts(report),
        ]
    )


def to_plain(report: RealismReport) -> dict[str, Any]:
    """Return the report as data for JSON."""
    return {
        "dataset": report.name,
        "questions": report.n_questions,
        "distractors": report.n_distractors,
        "others": report.n_others,
        "limit": LIMIT,
        "flagged": list(report.flagged),
        "families": [
            {
                "name": one.name,
                "judged": one.judged,
                "auc": one.auc._asdict(),
                "golden_auc": one.golden and one.golden._asdict(),
                "telling": [telling._asdict() for telling in one.telling],
            }
            for one in report.families
        ],
        "types": [
            {
                "name": one.name,
                "distractors": one.n_distractors,
                "length_auc": one.length._asdict(),
                "style_auc": one.style._asdict(),
            }
            for one in report.kinds
        ],
        "similarity": [
            {**one._asdict(), "closer": one.closer._asdict()} for one in report.similarities
        ],
        "marks": [asdict(one) for one in report.marks],
    }


def _format_head(report: RealismReport) -> str:
    verdict = (
        f"**Flagged**: {', '.join(report.flagged)} tell the distractors apart (AUC above {LIMIT})."
        if report.flagged
        else f"Not flagged: neither {', '.join(JUDGED[:-1])} nor {JUDGED[-1]} tells the "
        f"distractors apart (AUC up to {LIMIT})."
    )
    return (
        f"### {report.name}\n\n{verdict}\n\n"
        f"{report.n_distractors} distractors among {report.n_others} other passages that are not "
        f"golden, in the pools of {report.n_questions} questions. AUC is the chance that a "
        "classifier which has seen neither the pool nor its texts scores a distractor above "
        "another passage, with its 95 % interval. Golden passages, if nobody wrote them to "
        "order, are the yardstick: sections of one kind differ from the mixture around them by "
        f"what they do. So does a single type; the limit of {LIMIT} is for all types together.\n"
    )


def _format_families(report: RealismReport) -> str:
    head = (
        "features",
        "AUC",
        "AUC of golden passages",
        "marks of a distractor",
        "marks of another passage",
    )
    body = [
        (
            one.name if one.judged else f"{one.name} (not judged)",
            _format_interval(one.auc),
            "–" if one.golden is None else _format_interval(one.golden),
            _join_names(telling for telling in one.telling if telling.weight > 0),
            _join_names(telling for telling in one.telling if telling.weight < 0),
        )
        for one in report.families
    ]
    return format_rows(head, body, [True] * len(head))


def _format_kinds(report: RealismReport) -> list[str]:
    if not report.kinds:
        return []
    body = [
        (
            one.name,
            str(one.n_distractors),
            _format_interval(one.length),
            _format_interval(one.style),
        )
        for one in report.kinds
    ]
    head = ("type", "distractors", "AUC of length", "AUC of style")
    return [format_rows(head, body, [True] * len(head))]


def _format_similarity(report: RealismReport) -> str:
    head = (
        "similarity to the question", "distractors", "5 hardest others", "all others",
        "reach the 10th percentile", "closer than another",
    )  # fmt: skip
    body = [
        (
            one.measure,
            *(f"{mean:.3f}" for mean in (one.distractors, one.hardest, one.others)),
            f"{100 * one.near:.1f} %",
            _format_interval(one.closer),
        )
        for one in report.similarities
    ]
    return format_rows(head, body, [True] * len(head))


def _format_artefacts(report: RealismReport) -> str:
    body = [
        (one.name, f"{100 * one.distractors:.1f} %", f"{100 * one.others:.1f} %")
        for one in report.marks
        if one.distractors or one.others
    ]
    if not body:
        return "No passage bears a mark of text written to order.\n"
    head = ("mark of text written to order", "distractors", "others")
    return format_rows(head, body, [True] * len(head))


def _join_names(found: Iterable[FeatureWeight]) -> str:
    return "; ".join(one.name for one in list(found)[:_N_TELLING])


def _format_interval(one: Interval) -> str:
    return f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"
