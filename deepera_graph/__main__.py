"""Run the command line: ``deepera``, or ``python -m deepera_graph``."""

import ctypes
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

_INTERRUPTED = 130
_M_ARENA_MAX = -8  # of glibc's malloc.h


def main() -> None:
    """Run `deepera`."""
    start("deepera", _find)


def start(program: str, find: Callable[[], Callable[[], None]]) -> None:
    """Run what *find* imports; Ctrl-C while it is being imported ends it in one line, too."""

    def end(number: int, frame: FrameType | None) -> None:
        """End at once: an exception might be lost on its way through half an import."""
        os.write(2, f"{program}: interrupted\n".encode())
        os._exit(_INTERRUPTED)

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored, as with nohup
        signal.signal(signal.SIGINT, end)
    _share_heap()
    run = find()
    signal.signal(signal.SIGINT, before)
    run()


def _find() -> Callable[[], None]:
    from deepera_graph.cli.main import run  # noqa: PLC0415 - what may be interrupted

    return run


def _share_heap() -> None:
    """Have glibc give all threads one heap: heaps of their own hold 70 MB that nobody uses."""
    if "MALLOC_ARENA_MAX" not in os.environ:
        with suppress(AttributeError, OSError, TypeError):  # another C library
            ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


if __name__ == "__main__":
    main()
