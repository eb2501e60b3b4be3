"""A judge of groups that answers from the cache what it has answered before, passage by passage."""

from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from deepera_graph.cache.role import CachedRole
from deepera_graph.errors import RoleError
from deepera_graph.roles import GroupTask, PassageTask
from deepera_graph.schema import GroupJudgement, Judgement, Unjudged
from deepera_graph.usage import Usage

_Found = list[Judgement | None]


class CachedGroups(Runnable[GroupTask, GroupJudgement]):
    """A judge of groups in front of which stands a judgement cache.

    A judgement is kept by its passage, whatever passages were judged with it; only those that the
    cache does not have are judged, as a smaller group.

    Args:
        role: Judges groups.
        single: Judges passages alone, behind the cache; what both find is kept in one place.
    """

    def __init__(
        self,
        role: Runnable[GroupTask, GroupJudgement],
        single: CachedRole[PassageTask, Judgement],
    ) -> None:
        self._role, self._single = role, single

    def invoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Answer from the cache, and judge the rest together."""
        found, rest = self._found(input)
        if not rest["tasks"]:
            return _joined(found, [])
        try:
            answer = self._role.invoke(rest, config)
        except RoleError as error:
            return _joined(found, _left(rest, error))
        return self._kept(found, rest, answer)

    async def ainvoke(
        self, input: GroupTask, config: RunnableConfig | None = None, **kwargs: Any
    ) -> GroupJudgement:
        """Do what `invoke` does, in the running loop."""
        found, rest = self._found(input)
        if not rest["tasks"]:
            return _joined(found, [])
        try:
            answer = await self._role.ainvoke(rest, config)
        except RoleError as error:
            return _joined(found, _left(rest, error))
        return self._kept(found, rest, answer)

    def _found(self, group: GroupTask) -> tuple[_Found, GroupTask]:
        found = [self._single.find(task) for task in group["tasks"]]
        pairs = zip(group["tasks"], found, strict=True)
        return found, {"tasks": [task for task, judgement in pairs if judgement is None]}

    def _kept(self, found: _Found, rest: GroupTask, answer: GroupJudgement) -> GroupJudgement:
        verdicts = [
            one if isinstance(one, Unjudged) else self._single.keep(task, one)
            for task, one in zip(rest["tasks"], answer.verdicts, strict=True)
        ]
        return _joined(found, verdicts)


def _left(rest: GroupTask, error: RoleError) -> list[Judgement | Unjudged]:
    """Leave all of a group unjudged; what it cost is written beside the first."""
    unjudged = Unjudged.of(error)
    free = unjudged.model_copy(update={"usage": Usage()})
    return [unjudged, *[free] * (len(rest["tasks"]) - 1)]


def _joined(found: _Found, verdicts: list[Judgement | Unjudged]) -> GroupJudgement:
    """Put what was judged into the places of what was not found."""
    new = iter(verdicts)
    every = [next(new) if one is None else one for one in found]
    return GroupJudgement(
        verdicts=every, usage=sum((one.usage or Usage() for one in every), Usage())
    )
