"""Reranking of a file, line by line, in constant memory."""

from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from itertools import islice
from typing import Any, BinaryIO, Protocol

from deepera_graph.engines.engine import Engine
from deepera_graph.engines.local import LocalEngine
from deepera_graph.errors import BackendError, DeepEraError, InputError, RoleError
from deepera_graph.jobs.facts import Facts
from deepera_graph.jobs.in_flight import Flight, InFlight, Line
from deepera_graph.jobs.judging import Judged, judging
from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionLine, RawLine, read_rest
from deepera_graph.jobs.progress import Progress
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.uninterrupted import uninterrupted
from deepera_graph.reranker import EvidenceReranker

Watch = Callable[[Line | DoneLine], None]


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
    out: Sink | Progress | None,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
    engine: Engine[QuestionLine, Judged] | None = None,
) -> None:
    """Rerank every question of a file; a bad line is reported and the others run.

    Answers are written in the order of the questions, each as soon as those before it are. When
    the run ends early (`KeyboardInterrupt`, `BackendError`), the questions that are done by then
    are still written; the report says how it ended.

    Args:
        reranker: What to ask.
        source: Lines as `deepera_graph.jobs.lines` reads them.
        out: Where the lines of `deepera_graph.jobs.output` go, flushed one by one; a `Progress`
            says which are done already. None writes nothing.
        report: Counts what happens, also if this raises.
        limit: Most lines read; all if None.
        watch: Called with every line that is done, also with the bad ones.
        engine: What judges the lines as *reranker* would, not begun yet; this process if None.

    Raises:
        BackendError: No passage of a question could be judged because the backend cannot be
            reached or refuses the key.
        SettingsError: A line that is done is another one now, or gone.
        OSError: *source* or *out* fails.
    """
    progress = out if isinstance(out, Progress) else _NoProgress(out)
    scribe = _Scribe(progress, report, watch, reranker.settings.to_dict())
    lines = islice(read_rest(source, progress.done), limit)
    used = engine or LocalEngine(judging(reranker), reranker.questions_at_once)
    with InFlight[Judged, BadLine | DoneLine](used, lines) as flights:
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
    progress.finish()
    report.end = "complete"


class _NoProgress:
    """Writes lines, and knows of none that was done before."""

    def __init__(self, out: Sink | None) -> None:
        self._out = out

    @property
    def manifest(self) -> None:
        """Record nothing."""

    def done(self, line: RawLine) -> None:
        """Know of no line."""

    def keep(self, line: DoneLine) -> None:
        """Leave a line as it is."""

    def add(self, line: QuestionLine, data: bytes, facts: Facts) -> None:
        """Write an output line."""
        if self._out is not None:
            self._out.write(data)
            self._out.flush()

    def add_bad(self, line: BadLine) -> None:
        """Write nothing."""

    def finish(self) -> None:
        """Miss nothing."""


class _Scribe:
    """Writes what is done, and counts it."""

    def __init__(
        self,
        out: Progress | _NoProgress,
        report: JobReport,
        watch: Watch,
        settings: Mapping[str, Any],
    ) -> None:
        self._out, self._report, self._watch = out, report, watch
        self._settings = settings  # of the whole run, not of a worker's part

    def take(self, item: Flight[Judged] | BadLine | DoneLine) -> None:
        """Wait for one line and write it."""
        if isinstance(item, Flight):
            self._take_question(item)
        elif isinstance(item, DoneLine):
            self._keep(item)
        else:
            self._note(item)

    def take_finished(self, flights: InFlight[Judged, BadLine | DoneLine]) -> None:
        """Write what is done already and was not to blame."""
        for item in flights.finished():
            try:
                self.take(item)
            except (BackendError, CancelledError):
                continue

    def _take_question(self, item: Flight[Judged]) -> None:
        line = item.line
        try:
            judged = item.future.result()
        except InputError as error:
            self._note(_bad(line, str(error)))
        except DeepEraError as error:
            if isinstance(error, RoleError):
                self._report.add_unfinished(error.usage)
            self._count_failed(_bad(line, str(error)))
        else:
            if judged.backend_failure is not None:
                raise BackendError(f"line {line.number}: {judged.backend_failure}")
            self._write(line, judged)

    def _write(self, line: QuestionLine, judged: Judged) -> None:
        with uninterrupted():
            self._out.add(line, judged.data, judged.facts)
            self._report.count(judged.facts)
            self._report.manifest = {**judged.manifest, "settings": self._settings}
        self._watch(line)

    def _keep(self, line: DoneLine) -> None:
        with uninterrupted():
            self._out.keep(line)
            if line.facts is not None:
                self._report.count_earlier(line.facts)
                self._report.manifest = self._out.manifest
            else:
                self._report.add_bad(line)
        self._watch(line)

    def _note(self, line: BadLine) -> None:
        with uninterrupted():
            self._out.add_bad(line)
            self._report.add_bad(line)
        self._watch(line)

    def _count_failed(self, line: BadLine) -> None:
        """Count a question that may do better another time, so that a resume asks it again."""
        self._report.add_bad(line)
        self._watch(line)


def _bad(line: QuestionLine, error: str) -> BadLine:
    return BadLine(number=line.number, end=line.end, id=line.id, error=error, digest=line.digest)
