"""`deepera config`: defaults of options, from a file and from the environment.

The nearest `deepera.toml`, or `pyproject.toml` with a table ``[tool.deepera]``, upward from the
working directory; above it variables such as ``DEEPERA_MODEL``; above these the options given.
What can do harm counts only in a file that was trusted: `deepera_graph.cli.shared.trust`.
"""

import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

import typer

from deepera_graph.cli.judging.multihop import HopOptions
from deepera_graph.cli.shared import options, places
from deepera_graph.cli.shared import trust as trusting
from deepera_graph.cli.shared.console import OK, USAGE, output_console, say, tell_done, write_json
from deepera_graph.cli.shared.declaring import RENAMED_KEYS, Key, opt
from deepera_graph.errors import DeepEraError, MissingStoreError, SettingsError
from deepera_graph.settings import PRESETS
from deepera_graph.settings.ranges import check_at_least, check_choice

FILE, PROJECT, TABLE = "deepera.toml", "pyproject.toml", "[tool.deepera]"
PREFIX = "DEEPERA_"
PLACE = "DEEPERA_CONFIG"  # a file to be read instead, or "off"
OFF = "off"
NEVER = ("demo", "bench", "judge")  # what is shown and measured is the same for everybody
_KINDS = (
    options.JudgeOptions, options.CacheOptions, options.BudgetOptions, options.FilterOptions,
    places.StoreOptions, places.SearchOptions, places.KeepOptions, places.ReadOptions, HopOptions,
    options.EngineOptions, places.ManneredOptions,
)  # fmt: skip
OPTIONS = {one.name: one for kind in _KINDS for one in fields(kind) if one.metadata["config"]}
_TYPES: dict[str, Any] = {
    name: hint for kind in _KINDS for name, hint in get_type_hints(kind).items()
}
_NUMBERS = {int: "a whole number", float: "a number"}
_FLAGS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}
_PROVIDERS = frozenset(
    {"anthropic", "azure_openai", "bedrock", "bedrock_converse", "cohere", "deepseek", "fireworks"}
    | {"google_genai", "google_vertexai", "groq", "mistralai", "nvidia", "openai", "openrouter"}
    | {"perplexity", "together", "xai"}
)
# Options of `deepera serve` that are no keys: a file in a folder of others opens no port.
_OF_SERVE = frozenset(
    {"host", "port", "log_questions", "grace", "max_body", "max_documents"}
    | {"max_characters", "at_once", "queue"}
)
_taken = set[str]()  # options of the command that runs whose values are configured, for its errors
_NOT_SHOWN = "(not shown)"
_NOT_TRUSTED = (
    "may run code or send data, and the file is not trusted as it is: look at it, then run "
    "`deepera config trust`"
)
_OF_VALUES = (SettingsError, MissingStoreError)
_ENVIRONMENT, _GIVEN = 1, 2  # levels; a file is 0


class Value(NamedTuple):
    """What an option is configured to be, and where."""

    value: str | bool
    origin: str  # as told: a file, or a variable
    level: int
    is_allowed: bool = True  # False for what can do harm in a file that was not trusted


@dataclass(frozen=True)
class ShowConfigOptions:
    """What is shown."""

    as_json: bool = opt("Write JSON, for programs.", "--json", default=False)


@dataclass(frozen=True)
class TrustOptions:
    """What becomes of the trust."""

    remove: bool = opt("Trust the file no more.", default=False)


def show(*, output: ShowConfigOptions) -> None:
    """Show what every option is configured to be, and where; and what cannot be so."""
    from deepera_graph.web import hide_login

    file, found = find_file(), read_config()
    problems = {name: said for name, one in found.items() if (said := find_problem(name, one))}
    if "api_key_env" in problems:
        found["api_key_env"] = found["api_key_env"]._replace(value=_NOT_SHOWN)  # may be a key
    for name, one in found.items():
        if _key(name).is_address:
            found[name] = one._replace(value=hide_login(str(one.value)))
    held_back = [name for name, one in found.items() if not one.is_allowed]
    problems |= {name: f"{name} {_NOT_TRUSTED}" for name in held_back if name not in problems}
    is_trusted = _is_trusted(file) if file else None
    rows = [(name, found.get(name), one) for name, one in OPTIONS.items()]
    if output.as_json:
        plain: dict[str, dict[str, Any]] = {
            name: {"value": value and value.value, "from": value.origin if value else "default"}
            for name, value, _ in rows
        }
        for name, problem in problems.items():
            plain[name]["problem"] = problem
        write_json({"file": file and str(file), "trusted": is_trusted, "values": plain})
    else:
        _show_table(rows, file, problems, is_trusted=is_trusted)
    for name, problem in problems.items():
        say(f"{found[name].origin}: {problem}")
    raise typer.Exit(USAGE if problems else OK)


def _show_table(
    rows: Sequence[tuple[str, Value | None, Any]],
    file: Path | None,
    problems: Collection[str],
    *,
    is_trusted: bool | None,
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for column in ("option", "value", "from"):
        table.add_column(column, overflow="fold")
    for name, value, one in rows:
        default = one.metadata["option"].show_default
        shown = next((text for text in (default, one.default) if isinstance(text, str)), "")
        table.add_row(
            name,
            Text(
                str(value.value) if value else shown,
                style="bold red" if name in problems else "" if value else "dim",
            ),
            Text(value.origin if value else "default", style="" if value else "dim"),
        )
    console = output_console()
    console.print(table)
    told = f"File: {file}, which is {'' if is_trusted else 'not '}trusted"
    console.print(
        told if file else f"No {FILE} and no {TABLE} of a {PROJECT} here or above.",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip


def trust(*, what: TrustOptions, output: ShowConfigOptions) -> None:
    """Trust the file found from here, as it is now, with all that it sets; or no more."""
    file = find_file()
    if file is None:
        raise SettingsError(f"no {FILE}, and no {TABLE} in a {PROJECT}, in this folder or above")
    if what.remove:
        was = trusting.forget(file)
        said = f"{file} is trusted no more" if was else f"{file} was not trusted"
        tell_done(output, {"file": str(file), "trusted": False}, lambda: said)
        return
    table = _table_of(file)
    found = _read_values(file, table)
    trusting.remember(file, table)
    sets = ", ".join(
        f"{name} = {_NOT_SHOWN if find_problem(name, one) else repr(table[name])}"
        for name, one in found.items()
        if not _is_harmless(name, one)
    )
    tell_done(
        output,
        {"file": str(file), "trusted": True},
        lambda: (
            f"{file} is trusted until a value in it changes; it sets "
            f"{sets or 'nothing that needs it'}"
        ),
    )


def read_config() -> dict[str, Value]:
    """Return what is configured, by the names of the options."""
    # Raises `SettingsError` if a key is unknown, or a file cannot be read.
    file = find_file()
    return {**(_read_file(file) if file else {}), **_read_environment()}


def find_problem(name: str, one: Value) -> str:
    """Return what is wrong with a value that is configured; nothing if it can be used."""
    check, least = _key(name).check, OPTIONS[name].metadata["option"].min
    try:
        value = _convert(name, one.value)
        if check is not None:
            check(value)
        elif isinstance(value, int) and least is not None:
            check_at_least(name, value, least)
    except SettingsError as error:
        return str(error)
    return ""


def _convert(name: str, value: str | bool) -> Any:
    """Return a value as the option has it, from the text that is configured."""
    kind = next(one for one in get_args(_TYPES[name]) or (_TYPES[name],) if one is not NoneType)
    choices = get_args(_TYPES[name]) if get_origin(_TYPES[name]) is Literal else get_args(kind)
    if choices:
        check_choice(name, value, choices)
        return value
    if kind is bool:
        if str(value).lower() not in _FLAGS:
            raise SettingsError(f"{name} must be true or false, got {value!r}")
        return _FLAGS[str(value).lower()]
    if kind not in _NUMBERS:
        return value
    try:
        return kind(value)
    except ValueError as error:
        raise SettingsError(f"{name} must be {_NUMBERS[kind]}, got {value!r}") from error


def describe_origin(error: DeepEraError) -> str:
    """Return where the value is configured that an error is about; nothing if it was given."""
    found = read_config() if _taken and isinstance(error, _OF_VALUES) else {}
    if isinstance(error, MissingStoreError):  # a library that has another name now, or a folder
        missing = (
            one for one in sorted(found.keys() & _taken) if repr(found[one].value) in str(error)
        )
        name = next(missing, "")
        return f" ({name} is set by {found[name].origin})" if name else ""
    origins = [found[one].origin for one in _taken if find_problem(one, found[one]) == str(error)]
    return f" (from {origins[0]})" if origins else ""


def find_file() -> Path | None:
    """Return the nearest file with a configuration, upward from the working directory."""
    named = os.environ.get(PLACE)
    if named:
        return None if named == OFF else Path(named)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FILE).is_file():
            return folder / FILE
        if (folder / PROJECT).is_file() and _table_of(folder / PROJECT):
            return folder / PROJECT
    return None


def _table_of(file: Path) -> dict[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        if file.name == PROJECT and "tool.deepera" not in text:
            return {}  # what is not ours may be broken
        table = tomllib.loads(text)
        return table.get("tool", {}).get("deepera", {}) if file.name == PROJECT else table
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error


def _read_file(file: Path) -> dict[str, Value]:
    table = _table_of(file)
    found = _read_values(file, table)
    if all(_is_harmless(name, one) for name, one in found.items()) or _is_trusted(file, table):
        return found
    return {name: one._replace(is_allowed=_is_harmless(name, one)) for name, one in found.items()}


def _read_values(file: Path, table: Mapping[str, Any]) -> dict[str, Value]:
    found = {}
    for given, value in table.items():
        key = given if given in OPTIONS else RENAMED_KEYS.get(given, given)
        if key not in OPTIONS:
            raise SettingsError(f"{file}: {_describe_unknown(key)}")
        if not isinstance(value, str | int | float):
            raise SettingsError(f"{file}: {key} must be a text, a number or true/false")
        found[key] = Value(_as_given(key, value, file.parent), str(file), 0)
    return found


def _is_trusted(file: Path, table: Mapping[str, Any] | None = None) -> bool:
    """Tell whether a file may set what can do harm: the user named it, or trusted it as it is."""
    named = bool(os.environ.get(PLACE))
    return named or trusting.is_trusted(file, _table_of(file) if table is None else table)


def _is_harmless(name: str, one: Value) -> bool:
    kinds = get_args(_TYPES[name]) or (_TYPES[name],)
    if not (str in kinds or Path in kinds):
        return True
    if name == "library":  # a plain name, and no file or address
        return Path(str(one.value)).name == one.value
    known = _key(name).harmless
    return known is None or one.value in known


def _key(name: str) -> Key:
    return cast("Key", OPTIONS[name].metadata["config"])


def _as_given(key: str, value: str | float, folder: Path) -> str | bool:
    """Return a value as an option is given it; paths of a file are relative to its folder."""
    if isinstance(value, bool):
        return value if OPTIONS[key].default is False else "yes" if value else "no"
    text = str(value)
    is_path = _key(key).is_path or (key == "domain" and text.endswith(".toml"))
    if is_path and text not in {OFF, ""}:
        return str(folder / Path(text).expanduser())
    return text


def _describe_unknown(key: str) -> str:
    if "key" in key.lower() and key != "api_key_env":
        return f"{key!r} is no key of it; a secret stays in a variable, which api_key_env names"
    name = key.replace("-", "_").lower()
    if name in _OF_SERVE:
        given = f"--{name.replace('_', '-')}"
        return f"{key!r} is no key, but an option of deepera serve: give {given} with the command"
    close = get_close_matches(name, OPTIONS, n=2, cutoff=0.7)
    near = " or ".join(map(repr, close))
    every = f"{PLACE}={OFF} deepera config show lists all {len(OPTIONS)} keys"
    return f"unknown key {key!r}; {f'did you mean {near}?' if close else every}"


def _read_environment() -> dict[str, Value]:
    """Return what variables say; one that is nearly ours is refused, others are not ours."""
    known = {f"{PREFIX}{old.upper()}": name for old, name in RENAMED_KEYS.items()}
    known |= {f"{PREFIX}{name.upper()}": name for name in OPTIONS}
    found = {}
    for variable, value in os.environ.items():
        if variable in known and value:
            found[known[variable]] = Value(value, variable, _ENVIRONMENT)
        elif variable.startswith(PREFIX) and variable not in {*known, PLACE}:
            close = get_close_matches(variable, known, n=1, cutoff=0.85)
            if close:
                raise SettingsError(f"unknown variable {variable}; did you mean {close[0]}?")
    return found


def defaults_of(command: str, names: Collection[str]) -> dict[str, str | bool]:
    """Return what is configured for the options of a command: it stands in for their defaults."""
    _taken.clear()
    if command.split(maxsplit=1)[0] in NEVER or not names:
        return {}
    return {name: one.value for name, one in read_config().items() if name in names}


def settle(
    values: dict[str, Any], sources: Mapping[str, str], keys: Collection[str] = ()
) -> frozenset[str]:
    """Take back what is configured but does not go with what was given, or configured nearer by."""
    # Changes the *values* of a command, whose *sources* are in typer's words; *keys* are those that
    # only a file or a variable may give. Returns the options whose values are configured.
    given = {name for name, source in sources.items() if source.endswith("COMMANDLINE")}
    if refused := sorted(given & {*keys}):
        key = refused[0]
        raise SettingsError(
            f"--{key.replace('_', '-')} is not an option of this command: set {key} in {FILE}, or "
            f"{PREFIX}{key.upper()}"
        )
    _taken.update(name for name, source in sources.items() if source.endswith("DEFAULT_MAP"))
    if not _taken:
        return frozenset()
    found = {name: one for name, one in read_config().items() if name in _taken}
    level = {name: one.level for name, one in found.items()} | dict.fromkeys(given, _GIVEN)
    as_given = dict(values)
    for name, one in found.items():
        others = {*_key(name).yields_to, "model", "preset"} - {name}
        nearer = {other for other in others if level.get(other, -1) > one.level}
        if any(_overrules(name, other, as_given[other]) for other in nearer):
            values[name] = OPTIONS[name].default
            _taken.remove(name)
    _refuse_untrusted({name: found[name] for name in _taken})
    return frozenset(_taken)


def _refuse_untrusted(found: Mapping[str, Value]) -> None:
    """Raise `SettingsError` if a file that was not trusted sets what can do harm."""
    names = [name for name, one in found.items() if not one.is_allowed]
    if names:
        raise SettingsError(
            f"{found[names[0]].origin} sets {', '.join(sorted(names))}, which {_NOT_TRUSTED}; "
            f"{PLACE}={OFF} reads no file"
        )


def _overrules(name: str, other: str, value: Any) -> bool:
    """Tell whether the *value* of an option leaves no place for another one."""
    if other == "preset":
        preset = PRESETS.get(value)
        sets = {**preset.settings, **preset.backend, "cascade": preset.cascade} if preset else {}
        return sets.get(name) is not None
    if other == "model" and name != "backend":  # of a provider: it is asked there
        return name in {"base_url", "api_key_env"} and value.split(":")[0] in _PROVIDERS
    return bool(other != "backend" or value != "llm")
