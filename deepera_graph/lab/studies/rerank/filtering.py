"""Studies of the filter: its threshold, its cut-off, and DeepEra without one of its parts.

Answers of a DeepEra ranker are made as DeepEra makes them: from the summaries of the passages that
pass the filter, at most n of them, in rank order. Beside them stand the same without the filter,
and without summaries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from deepera_graph.lab.bench.figures import CurvePoints
from deepera_graph.lab.bench.rank import RankedQuestion
from deepera_graph.lab.metrics.ranking import DatasetSummary
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.base import RankerRun, StudyRunner
from deepera_graph.lab.studies.experiment import StudyResult
from deepera_graph.lab.studies.rerank.answers import AnswerStudy
from deepera_graph.lab.studies.rerank.tuned import tune_thresholds
from deepera_graph.lab.studies.variants import (
    EMPTY,
    GOLDEN,
    PASSAGES,
    PRECISION,
    Keep,
    MeasuredVariant,
    Variant,
    columns_of,
    curve_of,
    draw_answers,
    draw_variants,
    forms_of,
    keep_from,
    measure_variants,
    note_left_out,
    note_limits,
    note_unanswered,
    rows_of,
)
from deepera_graph.lab.tables import Column, Grid, Unit
from deepera_graph.settings.thresholds import Threshold

_WITH, _WITHOUT = "with", "without"
NO_THRESHOLD = "none"
_CURVES = (PRECISION, GOLDEN, "HitRate@1", EMPTY)
WHOLE = "whole"
NO_INTENT = "v1 without intent recognition"
NO_FILTER = "v2 without filter"
NEITHER = "v1 and v2 together"
NO_SUMMARY = "v3 without summaries"
RETRIEVAL = "kept in retrieval order"
NO_FILTER_RETRIEVAL = "v2 in retrieval order"


def study_threshold(runner: StudyRunner) -> StudyResult:
    """Apply every threshold, and every rule that sets one, to the same scores."""
    config, answers = runner.config, AnswerStudy(runner)
    rules: dict[str | float, Threshold | None] = {one: one for one in config.thresholds}
    rules.update(config.rules)
    unfiltered: dict[str | float, Threshold | None] = {NO_THRESHOLD: None} if answers.is_on else {}
    measured: list[MeasuredVariant] = []
    for runs in runner.filter_runs():
        forms = forms_of(runs, answers)
        variants = [
            Variant(label=(name,), runs=runs, keep=keep_from(rule, config.top_n), form=form)
            for form in forms
            for name, rule in {**rules, **(unfiltered if form == forms[0] else {})}.items()
        ]
        measured += measure_variants(runner, answers, variants)
    grid = Grid.told(
        "threshold",
        columns=columns_of(answers, Column("threshold", "number")),
        rows=rows_of(answers, measured),
        most=config.top_n,
        answers=_explain_answers(answers),
    )
    tuned, findings = tune_thresholds(runner, answers, measured)
    title = "What the filter keeps of the ranking of {}, by threshold"
    return answers.conclude(
        grid,
        *tuned,
        drawings=(
            *draw_variants(
                measured, "threshold", title, partial(_by_threshold, _CURVES, "percent")
            ),
            *draw_answers(answers, measured, "threshold", "threshold", _by_threshold),
        ),
        findings=(
            *note_left_out(runner),
            *note_unanswered(runner),
            *findings,
            *note_limits(runner),
        ),
    )


def _explain_answers(answers: AnswerStudy) -> str:
    """Say, for the note of a table, from what answers are made and how failures count."""
    if not answers.is_on:
        return ""
    return (
        " Answers are made from what is handed on: summaries are what DeepEra hands on, passages "
        "the same without summaries. A question whose generator failed counts as an empty answer, "
        "and an answer that could not be judged has the lowest LFS; their shares are in the table."
    )


def _by_threshold(
    columns: Sequence[str], unit: Unit, variants: Sequence[MeasuredVariant]
) -> dict[str, CurvePoints]:
    fixed = [one for one in variants if isinstance(one.label[0], float)]
    return {column: curve_of(fixed, 0, column, unit=unit) for column in columns if fixed}


def study_cutoff(runner: StudyRunner) -> StudyResult:
    """Take the first n passages, with and without the filter."""
    config, answers = runner.config, AnswerStudy(runner)
    every = list(runner.filter_runs())
    measured: list[MeasuredVariant] = []
    for runs in every:
        forms = forms_of(runs, answers)
        filters = ((_WITH, runner.threshold_of(runs[0].ranker)), (_WITHOUT, None))
        variants = [
            Variant(label=(name, n), runs=runs, keep=keep_from(threshold, n), form=form)
            for form in forms
            for name, threshold in (filters if form == forms[0] else filters[:1])
            for n in _within(config.cutoffs, runs[0].data)
        ]
        measured += measure_variants(runner, answers, variants)
    grid = Grid.told(
        "cutoff",
        columns=columns_of(answers, Column("filter"), Column("n", "count")),
        rows=rows_of(answers, measured),
        filter=_describe_filter(runner),
        answers=_explain_answers(answers),
    )
    title = "What the first n of {} hold, with and without the filter"
    return answers.conclude(
        grid,
        drawings=(
            *draw_variants(
                measured,
                "cutoff",
                title,
                partial(_by_filter, (GOLDEN, PRECISION), "percent"),
                x_label="n",
            ),
            *draw_answers(answers, measured, "cutoff", "n", _by_filter),
        ),
        findings=(
            *note_left_out(runner),
            *note_unanswered(runner),
            *_prefix_findings(runner, [runs[0] for runs in every], max(config.cutoffs)),
            *note_limits(runner),
        ),
    )


def _within(cutoffs: Sequence[int], data: DatasetSummary) -> list[int]:
    """Return the cut-offs up to the first that no question has more candidates than."""
    most = max(one.n_candidates for one in data.labels)
    enough = min((n for n in cutoffs if n >= most), default=most)
    return [n for n in cutoffs if n <= enough]


def _describe_filter(runner: StudyRunner) -> str:
    threshold = runner.config.threshold
    if threshold is not None:
        return f"scores from {threshold:g} on"
    told = (
        f"{one.operating_point:g} ({one.name})"
        for one in runner.rankers
        if one.says_why and isinstance(one.operating_point, float)
    )
    return f"scores from the operating point of each ranker on: {', '.join(told) or 'a rule'}"


def _by_filter(
    columns: Sequence[str], unit: Unit, variants: Sequence[MeasuredVariant]
) -> dict[str, CurvePoints]:
    return {
        f"{column}, {name} filter": curve_of(
            [one for one in variants if one.label[0] == name],
            1,
            column,
            dashed=name == _WITHOUT,
            unit=unit,
        )
        for column in columns
        for name in (_WITH, _WITHOUT)
    }


def study_ablations(runner: StudyRunner) -> StudyResult:
    """Take the parts of DeepEra away in turn."""
    n, answers = runner.config.top_n, AnswerStudy(runner)
    first: list[RankerRun] = []
    measured: list[MeasuredVariant] = []
    for runs in runner.filter_runs():
        if isinstance(runs[0].ranker, DeepEra):
            first.append(runs[0])
            measured += measure_variants(runner, answers, _ablate(runner, answers, runs))
    grid = Grid.told(
        "ablations",
        columns=columns_of(answers, Column("variant")),
        rows=rows_of(answers, measured),
        most=n,
        filter=_describe_filter(runner),
        answers=_explain_answers(answers),
    )
    findings = (
        *note_left_out(runner),
        *note_unanswered(runner),
        *_prefix_findings(runner, first, n),
        *note_limits(runner),
    )
    return answers.conclude(grid, findings=findings)


def _ablate(runner: StudyRunner, answers: AnswerStudy, runs: Sequence[RankerRun]) -> list[Variant]:
    n, threshold = runner.config.top_n, runner.threshold_of(runs[0].ranker)
    blind = [runner.run_once(_without_intent(run.ranker), run.data) for run in runs]
    whole = forms_of(runs, answers)[0]
    ways: tuple[tuple[str, Sequence[RankerRun], Keep, str], ...] = (
        (WHOLE, runs, keep_from(threshold, n), whole),
        (NO_INTENT, blind, keep_from(threshold, n), whole),
        (NO_FILTER, runs, keep_from(None, n), whole),
        (NEITHER, blind, keep_from(None, n), whole),
        (NO_SUMMARY, runs, keep_from(threshold, n), PASSAGES),
        (RETRIEVAL, runs, _keep_in_retrieval_order(threshold, n), whole),
        (NO_FILTER_RETRIEVAL, runs, _keep_in_retrieval_order(None, n), whole),
    )
    return [
        Variant(label=(label,), runs=own, keep=keep, form=form, of=runs[0].ranker.name)
        for label, own, keep, form in ways
    ]


def _without_intent(ranker: object) -> DeepEra:
    assert isinstance(ranker, DeepEra)
    return ranker.without_intent()


def _keep_in_retrieval_order(threshold: Threshold | None, n: int) -> Keep:
    return lambda question: question.keep(threshold=threshold, n=n, order="retrieval")


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
                "and no MRR can rise with the filter, although the paper on DeepEra reports that "
                f"they do; the golden passage stands higher with it on {self.n_better} questions. "
                f"{retrieval}"
            )
        return (
            f"{ranker}: the filter also holds back passages without a quote, so on "
            f"{self.n_questions - self.n_prefixes:,} of {self.n_questions:,} questions the "
            "filtered list is not the beginning of the unfiltered one; the golden passage stands "
            f"higher with the filter on {self.n_better} questions. {retrieval}"
        )


def check_prefix(
    questions: Sequence[RankedQuestion], *, threshold: Threshold, n: int
) -> PrefixCheck:
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


def _prefix_findings(runner: StudyRunner, runs: Sequence[RankerRun], n: int) -> tuple[str, ...]:
    questions: dict[str, list[RankedQuestion]] = {}
    thresholds: dict[str, Threshold] = {}
    for run in runs:
        questions.setdefault(run.ranker.name, []).extend(run.questions)
        thresholds[run.ranker.name] = runner.threshold_of(run.ranker)
    return tuple(
        check_prefix(of, threshold=thresholds[ranker], n=n).says(ranker)
        for ranker, of in questions.items()
    )
