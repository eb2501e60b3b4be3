"""How the pipeline is driven: the config of a run, its chunks, and where a run goes on."""

from collections.abc import AsyncIterator, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.runnables import RunnableConfig

from deepera_graph.agents.run import MADE_BY, Event, made_by, make_manifest, share_limits
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.passages import PassageLike, check_question, read_passages
from deepera_graph.pipeline.state import Output, Question, read_outcome
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend
from deepera_graph.settings import Settings
from deepera_graph.thresholds import Calibrated
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import Durability, StateSnapshot


Left = Literal["all", "rest", "nothing"]


def left_of(saved: "StateSnapshot", asked: Question, by: str) -> Left:
    """Return what is still to be done of a question.

    Raises:
        InputError: The thread is of another question, or of other passages.
        SettingsError: The thread was begun by another backend or with other settings, so that its
            verdicts are not those asked for.
    """
    values = saved.values
    if "question" not in values or "passages" not in values:
        return "all"
    if values["question"] != asked["question"]:
        raise InputError(
            f"the thread to resume is of another question: {values['question']!r:.80}, "
            f"not {asked['question']!r:.80}"
        )
    before, now = read_passages(values["passages"]), read_passages(asked["passages"])
    if [(one.id, one.text) for one in before] != [(one.id, one.text) for one in now]:
        raise InputError("the thread to resume is of other passages")
    if (saved.metadata or {}).get(MADE_BY, by) != by:
        raise SettingsError(
            "the thread to resume was begun by another backend or with other settings; take "
            "another thread_id, or the reranker as it was"
        )
    return "rest" if saved.next else "nothing"


_STAGE_OF = {
    "intent": "intent",
    "scored": "score",
    "selected": "select",
    "summarized": "summarize",
    "answered": "answer",
}


class Run:
    """Collects the chunks of one run of the graph into a `RerankResult`."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        question: str,
        passages: Iterable[PassageLike],
    ) -> None:
        self._backend, self._settings = backend, settings
        check_question(question, passages)
        self._passages = read_passages(passages)
        self._started = self._last = perf_counter()
        self._seconds: dict[str, float] = {}
        self._output: Output | None = None
        self.question_in: Question = {
            "question": question,
            "passages": [passage.to_document() for passage in self._passages],
        }

    @property
    def backend(self) -> Backend:
        """Who judges."""
        return self._backend

    def take(self, mode: str, chunk: Any) -> Event | None:
        """Note a chunk of the stream; return it if it is an event of ours, not of a role."""
        if mode == "values":
            self._output = chunk
            return None
        stage = _STAGE_OF.get(str(chunk.get("event"))) if isinstance(chunk, dict) else None
        if stage is None:
            return None
        now = perf_counter()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now
        event: Event = chunk
        return event

    def result(self) -> RerankResult:
        """Return the result, once the stream has ended."""
        if self._output is None:
            raise RuntimeError("the graph ended without a state")
        output = self._output
        return RerankResult(
            question=output["question"],
            intent=output["intent"],
            passages=tuple(
                RankedPassage.of(self._passages[record["index"]], record)
                for record in output["ranking"]
            ),
            left_out=tuple(
                RankedPassage.of(self._passages[record["index"]], record)
                for record in output.get("left_out", ())
            ),
            warnings=tuple(output.get("warnings", ())),
            outcome=read_outcome(output["outcome"]),
            fallback=output["fallback"],
            threshold=output["threshold"],
            evidence_point=output.get("evidence_point"),
            missing_words=tuple(output.get("missing_words", ())),
            answer=output["answer"],
            usage={stage: Usage.of(used) for stage, used in output["usage"].items()},
            seconds={**self._seconds, "total": perf_counter() - self._started},
            manifest={
                **make_manifest(self._backend, self._settings),
                "reads_by_rules": self._backend.reads_by_rules,
                **self._calibration(),
            },
        )

    def _calibration(self) -> dict[str, Any]:
        """Record how this judge differs from the one a calibrated threshold was fitted for."""
        threshold, backend = self._settings.threshold, self._backend
        if not isinstance(threshold, Calibrated):
            return {}
        differences = threshold.curve.differences(backend.name, backend.about)
        return {"calibration": {"differences": differences}}


_MOST_THREADS = 10_000  # started one by one, as branches need them
_STEPS_APART = 8  # receive, intent, plan, select, summarize, collect, answer, and the end
_STEPS_A_PASSAGE = 4  # at most: two rounds of judging, each a plan and a batch
_MODES: list[Any] = ["custom", "values"]
Chunk = tuple[str, Any]


class Runner:
    """Drives one compiled graph, in threads or in the running loop."""

    def __init__(
        self,
        graph: "CompiledStateGraph[Any, Any, Any, Any]",
        settings: Settings,
        *,
        has_saver: bool,
    ) -> None:
        self._graph, self._settings, self._has_saver = graph, settings, has_saver

    def chunks(self, run: Run, config: RunnableConfig | None, *, resume: bool) -> Iterator[Chunk]:
        """Yield (mode, chunk) pairs of a run, or of what is left of it."""
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
        settings = self._settings
        return share_limits(
            config, max_concurrency=settings.max_concurrency, budget=settings.budget
        )

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
        """Return how many steps the graph may take, were every passage judged in rounds alone."""
        return _STEPS_APART + _STEPS_A_PASSAGE * (1 + len(run.question_in["passages"]))

    def _check_saver(self) -> None:
        if not self._has_saver:
            raise SettingsError("resume=True needs a checkpointer, and this reranker has none")


def _end(saved: "StateSnapshot") -> Iterator[Chunk]:
    yield "values", saved.values


async def _aend(saved: "StateSnapshot") -> AsyncIterator[Chunk]:
    yield "values", saved.values
