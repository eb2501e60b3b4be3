"""What people see while a command works: progress on stderr, tables on stdout."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

WIDTH_WITHOUT_TERMINAL = 110


class Bar:
    """A progress bar over a total that may not be known, with a count beside it."""

    def __init__(self, progress: Progress, what: str, total: float | None) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=total, count=0)

    def move(self, *, to: float | None = None, count: int) -> None:
        """Show how far things are: *to* of the total, and *count* things done."""
        if to is None:
            self._progress.update(self._task, count=count)
        else:
            self._progress.update(self._task, completed=to, count=count)


@contextmanager
def progress_bar(what: str, *, total: float | None = None, hidden: bool) -> Iterator[Bar]:
    """Show a bar on stderr; none if it is hidden or stderr is no terminal."""
    columns: list[Any] = [
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    ]
    console = Console(stderr=True)
    disabled = hidden or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disabled) as progress:
        yield Bar(progress, what, total)


def output_console() -> Console:
    """Return the console for tables on stdout; into a file or pipe it is wide enough for them."""
    console = Console(highlight=False)
    if not console.is_terminal:
        return Console(highlight=False, width=max(WIDTH_WITHOUT_TERMINAL, console.width))
    return console


def write_json(value: Any) -> None:
    """Write one JSON value to stdout, in UTF-8 whatever the terminal says."""
    write_bytes(json_bytes(value))


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def json_bytes(value: Any) -> bytes:
    """Return a JSON value in UTF-8, indented, with its line feed."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return text.encode("utf-8", "backslashreplace") + b"\n"
