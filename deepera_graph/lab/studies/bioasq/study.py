"""Experiments of BioASQ task B: how deep to retrieve, how to rerank and combine, how to answer.

Those of phase A compare runs on golden questions, with intervals over questions. A run is made by
`runs`, beside it, or read from a file of another system. Those of phase B compare styles.

Source: the system of BioASQ 13b whose experiments these are: retrieval depth (its table 1),
rerankers before and after tuning, nomination and weighted ensembles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from deepera_graph.bioasq.ensemble import GRID, HOW, WeightSearch, nominate, search_weights, weigh
from deepera_graph.bioasq.measures import (
    EPSILON,
    Measure,
    average_precision,
    evaluate_phase,
    precision_recall_f1,
)
from deepera_graph.bioasq.phase_b.answer import (
    AnswerJournal,
    TypedAnswer,
    TypedAnswerer,
    submission_of,
)
from deepera_graph.bioasq.questions import TYPES, BioasqQuestion, read_pmid
from deepera_graph.bioasq.runs import Run
from deepera_graph.bioasq.settings import MAX_DOCUMENTS
from deepera_graph.calibration.statistics import Values, bootstrap_sums
from deepera_graph.errors import BackendError, InputError, SettingsError
from deepera_graph.lab.bench.figures import CurveFigure, HeatMap, draw_curve
from deepera_graph.lab.studies.bioasq.runs import Kept, Progress, TimedRun
from deepera_graph.lab.studies.experiment import (
    About,
    Resampling,
    StudyResult,
    as_estimate,
    check_baseline,
)
from deepera_graph.lab.studies.run import describe_file, describe_versions
from deepera_graph.lab.tables import Cell, Column, Grid, MetricEstimate, Row
from deepera_graph.settings.ranges import check_at_least

DEPTHS = (10, 100, 1000, 10_000)
_LIBRARIES = ("numpy", "matplotlib", "bm25s", "PyStemmer")
PER_TYPE = 20
EXTRACTIVE = "extractive"
_SHOWN = {
    "yesno_accuracy": "yes/no accuracy",
    "yesno_macro_f1": "yes/no macro F1",
    "factoid_mrr": "factoid MRR",
    "list_f1": "list F1",
    "ideal_rouge-2_f1": "ROUGE-2 F1",
    "ideal_rouge-su4_f1": "ROUGE-SU4 F1",
}
STUDIES = {one: About.named(one) for one in ("depth", "rerankers", "ensembles", "styles")}


@dataclass(frozen=True, kw_only=True)
class BioasqBench(Resampling):
    """Golden questions, and how they are resampled."""

    questions: tuple[BioasqQuestion, ...]  # those with golden documents; at least one

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(one.documents for one in self.questions):
            raise InputError("no golden question has documents, so there is nothing to measure by")

    @classmethod
    def of(
        cls, questions: Sequence[BioasqQuestion], *, limit: int | None = None, **how: int
    ) -> "BioasqBench":
        """Keep the questions with golden documents, or the first *limit* of them."""
        kept = tuple(islice((one for one in questions if one.documents), limit))
        return cls(questions=kept, **how)

    def golden(self, question: BioasqQuestion) -> set[str]:
        """Return the PMIDs of the golden documents."""
        return {*map(read_pmid, question.documents)}


def check_runs(runs: Mapping[str, TimedRun], bench: BioasqBench) -> None:
    """Raise `InputError` for a run that has none of the golden questions."""
    wanted = {one.id for one in bench.questions}
    for name, one in runs.items():
        if not wanted & one.run.keys():
            raise InputError(f"run {name!r} has none of the {len(wanted)} golden questions")


def study_depth(
    bench: BioasqBench, runs: Mapping[str, TimedRun], *, depths: Sequence[int] = DEPTHS
) -> StudyResult:
    """Measure recall at several depths: a table, and a curve a retriever.

    Source: table 1 of the BioASQ 13b system: recall of the index and of PubMed's own search among
    the first 10, 100, 1 000 and 10 000.
    """
    check_runs(runs, bench)
    if not depths or any(one < 1 for one in depths) or sorted({*depths}) != [*depths]:
        raise SettingsError(f"depths must be rising numbers from 1, got {tuple(depths)}")
    rows: list[Row] = []
    curves = {}
    for name, one in runs.items():
        columns = [_recall(bench, one.run, k) for k in depths]
        found = bench.estimate([*columns, precision_of(bench, one.run)])
        rows.append((name, *found, one.seconds))
        curves[name] = draw_curve([*map(float, depths)], found[:-1])
    grid = Grid(
        name="depth",
        title=f"Recall of {len(bench.questions)} questions",
        columns=(
            Column("retriever"),
            *Column.several("percent", *(f"recall@{k}" for k in depths), "MAP@10"),
            Column("a question", "seconds"),
        ),
        rows=tuple(rows),
    )
    drawing = CurveFigure(
        name="depth-curve",
        title="Recall by depth",
        x_label="documents retrieved",
        y_label="recall (%)",
        panels={"": curves},
        log_x=True,
    )
    return StudyResult(grids=(grid,), drawings=(drawing,) if len(depths) > 1 else ())


def precision_of(bench: BioasqBench, run: Run) -> Values:
    """Return BioASQ's average precision of each question, over 10 documents."""
    return Values.of(
        [
            average_precision(_pmids(run, one), bench.golden(one), MAX_DOCUMENTS)
            for one in bench.questions
        ]
    )


def _recall(bench: BioasqBench, run: Run, k: int) -> Values:
    pairs = ((bench.golden(one), _pmids(run, one)[:k]) for one in bench.questions)
    return Values.of([len(golden.intersection(found)) / len(golden) for golden, found in pairs])


def _pmids(run: Run, question: BioasqQuestion) -> list[str]:
    return [one.pmid for one in run.get(question.id, ())]


def measure_runs(bench: BioasqBench, runs: Mapping[str, TimedRun], *, baseline: str = "") -> Grid:
    """Return a table of runs by the measures of BioASQ, and MAP minus that of a baseline."""
    # Raises `InputError` if a run has none of the questions; `SettingsError` if there is no such
    # baseline.
    check_runs(runs, bench)
    baseline = check_baseline(baseline, runs)
    base = precision_of(bench, runs[baseline].run)
    rows: list[Row] = []
    for name, one in runs.items():
        precision = precision_of(bench, one.run)
        geometric = Values.of(precision.values, added=EPSILON)
        found = bench.estimate([precision, geometric, *_columns_of_ten(bench, one.run)])
        minus = None if name == baseline else bench.differences([(precision, base)])[0]
        rows.append((name, *found, minus, one.seconds, len(one.problems)))
    return Grid(
        name="systems",
        title=f"{len(bench.questions)} questions",
        columns=(
            Column("system"),
            *Column.several("percent", "MAP@10", "GMAP@10", "precision@10", "recall@10", "F1@10"),
            Column(f"MAP minus {baseline}", "percent"),
            Column("a question", "seconds"),
            Column("degraded", "count"),
        ),
        rows=tuple(rows),
        note="Degraded are questions of which a step failed; they keep the order before it.",
    )


def _columns_of_ten(bench: BioasqBench, run: Run) -> list[Values]:
    rows = []
    for one in bench.questions:
        golden, found = bench.golden(one), _pmids(run, one)[:MAX_DOCUMENTS]
        rows.append(precision_recall_f1(len(golden & {*found}), len(found), len(golden)))
    return [Values.of(column) for column in np.array(rows).T]


def study_rerankers(
    bench: BioasqBench, runs: Mapping[str, TimedRun], *, baseline: str = ""
) -> StudyResult:
    """Compare rerankers, e.g. one before and after it was tuned."""
    degraded = {name: [*one.problems.values()] for name, one in runs.items() if one.problems}
    return StudyResult(
        grids=(measure_runs(bench, runs, baseline=baseline),),
        findings=tuple(
            f"{name}: {len(why)} questions degraded, e.g. {why[0]}"
            for name, why in degraded.items()
        ),
    )


def study_ensembles(
    bench: BioasqBench, runs: Mapping[str, TimedRun], *, validation: float = 0.5
) -> StudyResult:
    """Join two runs, the first decides ties; weights are searched on one part of the questions."""
    # Source: the ensembles of the BioASQ 13b system: six documents and four, and weights from 0 to
    # 10 chosen by MAP on validation data.
    if len(runs) != 2:
        raise SettingsError(f"an ensemble joins two runs, got {len(runs)}: {', '.join(runs)}")
    check_runs(runs, bench)
    chosen, test = split_questions(bench, validation)
    (first, one), (second, other) = runs.items()
    searches: dict[str, WeightSearch] = {
        how: search_weights(one.run, other.run, chosen.questions, how=how) for how in HOW
    }
    systems = {
        first: one,
        second: other,
        "nominated 6 + 4": TimedRun(nominate(one.run, other.run)),
        "fused by rank (1:1)": TimedRun(weigh([one.run, other.run], (1, 1), how="reciprocal")),
        **{
            f"weighted by {how} {_ratio(found)}": TimedRun(
                weigh([one.run, other.run], found.best.weights, how=found.how)
            )
            for how, found in searches.items()
        },
    }
    measured = measure_runs(test, systems, baseline=first)
    tables = [_tried_table(first, second, how, each) for how, each in searches.items()]
    return StudyResult(
        grids=(measured, _best_table(searches, len(chosen.questions)), *tables),
        drawings=tuple(_draw(first, second, how, each) for how, each in searches.items()),
        facts={"validation": sorted(each.id for each in chosen.questions)},
    )


def _ratio(found: WeightSearch) -> str:
    first, second = found.best.weights
    return f"{first:g}:{second:g}"


def _best_table(searches: Mapping[str, WeightSearch], n: int) -> Grid:
    return Grid(
        name="best-weights",
        title=f"Best weights on {n} other questions",
        columns=(Column("scores"), Column("weights"), Column("MAP@10 there", "percent")),
        rows=tuple((how, _ratio(one), one.best.map) for how, one in searches.items()),
        note="Of equal ones that pair which trusts the first run most.",
    )


def _tried_table(first: str, second: str, how: str, found: WeightSearch) -> Grid:
    tried = {one.weights: one.map for one in found.tried}
    rows: list[Row] = [
        (f"{first} {one:g}", *(tried[float(one), float(other)] for other in GRID)) for one in GRID
    ]
    return Grid(
        name=f"weights-{how}",
        title=f"MAP@10 there, weighted by {how}",
        columns=(Column("weights"), *Column.several("percent", *(f"{second} {x:g}" for x in GRID))),
        rows=tuple(rows),
    )


def _draw(first: str, second: str, how: str, found: WeightSearch) -> HeatMap:
    tried = {one.weights: 100 * one.map for one in found.tried}
    return HeatMap(
        name=f"weights-{how}",
        title=f"MAP@10 (%) on validation questions, weighted by {how}",
        x_label=f"weight of {second}",
        y_label=f"weight of {first}",
        x=tuple(map(float, GRID)),
        y=tuple(map(float, GRID)),
        values=tuple(tuple(tried[float(y), float(x)] for x in GRID) for y in GRID),
        marked=(found.best.weights[1], found.best.weights[0]),
    )


def split_questions(bench: BioasqBench, share: float) -> tuple[BioasqBench, BioasqBench]:
    """Return two parts without a question in common, the first with that share of them."""
    names = [one.id for one in bench.questions]
    n = round(share * len(names))
    if not 0 < share < 1 or not 0 < n < len(names):
        raise SettingsError(
            f"validation must leave questions in both parts of {len(names)}, got {share}"
        )
    drawn = {*Random(bench.seed).sample(sorted(names), n)}
    chosen = tuple(one for one in bench.questions if one.id in drawn)
    others = tuple(one for one in bench.questions if one.id not in drawn)
    return replace(bench, questions=chosen), replace(bench, questions=others)


def describe_setup(golden: Path, n_questions: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that an experiment depends on, as plain data: no date, no folder."""
    return {
        **describe_versions(*_LIBRARIES),
        "golden": describe_file(golden, questions=n_questions),
        "settings": dict(settings),
    }


def draw_questions(
    questions: Sequence[BioasqQuestion], *, per_type: int = PER_TYPE, seed: int = 0
) -> list[BioasqQuestion]:
    """Draw questions of each type with snippets and golden answers, in the order of the file."""
    check_at_least("per_type", per_type, 1)
    usable = [one for one in questions if one.snippets and (one.ideal_answers or one.exact_answer)]
    drawn: set[str] = set()
    for kind in TYPES:
        names = sorted(one.id for one in usable if one.type == kind)
        drawn |= {*Random(f"{seed} {kind}").sample(names, min(per_type, len(names)))}
    if not drawn:
        raise InputError("no question has both snippets and golden answers")
    return [one for one in usable if one.id in drawn]


def answer_all(
    answerer: TypedAnswerer,  # who answers
    questions: Sequence[BioasqQuestion],  # what is asked
    *,
    name: str = "answers",  # of the way to answer, where it is kept
    # where each answer is kept; what failed is asked for again
    kept: Kept = Kept(),  # noqa: B008 - it cannot be changed
    on_progress: Progress = lambda done: None,  # called with the questions done so far
) -> list[TypedAnswer]:
    """Answer questions; golden answers are not shown to who answers."""
    # Raises `BackendError` if no question could be answered; `SettingsError` if what is kept is of
    # something else.
    asked = [
        BioasqQuestion(id=one.id, type=one.type, body=one.body, snippets=one.snippets)
        for one in questions
    ]
    with AnswerJournal(kept.path_of(name), answerer.manifest()).open(resume=kept.resume) as journal:
        by_id = journal.find_done(asked)
        left = [one for one in asked if one.id not in by_id]
        for answer in answerer.stream(left) if left else ():
            journal.add(answer)
            by_id[answer.question.id] = answer
            on_progress(len(by_id))
    found = [by_id[one.id] for one in asked]
    if found and not any(one.is_complete for one in found):
        raise BackendError(next((one.problems[-1] for one in found if one.problems), "no answers"))
    return found


def study_styles(
    golden: Sequence[BioasqQuestion],  # the questions that were asked, with golden answers
    answers: Mapping[str, Sequence[TypedAnswer]],  # by the name of the way
    *,
    n_resamples: int = 10_000,  # of the bootstrap, >= 1
    seed: int = 0,  # of the bootstrap
) -> StudyResult:
    """Compare ways to answer the same questions."""
    # A question that one way has no answer to, as calls failed, is counted, and left out of its
    # measures.
    resampling = Resampling(n_resamples=n_resamples, seed=seed)
    rows: list[tuple[Cell, ...]] = []
    for name, found in answers.items():
        given = submission_of(found)
        answered = {one.id for one in given}
        asked = [one for one in golden if one.id in answered]
        measures = evaluate_phase(asked, given, "b").measures
        cells = [_estimate(measures[one], resampling) for one in _SHOWN]
        calls = sum(one.total_usage.calls for one in found) / len(found)
        seconds = fmean(one.seconds for one in found)
        rows.append((name, *cells, calls, seconds, len(found) - len(asked)))
    counts = ", ".join(
        f"{n} {kind}" for kind in TYPES if (n := sum(one.type == kind for one in golden))
    )
    grid = Grid(
        name="styles",
        title=f"{len(golden)} questions: {counts}",
        columns=(
            Column("style"),
            *Column.several("percent", *_SHOWN.values()),
            Column("calls a question", "number"),
            Column("a question", "seconds"),
            Column("failed", "count"),
        ),
        rows=tuple(rows),
        note="Failed questions are left out of the other columns.",
    )
    return StudyResult(grids=(grid,), facts={"questions": [one.id for one in golden]})


def _estimate(measure: Measure, resampling: Resampling) -> MetricEstimate | None:
    if not measure.questions:
        return None
    [found] = bootstrap_sums([(measure.summed, measure.combine)], **resampling.how)
    return as_estimate(found)
