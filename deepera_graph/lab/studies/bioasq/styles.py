"""Prompt styles in phase B of BioASQ, compared on golden snippets.

Source: the simulation of the BioASQ 13b system: training questions, 20 of each type, with their
golden snippets, answered in each style.
"""

from collections.abc import Mapping, Sequence
from random import Random
from statistics import fmean
from typing import Any

from deepera_graph.bioasq.measures import Measure, evaluate_phase
from deepera_graph.bioasq.phase_b.answer import (
    AnswerJournal,
    TypedAnswer,
    TypedAnswerer,
    submission_of,
)
from deepera_graph.bioasq.questions import TYPES, BioasqQuestion
from deepera_graph.calibration.statistics import bootstrap_sums
from deepera_graph.errors import BackendError, InputError
from deepera_graph.lab.studies.bioasq.runs import Kept, Progress
from deepera_graph.lab.studies.experiment import Resampling, StudyResult, as_estimate
from deepera_graph.lab.tables import Cell, Column, Grid, MetricEstimate
from deepera_graph.settings.ranges import check_at_least

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
    config: Any = None,  # a LangChain config
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
        for answer in answerer.stream(left, config=config) if left else ():
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
