"""One question on its way through the pipeline, told as events and as a `RerankResult`."""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from deepera_graph.agents.run import AgentRun, Event, made_by, make_manifest
from deepera_graph.errors import InputError
from deepera_graph.passages import PassageLike, check_question, read_passages
from deepera_graph.pipeline.state import Question, RankRecord, read_outcome
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.schema import Backend
from deepera_graph.settings import Settings
from deepera_graph.thresholds import Calibrated

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

_STAGE_OF = {
    "intent": "intent",
    "scored": "score",
    "selected": "select",
    "summarized": "summarize",
    "answered": "answer",
}
_MOST_THREADS = 10_000  # started one by one, as branches need them
_STEPS_APART = 8  # receive, intent, plan, select, summarize, collect, answer, and the end
_STEPS_A_PASSAGE = 4  # at most: two rounds of judging, each a plan and a batch


class RerankRun(AgentRun[RerankResult]):
    """Collects what the pipeline says of one question into a `RerankResult`."""

    name, kind, begun = "DeepEra", "reranker", "passages"
    differs = "by another backend or with other settings"
    modes = ("custom", "values")
    _settings: Settings

    def __init__(
        self,
        graph: "CompiledStateGraph[Any, Any, Any, Any]",
        question: str,
        passages: Iterable[PassageLike],
        config: RunnableConfig | None,
        *,
        backend: Backend,
        settings: Settings,
        has_saver: bool,
    ) -> None:
        check_question(question, passages)
        self._backend = backend
        self._passages = read_passages(passages)
        self._stage_seconds: dict[str, float] = {}
        given: Question = {
            "question": question,
            "passages": [passage.to_document() for passage in self._passages],
        }
        # were every passage judged in rounds alone
        n_steps = _STEPS_APART + _STEPS_A_PASSAGE * (1 + len(self._passages))
        super().__init__(graph, given, config, settings, n_steps=n_steps, has_saver=has_saver)
        self._last = self._started

    def result(self) -> RerankResult:
        """Return the result, once the stream has ended."""
        if not self._state:
            raise RuntimeError("the graph ended without a state")
        output = self._state
        return RerankResult(
            question=output["question"],
            intent=output["intent"],
            passages=self._ranked(output["ranking"]),
            left_out=self._ranked(output.get("left_out", ())),
            warnings=tuple(output.get("warnings", ())),
            outcome=read_outcome(output["outcome"]),
            fallback=output["fallback"],
            threshold=output["threshold"],
            evidence_point=output.get("evidence_point"),
            missing_words=tuple(output.get("missing_words", ())),
            answer=output["answer"],
            usage=self.usage,
            seconds={**self._stage_seconds, "total": self.seconds},
            manifest={
                **make_manifest(self._backend, self._settings),
                "reads_by_rules": self._backend.reads_by_rules,
                **self._calibration(),
            },
        )

    def made_by(self) -> str:
        """Return who judges, and how."""
        return made_by(self._backend, self._settings)

    def _ranked(self, records: Iterable[RankRecord]) -> tuple[RankedPassage, ...]:
        return tuple(RankedPassage.of(self._passages[one["index"]], one) for one in records)

    def _calibration(self) -> dict[str, Any]:
        """Record how this judge differs from the one a calibrated threshold was fitted for."""
        threshold, backend = self._settings.threshold, self._backend
        if not isinstance(threshold, Calibrated):
            return {}
        differences = threshold.curve.differences(backend.name, backend.about)
        return {"calibration": {"differences": differences}}

    def _events(self, chunk: Any) -> Iterable[Event]:
        """Return the chunk if it is an event of ours, not of a role; note how long it took."""
        stage = _STAGE_OF.get(str(chunk.get("event"))) if isinstance(chunk, dict) else None
        if stage is None:
            return ()
        now = perf_counter()
        self._stage_seconds[stage] = self._stage_seconds.get(stage, 0.0) + now - self._last
        self._last = now
        return (chunk,)

    def _n_threads(self, asked: int | None, *, in_loop: bool) -> int | None:
        """Return how many threads LangGraph may use.

        One more than calls, as one of them does nothing but wait for events, and a single one would
        wait forever. With a saver one for every branch: what a branch has found is saved by a
        thread too, and would else wait until all branches have begun, and be lost with the process.
        In a loop there is no limit, as LangGraph's complains when cancelled.
        """
        if in_loop:
            return None
        limit = self._settings.max_concurrency
        return _MOST_THREADS if self._has_saver else min(asked or limit, limit) + 1

    def _check_same(self, saved: Mapping[str, Any]) -> None:
        super()._check_same(saved)
        before, now = read_passages(saved["passages"]), self._passages
        if [(one.id, one.text) for one in before] != [(one.id, one.text) for one in now]:
            raise InputError("the thread to resume is of other passages")
