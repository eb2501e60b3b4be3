"""The model that builds: every answer is kept, and asked for once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import Field

from deepera_graph.bench.rankers.llm import Chat
from deepera_graph.budget import Meter
from deepera_graph.cache.role import cache_key
from deepera_graph.cache.store import JudgementCache
from deepera_graph.chat.schema import ReplyModel, json_schema
from deepera_graph.concurrency import Limiter
from deepera_graph.errors import AnswerError, CallError
from deepera_graph.schema import Backend
from deepera_graph.usage import Usage

PACKAGE = "deepera_graph.bench.build.prompts"
DistractorType = Literal["misleading", "background", "irrelevant"]
FilledT = TypeVar("FilledT", bound=ReplyModel)
_COLUMNS = ("calls", "input_tokens", "output_tokens", "reasked_calls")
_UNUSABLE = "unusable"
_SERVER = "base_url"


class BuilderModel:
    """A chat model that is asked one step of the build after the other, and counted by step.

    An answer is kept before anything is done with it. A reply that stayed unusable is kept, too:
    asking again might give another build. A call that failed is not, so the next run tries again.
    """

    def __init__(
        self,
        backend: Backend,
        *,
        cache: JudgementCache,
        at_once: int,
        meter: Meter,
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._backend, self._cache, self._meter = backend, cache, meter
        self._limiter = Limiter(at_once)
        self._on_answer = on_answer
        self._chats: dict[str, Chat] = {}
        self._unusable: dict[str, Usage] = {}
        self.n_failed: Counter[str] = Counter()
        self._identity = self._chat("").fingerprint

    async def ask(self, step: str, messages: Sequence[BaseMessage], kind: type[FilledT]) -> FilledT:
        """Return the answer to a prompt, from the cache if it is there."""
        shown = [[one.type, str(one.content)] for one in messages]
        fingerprint = {"model": self._identity, "schema": json_schema(kind)}
        key = cache_key(f"{_UNUSABLE} {step}", {"messages": shown}, fingerprint)
        try:
            self._raise_kept(step, key)
            return await self._chat(step).ask(step, messages, kind)
        except AnswerError as error:
            usage = {column: getattr(error.usage, column) for column in _COLUMNS}
            self._cache.put(key, _UNUSABLE, {"why": str(error), "usage": usage})
            raise
        except CallError:
            self.n_failed[step] += 1
            raise
        finally:
            self._on_answer()

    @property
    def usage(self) -> dict[str, Usage]:
        """What the answers of each step took when they were new."""
        steps = {step: chat.usage for step, chat in self._chats.items() if step}
        return {step: used + self._unusable.get(step, Usage()) for step, used in steps.items()}

    @property
    def n_sent(self) -> int:
        """Calls whose replies were not in the cache."""
        return sum(used.calls - used.cached_calls for used in self.usage.values())

    def _raise_kept(self, step: str, key: str) -> None:
        """Raise again what was wrong with a reply, if it was unusable before."""
        kept = self._cache.get(key)
        if kept is not None:
            self._chat(step)
            usage = Usage(**kept["usage"], cached_calls=kept["usage"]["calls"])
            self._unusable[step] = self._unusable.get(step, Usage()) + usage
            raise AnswerError(str(kept["why"]), usage=usage)

    def _chat(self, step: str) -> Chat:
        """Return the step's own chat, so that its usage is counted apart."""
        if step not in self._chats:
            self._chats[step] = Chat(
                self._backend, cache=self._cache, limiter=self._limiter, meter=self._meter
            )
        return self._chats[step]


def without_server(backend: Backend) -> Backend:
    """Return a backend whose answers count as its own, whatever server the model runs on.

    A build may go on when a server comes back under another address. A model made from live
    objects that cannot be written down goes by its name.
    """
    spec: Mapping[str, Any] = backend.spec or {"kind": "llm", "model": backend.about.get("model")}
    return replace(backend, spec={key: spec[key] for key in spec if key != _SERVER})


def describe_model(backend: Backend) -> dict[str, Any]:
    """Return what the manifest says of a model: its options, its server, never a key."""
    spec: Mapping[str, Any] = without_server(backend).fingerprint()["spec"]
    server = (backend.spec or {}).get(_SERVER)
    return {**spec, "server": str(server)} if server else dict(spec)


# The model is shown the names and docstrings of the classes below.


class FilledNotes(ReplyModel):
    """Notes on a document."""

    methods: str = Field(description="How the work was done; empty if the document is silent.")
    results: str = Field(description="What was found; empty if the document is silent.")
    significance: str = Field(description="What it means; empty if the document is silent.")


class FilledPair(ReplyModel):
    """A question and its answer."""

    question: str = Field(description="A question that stands on its own.")
    answer: str = Field(description="A short span of the passage, character by character.")


class FilledPairs(ReplyModel):
    """Questions with their answers."""

    pairs: list[FilledPair] = Field(description="The pairs, the best one first.")


class FilledGuide(ReplyModel):
    """The plan of one passage."""

    type: DistractorType = Field(description="What kind of passage it is.")
    focus: str = Field(description="What it is about, in one sentence.")
    avoid: list[str] = Field(description="Phrases that must not occur in it.")
    length: int = Field(description="How many words it should have.")


class FilledGuidance(ReplyModel):
    """The plans of all passages for a question."""

    guides: list[FilledGuide] = Field(description="One plan a passage, in the order asked for.")


class FilledPassage(ReplyModel):
    """A written passage."""

    text: str = Field(description="The passage and nothing else.")
