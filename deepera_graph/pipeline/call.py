"""The one place where a role is called: limit, check, translate errors, both sync and async."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from deepera_graph.budget import Limiter, Tab, limit_of, meter_of, turn_of, with_tab, with_turns
from deepera_graph.cache.role import CachedRole
from deepera_graph.errors import AnswerError, CallError, RoleError
from deepera_graph.judges.base import name_problems
from deepera_graph.pipeline.state import JudgementRecord, State, SummaryRecord, Update
from deepera_graph.schema import POSSIBLE, RoleAnswer, RoleSet
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage, UsageRecord

Event = dict[str, Any]


def _intent(update: Update) -> Event:
    record = update["intent"]
    return {"event": "intent", "intent": record["fields"], "status": record["status"]}


def _scored(record: JudgementRecord) -> Event:
    return {
        "event": "scored",
        "id": record["id"],
        "score": record["score"],
        "status": record["status"],
        "reason": record["reason"],
        "direction": record.get("direction"),
    }


def _selected(update: Update) -> Event:
    kept = [record["id"] for record in update["ranking"] if record["kept"]]
    possible = [record["id"] for record in update["ranking"] if record.get("band") == POSSIBLE]
    return {
        "event": "selected",
        "threshold": update["threshold"],
        "kept": kept,
        "possible": possible,
        "outcome": update["outcome"],
        "warnings": update["warnings"],
    }


def _summarized(record: SummaryRecord) -> Event:
    return {
        "event": "summarized",
        "id": record["id"],
        "summary": record["summary"],
        "status": record["status"],
    }


def _answered(update: Update) -> Event:
    record = update["answer"]
    return {"event": "answered", **{key: record[key] for key in ("text", "citations", "status")}}


_EVENT_OF: dict[str, Callable[[Update], Event]] = {
    "intent": _intent,
    "select": _selected,
    "answer": _answered,
}


def events_of(node: str, update: Update) -> list[Event]:
    """Return what a node has to say: on the stage, on each judgement, on each summary."""
    events = [_EVENT_OF[node](update)] if node in _EVENT_OF else []
    judgements = update.get("judgements", ())
    events += [_scored(one) for one in judgements if one["status"] != "candidate"]
    return [*events, *map(_summarized, update.get("summaries", ()))]


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
        of_run, of_all = self._turns(config)
        with of_run, of_all, _charged(config) as tab:
            answer = self._check(self._role.invoke(input, self._within(config, tab)))
            tab.usage = answer.usage or Usage()
            return answer

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerT:
        """Call the role in the running loop."""
        of_run, of_all = self._turns(config)
        async with of_run, of_all:
            with _charged(config) as tab:
                answer = self._check(await self._role.ainvoke(input, self._within(config, tab)))
                tab.usage = answer.usage or Usage()
                return answer

    def _turns(self, config: RunnableConfig | None) -> tuple[Limiter, Limiter]:
        return turn_of(config, limit_of(config)), turn_of(config, self._limiter)

    def _within(self, config: RunnableConfig | None, tab: Tab) -> RunnableConfig:
        """Return the config of what the role calls."""
        return with_turns(with_tab(config, tab), limit_of(config), self._limiter)

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
    roles: RoleSet,
) -> Runnable[MappingT, AnswerT]:
    """Return a role of a set, checked and limited, behind the cache if there is one."""
    checked = CheckedRole(role, schema, limiter)
    if cache is None:
        return checked
    return CachedRole(
        checked, name=name, schema=schema, cache=cache, fingerprint=roles.fingerprint()
    )


class RoleNode(Runnable[StateT, Update], Generic[StateT, TaskT, AnswerT]):
    """A node around one role call: `ask` before it, `record` after it, `on_failure` instead."""

    def __init__(
        self,
        name: str,
        *,
        ask: Callable[[StateT], TaskT],
        role: Runnable[TaskT, AnswerT],
        record: Callable[[StateT, AnswerT], Update],
        on_failure: Callable[[StateT, RoleError], Update],
        run_name: Callable[[StateT], str],
    ) -> None:
        self.name = name
        self._ask, self._role, self._record = ask, role, record
        self._on_failure, self._run_name = on_failure, run_name

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
        tell(str(self.name), update)
        record: dict[str, UsageRecord] = {str(self.name): (usage or Usage()).record()}
        return {**update, "usage": record}


def tell(name: str, update: Update) -> None:
    """Write what a node has to say to the stream of events."""
    write = get_stream_writer()
    for event in events_of(name, update):
        write(event)


class PlainNode(Protocol):
    """A node that calls no role."""

    def __call__(self, state: State) -> Update:
        """Run the node."""
        ...


def announced(name: str, node: PlainNode) -> PlainNode:
    """Wrap a node that calls no role, so that it says what it did."""

    def run(state: State) -> Update:
        update = node(state)
        tell(name, update)
        return update

    return run


@contextmanager
def _charged(config: RunnableConfig | None) -> Iterator[Tab]:
    """Admit one call, charge it however it ends, and translate foreign errors."""
    meter = meter_of(config)
    meter.admit()
    tab = Tab(meter)
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
