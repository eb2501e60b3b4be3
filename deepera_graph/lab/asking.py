"""Chat models that are asked for forms, within a budget and a limit, counted by what is asked."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Self, TypedDict, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import Field

from deepera_graph.agents.cached import cache_key
from deepera_graph.agents.role import LlmRole, wrap_role
from deepera_graph.chat import sending
from deepera_graph.chat.client import ChatModel, request_reply
from deepera_graph.chat.parsing import ReplyModel, json_schema
from deepera_graph.errors import AnswerError, BackendError, CallError, RoleError, SettingsError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.judges.llm.judging import LlmJudge
from deepera_graph.schema import Backend, RoleAnswer
from deepera_graph.settings.budget import Limiter, Meter, ado_many, with_meter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import CHARS_PER_TOKEN, HasUsage, Usage

Model = Backend | BaseChatModel | str
FilledT = TypeVar("FilledT", bound=ReplyModel)
T = TypeVar("T")
JobT = TypeVar("JobT")
MAX_CONCURRENCY = 16
_USAGE_COLUMNS = ("calls", "input_tokens", "output_tokens", "reasked_calls")
_UNUSABLE = "unusable"
_SERVER = "base_url"


class _ChatTask(TypedDict):
    messages: list[dict[str, str]]


class _ChatReply(RoleAnswer):
    values: dict[str, Any] = Field(description="The fields of the answer.")


class Chat:
    """Asks a chat model for answers with fields, in the way the LLM backend does."""

    def __init__(
        self,
        backend: Backend,
        *,
        cache: JudgementCache | None = None,
        limiter: Limiter | None = None,
        meter: Meter | None = None,
    ) -> None:
        if not isinstance(backend.judge, LlmJudge):
            raise SettingsError(f"backend must be a chat model, got {backend.name!r}")
        self.backend = backend
        self.used: dict[str, Usage] = {}  # what answers took, by what was asked for
        self._model: ChatModel = backend.judge.model
        self._cache, self._limiter = cache, limiter or Limiter(MAX_CONCURRENCY)
        self._meter = meter or Meter(None)
        self._config = with_meter({}, self._meter)
        self._roles: dict[tuple[str, type[ReplyModel]], Runnable[_ChatTask, _ChatReply]] = {}

    @classmethod
    def of(
        cls, model: BaseChatModel | str, *, cache: JudgementCache | None = None, **options: Any
    ) -> Self:
        """Make one from a LangChain chat model, or its name with the options of `llm_backend`."""
        return cls(llm_backend(model, **options), cache=cache)

    def repeat(self, number: int) -> Self:
        """Return the model of one run: cache, limits and budget are shared, answers are not."""
        if not number:
            return self
        backend = of_run(self.backend, number)
        return type(self)(backend, cache=self._cache, limiter=self._limiter, meter=self._meter)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    @property
    def usage(self) -> Usage:
        """Model calls and tokens so far."""
        return sum(self.used.values(), Usage())

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
        """Return the model's answer."""
        self._count(name, Usage())
        shown = [{"role": one.type, "content": str(one.content)} for one in messages]
        try:
            said = await self._role(name, kind).ainvoke({"messages": shown}, self._config)
        except RoleError as error:
            self._count(name, error.usage)
            if isinstance(error, CallError) and error.unusable:
                raise BackendError(f"{self.name}: {error}") from error
            raise
        self._count(name, said.usage or Usage())
        return kind.model_validate(said.values)

    def _count(self, name: str, usage: Usage) -> None:
        self.used[name] = self.used.get(name, Usage()) + usage

    def _role(self, name: str, kind: type[ReplyModel]) -> Runnable[_ChatTask, _ChatReply]:
        if (name, kind) not in self._roles:
            self._roles[name, kind] = wrap_role(
                name,
                _Fill(self._model, kind),
                _ChatReply,
                limiter=self._limiter,
                cache=self._cache,
                fingerprint=lambda: {
                    "model": self.backend.fingerprint()["spec"],
                    "filled": json_schema(kind),
                },
            )
        return self._roles[name, kind]


def of_run(backend: Backend, number: int) -> Backend:
    """Return a backend whose answers a cache keeps apart from those of other runs."""
    if not number or backend.spec is None:
        return backend
    return replace(backend, spec={**backend.spec, "run": number})


def run_together(do: Callable[[JobT], Awaitable[T]], jobs: Sequence[JobT]) -> list[T]:
    """Do all jobs in the loop of the model calls, and return what comes of each, in order."""
    return sending.run(ado_many(do, jobs, max(1, len(jobs))))


class _Fill(LlmRole[_ChatTask, _ChatReply]):
    def __init__(self, model: ChatModel, kind: type[ReplyModel]) -> None:
        super().__init__(model)
        self._kind = kind

    async def _play(self, task: _ChatTask, config: RunnableConfig | None) -> _ChatReply:
        messages = convert_to_messages(task["messages"])
        reply, notes = await request_reply(self.model, messages, self._kind, config)
        return _ChatReply(
            values=reply.model_dump(mode="json"),
            usage=notes["usage"],
            repaired=notes["repaired"],
        )


# A reply that stayed unusable is kept, too: asking again might give another result. A call that
# failed is not, so the next run tries again.
class StepModel(Chat):
    """A chat model that is asked one step of a construction after the other, counted by step."""

    def __init__(
        self,
        backend: Backend,
        *,
        cache: JudgementCache,
        limiter: Limiter,
        meter: Meter,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(backend, cache=cache, limiter=limiter, meter=meter)
        self._kept, self._on_answer = cache, on_answer
        self.n_failed = 0

    async def ask(self, name: str, messages: Sequence[BaseMessage], kind: type[FilledT]) -> FilledT:
        """Return the answer to a prompt of a step, from the cache if it is there."""
        shown = [[one.type, str(one.content)] for one in messages]
        fingerprint = {"model": self.fingerprint, "schema": json_schema(kind)}
        key = cache_key(f"{_UNUSABLE} {name}", {"messages": shown}, fingerprint)
        try:
            self._raise_kept(name, key)
            return await super().ask(name, messages, kind)
        except AnswerError as error:
            usage = {column: getattr(error.usage, column) for column in _USAGE_COLUMNS}
            self._kept.put(key, _UNUSABLE, {"why": str(error), "usage": usage})
            raise
        except CallError:
            self.n_failed += 1
            raise
        finally:
            self._on_answer()

    def count_apart(self) -> Self:
        """Return this model with counts of its own; cache, limits and budget are shared."""
        return type(self)(
            self.backend,
            cache=self._kept,
            limiter=self._limiter,
            meter=self._meter,
            on_answer=self._on_answer,
        )

    @property
    def n_sent(self) -> int:
        """Calls whose replies were not in the cache."""
        return self.usage.calls - self.usage.cached_calls

    def _raise_kept(self, name: str, key: str) -> None:
        """Raise again what was wrong with a reply, if it was unusable before."""
        kept = self._kept.get(key)
        if kept is not None:
            usage = Usage(**kept["usage"], cached_calls=kept["usage"]["calls"])
            self._count(name, usage)
            raise AnswerError(str(kept["why"]), usage=usage)


def open_model(model: Model, **options: Any) -> Backend:
    """Return a backend as it is, and that of a chat model or its name."""
    return model if isinstance(model, Backend) else llm_backend(model, **options)


def without_server(backend: Backend) -> Backend:
    """Return a backend whose answers count as its own, whatever server the model runs on."""
    # A construction may go on when a server comes back under another address.
    spec: Mapping[str, Any] = backend.spec or {"kind": "llm", "model": backend.about.get("model")}
    return replace(backend, spec={key: spec[key] for key in spec if key != _SERVER})


def describe_model(backend: Backend) -> dict[str, Any]:
    """Return what the manifest says of a model: its options, its server, never a key."""
    spec: Mapping[str, Any] = without_server(backend).fingerprint()["spec"]
    server = (backend.spec or {}).get(_SERVER)
    return {**spec, "server": str(server)} if server else dict(spec)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructionEstimate(HasUsage):
    """The calls of a construction by step if every reply can be used, at 4 characters a token."""

    counts: Mapping[str, int]  # what it goes through, and upper bounds, by name
    usage: dict[str, Usage]  # by step


def estimate_steps(steps: Sequence[tuple[str, int, int, int]], package: str) -> dict[str, Usage]:
    """Return what steps take: of each its name, calls, and characters given and said in a call."""
    return {
        step: _estimate_step(step, n_calls, n_given, n_said, package)
        for step, n_calls, n_given, n_said in steps
        if n_calls
    }


def _estimate_step(step: str, n_calls: int, n_given: int, n_said: int, package: str) -> Usage:
    folder = files(package)
    template = sum(
        len(folder.joinpath(f"{step}.{role}.md").read_text(encoding="utf-8"))
        for role in ("system", "user")
    )
    return Usage(
        calls=n_calls,
        input_tokens=n_calls * -(-(template + n_given) // CHARS_PER_TOKEN),
        output_tokens=n_calls * -(-n_said // CHARS_PER_TOKEN),
    )
