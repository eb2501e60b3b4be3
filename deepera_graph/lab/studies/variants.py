"""Ways to filter, measured; and thresholds that are chosen on some questions, for the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from deepera_graph.calibration.calibrate import fit_curve
from deepera_graph.calibration.statistics import Values, mean_std, pool_runs
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.bench.figures import CurveFigure, CurvePoints, draw_curve
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.metrics.ranking import JudgedRanking, compute
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.grouping import find_groupings
from deepera_graph.lab.studies.rerank.answers import LFS, OVERLAPS, AnswerStudy, Source
from deepera_graph.lab.tables import Cell, Column, Grid, MetricEstimate, Unit
from deepera_graph.thresholds import Calibrated, Threshold

KEPT, EMPTY, PRECISION, GOLDEN = "kept", "nothing kept", "precision of the kept", "golden kept"
_RANK_METRICS = ("HitRate@1", "HitRate@3", "MRR")
_MEASURED = (KEPT, EMPTY, PRECISION, *_RANK_METRICS, GOLDEN)
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
        *Column.several("percent", EMPTY, PRECISION, *_RANK_METRICS, GOLDEN),
        *answers.columns,
    )


def rows_of(
    answers: AnswerStudy, measured: Sequence[MeasuredVariant]
) -> tuple[tuple[Cell, ...], ...]:
    """Return the rows of a table of variants."""
    names = [*_MEASURED, *(one.name for one in answers.columns)]
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
    found: list[tuple[Variant, dict[str, Values], dict[str, float]]] = []
    for variant in variants:
        lists = [variant.lists(run) for run in variant.runs]
        by_run = [_measure_lists(one) for one in lists]
        values = {name: pool_runs([one[name] for one in by_run]) for name in _MEASURED}
        stds = {name: mean_std([one[name].mean() for one in by_run]).std for name in _MEASURED}
        if answers.is_on:
            row = ", ".join(map(str, (variant.runs[0].ranker.name, *variant.label, variant.form)))
            sources = [
                _source(answers, variant, run, kept, row)
                for run, kept in zip(variant.runs, lists, strict=True)
            ]
            scores = answers.measure(variant.runs[0].data.name, row, sources)
            values |= scores.values
            stds |= scores.stds
        found.append((variant, values, stds))
    means = iter(runner.estimate([one for _, values, _ in found for one in values.values()]))
    return [
        MeasuredVariant(
            data=variant.runs[0].data.name,
            ranker=variant.of or variant.runs[0].ranker.name,
            label=variant.label,
            form=variant.form,
            runs=variant.runs,
            values=values,
            means={name: next(means)._replace(std=stds[name]) for name in values}
            | answers.spread(values),
        )
        for variant, values, stds in found
    ]


def _source(
    answers: AnswerStudy, variant: Variant, run: RankerRun, kept: list[JudgedRanking], row: str
) -> Source:
    if variant.form == SUMMARIES:
        return partial(answers.summaries, run, kept, row=row)
    return partial(answers.passages, run.data, kept)


def _measure_lists(kept: Sequence[JudgedRanking]) -> dict[str, Values]:
    counts = np.array([len(one.ranked) for one in kept], dtype=np.float64)
    golden = np.array([sum(id in one.golden for id in one.ranked) for one in kept])
    return {
        KEPT: Values.of(counts),
        EMPTY: Values.of(counts == 0),
        PRECISION: Values.of(golden / np.maximum(counts, 1), counts),
        **{metric: compute(metric, kept) for metric in _RANK_METRICS},
        GOLDEN: Values.of(golden > 0),
    }


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
        panels = {data: curves for data, own in of.items() if (curves := _with_points(draw(own)))}
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


def _with_points(curves: Mapping[str, CurvePoints]) -> dict[str, CurvePoints]:
    """Return the curves that have something to show."""
    return {name: one for name, one in curves.items() if one.x}


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


FEWEST = 5  # questions on either side, and of a group that has a threshold of its own
_CALIBRATED = 0.5  # probability from which on a fitted curve keeps


# Source: OQ-2 and NC-2 of the follow-up study of DeepEra ask for thresholds by type, difficulty and
# domain of questions, and on held-out questions. Which criterion chooses is ours.
def tune_thresholds(
    runner: StudyRunner, answers: AnswerStudy, measured: Sequence[MeasuredVariant]
) -> tuple[tuple[Grid, ...], tuple[str, ...]]:
    """Choose thresholds on a part of the questions, and measure them on the others.

    One threshold for all questions; one for each intent, subject and difficulty; and one that a
    calibration curve gives. Base and look-alike versions of a question are on the same side.
    """
    fixed = [one for one in own_forms(measured) if isinstance(one.label[0], float)]
    by_run: dict[tuple[str, str], list[MeasuredVariant]] = {}
    for one in fixed:
        by_run.setdefault((one.data, one.ranker), []).append(one)
    rows: list[tuple[Cell, ...]] = []
    findings = []
    for of in by_run.values():
        tuned, held_out = _split(runner, of[0].runs[0])
        if min(len(tuned), len(held_out)) < FEWEST:
            findings.append(
                f"{of[0].data}: of {len(tuned) + len(held_out)} questions {len(tuned)} would "
                f"choose a threshold and {len(held_out)} measure it; each takes at least {FEWEST}."
            )
        else:
            rows += _tuned_rows(runner, answers, of, tuned, held_out)
    if not rows:
        return (), tuple(dict.fromkeys(findings))
    criterion = "F1 of precision and golden kept"
    if answers.is_on:
        criterion = f"F1 of the answers, where there are references, else {criterion}"
    grid = Grid(
        name="tuned",
        title="Thresholds chosen on some questions, measured on the others",
        columns=(
            *Column.several("text", "data set", "ranker", "rule", "thresholds"),
            *Column.several("count", "chosen on", "measured on", KEPT),
            *Column.several("percent", EMPTY, PRECISION, *_RANK_METRICS, GOLDEN),
            *answers.columns,
        ),
        rows=tuple(rows),
        note=(
            f"Of the thresholds of the study the one with the best {criterion} on "
            f"{100 * runner.config.tune_share:g} % of the questions, drawn by the question's text, "
            "is applied to the others. By intent, subject or difficulty each group with at least "
            f"{FEWEST} questions has its own. Difficulty is how far the best score is above the "
            "middle one, in thirds of the questions that choose; for the oracle it is the rank of "
            "the golden passage in retrieval, which only labels tell: it cannot be used, and shows "
            "what there is to gain. "
            f"Calibrated keeps what a curve, fitted on the same questions, holds for evidence with "
            f"a probability of at least {_CALIBRATED:g}."
        ),
    )
    return (grid,), tuple(dict.fromkeys(findings))


def _split(runner: StudyRunner, run: RankerRun) -> tuple[list[int], list[int]]:
    """Return the places of the questions that choose, and of those that measure."""
    share, seed = runner.config.tune_share, runner.config.seed
    chooses = [_draw(seed, one.labels.question) < share for one in run.questions]
    places = range(len(chooses))
    return [at for at in places if chooses[at]], [at for at in places if not chooses[at]]


def _draw(seed: int, question: str) -> float:
    digest = sha256(f"{seed}|{question}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _tuned_rows(
    runner: StudyRunner,
    answers: AnswerStudy,
    of: Sequence[MeasuredVariant],
    tuned: Sequence[int],
    held_out: Sequence[int],
) -> Iterator[tuple[Cell, ...]]:
    run = of[0].runs[0]
    best = _best(answers, of, tuned)
    plans: list[tuple[str, str, Mapping[str, Values]]] = [
        ("one threshold", f"{best.label[0]:g}", best.values)
    ]
    for name, group_of in find_groupings(run, tuned):
        chosen = _choose_by_group(answers, of, tuned, group_of, best)
        if len(chosen) > 1:
            told = ", ".join(f"{group} {one.label[0]:g}" for group, one in chosen.items())
            plans.append((name, told, _compose(run, chosen, group_of, best)))
    curve = _calibrate(runner, answers, of[0], tuned)
    if curve is not None:
        plans.append((f"calibrated:{_CALIBRATED:g}", "of each score", curve.values))
    values = [{name: one.of_places(held_out) for name, one in plan[2].items()} for plan in plans]
    means = iter(runner.estimate([one for each in values for one in each.values()]))
    for (name, told, _), own in zip(plans, values, strict=True):
        cells = {column: next(means) for column in own} | answers.spread(own)
        names = [*_MEASURED, *(one.name for one in answers.columns)]
        yield (
            *(of[0].data, of[0].ranker, name, told, len(tuned), len(held_out)),
            *(cells[column] for column in names),
        )


def _best(
    answers: AnswerStudy, of: Sequence[MeasuredVariant], places: Sequence[int]
) -> MeasuredVariant:
    """Return the variant that is best on some questions; the lowest threshold of equal ones."""
    return max(of, key=lambda one: (_criterion(answers, one, places), -float(one.label[0])))


def _criterion(answers: AnswerStudy, one: MeasuredVariant, places: Sequence[int]) -> float:
    if answers.is_on:
        found = one.values[OVERLAPS[0]].of_places(places).mean()
        if not np.isnan(found):
            return found
    precision, golden = (one.values[name].of_places(places).mean() for name in (PRECISION, GOLDEN))
    if np.isnan(precision) or not precision + golden:
        return 0.0
    return 2 * precision * golden / (precision + golden)


def _choose_by_group(
    answers: AnswerStudy,
    of: Sequence[MeasuredVariant],
    tuned: Sequence[int],
    group_of: Callable[[int], str],
    best: MeasuredVariant,
) -> dict[str, MeasuredVariant]:
    groups: dict[str, list[int]] = {}
    for place in tuned:
        groups.setdefault(group_of(place), []).append(place)
    return {
        group or "(none)": _best(answers, of, places) if len(places) >= FEWEST else best
        for group, places in sorted(groups.items())
    }


def _compose(
    run: RankerRun,
    chosen: Mapping[str, MeasuredVariant],
    group_of: Callable[[int], str],
    best: MeasuredVariant,
) -> dict[str, Values]:
    """Return values in which each question has the threshold of its group."""
    own = [chosen.get(group_of(at) or "(none)", best) for at in range(len(run.questions))]
    return {
        name: Values.of(
            [one.values[name].values[at] for at, one in enumerate(own)],
            [one.values[name].weights[at] for at, one in enumerate(own)],
        )
        for name in best.values
    }


def _calibrate(
    runner: StudyRunner, answers: AnswerStudy, like: MeasuredVariant, tuned: Sequence[int]
) -> MeasuredVariant | None:
    """Measure the filter by a curve fitted on some questions; None where there is too little."""
    questions = [like.runs[0].questions[at] for at in tuned]
    judged = [
        (score, int(id in one.judged.golden))
        for one in questions
        for id, score in one.scores.items()
        if score >= 0
    ]
    try:
        curve = fit_curve([score for score, _ in judged], [label for _, label in judged])
    except (InputError, SettingsError):  # too little of a label, or scikit-learn is missing
        return None
    rule = Calibrated(curve=curve, probability=_CALIBRATED)
    variant = Variant(
        label=("calibrated",),
        runs=like.runs,
        keep=keep_from(rule, runner.config.top_n),
        form=like.form,
    )
    return measure_variants(runner, answers, [variant])[0]


def keep_from(threshold: Threshold | None, n: int) -> Keep:
    """Return what keeps at most *n* passages from a threshold on; None filters nothing."""
    return lambda question: question.keep(threshold=threshold, n=n)
