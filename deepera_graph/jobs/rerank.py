"""Reranking of a file, line by line, in constant memory."""

import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import Empty, Full, Queue
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import Any, BinaryIO, Generic, Protocol, Self, TypeVar

from deepera_graph.budget import Meter, with_meter
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import BackendError, DeepEraError, InputError, RoleError, SettingsError
from deepera_graph.jobs.files import Progress, differences, identity_of, output_line
from deepera_graph.jobs.lines import (
    BadLine,
    DoneLine,
    Facts,
    QuestionLine,
    RawLine,
    facts_of,
    read_lines,
    read_rest,
)
from deepera_graph.jobs.ray import DoneT, Engine, LocalEngine, Share
from deepera_graph.jobs.report import JobReport
from deepera_graph.judges.base import counting_backend
from deepera_graph.judges.cascade import cascade_backend
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.judges.llm.roles import CHARS_PER_TOKEN, REPLY_TOKENS, CountingModel
from deepera_graph.judges.trained.backend import local_backend
from deepera_graph.passages import read_passages
from deepera_graph.reranker import EvidenceReranker, most_questions_at_once
from deepera_graph.result import RerankResult
from deepera_graph.settings import Settings
from deepera_graph.usage import Usage

Line = QuestionLine | BadLine
OtherT = TypeVar("OtherT", BadLine, BadLine | DoneLine)
_AHEAD = 4  # so many times the questions at once are read ahead, so that a slow one holds none up
_END = None


@dataclass(frozen=True, slots=True)
class Flight(Generic[DoneT]):
    """A question on its way, and the future of what is made of it."""

    line: QuestionLine
    future: "Future[DoneT]"


class InFlight(Generic[DoneT, OtherT]):
    """Has lines judged as they are read, and hands them out in order; use it in a `with` block.

    Lines that are no questions, such as bad ones, keep their place among the others.

    Reading has a thread of its own, so that an answer can be written while the next line is still
    awaited, and a signal finds the caller's thread free.

    Args:
        engine: What judges; begun and ended with this block.
        lines: Read one by one, never more than four times the engine's `at_once` ahead.
    """

    def __init__(
        self, engine: Engine[QuestionLine, DoneT], lines: Iterator[QuestionLine | OtherT]
    ) -> None:
        self._engine = engine
        self._lines: Iterator[QuestionLine | OtherT] = lines
        self._stopped = Event()
        self._block = ExitStack()

    def __enter__(self) -> Self:
        self._block.enter_context(self._engine)
        self._queue: Queue[Flight[DoneT] | OtherT | BaseException | None] = Queue(
            _AHEAD * self._engine.at_once
        )
        Thread(target=self._read, name="deepera-read", daemon=True).start()
        return self

    def __exit__(self, *error: Any) -> None:
        """Stop at once: calls that hang are left behind, not waited for."""
        self._stopped.set()
        self._block.close()

    def __iter__(self) -> Iterator[Flight[DoneT] | OtherT]:
        """Yield every line in order, the questions as flights.

        Raises:
            OSError: The file cannot be read on.
        """
        while (item := self._queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item

    def finished(self) -> Iterator[Flight[DoneT] | OtherT]:
        """Yield, in order, the lines that are done already, and read no further."""
        self._stopped.set()
        while True:
            try:
                item = self._queue.get_nowait()
            except Empty:
                return
            if isinstance(item, Flight) and not item.future.done():
                continue
            if item is not _END and not isinstance(item, BaseException):
                yield item

    def _read(self) -> None:
        try:
            for line in self._lines:
                if not self._put(self._start(line)):
                    return
        except Exception as error:  # noqa: BLE001 - handed to the caller's thread, which raises it
            self._put(error)
        self._put(_END)

    def _start(self, line: QuestionLine | OtherT) -> Flight[DoneT] | OtherT:
        if not isinstance(line, QuestionLine):
            return line
        return Flight(line, self._engine.start(line))

    def _put(self, item: Flight[DoneT] | OtherT | BaseException | None) -> bool:
        """Wait for room; give up when the block ends."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except Full:
                continue
            return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A question that is done, without its passages.

    Attributes:
        data: Its output line.
        facts: What the report counts.
        manifest: What ran.
        backend_failure: Why nothing can be judged at all, or None.
    """

    data: bytes
    facts: Facts
    manifest: dict[str, Any]
    backend_failure: str | None

    @classmethod
    def of(cls, line: QuestionLine, result: RerankResult) -> Self:
        """Keep of a result what is written and counted."""
        return cls(
            data=output_line(line, result),
            facts=facts_of(result, line.subject),
            manifest=dict(result.manifest),
            backend_failure=result.backend_failure,
        )


def judging(
    reranker: EvidenceReranker, meter: Meter | None = None
) -> Callable[[QuestionLine], Awaitable[Judged]]:
    """Return what judges a line; all lines share a meter, by default of the reranker's budget."""
    config = with_meter({}, meter or Meter(reranker.settings.budget))

    async def judge(line: QuestionLine) -> Judged:
        result = await reranker.arerank(line.question, line.passages, config=config)
        return Judged.of(line, result)

    return judge


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgingWork:
    """How a worker in another process judges lines, as plain data without secrets.

    It builds a reranker of its own with its part of the limits: calls at once, those of every
    model, and the budget.

    Attributes:
        plain: What `EvidenceReranker.to_dict` gives.
        ran: What `identity_of` gives; a worker that would judge otherwise does not begin.
        cache: File of the judgement cache, opened where the worker is; None keeps none.
    """

    plain: Mapping[str, Any]
    ran: Mapping[str, Any]
    cache: Path | None = None

    @classmethod
    def of(cls, reranker: EvidenceReranker, cache: JudgementCache | None = None) -> Self:
        """Write a reranker down.

        Raises:
            SettingsError: Its backend was made from live objects and cannot be written down.
        """
        path = None if cache is None else cache.path
        return cls(plain=reranker.to_dict(), ran=identity_of(reranker), cache=path)

    def at_once(self, share: Share) -> int:
        """How many questions a worker is at, >= 1."""
        return most_questions_at_once(self._settings(share))

    @contextmanager
    def ready(self, share: Share) -> Iterator[Callable[[QuestionLine], Awaitable[Judged]]]:
        """Build the reranker.

        Raises:
            SettingsError: It cannot be built here, or would judge otherwise than at home.
        """
        settings = self._settings(share)
        whole = Settings.of(self.plain["settings"])
        cache = None if self.cache is None else JudgementCache(self.cache)
        plain = {"backend": share.spec(self.plain["backend"]), "settings": settings.to_dict()}
        try:
            reranker = EvidenceReranker.from_dict(plain, cache=cache)
            found = differences(self.ran, identity_of(reranker))
            if found:
                raise SettingsError(f"a worker would judge otherwise: {'; '.join(found)}")
            yield judging(reranker, share.meter(whole.budget))
        finally:
            if cache is not None:
                cache.close()

    def cost(self, done: Judged) -> Usage:
        """What a question has cost."""
        return sum(map(Usage.of, done.facts["usage"].values()), Usage())

    def _settings(self, share: Share) -> Settings:
        whole = dict(self.plain["settings"])
        at_once = share.count("--max-concurrency", whole["max_concurrency"])
        budget = share.budget(Settings.of(whole).budget)
        return Settings.of({**whole, "max_concurrency": at_once, "budget": budget})


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold an interrupt back until the block is done; a second one is not held back.

    Interrupts reach only the main thread, so elsewhere there is nothing to do.
    """
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(before):
        yield
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            before(number, frame)
        held.append((number, frame))

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        before(*held[0])


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
        out: Where the lines of `deepera_graph.jobs.files` go, flushed one by one; a `Progress`
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


__all__ = ["CHARS_PER_TOKEN", "REPLY_TOKENS", "count_calls", "count_lines"]
AT_ONCE = 4


def count_calls(
    settings: Settings,
    source: BinaryIO,
    *,
    report: JobReport,
    domain: str | None = None,
    calls: Mapping[str, Any] | None = None,
    cascade: int | None = None,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Add up what a language model would be asked; `report.usage` has calls and tokens a stage.

    As every passage is kept, the summaries are the most there can be. Second tries are not
    counted; the rules of the field are. *calls* says what a call does: `mode` and `group_size` of
    `llm_backend`. With *cascade* the model reads so many passages a question at most.

    Raises:
        SettingsError: There is no such field, or no such mode.
    """
    plain = {**settings.to_dict(), "max_concurrency": AT_ONCE}
    backend = llm_backend(CountingModel(), domain=domain, **(calls or {}))
    if cascade is not None:
        backend = counting_backend(cascade_backend(local_backend(), backend, cascade))
    reranker = EvidenceReranker(backend, **plain)
    rerank_lines(reranker, source, None, report=report, limit=limit, watch=watch)


def count_lines(
    source: BinaryIO,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Check the lines, for a backend that makes no calls."""
    for line in islice(read_lines(source), limit):
        checked = _checked(line)
        if isinstance(checked, BadLine):
            report.add_bad(checked)
        else:
            report.n_written += 1
            report.n_passages += len(checked.passages)
        watch(checked)
    report.end = "complete"


def _checked(line: Line) -> Line:
    if isinstance(line, BadLine):
        return line
    try:
        read_passages(line.passages)
    except InputError as error:
        return BadLine(number=line.number, end=line.end, id=line.id, error=str(error))
    return line
