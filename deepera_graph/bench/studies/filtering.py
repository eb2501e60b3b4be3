"""Studies of the filter: its threshold, its cut-off, and DeepEra without one of its parts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from deepera_graph.bench.data.instance import Instance
from deepera_graph.bench.figures import CurveFigure, CurvePoints
from deepera_graph.bench.metrics.ranking import JudgedRanking, compute
from deepera_graph.bench.metrics.statistics import Values
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE
from deepera_graph.bench.rankers.base import candidates_of
from deepera_graph.bench.rankers.deepera import DeepEra
from deepera_graph.bench.studies.base import (
    RankedQuestion,
    RankerRun,
    StudyRunner,
    answer_columns,
    draw_curve,
    measure_answers,
    measure_answers_from,
)
from deepera_graph.bench.studies.results import Cell, Column, Grid, StudyResult
from deepera_graph.bench.table import MetricEstimate

KEPT, EMPTY, PRECISION, GOLDEN = "kept", "nothing kept", "precision of the kept", "golden kept"
_RANK_METRICS = ("HitRate@1", "HitRate@3", "MRR")
Label = tuple[str | float, ...]
_WITH, _WITHOUT = "with", "without"
WHOLE = "whole"
NO_INTENT = "v1 without intent recognition"
NO_FILTER = "v2 without filter"
NEITHER = "v1 and v2 together"
NO_SUMMARY = "v3 without summaries"
RETRIEVAL = "kept in retrieval order"
NO_FILTER_RETRIEVAL = "v2 in retrieval order"
_WITH_SUMMARIES = (WHOLE, NO_INTENT, NO_FILTER, NEITHER)


@dataclass(frozen=True, slots=True)
class FilterVariant:
    """One way to filter, measured: its label, and a mean a column of `_columns`."""

    data: str
    ranker: str
    label: Label
    means: Mapping[str, MetricEstimate]


def study_threshold(runner: StudyRunner) -> StudyResult:
    """Apply every threshold, and every rule that sets one, to the same scores."""
    n = runner.config.top_n
    variants: list[FilterVariant] = []
    for run in runner.filter_runs():
        lists: dict[Label, list[JudgedRanking]] = {
            (threshold,): [one.keep(threshold=threshold, n=n) for one in run.questions]
            for threshold in runner.config.thresholds
        }
        for name, rule in runner.config.rules.items():
            lists[name,] = [
                one.keep(threshold=one.threshold_of(rule), n=n) for one in run.questions
            ]
        variants += _measure(runner, run, lists)
    grid = Grid(
        name="threshold",
        title="Threshold study",
        columns=_columns(runner, Column("threshold", "number")),
        rows=_rows(variants),
        note=(
            "Every threshold is applied to the same scores; no passage is judged twice. Kept is "
            f"passages a question, at most {n}; precision is the golden share of all "
            "kept passages; golden kept is the share of questions with a golden passage among "
            "them. A rule sets the threshold of each question from its scores: gap at the widest "
            "gap between them, quantile:0.1 for the best tenth, neither under its floor, 0.5 if "
            "none is given."
        ),
    )
    title = "What the filter keeps of the ranking of {}, by threshold"
    drawings = _draw(variants, "threshold", title, _threshold_curves)
    return StudyResult(grids=(grid,), drawings=drawings)


def _threshold_curves(variants: Sequence[FilterVariant]) -> dict[str, CurvePoints]:
    fixed = [one for one in variants if isinstance(one.label[0], float)]
    columns = (PRECISION, GOLDEN, "HitRate@1", EMPTY)
    return {column: _curve(fixed, 0, column) for column in columns if fixed}


def study_cutoff(runner: StudyRunner) -> StudyResult:
    """Take the first n passages, with and without the filter."""
    config = runner.config
    runs = list(runner.filter_runs())
    variants: list[FilterVariant] = []
    for run in runs:
        lists: dict[Label, list[JudgedRanking]] = {
            (name, n): [one.keep(threshold=threshold, n=n) for one in run.questions]
            for name, threshold in ((_WITH, config.threshold), (_WITHOUT, None))
            for n in config.cutoffs
        }
        variants += _measure(runner, run, lists)
    grid = Grid(
        name="cutoff",
        title="Cut-off study",
        columns=_columns(runner, Column("filter"), Column("n", "count")),
        rows=_rows(variants),
        note=(
            f"At most n passages are handed on; the filter keeps scores from "
            f"{config.threshold:g} on. Golden kept is HitRate@n of what is handed on."
        ),
    )
    title = "What the first n of {} hold, with and without the filter"
    drawings = _draw(variants, "cutoff", title, _cutoff_curves, x_label="n")
    findings = _prefix_findings(runs, config.threshold, max(config.cutoffs))
    return StudyResult(grids=(grid,), drawings=drawings, findings=findings)


def _cutoff_curves(variants: Sequence[FilterVariant]) -> dict[str, CurvePoints]:
    answers = [name for name in ("F1", "P", "R") if name in variants[0].means]
    return {
        f"{column}, {name} filter": _curve(
            [one for one in variants if one.label[0] == name], 1, column, dashed=name == _WITHOUT
        )
        for column in (GOLDEN, PRECISION, *answers)
        for name in (_WITH, _WITHOUT)
    }


def study_ablations(runner: StudyRunner) -> StudyResult:
    """Take the parts of DeepEra away in turn."""
    threshold, n = runner.config.threshold, runner.config.top_n
    runs: list[RankerRun] = []
    variants: list[FilterVariant] = []
    for run in runner.filter_runs():
        if isinstance(run.ranker, DeepEra):
            runs.append(run)
            variants += _ablate(runner, run, run.ranker)
    grid = Grid(
        name="ablations",
        title="Ablations",
        columns=_columns(runner, Column("variant")),
        rows=_rows(variants),
        note=(
            f"At most {n} passages are handed on, those with a score from "
            f"{threshold:g} on where there is a filter. Summaries change what an answer "
            "is made from, never the order, so without a generator v3 equals the whole."
        ),
    )
    return StudyResult(grids=(grid,), findings=_prefix_findings(runs, threshold, n))


def _ablate(runner: StudyRunner, run: RankerRun, whole: DeepEra) -> list[FilterVariant]:
    threshold, n = runner.config.threshold, runner.config.top_n
    blind = whole.variant(f"{whole.name} without intent", intent=False)
    seeing, unseeing = run.questions, runner.run_once(blind, run.data).questions
    lists: dict[Label, list[JudgedRanking]] = {
        (WHOLE,): [one.keep(threshold=threshold, n=n) for one in seeing],
        (NO_INTENT,): [one.keep(threshold=threshold, n=n) for one in unseeing],
        (NO_FILTER,): [one.keep(threshold=None, n=n) for one in seeing],
        (NEITHER,): [one.keep(threshold=None, n=n) for one in unseeing],
        (NO_SUMMARY,): [one.keep(threshold=threshold, n=n) for one in seeing],
        (RETRIEVAL,): [one.keep(threshold=threshold, n=n, order="retrieval") for one in seeing],
        (NO_FILTER_RETRIEVAL,): [
            one.keep(threshold=None, n=n, order="retrieval") for one in seeing
        ],
    }
    variants = _measure(runner, run, lists)
    if runner.config.generator is None:
        return variants
    return [_answer_from_summaries(runner, run, whole, one) for one in variants]


def _answer_from_summaries(
    runner: StudyRunner, run: RankerRun, whole: DeepEra, variant: FilterVariant
) -> FilterVariant:
    """Replace the answers made from passages by those made from summaries, as DeepEra does it."""
    label = str(variant.label[0])
    if label not in _WITH_SUMMARIES:
        return variant
    config = runner.config
    unfiltered = label in (NO_FILTER, NEITHER)
    maker = whole.variant(
        f"{whole.name}, summaries",
        intent=label not in (NO_INTENT, NEITHER),
        kept_only=True,
        content="summary",
        top_n=config.top_n,
        threshold=0.0 if unfiltered else config.threshold,
        **({"require_evidence": False} if unfiltered else {}),
    )
    values = measure_answers(config, _summaries(maker, run, config.top_n))
    names = [column.name for column in answer_columns(config)]
    found = dict(zip(names, runner.estimate(values), strict=True))
    return FilterVariant(variant.data, variant.ranker, variant.label, {**variant.means, **found})


def _summaries(maker: DeepEra, run: RankerRun, n: int) -> Iterator[tuple[Instance, Sequence[str]]]:
    instances = iter(run.data.dataset)
    while chunk := list(islice(instances, QUESTIONS_AT_ONCE)):
        jobs = [(one.question, candidates_of(one)) for one in chunk]
        yield from zip(chunk, maker.evidence_many(jobs, n), strict=True)


def _columns(runner: StudyRunner, *labels: Column) -> tuple[Column, ...]:
    return (
        *Column.several("text", "data set", "ranker"),
        *labels,
        Column(KEPT, "count"),
        Column(EMPTY, "percent"),
        Column(PRECISION, "percent"),
        *(Column(metric, "percent") for metric in _RANK_METRICS),
        Column(GOLDEN, "percent"),
        *answer_columns(runner.config),
    )


def _measure(
    runner: StudyRunner, run: RankerRun, lists: Mapping[Label, Sequence[JudgedRanking]]
) -> list[FilterVariant]:
    """Measure what each variant hands on of every question of a run."""
    names = [column.name for column in _columns(runner)[2:]]
    values: list[Values] = []
    for kept in lists.values():
        counts = np.array([len(one.ranked) for one in kept], dtype=np.float64)
        golden = np.array([sum(id in one.golden for id in one.ranked) for one in kept])
        values += [
            Values.of(counts),
            Values.of(counts == 0),
            Values.of(golden / np.maximum(counts, 1), counts),
            *(compute(metric, kept) for metric in _RANK_METRICS),
            Values.of(golden > 0),
            *measure_answers_from(runner.config, run.data, kept),
        ]
    found = iter(runner.estimate(values))
    return [
        FilterVariant(*run.key, label, {name: next(found) for name in names}) for label in lists
    ]


def _rows(variants: Sequence[FilterVariant]) -> tuple[tuple[Cell, ...], ...]:
    return tuple((one.data, one.ranker, *one.label, *one.means.values()) for one in variants)


def _draw(
    variants: Sequence[FilterVariant],
    name: str,
    title: str,
    draw: Callable[[Sequence[FilterVariant]], dict[str, CurvePoints]],
    *,
    x_label: str = "threshold",
) -> tuple[CurveFigure, ...]:
    """Draw a figure a ranker, with a panel a data set."""
    by_ranker: dict[str, dict[str, list[FilterVariant]]] = {}
    for one in variants:
        by_ranker.setdefault(one.ranker, {}).setdefault(one.data, []).append(one)
    return tuple(
        CurveFigure(
            name=f"{name}-{number}",
            title=title.format(ranker),
            x_label=x_label,
            y_label="percent",
            panels={data: curves for data, own in of.items() if (curves := draw(own))},
        )
        for number, (ranker, of) in enumerate(by_ranker.items(), start=1)
    )


def _curve(
    variants: Sequence[FilterVariant], place: int, column: str, *, dashed: bool = False
) -> CurvePoints:
    """Draw a column over the number at a place of the label."""
    x = [float(one.label[place]) for one in variants]
    return draw_curve(x, [one.means[column] for one in variants], dashed=dashed)


@dataclass(frozen=True, slots=True)
class PrefixCheck:
    """On how many questions the filtered list is the beginning of the unfiltered one."""

    n_questions: int
    n_prefixes: int
    n_better: int  # best golden passage stands higher with the filter
    n_better_by_retrieval: int  # the same, the kept in first-stage order

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
                "and no MRR can rise with the filter, although DeepEra reports that they do; the "
                f"golden passage stands higher with it on {self.n_better} questions. {retrieval}"
            )
        return (
            f"{ranker}: the filter also holds back passages without a quote, so on "
            f"{self.n_questions - self.n_prefixes:,} of {self.n_questions:,} questions the "
            "filtered list is not the beginning of the unfiltered one; the golden passage stands "
            f"higher with the filter on {self.n_better} questions. {retrieval}"
        )


def check_prefix(questions: Sequence[RankedQuestion], *, threshold: float, n: int) -> PrefixCheck:
    """Compare the filtered with the unfiltered list of every question."""
    # Source: A list ordered by score from which low scores are taken is a prefix of the whole list;
    # the ablation without filtering and figure 7 of DeepEra report what this rules out.
    n_prefixes = n_better = n_better_by_retrieval = 0
    for question in questions:
        whole = question.keep(threshold=None)
        kept = question.keep(threshold=threshold, n=n)
        retrieved = question.keep(threshold=threshold, n=n, order="retrieval")
        n_prefixes += whole.ranked[: len(kept.ranked)] == kept.ranked
        n_better += kept.golden_rank() < whole.golden_rank()
        n_better_by_retrieval += retrieved.golden_rank() < whole.golden_rank()
    return PrefixCheck(len(questions), n_prefixes, n_better, n_better_by_retrieval)


def _prefix_findings(runs: Sequence[RankerRun], threshold: float, n: int) -> tuple[str, ...]:
    """Return one finding a ranker, over all its data sets."""
    questions: dict[str, list[RankedQuestion]] = {}
    for run in runs:
        questions.setdefault(run.ranker.name, []).extend(run.questions)
    return tuple(
        check_prefix(of, threshold=threshold, n=n).says(ranker) for ranker, of in questions.items()
    )
