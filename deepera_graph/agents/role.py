"""The one place where a role is called: limit, check, translate errors, both sync and async."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from deepera_graph.agents.cached import CachedRole
from deepera_graph.budget import Carried, Limiter, Tab, carried, carry
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.schema import RoleAnswer, name_problems
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage, UsageRecord

Update = dict[str, Any]

TaskT = TypeVar("TaskT")
AnswerT = TypeVar("AnswerT", bound=RoleAnswer)
StateT = TypeVar("StateT")
MappingT = TypeVar("MappingT", bound=Mapping[str, Any])


class CheckedRole(Runnable[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role that holds the limit while it is called, and answers in its schema or raises.

    An answer that the schema refuses is an `AnswerError`; whatever else a role raises is a
    `CallError` that names it; with the budget spent it is not called (`BudgetError`).
    """

    def __init__(self, role: Runnable[TaskT, Any], schema: type[AnswerT], limiter: Limiter) -> None:
        self._role, self._schema, self._limiter = role, schema, limiter

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> AnswerT:
        """Call the role."""
        run = carried(config) or Carried()
        with run.turn(run.limiter), run.turn(self._limiter), _charged(run) as tab:
            answer = self._check(self._role.invoke(input, self._within(config, run, tab)))
            tab.usage = answer.usage or Usage()
            return answer

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerT:
        """Call the role in the running loop."""
        run = carried(config) or Carried()
        async with run.turn(run.limiter), run.turn(self._limiter):
            with _charged(run) as tab:
                within = self._within(config, run, tab)
                answer = self._check(await self._role.ainvoke(input, within))
                tab.usage = answer.usage or Usage()
                return answer

    def _within(self, config: RunnableConfig | None, run: Carried, tab: Tab) -> RunnableConfig:
        """Return the config of what the role calls."""
        limiters = (self._limiter,) if run.limiter is None else (run.limiter, self._limiter)
        held = {**run.held, **{one: Limiter(1) for one in limiters}}
        return carry(config, replace(run, tab=tab, held=held))

    def _check(self, answer: object) -> AnswerT:
        try:
            checked = (
                answer
                if isinstance(answer, self._schema)
                else self._schema.model_validate(answer, from_attributes=True)
            )
        except ValidationError as error:
            raise AnswerError(name_problems(error), usage=Usage(calls=1)) from error
        if checked.usage is None:
            return checked.model_copy(update={"usage": Usage(calls=1)})
        return checked


def wrap_role(
    name: str,
    role: Runnable[MappingT, Any],
    schema: type[AnswerT],
    *,
    limiter: Limiter,
    cache: JudgementCache | None,
    fingerprint: Callable[[], Mapping[str, Any]],
) -> Runnable[MappingT, AnswerT]:
    """Return a role checked and limited, behind the cache if there is one; see `CachedRole`."""
    checked = CheckedRole(role, schema, limiter)
    if cache is None:
        return checked
    return CachedRole(checked, name=name, schema=schema, cache=cache, fingerprint=fingerprint())


class RoleNode(Runnable[StateT, Update], Generic[StateT, TaskT, AnswerT]):
    """A node around one role call: `ask` before it, `record` after it, `on_failure` instead.

    `tell`, if there is one, is given its name and its update, to write to a stream of events.
    """

    def __init__(
        self,
        name: str,
        *,
        ask: Callable[[StateT], TaskT],
        role: Runnable[TaskT, AnswerT],
        record: Callable[[StateT, AnswerT], Update],
        on_failure: Callable[[StateT, RoleError], Update],
        run_name: Callable[[StateT], str],
        tell: Callable[[str, Update], None] | None = None,
    ) -> None:
        self.name = name
        self._ask, self._role, self._record = ask, role, record
        self._on_failure, self._run_name, self._tell = on_failure, run_name, tell

    def invoke(self, input: StateT, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node."""
        try:
            answer = self._role.invoke(self._ask(input), self._named(input, config))
        except RoleError as error:
            return self._with_usage(self._on_failure(input, error), error.usage)
        return self._with_usage(self._record(input, answer), answer.usage)

    async def ainvoke(
        self, input: StateT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Run the node in the running loop."""
        try:
            answer = await self._role.ainvoke(self._ask(input), self._named(input, config))
        except RoleError as error:
            return self._with_usage(self._on_failure(input, error), error.usage)
        return self._with_usage(self._record(input, answer), answer.usage)

    def _named(self, state: StateT, config: RunnableConfig | None) -> RunnableConfig:
        return {**(config or {}), "run_name": self._run_name(state)}

    def _with_usage(self, update: Update, usage: Usage | None) -> Update:
        if self._tell is not None:
            self._tell(str(self.name), update)
        record: dict[str, UsageRecord] = {str(self.name): (usage or Usage()).record()}
        return {**update, "usage": record}


@contextmanager
def _charged(run: Carried) -> Iterator[Tab]:
    """Admit one call, charge it however it ends, and translate foreign errors."""
    run.meter.admit()
    tab = Tab(run.meter)
    try:
        yield tab
    except RoleError as error:
        tab.usage = error.usage
        raise
    except GraphBubbleUp:
        raise
    except Exception as error:  # the boundary to foreign code
        translated = _translated(error)
        tab.usage = translated.usage
        raise translated from error
    finally:
        tab.close(tab.usage)


def _translated(error: Exception) -> RoleError:
    if isinstance(error, ValidationError):
        return AnswerError(name_problems(error), usage=Usage(calls=1))
    return CallError(f"{type(error).__name__}: {error}", usage=Usage(failed_calls=1))
