"""Run the command line: ``deepera``, or ``python -m deepera_graph``."""

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it in one line, too."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # else it is ignored, as with nohup
        signal.signal(signal.SIGINT, _end)
    from deepera_graph.cli.main import run  # noqa: PLC0415 - what may be interrupted

    signal.signal(signal.SIGINT, before)
    run()


def _end(number: int, frame: FrameType | None) -> None:
    """End at once: an exception might be lost on its way through half an import."""
    os.write(2, b"deepera: interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
