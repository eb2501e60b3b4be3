"""Thresholds that are chosen on some questions and measured on the others, for groups of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import isinf
from statistics import median

import numpy as np

from deepera_graph.calibration.calibrate import fit_curve
from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.rerank.answers import OVERLAPS, AnswerStudy
from deepera_graph.lab.studies.variants import (
    EMPTY,
    GOLDEN,
    KEPT,
    MEASURED,
    PRECISION,
    RANK_METRICS,
    MeasuredVariant,
    Variant,
    keep_from,
    measure_variants,
    own_forms,
)
from deepera_graph.lab.tables import Cell, Column, Grid
from deepera_graph.settings.thresholds import Calibrated

GroupOf = Callable[[int], str]
LEADS = ("small lead", "middle lead", "large lead")
_RANKS = ((1, "golden first in retrieval"), (5, "golden second to fifth"))
FEWEST = 5  # questions on either side, and of a group that has a threshold of its own
_CALIBRATED = 0.5  # probability from which on a fitted curve keeps


# Source: OQ-2 and NC-2 of the follow-up study of DeepEra ask for thresholds by type, difficulty and
# domain of questions, and on held-out questions. Which criterion chooses is ours.
def tune_thresholds(
    runner: StudyRunner, answers: AnswerStudy, measured: Sequence[MeasuredVariant]
) -> tuple[tuple[Grid, ...], tuple[str, ...]]:
    """Choose thresholds on a part of the questions, and measure them on the others."""
    # One threshold for all questions; one for each intent, subject and difficulty; and one that a
    # calibration curve gives. Base and look-alike versions of a question are on the same side.
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
                f"choose a threshold and {len(held_out)} measure it, as each is drawn by its text "
                f"with a chance of {100 * runner.config.tune_share:g} %; each side takes at least "
                f"{FEWEST}, so no threshold was chosen."
            )
        else:
            rows += _tuned_rows(runner, answers, of, tuned, held_out)
    if not rows:
        return (), tuple(dict.fromkeys(findings))
    criterion = "F1 of precision and golden kept"
    if answers.is_on:
        criterion = f"F1 of the answers, where there are references, else {criterion}"
    grid = Grid.told(
        "tuned",
        columns=(
            *Column.several("text", "data set", "ranker", "rule", "thresholds"),
            *Column.several("count", "chosen on", "measured on", KEPT),
            *Column.several("percent", EMPTY, PRECISION, *RANK_METRICS, GOLDEN),
            *answers.columns,
        ),
        rows=tuple(rows),
        criterion=criterion,
        share=100 * runner.config.tune_share,
        fewest=FEWEST,
        probability=_CALIBRATED,
    )
    return (grid,), tuple(dict.fromkeys(findings))


def _split(runner: StudyRunner, run: RankerRun) -> tuple[list[int], list[int]]:
    """Return the places of the questions that choose, and of those that measure."""
    share, seed = runner.config.tune_share, runner.config.seed
    chooses = [_draw(seed, one.judged.question) < share for one in run.questions]
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
        names = [*MEASURED, *(one.name for one in answers.columns)]
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
    if np.isnan(precision) or np.isnan(golden) or not precision + golden:
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


def find_groupings(run: RankerRun, tuned: Sequence[int]) -> Iterator[tuple[str, GroupOf]]:
    """Yield ways to group questions, by name, that have more than one group."""
    # *tuned* are the places of the questions that thresholds are chosen on: only these say where
    # one difficulty ends and the next begins.
    questions = run.questions
    leads = [lead_of(one) for one in questions]
    bounds = np.quantile([leads[at] for at in tuned], [1 / 3, 2 / 3]) if tuned else np.array([])
    ways: tuple[tuple[str, GroupOf], ...] = (
        ("by intent", lambda at: questions[at].intent),
        ("by subject", lambda at: questions[at].judged.subject),
        ("by difficulty", lambda at: LEADS[int(np.searchsorted(bounds, leads[at]))]),
        ("by difficulty, oracle", lambda at: _golden_rank(questions[at])),
    )
    for name, group_of in ways:
        if len({group_of(at) for at in range(len(questions))}) > 1:
            yield name, group_of


def lead_of(question: RankedQuestion) -> float:
    """Return how far the best score is above the middle one, in [0, 1]; it needs no labels."""
    # A question that one passage stands out for is an easy one.
    scores = [score for score in question.ranked.scores if score >= 0]
    return max(scores) - median(scores) if scores else 0.0


def _golden_rank(question: RankedQuestion) -> str:
    ranks = (place for place, id in enumerate(question.first, 1) if id in question.judged.golden)
    rank = next(ranks, float("inf"))
    if isinf(rank):
        return "golden not retrieved"
    return next((name for most, name in _RANKS if rank <= most), "golden sixth or later")
