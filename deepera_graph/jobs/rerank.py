"""Reranking of a file, line by line, in constant memory."""

from collections.abc import Callable
from concurrent.futures import CancelledError
from itertools import islice
from typing import BinaryIO, Protocol

from deepera_graph.errors import BackendError, DeepEraError
from deepera_graph.jobs.in_flight import Flight, InFlight, Line
from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines
from deepera_graph.jobs.output import output_line
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.uninterrupted import uninterrupted
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult

Watch = Callable[[Line], None]


class Sink(Protocol):
    """Where lines go: any binary file."""

    def write(self, data: bytes, /) -> int:
        """Write a line."""
        ...

    def flush(self) -> None:
        """Hand the line over."""
        ...


def rerank_lines(
    reranker: EvidenceReranker,
    source: BinaryIO,
    out: Sink | None,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Rerank every question of a file; a bad line is reported and the others run.

    Answers are written in the order of the questions, each as soon as those before it are. When
    the run ends early (`KeyboardInterrupt`, `BackendError`), the questions that are done by then
    are still written; the report says how it ended.

    Args:
        reranker: What to ask.
        source: Lines as `deepera_graph.jobs.lines` reads them.
        out: Where the lines of `deepera_graph.jobs.output` go, flushed one by one; None writes
            nothing.
        report: Counts what happens, also if this raises.
        limit: Most lines read; all if None.
        watch: Called with every line that is done, also with the bad ones.

    Raises:
        BackendError: No passage of a question could be judged because the backend cannot be
            reached or refuses the key.
        OSError: *source* or *out* fails.
    """
    scribe = _Scribe(out, report, watch)
    with InFlight(reranker, islice(read_lines(source), limit)) as flights:
        try:
            for item in flights:
                scribe.take(item)
        except KeyboardInterrupt:
            report.end = "interrupted"
            scribe.take_finished(flights)
            raise
        except BackendError:
            report.end = "unreachable"
            scribe.take_finished(flights)
            raise
    report.end = "complete"


class _Scribe:
    """Writes what is done, and counts it."""

    def __init__(self, out: Sink | None, report: JobReport, watch: Watch) -> None:
        self._out, self._report, self._watch = out, report, watch

    def take(self, item: Flight | BadLine) -> None:
        """Wait for one line and write it."""
        if isinstance(item, BadLine):
            self._note(item)
            return
        line = item.line
        try:
            result = item.future.result()
        except DeepEraError as error:
            self._note(BadLine(number=line.number, end=line.end, id=line.id, error=str(error)))
            return
        if result.backend_failure is not None:
            raise BackendError(f"line {line.number}: {result.backend_failure}")
        self._write(line, result)

    def take_finished(self, flights: InFlight) -> None:
        """Write what is done already and was not to blame."""
        for item in flights.finished():
            try:
                self.take(item)
            except (BackendError, CancelledError):
                continue

    def _write(self, line: QuestionLine, result: RerankResult) -> None:
        data = output_line(line, result)
        with uninterrupted():
            if self._out is not None:
                self._out.write(data)
                self._out.flush()
            self._report.add(line, result)
        self._watch(line)

    def _note(self, line: BadLine) -> None:
        self._report.add_bad(line)
        self._watch(line)
