"""A chat model for whatever in the benchmark asks one: cached, limited, counted, in a budget."""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Self, TypedDict, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from deepera_graph.backends.llm import io_loop, llm_backend
from deepera_graph.backends.llm.answers import Filled, json_schema
from deepera_graph.backends.llm.model import ChatModel
from deepera_graph.backends.llm.roles import LlmRole
from deepera_graph.backends.llm.structured import fill
from deepera_graph.budget import Meter, with_meter
from deepera_graph.cache.role import CachedRole
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import BackendError, BudgetError, CallError, RoleError, SettingsError
from deepera_graph.limiter import Limiter
from deepera_graph.nodes.call import CheckedRole
from deepera_graph.roles import Backend
from deepera_graph.schema import RoleAnswer
from deepera_graph.usage import Usage

FilledT = TypeVar("FilledT", bound=Filled)
T = TypeVar("T")
MAX_CONCURRENCY = 16


class _Asked(TypedDict):
    messages: list[dict[str, str]]


class _Said(RoleAnswer):
    values: dict[str, Any] = Field(description="The fields of the answer.")


class Chat:
    """Asks a chat model for answers with fields, in the way the LLM backend does.

    Args:
        backend: An LLM backend; see `Chat.of`.
        cache: Where answers are kept, so that an equal question is not paid for twice.
        limiter: Limits the calls in flight; share one to limit several of these together.
        meter: Counts against a budget; share one to have them spend from it together.

    Raises:
        SettingsError: The backend is no chat model, or there is a cache and the model was made
            from live objects and cannot be told from others.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        cache: JudgementCache | None = None,
        limiter: Limiter | None = None,
        meter: Meter | None = None,
    ) -> None:
        if not isinstance(backend.judge, LlmRole):
            raise SettingsError(f"backend must be a chat model, got {backend.name!r}")
        self.backend = backend
        self.usage = Usage()
        self._model: ChatModel = backend.judge.model
        self._cache, self._limiter = cache, limiter or Limiter(MAX_CONCURRENCY)
        self._config = with_meter({}, meter or Meter(None))
        self._roles: dict[tuple[str, type[Filled]], Runnable[_Asked, _Said]] = {}

    @classmethod
    def of(
        cls, model: BaseChatModel | str, *, cache: JudgementCache | None = None, **options: Any
    ) -> Self:
        """Make one from a LangChain chat model, or its name with the options of `llm_backend`."""
        return cls(llm_backend(model, **options), cache=cache)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def langchain(self) -> BaseChatModel:
        """The LangChain model, for code that calls it by itself."""
        return self._model.langchain

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """What answers depend on beside the prompt; None for a model made of live objects."""
        if self.backend.spec is None:
            return None
        spec: Mapping[str, Any] = self.backend.fingerprint()["spec"]
        return spec

    async def ask(self, name: str, messages: Sequence[BaseMessage], kind: type[FilledT]) -> FilledT:
        """Return the model's answer.

        Args:
            name: What is asked for, in one word; for the statistics of the cache.
            messages: The prompt.
            kind: The fields of the answer.

        Raises:
            AnswerError: Two replies were unusable, or the model refused.
            CallError: The call failed, also when tried again.
            BudgetError: The budget is spent.
            BackendError: No call can succeed: no connection, wrong key, unknown model.
        """
        try:
            said = await self._role(name, kind).ainvoke(_asked(messages), self._config)
        except RoleError as error:
            self.usage += error.usage
            if isinstance(error, CallError) and error.unusable:
                raise BackendError(f"{self.name}: {error}") from error
            raise
        self.usage += said.usage or Usage()
        return kind.model_validate(said.values)

    def _role(self, name: str, kind: type[Filled]) -> Runnable[_Asked, _Said]:
        if (name, kind) not in self._roles:
            self._roles[name, kind] = self._made(name, kind)
        return self._roles[name, kind]

    def _made(self, name: str, kind: type[Filled]) -> Runnable[_Asked, _Said]:
        checked = CheckedRole(_Fill(self._model, kind), _Said, self._limiter)
        if self._cache is None:
            return checked
        return CachedRole(
            checked,
            name=name,
            schema=_Said,
            cache=self._cache,
            fingerprint={
                "model": self.backend.fingerprint()["spec"],
                "filled": json_schema(kind),
            },
        )


def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run works in the loop of the model calls, and return what they give, in order.

    The first error ends them all; but where the budget is spent, calls in flight are finished, so
    that what they cost is not lost to the cache.
    """
    return io_loop.run(_gathered(list(works)))


async def _gathered(works: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BudgetError:
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


class _Fill(LlmRole[_Asked, _Said]):
    """Has the model fill in one kind of answer."""

    def __init__(self, model: ChatModel, kind: type[Filled]) -> None:
        super().__init__(model)
        self._kind = kind

    async def _play(self, task: _Asked, config: RunnableConfig | None) -> _Said:
        messages = convert_to_messages(task["messages"])
        filled = await fill(self._model, messages, self._kind, config)
        return _Said(
            values=filled.answer.model_dump(mode="json"),
            usage=filled.usage,
            repaired=filled.repaired,
        )


def _asked(messages: Sequence[BaseMessage]) -> _Asked:
    return {"messages": [{"role": one.type, "content": str(one.content)} for one in messages]}
