"""A surveyor that has one judge score all passages, and picks those that another shall read."""

from collections.abc import Callable, Sequence

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.counting import counting_judge, counting_surveyor
from deepera_graph.errors import AnswerError, BudgetError, CallError, RoleError
from deepera_graph.many import ado_many, do_many
from deepera_graph.nodes.survey import find_problem
from deepera_graph.roles import PROMISE, PassageTask, PassageText, ReadsAhead, SurveyTask
from deepera_graph.schema import Judgement, Survey
from deepera_graph.usage import Usage

PICKED, SCORE = "picked", "score"
AT_ONCE = 16  # calls of the first judge in flight, as many as a reranker has by default
Verdict = Judgement | RoleError
Worth = Callable[[PassageTask, Judgement], float]


def by_score(task: PassageTask, judgement: Judgement) -> float:
    """Return what a judge thinks of a passage."""
    return judgement.score


def by_length(task: PassageTask, judgement: Judgement) -> float:
    """Return how much a passage costs to read, in characters."""
    return len(task["title"]) + len(task["section"]) + len(task["text"])


def failure_of(error: Exception) -> RoleError:
    """Return what an error of a judge means for its passage: any is a failed one."""
    if isinstance(error, RoleError):
        return error
    return CallError(f"{type(error).__name__}: {error}", usage=Usage(failed_calls=1))


class Picker(Runnable[SurveyTask, Survey]):
    """Has a judge score all passages, with the notes of its own surveyor, and picks the best.

    A picked passage gets the note ``picked`` 1, and no other that its judge is told, so that what
    is made of it does not depend on the others; its score is its `PROMISE`. Any other gets
    ``picked`` 0 and its ``score``; one that the judge failed on gets no notes. Of equal scores, the
    text that comes first in the alphabet wins: neither the place of a passage nor how often it came
    in counts.

    Args:
        surveyor: Of the judge; None if it needs none.
        judge: Scores all passages.
        n: Most passages picked, >= 1.
        worth: What the best ones are best in.

    Raises:
        RoleError: The surveyor failed, the judge failed on every passage, or the budget is spent;
            carries what all of it cost.
    """

    def __init__(
        self,
        surveyor: Runnable[SurveyTask, Survey] | None,
        judge: Runnable[PassageTask, Judgement],
        n: int,
        *,
        worth: Worth = by_score,
    ) -> None:
        self._surveyor, self._judge, self._n, self._worth = surveyor, judge, n, worth

    def counting(self) -> "Picker":
        """Return this surveyor as it costs; it picks the longest passages, which cost most."""
        surveyor = None if self._surveyor is None else counting_surveyor(self._surveyor)
        return Picker(surveyor, counting_judge(self._judge), self._n, worth=by_length)

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Have the judge's own surveyor begin, if it can."""
        if isinstance(self._surveyor, ReadsAhead):
            self._surveyor.read_ahead(passages)

    def invoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Score all passages, and pick the best."""
        survey = None
        if self._surveyor is not None:
            survey = _checked(input, self._surveyor.invoke(input, config))
        tasks = _tasks(input, survey)

        def judge(task: PassageTask) -> Verdict:
            try:
                return Judgement.model_validate(
                    self._judge.invoke(task, config), from_attributes=True
                )
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                return failure_of(error)

        return self._picked(tasks, do_many(judge, tasks, AT_ONCE), survey)

    async def ainvoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: object
    ) -> Survey:
        """Score all passages, and pick the best, in the running loop."""
        survey = None
        if self._surveyor is not None:
            survey = _checked(input, await self._surveyor.ainvoke(input, config))
        tasks = _tasks(input, survey)

        async def judge(task: PassageTask) -> Verdict:
            try:
                return Judgement.model_validate(
                    await self._judge.ainvoke(task, config), from_attributes=True
                )
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                return failure_of(error)

        return self._picked(tasks, await ado_many(judge, tasks, AT_ONCE), survey)

    def _picked(
        self, tasks: Sequence[PassageTask], verdicts: Sequence[Verdict], survey: Survey | None
    ) -> Survey:
        usage = sum(map(_cost, verdicts), Usage() if survey is None else _cost(survey))
        _raise_if_vain(verdicts, usage)
        worth = {
            place: self._worth(tasks[place], verdict)
            for place, verdict in enumerate(verdicts)
            if isinstance(verdict, Judgement)
        }
        best = set(sorted(worth, key=lambda place: (-worth[place], place))[: self._n])
        notes = [_notes(verdict, place in best) for place, verdict in enumerate(verdicts)]
        return Survey(notes=notes, usage=usage)


def _tasks(task: SurveyTask, survey: Survey | None) -> list[PassageTask]:
    tasks: list[PassageTask] = [
        {
            "question": task["question"],
            "intent": task["intent"],
            "text": passage["text"],
            "title": passage["title"],
            "section": passage["section"],
        }
        for passage in task["passages"]
    ]
    if survey is not None:
        for one, notes in zip(tasks, survey.notes, strict=True):
            one["notes"] = notes
    return tasks


def _checked(task: SurveyTask, answer: object) -> Survey:
    survey = Survey.model_validate(answer, from_attributes=True)
    problem = find_problem(task, survey)
    if problem:
        raise AnswerError(problem, usage=_cost(survey))
    return survey


def _raise_if_vain(verdicts: Sequence[Verdict], usage: Usage) -> None:
    """Raise if nothing was judged, or the budget ended it; passages left out are not worse ones."""
    errors = [one for one in verdicts if isinstance(one, RoleError)]
    fatal: list[RoleError] = [one for one in errors if isinstance(one, BudgetError)]
    if len(errors) == len(verdicts):
        fatal += errors
    if fatal:
        fatal[0].usage = usage
        raise fatal[0]


def _notes(verdict: Verdict, is_picked: bool) -> dict[str, float]:
    if isinstance(verdict, RoleError):
        return {}
    if is_picked:
        return {PICKED: 1.0, PROMISE: verdict.score}
    return {PICKED: 0.0, SCORE: verdict.score}


def _cost(answer: Judgement | Survey | RoleError) -> Usage:
    return Usage(calls=1) if answer.usage is None else answer.usage
