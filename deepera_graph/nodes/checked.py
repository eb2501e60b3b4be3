"""A role as a node calls it: checked, limited, and behind the cache if there is one."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from langchain_core.runnables import Runnable

from deepera_graph.cache.group import CachedGroups
from deepera_graph.cache.role import CachedRole
from deepera_graph.cache.store import JudgementCache
from deepera_graph.limiter import Limiter
from deepera_graph.nodes import score_group
from deepera_graph.nodes.call import CheckedRole
from deepera_graph.roles import Backend, GroupTask, JudgesGroups, PassageTask
from deepera_graph.schema import GroupJudgement, Judgement, RoleAnswer

MappingT = TypeVar("MappingT", bound=Mapping[str, Any])
AnswerT = TypeVar("AnswerT", bound=RoleAnswer)


def checked_role(
    name: str,
    role: Runnable[MappingT, Any],
    schema: type[AnswerT],
    *,
    limiter: Limiter,
    cache: JudgementCache | None,
    backend: Backend,
    find_problem: Callable[[MappingT, AnswerT], str] = lambda task, answer: "",
) -> Runnable[MappingT, AnswerT]:
    """Return a role that is checked and limited, behind the cache if there is one.

    What does not fit its task, by *find_problem*, is no answer, and is not cached.

    Raises:
        SettingsError: There is a cache, and the backend cannot be told from others.
    """
    checked = CheckedRole(role, schema, limiter, find_problem=find_problem)
    if cache is None:
        return checked
    return CachedRole(
        checked, name=name, schema=schema, cache=cache, fingerprint=backend.fingerprint()
    )


def checked_groups(
    judge: JudgesGroups, *, limiter: Limiter, cache: JudgementCache | None, backend: Backend
) -> Runnable[GroupTask, GroupJudgement]:
    """Do what `checked_role` does with the role that judges groups; cached passage by passage.

    Raises:
        SettingsError: There is a cache, and the backend cannot be told from others.
    """
    role = CheckedRole(
        judge.of_groups(), GroupJudgement, limiter, find_problem=score_group.find_problem
    )
    if cache is None:
        return role
    single: CachedRole[PassageTask, Judgement] = CachedRole(
        CheckedRole(backend.judge, Judgement, limiter),
        name="judge",
        schema=Judgement,
        cache=cache,
        fingerprint=backend.fingerprint(),
    )
    return CachedGroups(role, single)
