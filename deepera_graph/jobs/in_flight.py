"""Questions in flight: read ahead, several at once, handed out in the order of the file."""

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any, Generic, Self, TypeVar

from deepera_graph.engines.engine import DoneT, Engine
from deepera_graph.jobs.lines import BadLine, DoneLine, QuestionLine

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
