"""Reranking of a file, line by line, in constant memory; and what that would cost."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from queue import Empty, Full, Queue
from threading import Event, Thread, current_thread, main_thread
from types import FrameType
from typing import Any, BinaryIO, Generic, Protocol, Self, TypeVar

from deepera_graph.errors import BackendError, DeepEraError, InputError, RoleError
from deepera_graph.jobs.files import PlainOutput, ResumableOutput, to_output_line
from deepera_graph.jobs.lines import (
    BadLine,
    DoneLine,
    QuestionLine,
    QuestionStats,
    count_question,
    read_lines,
    read_rest,
    refuse_wrong_file,
)
from deepera_graph.jobs.report import JobReport
from deepera_graph.judges.base import counting_backend
from deepera_graph.passages import read_passages
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Backend
from deepera_graph.settings import Settings
from deepera_graph.settings.budget import Meter, with_meter

DoneT = TypeVar("DoneT")
OtherT = TypeVar("OtherT", BadLine, BadLine | DoneLine)
Watch = Callable[[QuestionLine | BadLine | DoneLine], None]
_AHEAD = 4  # so many times the questions at once are read ahead, so that a slow one holds none up
_PATIENCE = 1.0  # seconds
_END = None
_AT_ONCE = 4


class Engine(Protocol[DoneT]):
    """Judges questions, several at once; use it in a `with` block.

    At the end of the block it stops at once: calls that hang are left behind, not waited for.
    """

    @property
    def at_once(self) -> int:
        """How many questions are judged at the same time, >= 1; known within the block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    def start(self, line: QuestionLine) -> "Future[DoneT]":
        """Return what will be made of a question, without waiting; it raises what judging does."""


class LocalEngine(Generic[DoneT]):
    """Judges in an event loop of its own thread; a signal finds the caller's thread free."""

    def __init__(self, judge: Callable[[QuestionLine], Awaitable[DoneT]], at_once: int) -> None:
        self.at_once = at_once
        self._judge = judge
        self._slots = asyncio.Semaphore(at_once)
        self._loop = asyncio.new_event_loop()

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._run, name="deepera-engine", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop)
        self._thread.join(2 * _PATIENCE)
        if not self._thread.is_alive():
            self._loop.close()

    def start(self, line: QuestionLine) -> "Future[DoneT]":
        """Return what will be made of a question, without waiting."""
        return asyncio.run_coroutine_threadsafe(self._judge_one(line), self._loop)

    async def _judge_one(self, line: QuestionLine) -> DoneT:
        async with self._slots:
            return await self._judge(line)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _stop(self) -> None:
        """Cancel what is left, and do not report what it still raises."""
        self._loop.set_exception_handler(lambda loop, context: None)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()


@dataclass(frozen=True, slots=True)
class Flight(Generic[DoneT]):
    """A question on its way, and the future of what is made of it."""

    line: QuestionLine
    future: "Future[DoneT]"


class InFlight(Generic[DoneT, OtherT]):
    """Has questions judged as they are read; gives all lines in order; use it in a `with` block.

    Reading has a thread of its own, so that an answer can be written while the next line is still
    awaited. It is never more than four times the engine's `at_once` ahead.
    """

    def __init__(self, engine: Engine[DoneT], lines: Iterator[QuestionLine | OtherT]) -> None:
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
        """Yield every line in order, the questions as flights; raise what reading raised."""
        while (item := self._queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item

    def drain(self) -> Iterator[Flight[DoneT] | OtherT]:
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
class JudgedLine:
    """A question that is done, without its passages."""

    data: bytes  # its output line
    stats: QuestionStats
    manifest: dict[str, Any]
    backend_failure: str | None  # why nothing can be judged at all


def build_line_judge(
    reranker: EvidenceReranker, meter: Meter | None = None
) -> Callable[[QuestionLine], Awaitable[JudgedLine]]:
    """Return what judges a line; all lines share a meter, by default of the reranker's budget."""
    config = with_meter({}, meter or Meter(reranker.settings.budget))

    async def judge(line: QuestionLine) -> JudgedLine:
        result = await reranker.arerank(line.question, line.passages, config=config)
        return JudgedLine(
            data=to_output_line(line, result),
            stats=count_question(result, line.subject),
            manifest=dict(result.manifest),
            backend_failure=result.backend_failure,
        )

    return judge


def rerank_lines(
    reranker: EvidenceReranker,  # what to ask
    source: BinaryIO,  # lines as `deepera_graph.jobs.lines` reads them
    # where the output lines go, flushed one by one; None writes nothing
    out: BinaryIO | ResumableOutput | None,
    *,
    report: JobReport,  # counts what happens, also if this raises
    limit: int | None = None,  # most lines read; all if None
    watch: Watch = lambda line: None,  # called with every line that is done, also with the bad ones
    # what judges the lines as *reranker* would, not begun yet; this process if None
    engine: Engine[JudgedLine] | None = None,
) -> None:
    """Rerank every question of a file; a bad line is reported and the others run."""
    # Answers are written in the order of the questions, each as soon as those before it are. When
    # the run ends early (`KeyboardInterrupt`, or `BackendError` as nothing of a question could be
    # judged), the questions that are done by then are still written; the report says how it ended.
    # Raises `InputError` if the first 20 lines, or all there are, are bad; *out* is as it was.
    output = out if isinstance(out, ResumableOutput) else PlainOutput(out)
    recorder = _Recorder(output, report, watch, reranker.effective_settings.to_dict())
    lines = refuse_wrong_file(islice(read_rest(source, output.find_done), limit))
    used = engine or LocalEngine(build_line_judge(reranker), reranker.questions_at_once)
    with InFlight[JudgedLine, BadLine | DoneLine](used, lines) as flights:
        try:
            for item in flights:
                recorder.record(item)
        except (KeyboardInterrupt, BackendError) as error:
            report.end = "unreachable" if isinstance(error, BackendError) else "interrupted"
            recorder.record_finished(flights)
            raise
    output.finish()
    report.end = "complete"


class _Recorder:
    """Writes what is done, and counts it."""

    def __init__(
        self,
        out: PlainOutput | ResumableOutput,
        report: JobReport,
        watch: Watch,
        settings: Mapping[str, Any],
    ) -> None:
        self._out, self._report, self._watch = out, report, watch
        self._settings = settings  # of the whole run, not of a worker's part

    def record(self, item: Flight[JudgedLine] | BadLine | DoneLine) -> None:
        """Wait for one line and write it."""
        if isinstance(item, Flight):
            self._record_question(item.line, item.future)
        elif isinstance(item, DoneLine):
            self._count_earlier(item)
            self._watch(item)
        else:
            self._record_bad(item)

    def record_finished(self, flights: InFlight[JudgedLine, BadLine | DoneLine]) -> None:
        """Write what is done already and was not to blame."""
        for item in flights.drain():
            try:
                self.record(item)
            except (BackendError, CancelledError):
                continue

    def _record_question(self, line: QuestionLine, future: "Future[JudgedLine]") -> None:
        try:
            judged = future.result()
        except InputError as error:
            self._record_bad(line.fail(str(error)))
        except BackendError as error:
            raise BackendError(f"line {line.number}: {error}") from error
        except DeepEraError as error:  # not written down as done, so that a resume asks again
            if isinstance(error, RoleError):
                self._report.add_unfinished(error.usage)
            failed = line.fail(str(error))
            self._report.add_bad(failed)
            self._watch(failed)
        else:
            if judged.backend_failure is not None:
                raise BackendError(f"line {line.number}: {judged.backend_failure}")
            with hold_interrupts():
                self._out.add(line, judged.data, judged.stats)
                self._report.add(judged.stats)
                self._report.manifest = {**judged.manifest, "settings": self._settings}
            self._watch(line)

    def _record_bad(self, line: BadLine) -> None:
        with hold_interrupts():
            self._out.add_bad(line)
            self._report.add_bad(line)
        self._watch(line)

    def _count_earlier(self, line: DoneLine) -> None:
        with hold_interrupts():
            if line.stats is None:
                self._report.add_bad(line)
            else:
                self._report.add(line.stats, earlier=True)
                self._report.manifest = self._out.manifest


@contextmanager
def hold_interrupts() -> Iterator[None]:
    """Hold an interrupt back until the block is done; a second one is not held back."""
    # Interrupts reach only the main thread, so elsewhere there is nothing to do.
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


def count_calls(
    backend: Backend,
    settings: Settings,
    source: BinaryIO,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Add up what a backend would ask; `report.usage` has calls and tokens a stage."""
    # Nothing is asked. As every passage is kept, the summaries are the most there can be. Second
    # tries are not counted; the rules of the field are.
    plain = {**settings.to_dict(), "max_concurrency": _AT_ONCE}
    reranker = EvidenceReranker(counting_backend(backend), **plain)
    rerank_lines(reranker, source, None, report=report, limit=limit, watch=watch)


def count_lines(
    source: BinaryIO,
    *,
    report: JobReport,
    limit: int | None = None,
    watch: Watch = lambda line: None,
) -> None:
    """Check the lines, for a backend that makes no calls; an `InputError` if all are bad."""
    for line in refuse_wrong_file(islice(map(_check_passages, read_lines(source)), limit)):
        if isinstance(line, BadLine):
            report.add_bad(line)
        else:
            report.n_written += 1
            report.n_passages += len(line.passages)
        watch(line)
    report.end = "complete"


def _check_passages(line: QuestionLine | BadLine) -> QuestionLine | BadLine:
    if isinstance(line, QuestionLine):
        try:
            read_passages(line.passages)
        except InputError as error:
            return line.fail(str(error))
    return line
