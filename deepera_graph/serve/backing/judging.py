"""Who judges what requests ask: one backend a judge, one reranker a choice of settings."""

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, asynccontextmanager
from threading import Lock
from typing import Any

from deepera_graph.agents.run import Event
from deepera_graph.errors import DeepEraError
from deepera_graph.judges import NAMED, load_backend
from deepera_graph.judges.base import as_judge
from deepera_graph.passages import PassageLike
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult
from deepera_graph.schema import Backend
from deepera_graph.serve.backing.library import check_backend
from deepera_graph.serve.config import ServeConfig
from deepera_graph.serve.metrics import Metrics
from deepera_graph.serve.replies import RequestRefusedError
from deepera_graph.serve.traffic import Gate, RequestNote, in_time
from deepera_graph.settings.ranges import suggest_value
from deepera_graph.stores.judgements import JudgementCache

_logger = logging.getLogger("deepera_graph.serve")
_MOST_RERANKERS = 64  # choices of settings that are kept
_TRIAL = ("Is it ready?", ("It is ready.", "It was ready in all of 30 trials (p < 0.01)."))


class ServerJudges:
    """The judges of a server, shared by all requests.

    The configured judge is the first, under the name of its backend; ``local`` and ``rules`` are
    always there. A judge is loaded when it is first asked for.
    """

    def __init__(self, config: ServeConfig, metrics: Metrics) -> None:
        self._config, self._metrics = config, metrics
        self._lock, self._stack = Lock(), ExitStack()
        self._rerankers: OrderedDict[tuple[Any, ...], EvidenceReranker] = OrderedDict()
        first = load_backend(config.backend)
        self.default = first.name
        self._first: dict[str, EvidenceReranker] = {first.name: self._build(first)}
        self.names = (first.name, *(name for name in NAMED if name != first.name))
        self._model = str(first.about.get("model") or "")
        self.gate = Gate(config.limits.at_once, config.limits.queue, metrics.note_queue)
        self.problem = ""
        self.is_ready = False

    def warm_up(self) -> None:
        """Load the configured judge; one that is paid a call is not tried."""
        backend = self._first[self.default].backend
        try:
            if not backend.asks_model:
                result = self.reranker(self.default).rerank(*_TRIAL)
                self.problem = result.backend_failure or ""
        except DeepEraError as error:
            self.problem = str(error)
        except Exception as error:  # nobody waits for it, and it would load for ever
            _logger.error("the judge cannot be loaded", exc_info=error)
            self.problem = f"{type(error).__name__}; the log says more"
        self.is_ready = not self.problem

    def find(self, name: str | None) -> str:
        """Return the name of a judge; the configured one if None, or by the name of its model."""
        # Raises `RefusedError` if there is none of this name.
        if name is None or self.knows(name):
            return name if name is not None and name in self.names else self.default
        known = ", ".join(map(repr, self.names))
        hint = suggest_value(name, self.names)
        raise RequestRefusedError(
            422, "settings", f"unknown judge {name!r:.80}; available: {known}{hint}"
        )

    def knows(self, name: str) -> bool:
        """Tell whether a judge, or the model of the configured one, has this name."""
        return name in self.names or (bool(self._model) and name == self._model)

    def describe(self) -> list[dict[str, Any]]:
        """Return the judges as plain data, the configured one first."""
        described = []
        for name in self.names:
            backend = self._base(name).backend
            described.append(
                {
                    "name": name,
                    "default": name == self.default,
                    "in_process": not backend.asks_model,
                    "threshold": self._threshold(name),
                    "about": dict(backend.about),
                }
            )
        return described

    def reranker(
        self, judge: str, keep: Mapping[str, Any] | None = None, /, **changes: Any
    ) -> EvidenceReranker:
        """Return the reranker of a judge with some settings changed; equal choices share one."""
        # *keep* says where the local judge keeps what it reads, as `local_backend` takes it; it
        # changes no score, and other judges keep nothing.
        # Raises `SettingsError` if a setting is out of range.
        kept = self._keeping(self._base(judge).backend, keep or {})
        key = (judge, *sorted((keep or {}).items()), *sorted(changes.items()))
        if kept is None and not changes:
            return self._base(judge)
        with self._lock:
            if key in self._rerankers:
                self._rerankers.move_to_end(key)
                return self._rerankers[key]
        made = self._base(judge)
        made = made if kept is None else made.with_backend(kept)
        made = made.with_settings(**changes) if changes else made
        with self._lock:
            self._rerankers[key] = made
            while len(self._rerankers) > _MOST_RERANKERS:
                self._rerankers.popitem(last=False)
        return made

    async def rerank(
        self, note: RequestNote, reranker: EvidenceReranker, passages: Iterable[PassageLike]
    ) -> RerankResult:
        """Rerank by the judge of a request, when it is its turn."""
        # Raises `BackendError` if nothing could be judged; `RefusedError` if too many wait, or the
        # time is up.
        async with self.turn(note):
            result = await reranker.arerank(note.question, passages)
        self._note(note.judge, result)
        check_backend(result)
        return result

    async def stream(
        self, note: RequestNote, reranker: EvidenceReranker, passages: Iterable[PassageLike]
    ) -> AsyncIterator[Event]:
        """Yield the events of `EvidenceReranker.astream` when it is this request's turn."""
        async with self.turn(note):
            async for event in reranker.astream(note.question, passages):
                if event["event"] == "result":
                    self._note(note.judge, event["result"])
                    check_backend(event["result"])
                yield event

    def _note(self, judge: str, result: RerankResult) -> None:
        """Count what became of the passages."""
        every, n_failed = len(result.all_passages), len(result.failed)
        n_not_needed = len(result.not_needed)
        self._metrics.note_judged(
            judge,
            n_judged=every - n_failed - n_not_needed,
            n_failed=n_failed,
            n_not_needed=n_not_needed,
        )

    def close(self) -> None:
        """Close the caches."""
        self._stack.close()

    @asynccontextmanager
    async def turn(self, note: RequestNote) -> AsyncIterator[None]:
        """Hold a place among those who judge, in the time of a request."""
        async with in_time(note), self.gate:
            yield

    def _base(self, judge: str) -> EvidenceReranker:
        with self._lock:
            if judge not in self._first:
                self._first[judge] = self._build(load_backend(judge))
            return self._first[judge]

    def _build(self, backend: Backend) -> EvidenceReranker:
        cache: JudgementCache | None = None
        if self._config.judgements is not None:
            cache = self._stack.enter_context(self._config.judgements(backend))
        return EvidenceReranker(backend, cache=cache, **dict(self._config.settings))

    def _threshold(self, judge: str) -> float | None:
        """Return the threshold of a judge if it is a number, and not a rule."""
        reranker = self._base(judge)
        found = reranker.effective_settings.threshold
        if isinstance(found, float | int):
            return float(found)
        return None if found is not None else as_judge(reranker.backend.judge).operating_point

    @staticmethod
    def _keeping(backend: Backend, keep: Mapping[str, Any]) -> Backend | None:
        """Return a local judge that keeps what it reads; None for another one."""
        spec = dict(backend.spec or {})
        is_trained = spec.get("kind") == "local" and spec.get("judge") == "trained"
        return load_backend({**spec, **keep}) if keep and is_trained else None
