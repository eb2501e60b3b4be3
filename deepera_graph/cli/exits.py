"""How the command line ends: one line on stderr for what went wrong, and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from deepera_graph.errors import BackendError, DeepEraError, StoreError

OK = 0
SOME_FAILED = 1
USAGE = 2
UNREACHABLE = 3
INTERRUPTED = 130

CODES = (
    "[bold]Exit codes:[/bold] 0 done, 1 a line or file could not be read or written, "
    "2 usage or settings, 3 backend or store unreachable, 130 interrupted."
)


def say(message: str) -> None:
    """Write one line to stderr."""
    typer.echo(f"deepera: {' '.join(message.split())}", err=True)


class Commands(TyperGroup):
    """A group of commands whose errors are one line each, never a traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command and leave with its code."""
        given = list(sys.argv[1:] if args is None else args)
        options.update(standalone_mode=False, prog_name="deepera")
        try:
            code = super().main(given, *rest, **options)
        except typer.TyperException as error:
            if error.format_message():
                say(f"{error.format_message()}{_value(error, given)} (see {_help_of(error)})")
            code = error.exit_code
        except typer.Abort:
            code = SOME_FAILED
        sys.exit(code if isinstance(code, int) else OK)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what this package raises on purpose becomes a line and a code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except (BackendError, StoreError) as error:
            say(str(error))
            raise typer.Exit(UNREACHABLE) from error
        except DeepEraError as error:
            say(str(error))
            raise typer.Exit(USAGE) from error
        except BrokenPipeError:
            raise  # typer ends quietly when nobody reads on
        except OSError as error:
            say(f"{error.filename or 'a file'}: {error.strerror or error}")
            raise typer.Exit(SOME_FAILED) from error


def leave(code: int) -> None:
    """End the process; after an interrupt at once, without waiting for threads that hang."""
    if code != INTERRUPTED:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            continue
    os._exit(code)


def _value(error: typer.TyperException, given: Sequence[str]) -> str:
    """Name the value that an option was given, which typer leaves out."""
    for option in getattr(getattr(error, "param", None), "opts", ()):
        for place, word in enumerate(given):
            if word.startswith(f"{option}="):
                return f", got {word.removeprefix(f'{option}=')!r}"
            if word == option and place + 1 < len(given):
                return f", got {given[place + 1]!r}"
    return ""


def _help_of(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context else "deepera --help"
