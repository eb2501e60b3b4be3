"""The chat models that a construction asks, step by step, and what that will take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, Self, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from deepera_graph.agents.cached import cache_key
from deepera_graph.budget import Limiter, Meter
from deepera_graph.chat.parsing import ReplyModel, json_schema
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.lab.rankers.llm import Chat
from deepera_graph.schema import Backend
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import CHARS_PER_TOKEN, HasUsage, Usage

Model = Backend | BaseChatModel | str
FilledT = TypeVar("FilledT", bound=ReplyModel)
_USAGE_COLUMNS = ("calls", "input_tokens", "output_tokens", "reasked_calls")
_UNUSABLE = "unusable"
_SERVER = "base_url"


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
class Estimate(HasUsage):
    """The calls of a construction by step if every reply can be used, at 4 characters a token.

    Attributes:
        counts: What it goes through, and upper bounds, by name.
        usage: By step.
    """

    counts: Mapping[str, int]
    usage: dict[str, Usage]


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
