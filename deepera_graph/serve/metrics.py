"""What Prometheus reads: requests, times, passages, the queue, failures."""

import os
from typing import Any

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import Response

FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # where several processes add up, as prometheus_client asks
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_PASSAGES = (1, 2, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


class Metrics:
    """The counters of one application."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        own: dict[str, Any] = {"registry": self._registry}
        self._requests = Counter(
            "deepera_requests", "Requests answered.", ("method", "path", "status"), **own
        )
        self._seconds = Histogram(
            "deepera_request_seconds",
            "Seconds from a request to the end of its reply.",
            ("path",),
            buckets=_SECONDS,
            **own,
        )
        self._passages = Counter(
            "deepera_passages", "Passages by what became of them.", ("judge", "outcome"), **own
        )
        self._batch = Histogram(
            "deepera_batch_passages",
            "Passages that were judged together.",
            ("judge",),
            buckets=_PASSAGES,
            **own,
        )
        live: dict[str, Any] = {**own, "multiprocess_mode": "livesum"}
        self._waiting = Gauge("deepera_queue", "Requests that wait for their turn.", **live)
        self._working = Gauge("deepera_in_progress", "Requests that are judged.", **live)
        self._failures = Counter(
            "deepera_failures", "Requests that were refused or failed.", ("kind",), **own
        )

    def note_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Note a request that has ended; clients make up methods, and each would be a counter."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def note_judged(self, judge: str, *, n_judged: int, n_failed: int, n_not_needed: int) -> None:
        """Note the passages of a request."""
        self._batch.labels(judge).observe(n_judged + n_failed + n_not_needed)
        counts = {"judged": n_judged, "failed": n_failed, "not_needed": n_not_needed}
        for outcome, n in counts.items():
            if n:
                self._passages.labels(judge, outcome).inc(n)

    def note_failure(self, kind: str) -> None:
        """Note a request that was refused or failed."""
        self._failures.labels(kind).inc()

    def note_queue(self, waiting: int, working: int) -> None:
        """Note how many wait, and how many are worked on."""
        self._waiting.set(waiting)
        self._working.set(working)

    def show(self) -> Response:
        """Return all of it as Prometheus reads it; of all processes, if there are several."""
        registry = self._registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
