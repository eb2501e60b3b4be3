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
from typing import TYPE_CHECKING, Any, TypeVar
from unicodedata import normalize

import typer

from deepera_graph.errors import SettingsError
from deepera_graph.text.jsonl import format_json
from deepera_graph.text.plain import count, drop_mark, in_one_line, replace_controls

if TYPE_CHECKING:
    from rich.console import Console

    from deepera_graph.settings.budget import Budget
    from deepera_graph.usage import Usage

OK = 0
SOME_FAILED = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130
WIDTH_WITHOUT_TERMINAL = 110
WIDTH_OF_TEXT = 100
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


def output_console() -> Console:
    """Return the console for tables on stdout; into a file or pipe it is wide enough for them."""
    console = open_console()
    if not console.is_terminal:
        return open_console(width=max(WIDTH_WITHOUT_TERMINAL, console.width))
    return console


def text_console() -> Console:
    """Return the console for what is read on stdout: as wide as the terminal, at most 100."""
    # Into a file or pipe it has the 80 columns of `COLUMNS`, if that is not set otherwise.
    return open_console(width=min(WIDTH_OF_TEXT, open_console().width))


def open_console(**how: Any) -> Console:
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
