"""How options are declared: as fields of dataclasses that typer is shown as options; old names.

A command takes such dataclasses as parameters; `flatten` shows their fields to typer as options,
and `given` tells which of them were given, under the names that the package has for them.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

import typer

from deepera_graph.cli.shared.console import say
from deepera_graph.errors import SettingsError
from deepera_graph.settings.ranges import check_setting

Command = Callable[..., None]


class Key(NamedTuple):
    """What a key of the configuration, and a variable, may do.

    Numbers, choices and flags can do no harm in a file that is not trusted; a text may run code or
    send data, unless it is *harmless*.
    """

    harmless: Collection[str] | None = ()  # texts that anybody's file may set; None is all
    yields_to: Collection[str] = ()  # options that, given nearer by, leave no place for it
    is_path: bool = False  # relative to the folder of the file
    is_address: bool = False  # may have a login in it, which is not shown
    check: Callable[[Any], object] | None = None  # raises for what no command takes


A_KEY = Key()


class Configurable:
    """Options that know which of them are configured, and were not given."""

    configured: ClassVar[frozenset[str]] = frozenset()  # of those that typer reads, set for each


def opt(
    text: str,
    *names: str,
    brief: str = "",
    metavar: str | None = None,
    default: Any = None,
    shown: str = "",
    panel: str | None = None,
    least: float | None = None,
    needed: bool = False,
    setting: str = "",
    means: Mapping[Any, Any] | None = None,
    many: Callable[[str], Any] | None = None,
    config: Key | None = None,
) -> Any:
    """Declare an option as a field of a dataclass: its help, and how it is written."""
    # *brief* is the help where only daily options are shown, *shown* a default that is no value,
    # *setting* its name in the package, *means* what values stand for there; *many* reads each of
    # several values with commas between them. With *config* it is a key of a file of
    # `deepera_graph.cli.config`, too.
    info = typer.Option(
        *names,
        metavar=metavar,
        help=text,
        show_default=shown or default is not None,
        rich_help_panel=panel,
        min=least,
    )
    about = {"option": info, "names": names, "brief": brief, "setting": setting}
    about |= {"means": means, "many": many, "config": config}
    return field(default=MISSING if needed else default, metadata=about)


def arg(metavar: str, text: str) -> Any:
    """Declare an argument of a command: how it is written in its help, and what it is."""
    return typer.Argument(metavar=metavar, help=text)


def opt_of(
    settings: Any, name: str, *, config: Key | None = A_KEY, ranged: bool = False, **how: Any
) -> Any:
    """Declare the option of a setting, which has its text, default and range."""
    # A *ranged* one shows the lowest number in its help.
    one = settings.__dataclass_fields__[name]
    about = one.metadata
    how = {
        "brief": about["brief"],
        "metavar": about["metavar"] or None,
        "shown": about["shown"],
        **how,
    }
    how = {"setting": name, "least": about["least"] if ranged else None, **how}
    means = how.get("means") or {}

    def check(value: Any) -> None:
        check_setting(one, means.get(value, value))

    config = config and config._replace(check=config.check or check)
    return opt(how.pop("text", about["text"]), config=config, **how)


def given(*chosen: Any, of: Any = None) -> dict[str, Any]:
    """Return the options of dataclasses that were given, by their names in the package."""
    # Only those *of* a dataclass that they are made of; none if they are not.
    kinds = [(options, of or type(options)) for options in chosen]
    return {
        one.metadata["setting"] or one.name: _read(one.name, value, one.metadata)
        for options, kind in kinds
        for one in fields(kind)
        if (value := getattr(options, one.name, None)) is not None
        and not (value is False and one.default is False)
    }


def _read(name: str, value: Any, about: Any) -> Any:
    if about["many"] is None:
        return value if about["means"] is None else about["means"][value]
    option = f"--{name.replace('_', '-')}"
    try:
        return tuple(about["many"](one) for one in split_names(option, value))
    except ValueError as error:
        if isinstance(error, SettingsError):
            raise
        raise SettingsError(
            f"{option} must be numbers with commas between them, got {value!r}"
        ) from error


def split_names(option: str, text: str) -> tuple[str, ...]:
    """Return the names, with commas between them, that an option was given."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise SettingsError(f"{option} must be names with commas between them, got {text!r}")
    return names


def split_files(option: str, text: str | None) -> dict[str, Path]:
    """Return the files that an option was given by name, as ``NAME=FILE`` with commas between."""
    found: dict[str, Path] = {}
    for one in () if text is None else split_names(option, text):
        name, equals, path = one.partition("=")
        if not (name and equals and path):
            raise SettingsError(f"{option} must be NAME=FILE with commas between them, got {one!r}")
        if name in found:
            raise SettingsError(f"{option} names {name!r} twice")
        found[name] = Path(path)
    return found


def flatten(
    command: Command,
    *,
    daily: Collection[str] = (),
    flags: Collection[str] = (),
    more: str = "",
    settle: Callable[[dict[str, Any], Mapping[str, str], Collection[str]], frozenset[str]]
    | None = None,
) -> Command:
    """Return a command as typer reads it: the fields of its dataclasses are its options."""
    # Its ``--help`` shows the *daily* ones, or all; ``--help-all`` says *more* below all options.
    # With *flags* the others are keys of a file and variables alone. *settle* may change the values
    # before the command runs, knowing where each comes from (but for those that must always be
    # given) and which are such keys; it returns which are configured.
    hints = get_type_hints(command, include_extras=True)
    kinds: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    infos = {one.name: _typer_option(one) for kind in kinds.values() for one in fields(kind)}
    keys = {*infos} - {*flags} if flags else set()
    plain: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in kinds:
            plain += _parameters(kinds[name], infos, daily)
        else:
            plain.append(parameter.replace(annotation=hints[name]))
    if daily:
        shown = {name: one for name, one in infos.items() if name not in keys}
        plain.append(_help_all(shown, more))
    asks = "context" in signature(command).parameters
    if not asks:
        plain.append(Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context))
    always = {one.name for one in plain if one.default is Parameter.empty}

    def run(context: typer.Context, **values: Any) -> None:
        values.pop("help_all", None)
        configured: frozenset[str] = frozenset()
        if settle is not None:
            sources = {name: str(context.get_parameter_source(name)) for name in values}
            known = {name: one for name, one in sources.items() if name not in always}
            configured = settle(values, known, keys)
        values |= {"context": context} if asks else {}
        made = {name: _make(kind, values, configured) for name, kind in kinds.items()}
        command(**values, **made)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__annotations__ = {one.name: one.annotation for one in plain}
    run.__dict__["__signature__"] = Signature(plain)
    return run


def _make(kind: Any, values: dict[str, Any], configured: frozenset[str]) -> Any:
    """Make options of their values, which are taken out."""
    made = kind(**{one.name: values.pop(one.name) for one in fields(kind)})
    object.__setattr__(made, "configured", configured)
    return made


def configurable(command: Command) -> set[str]:
    """Return the options of a command that a file or a variable may give."""
    kinds = [kind for kind in get_type_hints(command).values() if is_dataclass(kind)]
    return {one.name for kind in kinds for one in fields(kind) if one.metadata["config"]}


def _typer_option(one: Any) -> Any:
    """Return how typer is told of a field; flags are written without their opposite."""
    info = copy(one.metadata["option"])
    if not one.metadata["names"] and one.default is False:
        info.param_decls = (f"--{one.name.replace('_', '-')}",)
    return info


def _parameters(kind: Any, infos: Mapping[str, Any], daily: Collection[str]) -> list[Parameter]:
    hints, made = _hints(kind), []
    for one in fields(kind):
        info = copy(infos[one.name])
        if daily:
            info.hidden, info.rich_help_panel = one.name not in daily, None
        if daily and one.metadata["brief"]:
            info.help, info.show_default = one.metadata["brief"], False
        default = Parameter.empty if one.default is MISSING else one.default
        annotation: Any = Annotated[hints[one.name], info]
        made.append(
            Parameter(one.name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return made


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Return the types of a dataclass; many commands share one, and every start asks for all."""
    return get_type_hints(kind)


def _help_all(infos: Mapping[str, Any], more: str) -> Parameter:
    """Return the option that shows all options, in panels and with their whole help."""

    def show(context: typer.Context, wanted: bool) -> None:
        if not wanted:
            return
        context.command.params = [copy(one) for one in context.command.params]
        for one in context.command.params:
            info: Any = infos.get(one.name or "")
            if info is not None:
                shown = ("help", "show_default", "rich_help_panel")
                one.__dict__.update({name: getattr(info, name) for name in shown}, hidden=False)
        context.command.epilog = more
        typer.echo(context.get_help())
        raise typer.Exit

    info = typer.Option(_HELP_ALL, is_eager=True, callback=show, help="Show all options.")
    return Parameter(
        "help_all", Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, info]
    )


_HELP_ALL = "--help-all"
RENAMED_KEYS = {"collection": "library"}  # of the configuration
_RENAMED = dict.fromkeys(
    ("--collection", "-c", "--base", "-b", "--papers", "--collections"), "--library"
)
_WHERE = {  # old options, and what each is as a condition
    "--year-from": "year>=",
    "--year-to": "year<=",
    "--venues": "journal=",
    "--not-venues": "journal!=",
    "--hide": "id!=",
    "--as-of": "date<=",
    "--undated": "undated=",
}


def rename_options(args: Sequence[str], known: Mapping[str, Any]) -> Iterator[str]:
    """Yield arguments with old names of options changed to the new ones, saying so once."""
    rest, told = iter(args), set[str]()
    for word in rest:
        if word == "--":
            yield from (word, *rest)
            return
        if word == _HELP_ALL and word not in known:  # the help of this command shows all
            yield "--help"
            continue
        old, equals, value = word.partition("=")
        new = _RENAMED.get(old, "--where" if old in _WHERE else "")
        if new not in known or old in known:
            yield word
            continue
        condition = _WHERE.get(old, "")
        if old not in told:
            shown = f"{new} '{condition}...'" if condition else new
            say(f"{old} is now {shown}; the old name ends with 0.11")
            told.add(old)
        if not condition:
            yield f"{new}{equals}{value}"
            continue
        value = value if equals else next(rest, "")
        names = [one.strip() for one in value.split(",")]
        yield new
        yield condition + (json.dumps(names) if len(names) > 1 else value)
