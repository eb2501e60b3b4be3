"""Results in the order of the tasks, with a few tasks read ahead."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from itertools import islice

from deepera_graph.engines.engine import DoneT, Engine, TaskT

AHEAD = 2  # so many times the tasks at once are read ahead, so that no worker waits for another


def in_order(engine: Engine[TaskT, DoneT], tasks: Iterable[TaskT]) -> Iterator[DoneT]:
    """Yield what an engine makes of each task; the first error ends all, be it of reading or doing.

    Args:
        engine: Within its block.
        tasks: Read one by one, never more than twice the engine's `at_once` ahead. If reading them
            fails, the results before are yielded first.
    """
    reading = iter(tasks)
    waiting: deque[Future[DoneT]] = deque()
    failed: list[Exception] = []
    while True:
        try:
            room = AHEAD * engine.at_once - len(waiting)
            waiting.extend(engine.start(task) for task in islice(reading, room))
        except Exception as error:  # noqa: BLE001 - raised when it is its turn
            failed.append(error)
            reading = iter(())
        if not waiting:
            break
        yield waiting.popleft().result()
    for one in failed:
        raise one
