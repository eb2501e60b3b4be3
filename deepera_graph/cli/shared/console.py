"""How commands speak: lines, bars, JSON, exit codes, and files that are not lost."""

from __future__ import annotations

import codecs
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from io import TextIOWrapper
from pathlib import Path
from queue import SimpleQueue
from textwrap import fill
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize

import typer

from deepera_graph.errors import SettingsError
from deepera_graph.text.jsonl import format_json
from deepera_graph.text.plain import (
    count,
    describe_seconds,
    drop_mark,
    in_one_line,
    replace_controls,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from deepera_graph.settings.budget import Budget
    from deepera_graph.usage import Usage

OK = 0
SOME_FAILED = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130
WIDTH_WITHOUT_TERMINAL = 110
WIDTH_OF_TEXT = 100
SECONDS_A_LINE = 15
MOST_TOLD = 5  # lines about bad records, one by one

ItemT = TypeVar("ItemT")


_speaker = {"name": "deepera"}  # the program that runs


def speak_as(program: str) -> None:
    """Have messages begin with the name of a program."""
    _speaker["name"] = program


def say(message: str) -> None:
    """Write one line to stderr."""
    typer.echo(f"{_speaker['name']}: {in_one_line(message)}", err=True)


def say_some(told: Sequence[object], more: str, n: int | None = None) -> None:
    """Say the first of some things, of *n*, and how many *more* there are, with ``{}`` for that."""
    for one in told[:MOST_TOLD]:
        say(str(one))
    n_more = (len(told) if n is None else n) - MOST_TOLD
    if n_more > 0:
        say(more.format(n_more))


@contextmanager
def needing(command: str, extra: str) -> Iterator[None]:
    """Import a command's packages within the block; a missing one is a `SettingsError`."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "deepera_graph":
            raise
        from deepera_graph.packages import install_command

        needs = f"{_speaker['name']} {command} needs {error.name}"
        raise SettingsError(f"{needs}: {install_command(extra)}") from error


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


def from_thread(items: Iterator[ItemT]) -> Iterator[ItemT]:
    """Yield items that a thread of their own makes, so that Ctrl-C waits for no call in flight."""
    # An error in the thread is raised here. The thread does not keep the process from ending.
    made: SimpleQueue[tuple[ItemT] | BaseException | None] = SimpleQueue()

    def make() -> None:
        try:
            for item in items:
                made.put((item,))
        except BaseException as error:  # noqa: BLE001 -- raised again where the items are taken
            made.put(error)
        else:
            made.put(None)

    Thread(target=copy_context().run, args=(make,), name="deepera-ask", daemon=True).start()
    while (got := made.get()) is not None:
        if isinstance(got, BaseException):
            raise got
        yield got[0]


def go_on_command(*more: str, without: Iterable[str] = ()) -> str:
    """Return the command that was given as one to be typed again, with *more* options."""
    kept = [word for word in sys.argv[1:] if word not in {*without}]
    return shlex.join([_speaker["name"], *kept, *(word for word in more if word not in kept)])


def show_progress(columns: Iterable[Any], *, hidden: bool) -> Progress:
    """Return what shows columns on stderr; nothing if hidden, or where that is no terminal."""
    from rich.progress import Progress

    console = _open_console(stderr=True)
    disabled = hidden or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=disabled)


def output_console() -> Console:
    """Return the console for tables on stdout; into a file or pipe it is wide enough for them."""
    console = _open_console()
    if not console.is_terminal:
        return _open_console(width=max(WIDTH_WITHOUT_TERMINAL, console.width))
    return console


def text_console() -> Console:
    """Return the console for what is read on stdout: as wide as the terminal, at most 100."""
    # Into a file or pipe it has the 80 columns of `COLUMNS`, if that is not set otherwise.
    return _open_console(width=min(WIDTH_OF_TEXT, _open_console().width))


def _open_console(**how: Any) -> Console:
    """Return a console that writes control sequences of its own, and none of what it shows."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, *given: Any, **how: Any) -> Iterator[Segment]:
            for one in super().render(*given, **how):
                text, style, control = one
                yield one if control else Segment(replace_controls(text), style)

    return SafeConsole(highlight=False, **how)


def wrap_text(text: str, width: int = WIDTH_OF_TEXT) -> str:
    """Break the lines of a text for reading; what follows stands below what a line begins with."""
    return "".join(
        fill(
            line,
            width,
            subsequent_indent=" " * len(_BEGINNING.match(line)[0]),  # type: ignore[index]  # fits all
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
        for line in text.splitlines()
    )


_BEGINNING = re.compile(r" *(?:(?:\d+\.|-) )?")
_IN_ASCII = {"…": "...", "–": "-", "—": "-", "·": "-", "“": '"', "”": '"', "’": "'", "‘": "'"}


def speak_any_encoding() -> None:
    """Write what stdout and stderr have no letters for, as in the locale C, in plain ASCII."""
    codecs.register_error("deepera", _to_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="deepera")


def _to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replace what cannot be encoded: punctuation by its like, letters without their accents."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    plain = "".join(_IN_ASCII.get(letter) or _strip_accents(letter) for letter in text)
    return plain, error.end


def _strip_accents(letter: str) -> str:
    return normalize("NFKD", letter).encode("ascii", "ignore").decode() or "?"


def tell(output: Any, plain: Any, words: Callable[[], str], *, out: Path | None = None) -> None:
    """Write the result to stdout: as JSON with --json, else in words; --quiet does with *out*."""
    if out is not None:
        tell_done(output, plain, words)
    elif output.as_json:
        write_json(plain)
    else:
        typer.echo(replace_controls(words()))


def tell_done(output: Any, plain: Any, words: Callable[[], str]) -> None:
    """Write to stdout what was done, where the result is elsewhere: no words with --quiet."""
    if output.as_json or not getattr(output, "quiet", False):
        tell(output, plain, words)


def write_json(value: Any) -> None:
    """Write one JSON value to stdout, in UTF-8 whatever the terminal says."""
    write_bytes(json_bytes(value))


def write_text(text: str) -> None:
    """Write a text to stdout, in UTF-8 whatever the terminal says; marks are for files alone."""
    if sys.stdout.isatty():
        text = drop_mark(text)
    write_bytes(replace_controls(text).encode("utf-8", "backslashreplace"))


def write_bytes(data: bytes) -> None:
    """Write bytes to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def json_bytes(value: Any) -> bytes:
    """Return a JSON value in UTF-8, indented, with its line feed."""
    return format_json(value).encode("utf-8", "backslashreplace")


def check_data(paths: Iterable[Path]) -> None:
    """Raise `SettingsError` if a data set is nowhere: said before packages are imported."""
    for path in paths:
        if not path.exists() and not str(path).startswith("sample-"):
            raise SettingsError(f"{path} is not a data set: no such file or folder")


def check_input(*paths: Path | None) -> None:
    """Raise `SettingsError` for a file that is not there: said before packages are imported."""
    for path in paths:
        if path is not None and not path.is_file():
            raise SettingsError(f"no such file: {str(path)!r}")


def check_file(path: Path, *, overwrite: bool, resume: bool | None = None) -> None:
    """Raise `SettingsError` if a file would be lost, or cannot be written."""
    # *resume* is whether an earlier run goes on with it; None if the command cannot go on.
    folder = path.absolute().parent
    if path.is_dir():
        raise SettingsError(f"{str(path)!r} cannot be written: it is a folder")
    if not folder.is_dir():
        raise SettingsError(f"{str(path)!r} cannot be written: no such folder: {str(folder)!r}")
    if not may_write(path):
        raise SettingsError(f"{str(path)!r} cannot be written: permission denied")
    if path.exists() and not (overwrite or resume):
        go_on = "" if resume is None else ", or --resume to go on"
        raise SettingsError(f"{str(path)!r} exists; give --overwrite to replace it{go_on}")


def may_write(path: Path) -> bool:
    """Tell whether a file or folder can be made: by the nearest folder above that is there."""
    there = path.absolute()
    while not there.exists():
        there = there.parent
    return (there == path.absolute() or there.is_dir()) and os.access(there, os.W_OK)


def check_folder(folder: Path | None, names: Iterable[str], *, overwrite: bool) -> None:
    """Raise `SettingsError` if a file of the folder would be lost, or the folder is a file."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise SettingsError(f"--out must be a folder, got the file {str(folder)!r}")
    if not may_write(folder):
        raise SettingsError(f"--out must be a folder that can be written, got {str(folder)!r}")
    for name in names:
        if (folder / name).exists() and not overwrite:
            raise SettingsError(f"{str(folder / name)!r} exists; give --overwrite to replace it")


def describe_estimate(
    usage: Mapping[str, Usage], total: Usage, budget: Budget
) -> tuple[dict[str, Any], str, str]:
    """Return what a dry run tells of calls: plain data, the calls of each step, and the price."""
    cost = budget.cost(total) if budget.has_prices else None
    steps = {step: used.calls for step, used in usage.items()}
    plain = {
        "calls": total.calls,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "steps": steps,
        "cost": cost,
    }
    by_step = ", ".join(f"{step} {calls}" for step, calls in steps.items())
    return plain, by_step, "" if cost is None else f", cost about {cost:.2f}"


def tell_cost(
    output: Any, estimate: Any, settings: Any, words: Callable[[str, str, str], str], **more: int
) -> None:
    """Tell what a dry run would take; *words* are of its calls, those by step, and the price."""
    # *more* are numbers for programs.
    from deepera_graph.settings.budget import Budget

    budget = settings.budget or Budget()
    plain, steps, price = describe_estimate(estimate.usage, estimate.total_usage, budget)
    tell(output, plain | more, lambda: words(count(plain["calls"], "call"), steps, price))
