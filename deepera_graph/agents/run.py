"""How the graph of an agent is driven: its limits, its events, and where a run goes on."""

import json
import signal
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from platform import python_version
from threading import Event as Flag
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from langchain_core.runnables import RunnableConfig, ensure_config

from deepera_graph import __version__
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.schema import RoleSet
from deepera_graph.settings import AgentSettings
from deepera_graph.settings.budget import (
    Limiter,
    ado_many,
    carried,
    carry,
    do_many,
    stream_many,
)
from deepera_graph.usage import HasUsage, Usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot


class AgentResult(HasUsage):
    """What an agent found, with what went wrong, what it cost and how it was made."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def problems(self) -> Sequence[str]:
            """All that went wrong on the way, in words."""

        @property
        def seconds(self) -> float:
            """How long it took."""

        @property
        def manifest(self) -> Mapping[str, Any]:
            """Who worked, with which settings and versions."""

    def plain_end(self) -> dict[str, Any]:
        """Return the end of the plain form: problems, usage, seconds and manifest."""
        return {
            "problems": list(self.problems),
            "usage": {name: used.record() for name, used in self.usage.items()},
            "seconds": self.seconds,
            "manifest": dict(self.manifest),
        }


Event = dict[str, Any]
JobT = TypeVar("JobT")
ResultT = TypeVar("ResultT")
MADE_BY = "deepera_made_by"  # the key among the metadata of a saved state
_OF_NO_EFFECT = ("budget", "max_concurrency")


def made_by(roles: RoleSet, settings: AgentSettings) -> str:
    """Return 16 hex digits that name who does the work, and how, without any secret.

    What a run may cost and how much it does at once make no difference.
    """
    about = {"name": roles.name, "about": dict(roles.about)}
    who = about if roles.spec is None else roles.fingerprint()
    return hash_plain([who, without_limits(settings.to_dict())])


def without_limits(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings without what a run may cost and how much it does at once."""
    return {name: value for name, value in plain.items() if name not in _OF_NO_EFFECT}


def hash_plain(whole: object) -> str:
    """Return 16 hex digits of plain data, in any order of its keys."""
    return sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:16]


def make_manifest(roles: RoleSet, settings: AgentSettings) -> dict[str, Any]:
    """Return what a result says of how it was made: roles, settings, versions; no secret."""
    return {
        "backend": roles.name,
        **roles.about,
        "settings": settings.to_dict(),
        "versions": dict(versions()),
    }


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """Versions of what a judgement may depend on, as (name, version) pairs."""
    packages = ("langgraph", "langchain-core", "pydantic")
    return (
        ("deepera-graph", __version__),
        *((name, version(name)) for name in packages),
        ("python", python_version()),
    )


def share_limits(config: RunnableConfig | None, settings: AgentSettings) -> RunnableConfig:
    """Return a config that several runs can share: one budget, one limit of calls for them all.

    A `max_concurrency` in the config counts where it is lower; what a runnable around this one has
    set is kept. All of them end where one flag says that nobody waits, see `breaking_off`.
    """
    given = ensure_config(config)
    run = carried(given, settings.budget)
    run = replace(run, broken_off=(*run.broken_off, Flag()))
    asked = given.get("max_concurrency")
    if asked and asked < settings.max_concurrency and run.limiter is None:
        run = replace(run, limiter=Limiter(asked))
    return carry(given, run)


@contextmanager
def breaking_off(shared: RunnableConfig) -> Iterator[None]:
    """Let runs of a config of `share_limits` start no call once the block is left or interrupted.

    The thread that is interrupted waits for all branches of a graph, also those that have not
    begun, before it can say so: Ctrl-C itself has to.
    """
    flag, plain = carried(shared).broken_off[-1], signal.default_int_handler
    is_ours = current_thread() is main_thread() and signal.getsignal(signal.SIGINT) is plain

    def end(number: int, frame: FrameType | None) -> None:
        flag.set()
        plain(number, frame)

    if is_ours:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        flag.set()
        if is_ours:
            signal.signal(signal.SIGINT, plain)


def do_all(
    do: Callable[[JobT], ResultT], jobs: Sequence[JobT], at_once: int, shared: RunnableConfig
) -> list[ResultT]:
    """Do what `do_many` does by runs of a config of `share_limits`, see `breaking_off`."""
    with breaking_off(shared):
        return do_many(do, jobs, at_once)


class AgentRun(ABC, Generic[ResultT]):
    """One question on its way through the graph of an agent, told event by event.

    Attributes:
        name: How a trace calls the run.
        kind: How messages call the agent.
        begun: A key that the state has from the first node on.
        differs: How two runs of one thread may differ, beside their questions.
        modes: Of LangGraph's streams; ``updates`` are what nodes write, ``custom`` what they tell.

    Args:
        graph: The compiled graph.
        given: What it is given; its ``question`` must be that of a thread to resume.
        config: The config of the run, as the caller has it.
        settings: What it may cost, and how much it may do at once.
        n_steps: Room for so many steps of the graph.
        has_saver: Whether the graph has a checkpointer.
    """

    name: ClassVar[str]
    kind: ClassVar[str]
    begun: ClassVar[str]
    differs: ClassVar[str]
    modes: ClassVar[Sequence[str]] = ("updates", "values")

    def __init__(
        self,
        graph: "CompiledStateGraph[Any, Any, Any, Any]",
        given: Mapping[str, Any],
        config: RunnableConfig | None,
        settings: AgentSettings,
        *,
        n_steps: int = 0,
        has_saver: bool = False,
    ) -> None:
        self._graph, self._settings, self._has_saver = graph, settings, has_saver
        self._how: dict[str, Any] = {
            "stream_mode": [*self.modes],
            # every step is saved before the next begins, so that a kill loses none
            "durability": "sync" if has_saver else None,
        }
        self._n_steps, self._question = n_steps, given["question"]
        self._given: Mapping[str, Any] | None = given
        self._config = share_limits(config, settings)
        self._started = perf_counter()
        self._state: Mapping[str, Any] = {}
        self._is_over = False

    def finish(self, *, resume: bool = False) -> ResultT:
        """Run the graph, or what is left of it, and return the result."""
        with breaking_off(self._config):
            for event in self.stream(resume=resume):
                last = event
        found: ResultT = last["result"]
        return found

    async def afinish(self, *, resume: bool = False) -> ResultT:
        """Do what `finish` does, in the running loop."""
        async for event in self.astream(resume=resume):
            last = event
        found: ResultT = last["result"]
        return found

    def stream(self, *, resume: bool = False) -> Iterator[Event]:
        """Run the graph, or what is left of it, and yield events; the last one has the result."""
        config = self._configured(in_loop=False, resume=resume)
        if resume:
            self._go_on(self._graph.get_state(config))
        if not self._is_over:
            # LangGraph's end waits for all branches, also those that have not begun: first the flag
            chunks = self._graph.stream(self._given, config, **self._how)
            try:
                for mode, chunk in chunks:
                    if mode == "values":
                        self._state = chunk
                    else:
                        yield from self._events(chunk)
            finally:
                carried(self._config).broken_off[-1].set()
        yield {"event": "result", "result": self.result()}

    async def astream(self, *, resume: bool = False) -> AsyncIterator[Event]:
        """Do what `stream` does, in the running loop."""
        config = self._configured(in_loop=True, resume=resume)
        if resume:
            self._go_on(await self._graph.aget_state(config))
        if not self._is_over:
            async for mode, chunk in self._graph.astream(self._given, config, **self._how):
                if mode == "values":
                    self._state = chunk
                    continue
                for event in self._events(chunk):
                    yield event
        yield {"event": "result", "result": self.result()}

    @abstractmethod
    def result(self) -> ResultT:
        """Return the result, once the stream has ended."""

    def made_by(self) -> str:
        """Return who works, and how; kept with a state that is saved."""
        return ""

    @property
    def usage(self) -> dict[str, Usage]:
        """Calls and tokens so far, by node."""
        return {name: Usage.of(used) for name, used in self._state["usage"].items()}

    @property
    def seconds(self) -> float:
        """How long it took until now."""
        return perf_counter() - self._started

    def _events(self, chunk: Any) -> Iterable[Event]:
        """Return what a chunk of the stream has to say."""
        for node, update in chunk.items():
            yield from self._told(node, update or {})

    def _told(self, node: str, update: Mapping[str, Any]) -> Iterable[Event]:
        """Return what a node has to say."""
        return ()

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        """Return how much LangGraph may do at once; our own limiters count the calls."""
        return None

    def _check_same(self, saved: Mapping[str, Any]) -> None:
        """Raise `InputError` if a thread is of something else."""
        before = saved.get("question")
        if before != self._question:
            raise InputError(
                f"the thread to resume is of another question: {before!r:.80}, "
                f"not {self._question!r:.80}"
            )

    def _configured(self, *, in_loop: bool, resume: bool) -> RunnableConfig:
        """Return the config that LangGraph is given: name, room for all steps, who works."""
        if resume and not self._has_saver:
            raise SettingsError(f"resume=True needs a checkpointer, and this {self.kind} has none")
        given = self._config
        if self._has_saver and "thread_id" not in given.get("configurable", {}):
            raise SettingsError(
                f"this {self.kind} has a checkpointer, so a run needs a thread: "
                "config={'configurable': {'thread_id': '...'}}"
            )
        n_threads = self._n_threads(given.pop("max_concurrency", None), in_loop=in_loop)
        if n_threads is not None:
            given["max_concurrency"] = n_threads
        given["run_name"] = given.get("run_name") or self.name
        given["recursion_limit"] = max(given["recursion_limit"], self._n_steps)
        if self._has_saver:
            given["metadata"] = {**(given.get("metadata") or {}), MADE_BY: self.made_by()}
        return given

    def _go_on(self, saved: "StateSnapshot") -> None:
        """Take up what a thread holds; nothing is begun anew."""
        if self.begun not in saved.values:
            return
        self._check_same(saved.values)
        by = self.made_by()
        if (saved.metadata or {}).get(MADE_BY, by) != by:
            raise SettingsError(
                f"the thread to resume was begun {self.differs}; take another thread_id, or the "
                f"{self.kind} as it was"
            )
        self._given, self._state = None, saved.values
        self._is_over = not saved.tasks  # `next` leaves out tasks whose answers wait to be counted


class Batched(ABC, Generic[JobT, ResultT]):
    """An agent that is asked many questions at once, within one budget and one limit for all."""

    settings: AgentSettings
    if TYPE_CHECKING:

        @property
        def questions_at_once(self) -> int:
            """How many questions are worked on at the same time, >= 1."""

    @abstractmethod
    def run(self, question: JobT, config: RunnableConfig | None = None) -> AgentRun[ResultT]:
        """Return the run of one question."""

    @abstractmethod
    def check(self, questions: Any) -> list[JobT]:
        """Return what is asked; raise `InputError` for what cannot be."""

    def share(self, config: RunnableConfig | None = None) -> RunnableConfig:
        """Return a config that several questions can share: one budget, one limit for them all."""
        return share_limits(config, self.settings)

    def batch(
        self, questions: Sequence[Any], *, config: RunnableConfig | None = None
    ) -> list[ResultT]:
        """Ask many questions; results in the same order.

        `max_concurrency` and `budget` hold for all of them together.

        Raises:
            InputError: One of them cannot be asked.
        """
        asked, shared = self.check(questions), self.share(config)
        return do_all(partial(self._finish, shared), asked, self.questions_at_once, shared)

    async def abatch(
        self, questions: Sequence[Any], *, config: RunnableConfig | None = None
    ) -> list[ResultT]:
        """Do what `batch` does, in the running loop."""
        asked, shared = self.check(questions), self.share(config)
        return await ado_many(
            lambda one: self.run(one, shared).afinish(), asked, self.questions_at_once
        )

    def stream(
        self, questions: Sequence[Any], *, config: RunnableConfig | None = None
    ) -> Iterator[ResultT]:
        """Do what `batch` does, and yield each result as soon as it is there, in any order."""
        asked, shared = self.check(questions), self.share(config)
        return stream_many(partial(self._finish, shared), asked, self.questions_at_once)

    def _finish(self, config: RunnableConfig, question: JobT) -> ResultT:
        return self.run(question, config).finish()
