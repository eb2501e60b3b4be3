"""The judge of a cascade whose careful judge reads several passages in one call."""

from collections.abc import Iterator
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.backends.cascaded_judge import COUNTED, LLM, CascadeJudge, survey_of
from deepera_graph.backends.counting import counting_judge
from deepera_graph.backends.joint_survey import with_own_notes
from deepera_graph.backends.pick import PICKED, failure_of
from deepera_graph.errors import RoleError
from deepera_graph.roles import GroupTask, JudgesGroups, PassageTask
from deepera_graph.schema import GroupJudgement, Judgement, Unjudged
from deepera_graph.usage import Usage

Verdict = Judgement | Unjudged


def build_cascade_judge(
    local: Runnable[PassageTask, Judgement],
    llm: Runnable[PassageTask, Judgement],
    keep: int,
    *,
    unread_summary: str = "",
) -> CascadeJudge:
    """Return the judge of a cascade; it judges groups if *llm* does."""
    if isinstance(llm, JudgesGroups):
        return GroupedCascade(
            local, llm, keep, llm.group_size, llm.of_groups(), unread_summary=unread_summary
        )
    return CascadeJudge(local, llm, keep, unread_summary=unread_summary)


class GroupedCascade(CascadeJudge):
    """Has the careful judge read what was picked in groups of *group_size*; the rest takes none."""

    def __init__(
        self,
        local: Runnable[PassageTask, Judgement],
        llm: Runnable[PassageTask, Judgement],
        keep: int,
        group_size: int,
        groups: Runnable[GroupTask, GroupJudgement],
        *,
        unread_summary: str = "",
    ) -> None:
        super().__init__(local, llm, keep, unread_summary=unread_summary)
        self.group_size, self._groups = group_size, groups

    def counting(self) -> CascadeJudge:
        """Return this judge as it costs, asking nothing."""
        local, llm = counting_judge(self._local), counting_judge(self._llm)
        return build_cascade_judge(local, llm, self._keep, unread_summary=COUNTED)

    def of_groups(self) -> Runnable[GroupTask, GroupJudgement]:
        """Return the role that judges a group."""
        return CascadeGroups(self, self._groups)


class CascadeGroups(Runnable[GroupTask, GroupJudgement]):
    """Has the careful judge read what was picked of a group together, and judges the rest alone."""

    def __init__(self, judge: GroupedCascade, groups: Runnable[GroupTask, GroupJudgement]) -> None:
        self._judge, self._groups = judge, groups

    def invoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Judge a group."""
        alone: list[Verdict] = []
        for task in _others(input):
            try:
                alone.append(_checked(self._judge.invoke(task, config)))
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                alone.append(Unjudged.of(failure_of(error)))
        picked = _picked(input)
        if not picked["tasks"]:
            return _joined(input, [], alone)
        try:
            answer = self._groups.invoke(picked, config)
        except RoleError as error:
            return _joined(input, _left(picked, error), alone)
        return _joined(input, answer.verdicts, alone)

    async def ainvoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Judge a group in the running loop."""
        alone: list[Verdict] = []
        for task in _others(input):
            try:
                alone.append(_checked(await self._judge.ainvoke(task, config)))
            except Exception as error:  # noqa: BLE001 - foreign code: it fails on one passage
                alone.append(Unjudged.of(failure_of(error)))
        picked = _picked(input)
        if not picked["tasks"]:
            return _joined(input, [], alone)
        try:
            answer = await self._groups.ainvoke(picked, config)
        except RoleError as error:
            return _joined(input, _left(picked, error), alone)
        return _joined(input, answer.verdicts, alone)


def _is_picked(task: PassageTask) -> bool:
    return survey_of(task).get(PICKED) == 1


def _picked(group: GroupTask) -> GroupTask:
    return {"tasks": [with_own_notes(LLM, task) for task in group["tasks"] if _is_picked(task)]}


def _others(group: GroupTask) -> Iterator[PassageTask]:
    return (task for task in group["tasks"] if not _is_picked(task))


def _checked(answer: object) -> Judgement:
    return Judgement.model_validate(answer, from_attributes=True)


def _left(group: GroupTask, error: RoleError) -> list[Verdict]:
    """Leave all of a group unjudged; what it cost is written beside the first."""
    unjudged = Unjudged.of(error)
    free = unjudged.model_copy(update={"usage": Usage()})
    return [unjudged, *[free] * (len(group["tasks"]) - 1)]


def _joined(group: GroupTask, picked: list[Verdict], others: list[Verdict]) -> GroupJudgement:
    from_picked, from_others = iter(picked), iter(others)
    verdicts = [next(from_picked if _is_picked(one) else from_others) for one in group["tasks"]]
    costs = (Usage(calls=1) if one.usage is None else one.usage for one in verdicts)
    return GroupJudgement(verdicts=verdicts, usage=sum(costs, Usage()))
