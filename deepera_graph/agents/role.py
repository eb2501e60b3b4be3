"""The one place where a role is called: limit, check, translate errors, both sync and async."""

import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, Generic, Self, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp
from langgraph.types import Send
from pydantic import ValidationError

from deepera_graph import prompts
from deepera_graph.agents.cached import CachedRole
from deepera_graph.agents.twin import TwinRunnable, Work, ask, invoker_of
from deepera_graph.chat import sending
from deepera_graph.chat.client import ChatModel
from deepera_graph.chat.sending import RateLimits, RetryPolicy
from deepera_graph.errors import AnswerError, CallError, RoleError, name_problems
from deepera_graph.prompts import Domain
from deepera_graph.schema import RoleAnswer, cost_of
from deepera_graph.settings.budget import Carried, Limiter, Tab, carried, carry
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import CHARS_PER_TOKEN, Usage, UsageRecord

REPLY_TOKENS = 60
LONGEST_QUESTION = 500
_MEMBER = re.compile(r"^=====(\d+)$", re.MULTILINE)
_SUMMARY = re.compile(r"^Summary: from ", re.MULTILINE)


class AnsweringModel(BaseChatModel):
    """A chat model that answers at once, in this process."""

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        """Return what is answered."""
        raise NotImplementedError

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop)


class CountingModel(AnsweringModel):
    """Answers at once, keeps every passage, and puts the length of the prompt into its usage.

    A token is taken for 4 characters (`CHARS_PER_TOKEN`), about what English costs, and each thing
    asked for in a reply, a verdict or a summary, for 60 tokens (`REPLY_TOKENS`): 25 words, numbers
    and JSON. Both are rough.
    """

    @property
    def _llm_type(self) -> str:
        return "deepera-counting"

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        texts = [str(message.text) for message in messages]
        members = _MEMBER.findall(texts[-1])
        n_asked = max(1, len(members)) * (1 + bool(_SUMMARY.search(texts[-1])))
        n_tokens = -(-sum(map(len, texts)) // CHARS_PER_TOKEN)
        found = {"evidence": [1], "direction": "supports", "summary": "counted"}
        verdict = {"reason": "counted", "score": 1.0, **found, "finding": found}
        fits_all_roles = {
            **verdict,
            "topic": "any",
            "entity_type": texts[-1][:LONGEST_QUESTION],
            "intent": "other",
            "expected_answer_type": "other",
            "text": "counted",
            "citations": [],
            "verdicts": [{"id": int(one), **verdict} for one in members],
        }
        return AIMessage(
            json.dumps(fits_all_roles),
            usage_metadata={
                "input_tokens": n_tokens,
                "output_tokens": n_asked * REPLY_TOKENS,
                "total_tokens": n_tokens + n_asked * REPLY_TOKENS,
            },
        )


TaskT = TypeVar("TaskT")
ReplyT = TypeVar("ReplyT")


class LlmRole(Runnable[TaskT, ReplyT], Generic[TaskT, ReplyT]):
    """A role played by a chat model, in the loop of the model calls."""

    def __init__(self, model: ChatModel, domain: Domain | None = None) -> None:
        self.model, self.domain = model, domain

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> ReplyT:
        """Play the role, waiting in this thread."""
        return sending.run(self._play(input, config))

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> ReplyT:
        """Play the role, waiting in the running loop."""
        return await sending.arun(self._play(input, config))

    def counting(self) -> Self:
        """Return this role on a model that counts its prompts and is never asked."""
        return type(self)(counting_model(), self.domain)

    def _play(self, task: TaskT, config: RunnableConfig | None) -> Coroutine[Any, Any, ReplyT]:
        raise NotImplementedError


def fill_messages(
    domain: Domain | None, node: str, rules: Sequence[str] = (), /, **values: str
) -> list[BaseMessage]:
    """Fill the templates of a node, with the *rules* of the field for one or more roles.

    Without *rules* they are those of the node.
    """
    filled = prompts.messages(node, **values)
    if domain is not None:
        for role in rules or (node,):
            filled = domain.add_rules(role, filled)
    return filled


def counting_model() -> ChatModel:
    """Return a model that counts its prompts and is never asked."""
    return ChatModel(CountingModel(), RetryPolicy(), RateLimits())


Update = dict[str, Any]

AnswerT = TypeVar("AnswerT", bound=RoleAnswer | Sequence[RoleAnswer])
RoleAnswerT = TypeVar("RoleAnswerT", bound=RoleAnswer)
StateT = TypeVar("StateT")
MappingT = TypeVar("MappingT", bound=Mapping[str, Any])


class CheckedRole(Runnable[TaskT, AnswerT], Generic[TaskT, AnswerT]):
    """A role that holds the limit while it is called, and answers in its schema or raises.

    An answer that the schema refuses is an `AnswerError`; whatever else a role raises is a
    `CallError` that names it; with the budget spent it is not called (`BudgetError`).
    """

    def __init__(self, role: Runnable[TaskT, Any], schema: type[AnswerT], limiter: Limiter) -> None:
        self._role = role
        self._ado: Callable[[TaskT, RunnableConfig], Awaitable[Any]] = role.ainvoke
        self._read: Callable[[TaskT, Any], AnswerT] = self._read_in_schema
        self._limiter, self._schema = limiter, cast("Any", schema)

    @cached_property
    def _do(self) -> Callable[[TaskT, RunnableConfig], Any]:
        return invoker_of(self._role)

    def invoke(self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any) -> AnswerT:
        """Call the role."""
        run = carried(config)
        tab = Tab(run.meter)
        with run.turn(run.limiter), run.turn(self._limiter), self._charged(config, run, tab) as own:
            answer = self._read(input, self._do(input, own))
            tab.usage = cost_of(answer)
            return answer

    async def ainvoke(
        self, input: TaskT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AnswerT:
        """Call the role in the running loop."""
        run = carried(config)
        tab = Tab(run.meter)
        async with run.turn(run.limiter), run.turn(self._limiter):
            with self._charged(config, run, tab) as own:
                answer = self._read(input, await self._ado(input, own))
                tab.usage = cost_of(answer)
                return answer

    @contextmanager
    def _charged(
        self, config: RunnableConfig | None, run: Carried, tab: Tab
    ) -> Iterator[RunnableConfig]:
        """Admit one call, charge it however it ends, and translate foreign errors.

        Gives the config of what the role calls.
        """
        if run.is_broken_off:
            raise GraphBubbleUp("the run was broken off")
        run.meter.admit()
        limiters = (self._limiter,) if run.limiter is None else (run.limiter, self._limiter)
        held = {**run.held, **{one: Limiter(1) for one in limiters}}
        try:
            yield carry(config, replace(run, tab=tab, held=held))
        except RoleError as error:
            tab.usage = error.usage
            raise
        except GraphBubbleUp:
            raise
        except ValidationError as error:
            tab.usage = Usage(calls=1)
            raise AnswerError(name_problems(error), usage=tab.usage) from error
        except Exception as error:  # the boundary to foreign code
            tab.usage = Usage(failed_calls=1)
            raise CallError(f"{type(error).__name__}: {error}", usage=tab.usage) from error
        finally:
            tab.close()

    def _read_in_schema(self, task: TaskT, answer: Any) -> AnswerT:
        """Return an answer of the schema, which says what it cost."""
        if not isinstance(answer, self._schema):
            answer = self._schema.model_validate(answer, from_attributes=True)
        is_paid = answer.usage is not None
        read: AnswerT = answer if is_paid else answer.model_copy(update={"usage": cost_of(answer)})
        return read


def wrap_role(
    name: str,
    role: Runnable[MappingT, Any],
    schema: type[RoleAnswerT],
    *,
    limiter: Limiter,
    cache: JudgementCache | None,
    fingerprint: Callable[[], Mapping[str, Any]],
) -> Runnable[MappingT, RoleAnswerT]:
    """Return a role checked and limited, behind the cache if there is one; see `CachedRole`."""
    checked = CheckedRole(role, schema, limiter)
    if cache is None:
        return checked
    return CachedRole(checked, name=name, schema=schema, cache=cache, fingerprint=fingerprint())


class RoleNode(TwinRunnable[StateT, Update], Generic[StateT, TaskT, AnswerT]):
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

    def work(self, task: StateT, config: RunnableConfig | None) -> Work[Update]:
        """Return the work of the node."""
        try:
            named: RunnableConfig = {**(config or {}), "run_name": self._run_name(task)}
            answer = yield ask(self._role, self._ask(task), named)
        except RoleError as error:
            return self._with_usage(self._on_failure(task, error), error.usage)
        return self._with_usage(self._record(task, answer), cost_of(answer))

    def _with_usage(self, update: Update, usage: Usage) -> Update:
        if self._tell is not None:
            self._tell(str(self.name), update)
        record: dict[str, UsageRecord] = {str(self.name): usage.record()}
        return {**update, "usage": record}


class Edge(Runnable[StateT, Sequence[Send] | str], Generic[StateT]):
    """A way to go on, as LangGraph takes it; not a step of the trace, as it only looks."""

    name = "next"

    def __init__(self, where: Callable[[StateT, RunnableConfig], Sequence[Send] | str]) -> None:
        self._where = where

    def invoke(
        self, input: StateT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Sequence[Send] | str:
        """Say where to go."""
        return self._where(input, config or {})

    async def ainvoke(
        self, input: StateT, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Sequence[Send] | str:
        """Say where to go; no thread is needed for that."""
        return self._where(input, config or {})
