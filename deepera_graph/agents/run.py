"""How the graph of an agent is driven: its limits, its events, and where a run goes on."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from platform import python_version
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from langchain_core.runnables import RunnableConfig, ensure_config

from deepera_graph import __version__
from deepera_graph.budget import Budget, Meter, has_limit, has_meter, with_limit, with_meter
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.schema import RoleSet

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot


Event = dict[str, Any]
MADE_BY = "deepera_made_by"  # the key among the metadata of a saved state
_OF_NO_EFFECT = ("budget", "max_concurrency")


class PlainSettings(Protocol):
    """Settings of a system, which can be written down."""

    def to_dict(self) -> dict[str, Any]:
        """Return them by name, as plain data."""
        ...


def made_by(roles: RoleSet, settings: PlainSettings) -> str:
    """Return 16 hex digits that name who does the work, and how, without any secret.

    What a run may cost and how much it does at once make no difference.
    """
    plain = settings.to_dict()
    about = {"name": roles.name, "about": dict(roles.about)}
    who = about if roles.spec is None else roles.fingerprint()
    whole = [who, {name: plain[name] for name in plain if name not in _OF_NO_EFFECT}]
    return sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()[:16]


def make_manifest(roles: RoleSet, settings: PlainSettings) -> dict[str, Any]:
    """Return what a result says of how it was made: roles, settings, versions; no secret."""
    return {
        "backend": roles.name,
        **roles.about,
        "settings": settings.to_dict(),
        "versions": dict(versions()),
    }


def share_limits(
    config: RunnableConfig | None, *, max_concurrency: int, budget: Budget | None
) -> RunnableConfig:
    """Return a config that several runs can share: one budget, one limit of calls for them all.

    A `max_concurrency` in the config counts where it is lower; what a runnable around this one has
    set is kept.
    """
    given = ensure_config(config)
    asked = given.get("max_concurrency")
    if asked and asked < max_concurrency and not has_limit(given):
        given = with_limit(given, asked)
    return given if has_meter(given) else with_meter(given, Meter(budget))


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """Versions of what a judgement may depend on, as (name, version) pairs."""
    packages = ("langgraph", "langchain-core", "pydantic")
    return (
        ("deepera-graph", __version__),
        *((name, version(name)) for name in packages),
        ("python", python_version()),
    )


class AgentRun(ABC):
    """One question on its way through the graph of an agent, told event by event.

    A subclass says how the run is called in messages (`kind`), which key its state has from the
    first node on (`begun`), and what else may differ between two runs of one thread (`differs`).

    Args:
        graph: The compiled graph.
        given: What it is given; its ``question`` must be that of a thread to resume.
        config: The config of the run.
        by: Who works, and how; kept with the state if there is a saver.
        has_saver: Whether the graph has a checkpointer.
    """

    kind: ClassVar[str]
    begun: ClassVar[str]
    differs: ClassVar[str]

    def __init__(
        self,
        graph: "CompiledStateGraph[Any, Any, Any, Any]",
        given: Mapping[str, Any],
        config: RunnableConfig,
        *,
        by: str,
        has_saver: bool,
    ) -> None:
        self._graph, self._by, self._has_saver = graph, by, has_saver
        self._question = given["question"]
        self._given: Mapping[str, Any] | None = given
        self._config = config
        if has_saver:
            self._config["metadata"] = {**(config.get("metadata") or {}), MADE_BY: by}
        self._started = perf_counter()
        self._state: Mapping[str, Any] = {}
        self._is_over = False

    def stream(self, *, resume: bool) -> Iterator[Event]:
        """Run the graph, or what is left of it, and yield events; the last one has the result."""
        if resume:
            self._check_saver()
            self._go_on(self._graph.get_state(self._config))
        if not self._is_over:
            for mode, chunk in self._graph.stream(self._given, self._config, **self._how):
                yield from self._take(mode, chunk)
        yield {"event": "result", "result": self.result()}

    async def astream(self, *, resume: bool) -> AsyncIterator[Event]:
        """Do what `stream` does, in the running loop."""
        if resume:
            self._check_saver()
            self._go_on(await self._graph.aget_state(self._config))
        if not self._is_over:
            async for mode, chunk in self._graph.astream(self._given, self._config, **self._how):
                for event in self._take(mode, chunk):
                    yield event
        yield {"event": "result", "result": self.result()}

    @abstractmethod
    def result(self) -> Any:
        """Return the result, once the stream has ended."""

    @abstractmethod
    def _events(self, node: str, update: Mapping[str, Any]) -> Iterator[Event]:
        """Yield what a node has to say."""

    @property
    def _how(self) -> dict[str, Any]:
        durability = "sync" if self._has_saver else None
        return {"stream_mode": ["updates", "values"], "durability": durability}

    def _check_saver(self) -> None:
        if not self._has_saver:
            raise SettingsError(f"resume=True needs a checkpointer, and this {self.kind} has none")

    def _go_on(self, saved: "StateSnapshot") -> None:
        """Take up what a thread holds; nothing is begun anew."""
        if self.begun not in saved.values:
            return
        before = saved.values.get("question")
        if before != self._question:
            raise InputError(
                f"the thread to resume is of another question: {before!r:.80}, "
                f"not {self._question!r:.80}"
            )
        if (saved.metadata or {}).get(MADE_BY, self._by) != self._by:
            raise SettingsError(
                f"the thread to resume was begun {self.differs}; take another thread_id, or the "
                f"{self.kind} as it was"
            )
        self._given, self._state = None, saved.values
        self._is_over = not saved.next

    def _take(self, mode: str, chunk: Any) -> Iterator[Event]:
        """Note a chunk of the stream, and yield what it has to say."""
        if mode == "values":
            self._state = chunk
            return
        for node, update in chunk.items():
            yield from self._events(node, update or {})
