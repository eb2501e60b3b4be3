"""How the graph is driven: the config of a run, its chunks, and where a run goes on."""

import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig, ensure_config

from deepera_graph.budget import Meter, has_meter, with_meter
from deepera_graph.errors import SettingsError
from deepera_graph.limiter import has_limit, with_limit
from deepera_graph.resume import MADE_BY, left_of, made_by
from deepera_graph.run import Run
from deepera_graph.settings import Settings

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Durability, StateSnapshot

_MOST_THREADS = 10_000  # started one by one, as branches need them
_STEPS_APART = 8  # receive, intent, survey, select, summarize, collect, answer, and the end
_MODES: list[Any] = ["custom", "values"]
Chunk = tuple[str, Any]


class Runner:
    """Drives one compiled graph, in threads or in the running loop.

    Args:
        graph: Of `build_graph`.
        settings: Those it was built with.
        has_saver: Whether it was built with a checkpointer.
    """

    def __init__(
        self,
        graph: "CompiledStateGraph[Any, Any, Any, Any]",
        settings: Settings,
        *,
        has_saver: bool,
    ) -> None:
        self._graph, self._settings, self._has_saver = graph, settings, has_saver

    def chunks(self, run: Run, config: RunnableConfig | None, *, resume: bool) -> Iterator[Chunk]:
        """Yield (mode, chunk) pairs of a run, or of what is left of it.

        Raises:
            InputError: The thread to resume is of another question or of other passages.
            SettingsError: There is no checkpointer to resume from, or the thread was begun by
                another backend or with other settings.
        """
        given, question = self._config(config, run), run.question_in
        if resume:
            self._check_saver()
            saved = self._graph.get_state(given)
            left = left_of(saved, question, self._made_by(run))
            if left == "nothing":
                return _end(saved)
            question = question if left == "all" else None  # type: ignore[assignment]
        return self._graph.stream(  # type: ignore[return-value]  # pairs, as two modes are asked for
            question, given, stream_mode=_MODES, durability=self._durability
        )

    async def achunks(
        self, run: Run, config: RunnableConfig | None, *, resume: bool
    ) -> AsyncIterator[Chunk]:
        """Do what `chunks` does, in the running loop."""
        given, question = self._config(config, run), run.question_in
        # our limiters do it; LangGraph's complains when cancelled
        given.pop("max_concurrency", None)
        if resume:
            self._check_saver()
            saved = await self._graph.aget_state(given)
            left = left_of(saved, question, self._made_by(run))
            if left == "nothing":
                return _aend(saved)
            question = question if left == "all" else None  # type: ignore[assignment]
        return self._graph.astream(  # type: ignore[return-value]  # as above
            question, given, stream_mode=_MODES, durability=self._durability
        )

    def shared(self, config: RunnableConfig | None) -> RunnableConfig:
        """Fill in what the runnable around this call has set, a lower limit, and the budget."""
        given = ensure_config(config)
        asked = given.get("max_concurrency")
        if asked and asked < self._settings.max_concurrency and not has_limit(given):
            given = with_limit(given, asked)
        return given if has_meter(given) else with_meter(given, Meter(self._settings.budget))

    @property
    def _durability(self) -> "Durability | None":
        """Have every step saved before the next begins, so that a kill loses no step."""
        return "sync" if self._has_saver else None

    def _made_by(self, run: Run) -> str:
        return made_by(run.backend, self._settings)

    def _config(self, config: RunnableConfig | None, run: Run) -> RunnableConfig:
        """Return the config of one run.

        Our own limiters count the calls; LangGraph gets one thread more, as one of its threads does
        nothing but wait for events, and with a single one would wait forever. With a saver it gets
        one for every branch: what a branch has found is saved by a thread too, and would else wait
        until all branches have begun, and be lost with the process.
        """
        given, limit = self.shared(config), self._settings.max_concurrency
        given["run_name"] = given.get("run_name") or "DeepEra"
        n_threads = min(given.get("max_concurrency") or limit, limit) + 1
        given["max_concurrency"] = _MOST_THREADS if self._has_saver else n_threads
        given["recursion_limit"] = max(given["recursion_limit"], self._n_steps(run))
        if self._has_saver:
            given["metadata"] = {**(given.get("metadata") or {}), MADE_BY: self._made_by(run)}
        return given

    def _n_steps(self, run: Run) -> int:
        """Return how many steps the graph may take: two a wave, and those before and after."""
        size = self._settings.passages_a_wave or sys.maxsize
        n_waves = -(-len(run.question_in["passages"]) // size)
        return _STEPS_APART + 2 * n_waves

    def _check_saver(self) -> None:
        if not self._has_saver:
            raise SettingsError("resume=True needs a checkpointer, and this reranker has none")


def _end(saved: "StateSnapshot") -> Iterator[Chunk]:
    yield "values", saved.values


async def _aend(saved: "StateSnapshot") -> AsyncIterator[Chunk]:
    yield "values", saved.values
