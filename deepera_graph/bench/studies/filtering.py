"""Ablations: DeepEra without intent recognition, without the filter, without summaries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from deepera_graph.bench.data.instance import Instance
from deepera_graph.bench.figures import CurveFigure, CurvePoints
from deepera_graph.bench.metrics.ranking import JudgedRanking
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE
from deepera_graph.bench.rankers.base import candidates_of
from deepera_graph.bench.rankers.deepera import DeepEra
from deepera_graph.bench.studies.base import (
    EMPTY,
    GOLDEN,
    PRECISION,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
    Lab,
    Pass,
    Scored,
    Way,
    curve,
    estimates,
    measure_ways,
    values_of,
    way_columns,
    way_rows,
)


@dataclass(frozen=True, slots=True)
class PrefixCheck:
    """What one filter does to rankings.

    Attributes:
        n_questions: How many were checked.
        n_prefixes: How many filtered lists are the beginning of the unfiltered one.
        n_better: On how many the best golden passage stands higher with the filter.
        n_better_by_retrieval: The same with the kept passages in first-stage order.
    """

    n_questions: int
    n_prefixes: int
    n_better: int
    n_better_by_retrieval: int

    def says(self, ranker: str) -> str:
        """Return the finding on a ranker as a sentence or two."""
        retrieval = (
            "With the kept passages in retrieval order the golden one stands higher than in the "
            f"ranking on {self.n_better_by_retrieval} questions."
        )
        if self.n_prefixes == self.n_questions:
            return (
                f"{ranker}: on all {self.n_questions:,} questions the filtered list is the "
                "beginning of the unfiltered one, as both are ordered by score. So no HitRate@K "
                "and no RP can rise with the filter, although DeepEra reports that they do; the "
                f"golden passage stands higher with it on {self.n_better} questions. {retrieval}"
            )
        return (
            f"{ranker}: the filter also holds back passages without a quote, so on "
            f"{self.n_questions - self.n_prefixes:,} of {self.n_questions:,} questions the "
            "filtered list is not the beginning of the unfiltered one; the golden passage stands "
            f"higher with the filter on {self.n_better} questions. {retrieval}"
        )


def check_prefix(questions: Sequence[Scored], *, threshold: float, n: int) -> PrefixCheck:
    """Compare the filtered with the unfiltered list of every question.

    Args:
        questions: Their scores say what to keep.
        threshold: Lowest score kept, in [0, 1].
        n: Most passages kept, >= 1.

    Source:
        A list ordered by score from which low scores are taken is a prefix of the whole list; the
        ablation without filtering and figure 7 of DeepEra report what this rules out.
    """
    found = [_compare(question, threshold, n) for question in questions]
    return PrefixCheck(len(found), *(sum(column) for column in zip(*found, strict=True)))


def prefix_findings(passes: Sequence[Pass], *, threshold: float, n: int) -> tuple[str, ...]:
    """Return one finding a ranker, over all its data sets; see `check_prefix`."""
    questions: dict[str, list[Scored]] = {}
    for one in passes:
        questions.setdefault(one.ranker.name, []).extend(one.questions)
    return tuple(
        check_prefix(of, threshold=threshold, n=n).says(ranker) for ranker, of in questions.items()
    )


def _compare(question: Scored, threshold: float, n: int) -> tuple[bool, bool, bool]:
    whole = question.kept(threshold=None)
    kept = question.kept(threshold=threshold, n=n)
    retrieved = question.kept(threshold=threshold, n=n, order="retrieval")
    rank = whole.golden_rank()
    return (
        whole.ranked[: len(kept.ranked)] == kept.ranked,
        kept.golden_rank() < rank,
        retrieved.golden_rank() < rank,
    )


WHOLE = "whole"
NO_INTENT = "v1 without intent recognition"
NO_FILTER = "v2 without filter"
NEITHER = "v1 and v2 together"
NO_SUMMARY = "v3 without summaries"
RETRIEVAL = "kept in retrieval order"
NO_FILTER_RETRIEVAL = "v2 in retrieval order"
_SUMMARIES = (WHOLE, NO_INTENT, NO_FILTER, NEITHER)
_UNFILTERED = (NO_FILTER, NEITHER)
_BLIND = (NO_INTENT, NEITHER)


def run_ablations(lab: Lab) -> ExperimentResult:
    """Measure."""
    passes = [one for one in lab.filtering() if isinstance(one.ranker, DeepEra)]
    ways = [way for one in passes for way in _ways_ablations(lab, one)]
    grid = Grid(
        name="ablations",
        title="Ablations",
        columns=(Column("data set"), Column("ranker"), Column("variant"), *way_columns(lab)),
        rows=way_rows(ways),
        note=(
            f"At most {lab.setup.top_n} passages are handed on, those with a score from "
            f"{lab.setup.threshold:g} on where there is a filter. Summaries change what an answer "
            "is made from, never the order, so without a generator v3 equals the whole."
        ),
    )
    findings = prefix_findings(passes, threshold=lab.setup.threshold, n=lab.setup.top_n)
    return ExperimentResult(grids=(grid,), findings=findings)


def _ways_ablations(lab: Lab, one: Pass) -> list[Way]:
    bare = one.ranker
    if not isinstance(bare, DeepEra):
        return []
    blind = lab.once(bare.variant(f"{bare.name} without intent", intent=False), one.material)
    threshold, n = lab.setup.threshold, lab.setup.top_n
    whole = [question.kept(threshold=threshold, n=n) for question in one.questions]
    lists: dict[tuple[str | float, ...], Sequence[JudgedRanking]] = {
        (WHOLE,): whole,
        (NO_INTENT,): [each.kept(threshold=threshold, n=n) for each in blind.questions],
        (NO_FILTER,): [each.kept(threshold=None, n=n) for each in one.questions],
        (NEITHER,): [each.kept(threshold=None, n=n) for each in blind.questions],
        (NO_SUMMARY,): whole,
        (RETRIEVAL,): [
            each.kept(threshold=threshold, n=n, order="retrieval") for each in one.questions
        ],
        (NO_FILTER_RETRIEVAL,): [
            each.kept(threshold=None, n=n, order="retrieval") for each in one.questions
        ],
    }
    ways = measure_ways(lab, one, lists)
    if lab.setup.generator is None:
        return ways
    return [_from_summaries(lab, one, bare, way) for way in ways]


def _from_summaries(lab: Lab, one: Pass, bare: DeepEra, way: Way) -> Way:
    """Replace the answers made from passages by those made from summaries, as DeepEra does it."""
    variant = str(way.label[0])
    if variant not in _SUMMARIES:
        return way
    maker = bare.variant(
        f"{bare.name}, summaries",
        intent=variant not in _BLIND,
        kept_only=True,
        content="summary",
        top_n=lab.setup.top_n,
        threshold=0.0 if variant in _UNFILTERED else lab.setup.threshold,
        **({"require_evidence": False} if variant in _UNFILTERED else {}),
    )
    values = values_of(lab, _evidence(maker, one, lab.setup.top_n))
    names = [column.name for column in way_columns(lab)][-len(values) :]
    found = dict(zip(names, estimates(values, lab.setup), strict=True))
    return Way(way.material, way.ranker, way.label, {**way.means, **found})


def _evidence(maker: DeepEra, one: Pass, n: int) -> Iterator[tuple[Instance, Sequence[str]]]:
    instances = iter(one.material.dataset)
    while chunk := list(islice(instances, QUESTIONS_AT_ONCE)):
        jobs = [(each.question, candidates_of(each)) for each in chunk]
        yield from zip(chunk, maker.evidence_many(jobs, n), strict=True)


ABLATIONS = Experiment(
    name="ablations",
    title="Ablations",
    measures=(
        "DeepEra without intent recognition (v1), without the filter (v2) and without summaries "
        "(v3), and with the kept passages in retrieval order."
    ),
    run=run_ablations,
)

_WITH, _WITHOUT = "with", "without"


def run_cutoff(lab: Lab) -> ExperimentResult:
    """Measure."""
    passes = list(lab.filtering())
    ways = [way for one in passes for way in _ways_cutoff(lab, one)]
    columns = (
        Column("data set"),
        Column("ranker"),
        Column("filter"),
        Column("n", "count"),
    )
    grid = Grid(
        name="cutoff",
        title="Cut-off study",
        columns=(*columns, *way_columns(lab)),
        rows=way_rows(ways),
        note=(
            f"At most n passages are handed on; the filter keeps scores from "
            f"{lab.setup.threshold:g} on. Golden kept is HitRate@n of what is handed on."
        ),
    )
    findings = prefix_findings(passes, threshold=lab.setup.threshold, n=max(lab.setup.cutoffs))
    rankers = dict.fromkeys(way.ranker for way in ways)
    drawings = tuple(
        _figure(number, ranker, [way for way in ways if way.ranker == ranker])
        for number, ranker in enumerate(rankers, start=1)
    )
    return ExperimentResult(grids=(grid,), drawings=drawings, findings=findings)


def _ways_cutoff(lab: Lab, one: Pass) -> list[Way]:
    return measure_ways(
        lab,
        one,
        {
            (name, n): [question.kept(threshold=threshold, n=n) for question in one.questions]
            for name, threshold in ((_WITH, lab.setup.threshold), (_WITHOUT, None))
            for n in lab.setup.cutoffs
        },
    )


def _figure(number: int, ranker: str, ways: Sequence[Way]) -> CurveFigure:
    metrics = [GOLDEN, PRECISION, *[name for name in ("F1", "P", "R") if name in ways[0].means]]
    panels: dict[str, dict[str, CurvePoints]] = {}
    for material in dict.fromkeys(way.material for way in ways):
        lines = panels.setdefault(material, {})
        for metric in metrics:
            for name in (_WITH, _WITHOUT):
                mine = [way for way in ways if way.material == material and way.label[0] == name]
                lines[f"{metric}, {name} filter"] = curve(
                    [float(way.label[1]) for way in mine],
                    [way.means[metric] for way in mine],
                    dashed=name == _WITHOUT,
                )
    return CurveFigure(
        name=f"cutoff-{number}",
        title=f"What the first n of {ranker} hold, with and without the filter",
        x_label="n",
        y_label="percent",
        panels=panels,
    )


CUTOFF = Experiment(
    name="cutoff",
    title="Cut-off study",
    measures=(
        "What the first n passages hold, with and without the filter; and whether the filter can "
        "raise HitRate at all."
    ),
    run=run_cutoff,
)

_CURVES = (PRECISION, GOLDEN, "HitRate@1", EMPTY)


def run_threshold(lab: Lab) -> ExperimentResult:
    """Measure."""
    ways = [way for one in lab.filtering() for way in _ways_threshold(lab, one)]
    columns = (Column("data set"), Column("ranker"), Column("threshold", "number"))
    grid = Grid(
        name="threshold",
        title="Threshold study",
        columns=(*columns, *way_columns(lab)),
        rows=way_rows(ways),
        note=(
            "Every threshold is applied to the same scores; no passage is judged twice. Kept is "
            f"passages a question, at most {lab.setup.top_n}; precision is the golden share of all "
            "kept passages; golden kept is the share of questions with a golden passage among "
            "them. A rule sets the threshold of each question from its scores: gap at the widest "
            "gap between them, quantile:0.1 for the best tenth, neither under its floor, 0.5 if "
            "none is given."
        ),
    )
    return ExperimentResult(grids=(grid,), drawings=_figures(ways))


def _ways_threshold(lab: Lab, one: Pass) -> list[Way]:
    n = lab.setup.top_n
    lists: dict[tuple[str | float, ...], list[JudgedRanking]] = {
        (threshold,): [question.kept(threshold=threshold, n=n) for question in one.questions]
        for threshold in lab.setup.thresholds
    }
    for name, rule in lab.setup.rules.items():
        lists[name,] = [
            question.kept(threshold=question.cut(rule), n=n) for question in one.questions
        ]
    return measure_ways(lab, one, lists)


def _figures(ways: Sequence[Way]) -> tuple[CurveFigure, ...]:
    figures: list[CurveFigure] = []
    for ranker in dict.fromkeys(way.ranker for way in ways):
        panels: dict[str, dict[str, CurvePoints]] = {}
        for name in dict.fromkeys(way.material for way in ways):
            mine = [
                way
                for way in ways
                if (way.material, way.ranker) == (name, ranker) and isinstance(way.label[0], float)
            ]
            x = [float(way.label[0]) for way in mine]
            if mine:
                panels[name] = {
                    label: curve(x, [way.means[label] for way in mine]) for label in _CURVES
                }
        figures.append(
            CurveFigure(
                name=f"threshold-{len(figures) + 1}",
                title=f"What the filter keeps of the ranking of {ranker}, by threshold",
                x_label="threshold",
                y_label="percent",
                panels=panels,
            )
        )
    return tuple(figures)


THRESHOLD = Experiment(
    name="threshold",
    title="Threshold study",
    measures=(
        "How many passages a filter keeps at each threshold, fixed or drawn from the scores, how "
        "often none, how many of them are golden, and where the golden one stands."
    ),
    run=run_threshold,
)
