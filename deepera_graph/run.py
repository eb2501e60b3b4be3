"""One question on its way through the graph: what went in, when stages ended, what came out."""

from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import version
from platform import python_version
from time import perf_counter
from typing import Any

from deepera_graph.errors import InputError
from deepera_graph.events import Event
from deepera_graph.passages import PassageLike, read_passages
from deepera_graph.result import RankedPassage, RerankResult
from deepera_graph.roles import Backend
from deepera_graph.settings import Settings
from deepera_graph.state import Output, Question
from deepera_graph.thresholds import Calibrated
from deepera_graph.usage import Usage
from deepera_graph.version import __version__

_STAGE_OF = {
    "intent": "intent",
    "surveyed": "survey",
    "scored": "score",
    "selected": "select",
    "summarized": "summarize",
    "answered": "answer",
}


class Run:
    """Collects the chunks of one run of the graph into a `RerankResult`.

    Raises:
        InputError: The question is blank, or a passage cannot be used.
    """

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        question: str,
        passages: Iterable[PassageLike],
    ) -> None:
        asked: object = question
        if not isinstance(asked, str) or not asked.strip():
            raise InputError(f"question must not be empty, got {question!r}")
        self._backend, self._settings = backend, settings
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
            survey=output.get("survey"),
            passages=tuple(
                RankedPassage.of(self._passages[record["index"]], record)
                for record in output["ranking"]
            ),
            left_out=tuple(
                RankedPassage.of(self._passages[record["index"]], record)
                for record in output.get("left_out", ())
            ),
            outcome=output["outcome"],
            fallback=output["fallback"],
            threshold=output["threshold"],
            answer=output["answer"],
            usage={stage: Usage.of(used) for stage, used in output["usage"].items()},
            seconds={**self._seconds, "total": perf_counter() - self._started},
            manifest={
                "backend": self._backend.name,
                **self._backend.about,
                "settings": self._settings.to_dict(),
                "versions": dict(versions()),
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


@lru_cache(maxsize=1)
def versions() -> tuple[tuple[str, str], ...]:
    """Versions of what a judgement may depend on, as (name, version) pairs."""
    packages = ("langgraph", "langchain-core", "pydantic")
    return (
        ("deepera-graph", __version__),
        *((name, version(name)) for name in packages),
        ("python", python_version()),
    )
