"""Questions in flight: read ahead, several at once, handed out in the order of the file."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import Generic, Self, TypeVar

from deepera_graph.budget import Meter, with_meter
from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionLine
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.result import RerankResult

Line = QuestionLine | BadLine
OtherT = TypeVar("OtherT", BadLine, BadLine | DoneLine)
_AHEAD = 4  # so many times the questions at once are read ahead, so that a slow one holds none up
_PATIENCE = 1.0  # seconds
_END = None


@dataclass(frozen=True, slots=True)
class Flight:
    """A question on its way, and the future of its result."""

    line: QuestionLine
    future: "Future[RerankResult]"


class InFlight(Generic[OtherT]):
    """Reranks lines as they are read, and hands them out in order; use it in a `with` block.

    Lines that are no questions, such as bad ones, keep their place among the others.

    Reading and reranking have a thread each, so that an answer can be written while the next line
    is still awaited, and a signal finds the caller's thread free.

    Args:
        reranker: What to ask; its `questions_at_once` and its limit of calls hold, and its
            budget for all lines together, from now on.
        lines: Read one by one, never more than four times `questions_at_once` ahead.
    """

    def __init__(self, reranker: EvidenceReranker, lines: Iterator[QuestionLine | OtherT]) -> None:
        at_once = reranker.questions_at_once
        self._reranker = reranker
        self._lines: Iterator[QuestionLine | OtherT] = lines
        self._config = with_meter({}, Meter(reranker.settings.budget))
        self._turns = asyncio.Semaphore(at_once)
        self._queue: Queue[Flight | OtherT | BaseException | None] = Queue(_AHEAD * at_once)
        self._loop = asyncio.new_event_loop()
        self._stopped = Event()

    def __enter__(self) -> Self:
        self._working = Thread(target=self._work, name="deepera-rerank", daemon=True)
        self._reading = Thread(target=self._read, name="deepera-read", daemon=True)
        self._working.start()
        self._reading.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop at once: calls that hang are left behind, not waited for."""
        self._stopped.set()
        asyncio.run_coroutine_threadsafe(self._wind_up(), self._loop)
        self._working.join(2 * _PATIENCE)
        if not self._working.is_alive():
            self._loop.close()

    def __iter__(self) -> Iterator[Flight | OtherT]:
        """Yield every line in order, the questions as flights.

        Raises:
            OSError: The file cannot be read on.
        """
        while (item := self._queue.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item

    def finished(self) -> Iterator[Flight | OtherT]:
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

    def _start(self, line: QuestionLine | OtherT) -> Flight | OtherT:
        if not isinstance(line, QuestionLine):
            return line
        return Flight(line, asyncio.run_coroutine_threadsafe(self._rerank(line), self._loop))

    async def _rerank(self, line: QuestionLine) -> RerankResult:
        async with self._turns:
            return await self._reranker.arerank(line.question, line.passages, config=self._config)

    def _put(self, item: Flight | OtherT | BaseException | None) -> bool:
        """Wait for room; give up when the block ends."""
        while not self._stopped.is_set():
            try:
                self._queue.put(item, timeout=0.1)
            except Full:
                continue
            return True
        return False

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _wind_up(self) -> None:
        """Cancel what is left; what it has still to say then interests nobody."""
        self._loop.set_exception_handler(lambda loop, context: None)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_PATIENCE)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()
