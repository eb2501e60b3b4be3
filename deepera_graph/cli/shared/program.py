"""A program of the command line: commands found when they are called, their errors and end."""

import os
import re
import sys
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from deepera_graph import __version__
from deepera_graph.cli.shared.console import (
    INTERRUPTED,
    OK,
    SOME_FAILED,
    UNREACHABLE,
    USAGE,
    say,
    speak_any_encoding,
    speak_as,
)
from deepera_graph.errors import (
    BackendError,
    DeepEraError,
    FailedShareError,
    MissingStoreError,
    StoreError,
)

_INSTALL = re.compile(r"pip install 'deepera-graph\\\[([\w,-]+)]'")  # as pages of help have it
_CODES = (
    "[bold]Exit codes:[/bold] 0 done, 1 a line or file failed, all is degraded or a budget spent, "
    "2 usage or settings, 3 backend or store unreachable, 130 interrupted."
)


class Program:
    """A command line: a table of commands, and a file with their pages of help."""

    def __init__(
        self,
        name: str,  # what is typed
        package: str,  # holds the modules of the commands
        # their names, each with the module that it is a function of: that of its last word, or the
        # one after a colon
        commands: Mapping[str, str],
        # a section for each command, each group and the program: ``# NAME: what it does``
        pages: Path,
        # first one or two words of commands that are elsewhere now, and where
        moved: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.commands = name, commands
        self.moved = moved or {}
        self._package, self._help = package, pages
        self._declared: dict[str, tuple[Any, frozenset[str]]] = {}
        self.app = self._list_commands()

    def run(self) -> None:
        """Run the command line and end the process; `deepera_graph.__main__` comes before it."""
        _ignore_dropped_coroutines()
        speak_any_encoding()
        try:
            self.app()
        except KeyboardInterrupt:
            _leave(INTERRUPTED)
        except SystemExit as end:
            _leave(end.code if isinstance(end.code, int) else 0)

    def load_command(self, name: str, *, with_config: bool = False) -> Any:
        """Import a command and return it as typer runs it, its defaults as they are configured."""
        from deepera_graph.cli.config import defaults_of

        if name not in self._declared:
            self._declared[name] = self._declare(name)
        declared, names = self._declared[name]
        command = copy(declared)
        defaults = defaults_of(name, names) if with_config else {}
        command.context_settings = {"default_map": defaults}
        return command

    def _declare(self, name: str) -> tuple[Any, frozenset[str]]:
        """Return a command for copying, and which of its options a file or variable may give."""
        from deepera_graph.cli.config import settle
        from deepera_graph.cli.shared.declaring import configurable, flatten

        place, _, function = self.commands[name].partition(":")
        module = import_module(f"{self._package}.{place}")
        last = name.rpartition(" ")[2]
        command = getattr(module, function or last)
        daily, flags = (getattr(module, one, {}).get(last, ()) for one in ("DAILY", "FLAGS"))
        alone = typer.Typer(rich_markup_mode="rich", add_completion=False)
        more = self._page(name, whole=True)
        flat = flatten(command, daily=daily, flags=flags, more=more, settle=settle)
        about = self._pages[name][0]
        alone.command(last, cls=_Command, epilog=self._page(name), help=about)(flat)
        return typer.main.get_command(alone), frozenset(configurable(command))

    def _page(self, name: str, *, whole: bool = False) -> str:
        """Return what stands below the options of a command: its section of the pages of help."""
        # A section without text shows the first one of its group. Lines that begin with ``+`` are
        # left out unless it is to be the *whole* section. Indented blocks keep their lines; others
        # are made one line each, for a terminal of any width.
        pages, words = self._pages, name.split()
        groups = [" ".join(words[:n]) for n in range(len(words), 0, -1)]
        bodies = [
            body for group in groups for one, (_, body) in pages.items() if one.startswith(group)
        ]
        blocks = []
        for block in next(filter(None, bodies)).split("\n\n"):
            lines = [one for one in block.splitlines() if whole or not one.startswith("+")]
            text = "\n".join(one.removeprefix("+") for one in lines)
            blocks.append(text if text.startswith("  ") else " ".join(text.split()))
        page = _INSTALL.sub(_name_install, "\n\n".join(filter(None, blocks)))
        return Template(page).safe_substitute(codes=_CODES)

    @cached_property
    def _pages(self) -> dict[str, tuple[str, str]]:
        """What every command does, in a line, and what its help says below its options."""
        text = self._help.read_text(encoding="utf-8")
        sections = (one.partition("\n") for one in f"\n{text}".split("\n# ")[1:])
        heads = ((head.partition(": "), body.strip("\n")) for head, _, body in sections)
        return {name: (about, body) for (name, _, about), body in heads}

    def _list_commands(self) -> typer.Typer:
        """List the commands in their groups, a line each; `load_command` makes the one called."""
        app = typer.Typer(
            name=self.name,
            cls=type("Commands", (_Commands,), {"program": self}),
            epilog=self._page(self.name),
            rich_markup_mode="rich",
            no_args_is_help=True,
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

        def show_version(wanted: bool) -> None:
            if wanted:
                typer.echo(f"{self.name} {__version__}")
                raise typer.Exit

        @app.callback(help=self._pages[self.name][0])
        def root(
            version: Annotated[
                bool,
                typer.Option(
                    "--version", callback=show_version, is_eager=True, help="Show the version."
                ),
            ] = False,
        ) -> None:
            """Stand for the program itself."""

        groups = {"": app}
        for name in self.commands:
            group, _, last = name.rpartition(" ")
            found = self._find_group(group, groups)
            found.command(last, help=self._pages[name][0])(lambda: None)
        return app

    def _find_group(self, name: str, groups: dict[str, typer.Typer]) -> typer.Typer:
        """Return the group of a name, made with those it is in if it is new."""
        if name not in groups:
            made = groups[name] = typer.Typer(
                cls=_Group, no_args_is_help=True, rich_markup_mode="rich", epilog=self._page(name)
            )
            made.callback(help=self._pages[name][0])(lambda: None)
            outer, _, last = name.rpartition(" ")
            self._find_group(outer, groups).add_typer(made, name=last)
        return groups[name]


class _PlainFlags:
    """A command whose help shows no type beside a flag, which takes no value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, that of the help among them."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the command
        for one in params:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        return params


class _Group(_PlainFlags, TyperGroup):
    """A group that imports a command when it is called, so that every start pays for one.

    Source: https://click.palletsprojects.com/en/stable/complex/#lazily-loading-subcommands
    """

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by the first argument, and import it."""
        name, command, rest = super().resolve_command(ctx, args)
        path = f"{ctx.command_path} {name}".partition(" ")[2]
        program: Program = ctx.find_root().command.program
        if path in program.commands:
            command = program.load_command(path, with_config=not ctx.resilient_parsing)
        return name, command, rest


class _Command(_PlainFlags, TyperCommand):
    """A command that knows old names of options.

    It refuses a second --library, of which typer would drop the first.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        from deepera_graph.cli.shared.declaring import rename_options

        known = {name: one for one in self.params for name in getattr(one, "opts", ())}
        args = list(rename_options(args, known))
        order = self.make_parser(ctx).parse_args(args=list(args))[2]
        takes_one = "--library" in known and not getattr(known["--library"], "multiple", False)
        if takes_one and [one.name for one in order].count(known["--library"].name) > 1:
            ctx.fail("--library is given twice; a command works with one library")
        return super().parse_args(ctx, args)


def _name_install(found: re.Match[str]) -> str:
    """Return the command that brings an extra, as messages that ask for it have it."""
    from deepera_graph.packages import install_command

    return install_command(found[1]).replace("[", r"\[")


class _Commands(_Group):
    """All commands of a program; their errors are one line each, never a traceback."""

    program: Program

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run a command and leave with its code."""
        given = list(sys.argv[1:] if args is None else args)
        speak_as(self.program.name)
        moved = self.program.moved
        n = next((n for n in (2, 1) if " ".join(given[:n]) in moved), 0)
        old = " ".join(given[:n])
        program, _, words = moved.get(old, "").partition(" ")
        if words:
            name = f"{self.program.name} {old}"
            say(f"{name} is now {program} {words}; the old name ends with 0.11")
            given[:n] = words.split()
        elif program:
            sys.exit(_run_elsewhere(program, given))
        options.update(standalone_mode=False, prog_name=self.program.name)
        try:
            code = super().main(given, *rest, **options)
        except typer.TyperException as error:
            if error.format_message():
                context = getattr(error, "ctx", None)
                asked = context.command_path if context else self.program.name
                say(f"{_plain_message(error, given)} (see {asked} --help)")
            code = error.exit_code
        except typer.Abort:  # a question that was not answered with yes
            say("nothing was changed; with --yes it is not asked")
            code = SOME_FAILED
        sys.exit(code if isinstance(code, int) else OK)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; what this package raises on purpose becomes a line and a code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            say("interrupted")
            raise typer.Exit(INTERRUPTED) from error
        except DeepEraError as error:
            from deepera_graph.cli.config import describe_origin

            say(f"{error}{describe_origin(error)}")
            code = next(code for kind, code in _ENDS if isinstance(error, kind))
            raise typer.Exit(code) from error
        except BrokenPipeError:
            raise  # typer ends quietly when nobody reads on
        except OSError as error:
            say(f"{error.filename or 'a file'}: {error.strerror or error}")
            raise typer.Exit(SOME_FAILED) from error


def _run_elsewhere(program: str, given: Sequence[str]) -> int:
    """Run a command of another program under its old name; return the exit code."""
    from importlib.metadata import entry_points

    found = entry_points(group="console_scripts", name=program)
    hint = f"deepera {given[0]} is now {program} {given[0]}; "
    if not found:
        say(f"{hint}{program} is not installed: install deepera-graph again")
        return USAGE
    say(f"{hint}the old name ends with 0.11")
    before, sys.argv = sys.argv, [program, *given]
    try:
        next(iter(found)).load()()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK
    finally:
        sys.argv = before
    return OK


_ENDS: tuple[tuple[type[DeepEraError], int], ...] = (  # the first that fits
    (MissingStoreError, USAGE),
    (BackendError, UNREACHABLE),
    (StoreError, UNREACHABLE),
    (FailedShareError, SOME_FAILED),
    (DeepEraError, USAGE),
)


_CHOICE, _QUOTED = re.compile(r"'([^']*)' is not one of (.*)"), re.compile(r"'([^']*)'")
_EXTRA = re.compile(r"extra argument\S* \((\S+?)[\s)]")
_PLAIN = {  # of the library that reads values
    "Value error, ": "",
    "Input should be a valid integer, unable to parse string as an integer": (
        "must be a whole number"
    ),
    "Input should be a valid number, unable to parse string as a number": "must be a number",
}


def _plain_message(error: typer.TyperException, given: Sequence[str]) -> str:
    """Return what is wrong in plain words, with the value once; of like options the nearest."""
    if near := vars(error).get("possibilities"):
        vars(error)["possibilities"] = get_close_matches(vars(error)["option_name"], near, 1, 0.7)
    message = error.format_message()
    for theirs, ours in _PLAIN.items():
        message = message.replace(theirs, ours)
    message, value = message.rstrip("."), _value(error, given)
    hint = ""
    if chosen := _CHOICE.search(message):
        from deepera_graph.settings.ranges import suggest_value  # takes a quarter of a second

        hint = suggest_value(chosen[1], _QUOTED.findall(chosen[2]))
    if not value or value.removeprefix(", got ") not in message:
        message += value
    return message + (hint or _explain_command(error, given))


def _explain_command(error: typer.TyperException, given: Sequence[str]) -> str:
    """Say how `ask` writes into a file, and which command describes one library."""
    if list(given[:1]) == ["ask"] and getattr(error, "option_name", "") in (
        "-o",
        "--out",
        "--output",
    ):
        return "; it writes to stdout: --format csv > evidence.csv"
    extra = _EXTRA.search(error.format_message())
    if list(given[:2]) == ["library", "list"] and extra:
        return f"; deepera library show {extra[1]} describes one library"
    return ""


def _value(error: typer.TyperException, given: Sequence[str]) -> str:
    """Name the value that an option was given, which typer leaves out."""
    for option in getattr(getattr(error, "param", None), "opts", ()):
        for place, word in enumerate(given):
            if word.startswith(f"{option}="):
                return f", got {word.removeprefix(f'{option}=')!r}"
            if word == option and place + 1 < len(given):
                return f", got {given[place + 1]!r}"
    return _configured_value(getattr(error, "param", None))


def _configured_value(parameter: Any) -> str:
    from deepera_graph.cli.config import read_config

    name = getattr(parameter, "name", "")
    found = read_config().get(name) if name else None
    return f", got {found.value!r} from {found.origin}" if found else ""


def _leave(code: int) -> None:
    """End the process; after an interrupt at once, without waiting for threads that hang."""
    if code != INTERRUPTED:
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            continue
    os._exit(code)


def _ignore_dropped_coroutines() -> None:
    """Keep Python from telling of coroutines that LangGraph drops after Ctrl-C or a closed pipe."""
    message = "coroutine .* was never awaited"
    warnings.filterwarnings("ignore", message=message, category=RuntimeWarning)
    before = sys.unraisablehook

    def tell(unraisable: Any) -> None:
        if not isinstance(unraisable.object, Coroutine):
            before(unraisable)

    sys.unraisablehook = tell
