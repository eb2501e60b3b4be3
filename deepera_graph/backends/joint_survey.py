"""One survey for several judges: each gets the notes made for it, and no others."""

from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.counting import counting_surveyor
from deepera_graph.errors import AnswerError, RoleError
from deepera_graph.nodes.survey import find_problem
from deepera_graph.roles import PROMISE, PassageTask, PassageText, ReadsAhead, SurveyTask
from deepera_graph.schema import Survey
from deepera_graph.usage import Usage

Surveyor = Runnable[SurveyTask, Survey]


def joint_surveyor(surveyors: Mapping[str, Surveyor | None]) -> "JointSurveyor | None":
    """Return a surveyor that asks those of several parts; None if no part has one."""
    own = {part: surveyor for part, surveyor in surveyors.items() if surveyor is not None}
    return JointSurveyor(own) if own else None


def with_own_notes(part: str, task: PassageTask) -> PassageTask:
    """Return a task with the notes made for one part, under their own names; without, if none."""
    rest = task.copy()
    given = rest.pop("notes", {})
    head = f"{part}."
    notes = {
        name.removeprefix(head): value for name, value in given.items() if name.startswith(head)
    }
    if notes:
        rest["notes"] = notes
    return rest


class JointSurveyor(Runnable[SurveyTask, Survey]):
    """Asks one surveyor after the other, and names each note after its part: ``part.note``.

    Raises:
        RoleError: One of them failed; carries what all of them cost.
    """

    def __init__(self, surveyors: Mapping[str, Surveyor]) -> None:
        self._surveyors = dict(surveyors)

    def counting(self) -> "JointSurveyor":
        """Return this surveyor as it costs, asking nothing."""
        return JointSurveyor({part: counting_surveyor(s) for part, s in self._surveyors.items()})

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Have those begin that can."""
        for surveyor in self._surveyors.values():
            if isinstance(surveyor, ReadsAhead):
                surveyor.read_ahead(passages)

    def invoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Survey:
        """Survey the passages."""
        found: dict[str, Survey] = {}
        try:
            for part, surveyor in self._surveyors.items():
                found[part] = _checked(input, surveyor.invoke(input, config))
        except RoleError as error:
            error.usage = _cost(found) + error.usage
            raise
        return _joined(found)

    async def ainvoke(
        self, input: SurveyTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Survey:
        """Survey the passages in the running loop."""
        found: dict[str, Survey] = {}
        try:
            for part, surveyor in self._surveyors.items():
                found[part] = _checked(input, await surveyor.ainvoke(input, config))
        except RoleError as error:
            error.usage = _cost(found) + error.usage
            raise
        return _joined(found)


def _checked(task: SurveyTask, answer: object) -> Survey:
    survey = Survey.model_validate(answer, from_attributes=True)
    problem = find_problem(task, survey)
    if problem:
        raise AnswerError(problem, usage=survey.usage or Usage(calls=1))
    return survey


def _named(part: str, name: str) -> str:
    """Name a note after its part; `PROMISE` is for the graph, and keeps its name."""
    return name if name == PROMISE else f"{part}.{name}"


def _joined(found: Mapping[str, Survey]) -> Survey:
    """Put the notes of all parts on each passage together; all have as many."""
    named = (
        [{_named(part, name): value for name, value in notes.items()} for notes in survey.notes]
        for part, survey in found.items()
    )
    return Survey(
        notes=[dict(ChainMap(*of_one)) for of_one in zip(*named, strict=True)],
        usage=_cost(found),
        repaired=any(survey.repaired for survey in found.values()),
        problem="; ".join(filter(None, (survey.problem for survey in found.values()))),
    )


def _cost(found: Mapping[str, Survey]) -> Usage:
    costs = (survey.usage or Usage(calls=1) for survey in found.values())
    return sum(costs, Usage())
