"""Ways to filter, measured: what each hands on of a ranking, and what that is worth."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from deepera_graph.calibration.statistics import Values, mean_std, pool_runs, tell_few
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints, draw_curve
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.metrics.ranking import DatasetSummary, JudgedRanking, compute
from deepera_graph.lab.rankers.base import UnavailableRanker
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.rerank.answers import LFS, AnswerStudy, MeasuredRow, Source
from deepera_graph.lab.tables import Cell, Column, MetricEstimate, Unit
from deepera_graph.settings.thresholds import Threshold

KEPT, EMPTY, PRECISION, GOLDEN = "kept", "nothing kept", "precision of the kept", "golden kept"
RANK_METRICS = ("HitRate@1", "HitRate@3", "MRR")
MEASURED = (KEPT, EMPTY, PRECISION, *RANK_METRICS, GOLDEN)
SUMMARIES, PASSAGES = "summaries", "passages"
Label = tuple[str | float, ...]
Keep = Callable[[RankedQuestion], JudgedRanking]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to filter: what it hands on of every question of every run, and in which form."""

    label: Label
    runs: Sequence[RankerRun]
    keep: Keep
    form: str = PASSAGES
    of: str = ""  # whose variant it is; the ranker of its runs if empty

    def lists(self, run: RankerRun) -> list[JudgedRanking]:
        """Return what is handed on of each question of a run."""
        return [self.keep(one) for one in run.questions]


class MeasuredVariant(NamedTuple):
    """A variant, measured: by column the values of the questions, and their mean."""

    data: str
    ranker: str
    label: Label  # what tells it from the other variants of the ranker
    form: str  # what is handed on of a kept passage
    runs: Sequence[RankerRun]
    values: Mapping[str, Values]
    means: Mapping[str, MetricEstimate]


def forms_of(runs: Sequence[RankerRun], answers: AnswerStudy) -> tuple[str, ...]:
    """Return what may be handed on: summaries first, where there are some and somebody reads."""
    if answers.is_on and isinstance(runs[0].ranker, DeepEra):
        return (SUMMARIES, PASSAGES)
    return (PASSAGES,)


def columns_of(answers: AnswerStudy, *labels: Column) -> tuple[Column, ...]:
    """Return the columns of a table of variants."""
    return (
        *Column.several("text", "data set", "ranker"),
        *labels,
        *([Column("handed on")] if answers.is_on else []),
        Column(KEPT, "count"),
        *Column.several("percent", EMPTY, PRECISION, *RANK_METRICS, GOLDEN),
        *answers.columns,
    )


def rows_of(
    answers: AnswerStudy, measured: Sequence[MeasuredVariant]
) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows of a table of variants."""
    names = [*MEASURED, *(one.name for one in answers.columns)]
    return tuple(
        (
            one.data,
            one.ranker,
            *one.label,
            *([one.form] if answers.is_on else []),
            *(one.means[name] for name in names),
        )
        for one in measured
    )


def measure_variants(
    runner: StudyRunner, answers: AnswerStudy, variants: Sequence[Variant]
) -> list[MeasuredVariant]:
    """Measure what each variant hands on, and the answers that are made from it."""
    found: list[tuple[Variant, MeasuredRow]] = []
    for variant in variants:
        lists = [variant.lists(run) for run in variant.runs]
        measured = measure_lists(lists, _measure_kept)
        if answers.is_on:
            row = ", ".join(map(str, (variant.runs[0].ranker.name, *variant.label, variant.form)))
            measured = measured.join(
                measure_answers(answers, variant.runs, lists, form=variant.form, row=row)
            )
        found.append((variant, measured))
    means = iter(runner.estimate([one for _, row in found for one in row.values.values()]))
    return [
        MeasuredVariant(
            data=variant.runs[0].data.name,
            ranker=variant.of or variant.runs[0].ranker.name,
            label=variant.label,
            form=variant.form,
            runs=variant.runs,
            values=row.values,
            means=row.fill(means) | answers.spread(row.values),
        )
        for variant, row in found
    ]


def measure_lists(
    by_run: Sequence[Sequence[JudgedRanking]],
    measure: Callable[[Sequence[JudgedRanking]], Mapping[str, Values]],
) -> MeasuredRow:
    """Measure the lists of each run, and average over runs."""
    found = [measure(one) for one in by_run]
    values = {name: pool_runs([one[name] for one in found]) for name in found[0]}
    stds = {name: mean_std([one[name].mean() for one in found]).std for name in values}
    return MeasuredRow(values, stds, len(found))


def measure_answers(
    answers: AnswerStudy,
    runs: Sequence[RankerRun],
    lists: Sequence[Sequence[JudgedRanking]],
    *,
    form: str,
    row: str,
) -> MeasuredRow:
    """Measure the answers that are made from the lists of each run, in the form they come in."""
    sources: list[Source] = [
        partial(answers.summaries, run, kept, row=row)
        if form == SUMMARIES
        else partial(answers.passages, run.data, kept)
        for run, kept in zip(runs, lists, strict=True)
    ]
    return answers.measure(runs[0].data.name, row, sources)


def _measure_kept(kept: Sequence[JudgedRanking]) -> dict[str, Values]:
    counts = np.array([len(one.ranked) for one in kept], dtype=np.float64)
    golden = np.array([sum(id in one.golden for id in one.ranked) for one in kept])
    return {
        KEPT: Values.of(counts),
        EMPTY: Values.of(counts == 0),
        PRECISION: Values.of(golden / np.maximum(counts, 1), counts),
        **{metric: compute(metric, kept) for metric in RANK_METRICS},
        GOLDEN: Values.of(golden > 0, [float(bool(one.golden)) for one in kept]),
    }


def note_unanswered(runner: StudyRunner) -> tuple[str, ...]:
    """Say of which data sets nothing answers some questions, and what is over the others."""
    return tuple(
        f"{one.name}: nothing answers {one.n_unanswered} of the {one.n_questions} questions, for "
        f"which to keep nothing is right; {GOLDEN} and the rank metrics are over the others."
        for one in runner.data()
        if one.n_unanswered
    )


def tell_limits(data: DatasetSummary) -> str:
    """Say what few questions leave open of others, and that they share passages, if so."""
    n = data.n_questions
    few = tell_few(n - data.n_unanswered or n)
    if data.n_pools == n:
        return few
    pools = "1 pool" if data.n_pools == 1 else f"{data.n_pools:,} pools"
    return (
        f"The {n:,} questions have {pools} of passages between them: intervals, which take them as "
        f"independent, may be too narrow. {few}"
    ).rstrip()


def note_limits(runner: StudyRunner) -> tuple[str, ...]:
    """Say the same of each data set of a study."""
    told = ((one.name, tell_limits(one)) for one in runner.data())
    return tuple(f"{name}: {limits}" for name, limits in told if limits)


def note_left_out(runner: StudyRunner) -> tuple[str, ...]:
    """Say which rankers a study of the filter leaves out, and why."""
    return tuple(
        f"{one.name}: left out, as it is not available: {one.reason}"
        if isinstance(one, UnavailableRanker)
        else f"{one.name}: left out, as its scores do not say what to keep."
        for one in runner.rankers
        if not one.says_why
    )


def draw_variants(
    measured: Sequence[MeasuredVariant],
    name: str,
    title: str,
    draw: Callable[[Sequence[MeasuredVariant]], dict[str, CurvePoints]],
    *,
    x_label: str = "threshold",
    y_label: str = "percent",
) -> tuple[CurveFigure, ...]:
    """Draw a figure a ranker, with a panel a data set; of variants as their ranker hands on."""
    by_ranker: dict[str, dict[str, list[MeasuredVariant]]] = {}
    for one in own_forms(measured):
        by_ranker.setdefault(one.ranker, {}).setdefault(one.data, []).append(one)
    figures = []
    for number, (ranker, of) in enumerate(by_ranker.items(), start=1):
        drawn = {data: draw(own).items() for data, own in of.items()}
        panels = {data: {name: one for name, one in all_ if one.x} for data, all_ in drawn.items()}
        panels = {data: curves for data, curves in panels.items() if curves}
        if panels:
            figures.append(
                CurveFigure(
                    name=f"{name}-{number}",
                    title=title.format(ranker),
                    x_label=x_label,
                    y_label=y_label,
                    panels=panels,
                )
            )
    return tuple(figures)


def own_forms(measured: Sequence[MeasuredVariant]) -> list[MeasuredVariant]:
    """Return the variants that hand on summaries, and those of rankers that make none."""
    making = {one.ranker for one in measured if one.form == SUMMARIES}
    return [one for one in measured if one.form == SUMMARIES or one.ranker not in making]


def draw_answers(
    answers: AnswerStudy,
    measured: Sequence[MeasuredVariant],
    name: str,
    x_label: str,
    curves: Callable[..., dict[str, CurvePoints]],
) -> tuple[CurveFigure, ...]:
    """Draw F1, precision and recall of the answers in one figure, and LFS in another."""
    if not answers.is_on:
        return ()
    overlaps = draw_variants(
        measured,
        f"{name}-answers",
        f"Answers from what {{}} hands on, by {x_label}",
        partial(curves, answers.overlaps, "percent"),
        x_label=x_label,
    )
    scored = next((one for one in answers.columns if one.name == LFS), None)
    if scored is None:
        return overlaps
    marks = draw_variants(
        measured,
        f"{name}-lfs",
        f"LFS of the answers from what {{}} hands on, by {x_label}",
        partial(curves, (LFS,), "number"),
        x_label=x_label,
        y_label=scored.title,
    )
    return (*overlaps, *marks)


def curve_of(
    variants: Sequence[MeasuredVariant],
    place: int,
    column: str,
    *,
    dashed: bool = False,
    unit: Unit = "percent",
) -> CurvePoints:
    """Draw a column over the number at a place of the label."""
    x = [float(one.label[place]) for one in variants]
    return draw_curve(x, [one.means[column] for one in variants], dashed=dashed, unit=unit)


def keep_from(threshold: Threshold | None, n: int) -> Keep:
    """Return what keeps at most *n* passages from a threshold on; None filters nothing."""
    return lambda question: question.keep(threshold=threshold, n=n)
