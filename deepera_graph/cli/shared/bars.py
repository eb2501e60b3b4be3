"""Bars and lines that tell how far long work is, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.shared.console import from_thread, open_console, say
from deepera_graph.text.plain import describe_seconds

if TYPE_CHECKING:
    from rich.progress import Progress

SECONDS_A_LINE = 15


class Bar:
    """A progress bar over a total that may not be known, with a count and its rate beside it.

    Where no bar can be shown, as stderr is a file, there is a *plain* line every 15 seconds.
    """

    def __init__(
        self,
        progress: Progress,
        what: str,
        total: float | None,
        *,
        plain: bool,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._progress, self._total = progress, total
        self._task = progress.add_task(what, total=total, count="", left="")
        self._what, self._plain, self._clock = what, plain, clock
        self._started = self._told = clock()

    def reach(self, done: int) -> None:
        """Show that so many things are done."""
        self.move(to=done, count=done)

    def move(self, *, to: float | None = None, count: int, total: float | None = None) -> None:
        """Show how far things are: *to* of the total, and *count* things done."""
        self._total, now = total or self._total, self._clock()
        seconds = now - self._started
        shown = describe_progress(count, to, self._total, seconds)
        left = describe_left(to, self._total, seconds)
        self._progress.update(self._task, completed=to, total=self._total, count=shown, left=left)
        if self._plain and now - self._told >= SECONDS_A_LINE:
            self._told = now
            share = f", {100 * to / self._total:.0f} %, " if left and to and self._total else ""
            say(f"{self._what}: {shown}{share}{left}")

    def follow(self, events: Iterator[dict[str, Any]], counted: str) -> Any:
        """Show how many events of one name there were; return the result that the last one has."""
        n_done = 0
        for event in from_thread(events):
            if event["event"] == counted:
                n_done += 1
                self.reach(n_done)
            if event["event"] == "result":
                result = event["result"]
        return result


def describe_progress(count: int, done: float | None, total: float | None, seconds: float) -> str:
    """Return how many things there are of how many, and their rate: ``57 of about 500, 1.6/s``."""
    # *done* of *total* may be counted in other units, in bytes for instance; the number of things
    # is then an estimate.
    of = ""
    if done and total:
        estimate = round(count * total / done)
        of = f" of {estimate}" if done == count else f" of about {estimate}"
    rate = count / seconds if seconds > 0 else 0.0
    if not rate:
        return f"{count}{of}"
    shown = f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min"
    return f"{count}{of}, {shown}"


def describe_left(done: float | None, total: float | None, seconds: float) -> str:
    """Return how long the rest may take: ``about 3 min left``."""
    # It goes by the average since the start, as things that run at once end at nearly one moment.
    if not done or not total or done >= total:
        return ""
    return f"about {describe_seconds(seconds * (total - done) / done)} left"


@contextmanager
def progress_bar(
    what: str,
    *,
    total: float | None = None,
    hidden: bool,
    clock: Callable[[], float] = perf_counter,
) -> Iterator[Bar]:
    """Show a bar on stderr, or a line now and then where that is no terminal; none if hidden."""
    # Where the total is known, there are the share that is done and the time left, too.
    from rich.progress import (
        BarColumn,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with show_progress(columns, hidden=hidden) as progress:
        yield Bar(progress, what, total, plain=progress.disable and not hidden, clock=clock)


def show_progress(columns: Iterable[Any], *, hidden: bool) -> Progress:
    """Return what shows columns on stderr; nothing if hidden, or where that is no terminal."""
    from rich.progress import Progress

    console = open_console(stderr=True)
    disabled = hidden or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=disabled)
