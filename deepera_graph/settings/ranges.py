"""How a setting is declared, once, and how its values are checked.

Its option, key of configuration, range, help and field of LangChain's classes follow from it.
"""

from collections.abc import Callable, Iterable
from dataclasses import Field, field
from difflib import get_close_matches
from typing import Any, get_args

from deepera_graph.errors import SettingsError


def setting(
    default: Any,  # its value where it is not given; None is never checked then
    # what it is, as the help of its option says it, and its field in LangChain's classes
    text: str,
    *,
    least: int | None = None,  # lowest whole number; 1 if the default is a whole number
    is_share: bool = False,  # whether it is a number in [0, 1]
    choices: Any = (),  # values it may have, or a `Literal` of them
    # raises `SettingsError` for a name and a value that is out of another range
    check: Callable[[str, Any], object] | None = None,
    metavar: str = "",  # what a value is called in the help
    brief: str = "",  # the text where only daily options are shown
    shown: str = "",  # the default in words, where it is more than its value
) -> Any:
    """Declare a setting as a field of a dataclass, with all that follows from it."""
    about = {"text": text, "metavar": metavar, "brief": brief, "is_share": is_share, "check": check}
    about |= {"least": 1 if least is None and type(default) is int else least}
    about |= {"choices": choices if isinstance(choices, tuple) else get_args(choices)}
    values = default if isinstance(default, tuple) else (default,)
    if default is None or isinstance(default, bool):
        values = ()
    shown = shown or ",".join(f"{one:g}" if type(one) is float else str(one) for one in values)
    return field(default=default, metadata={**about, "shown": shown})


def check_setting(one: Field[Any], value: object) -> None:
    """Raise `SettingsError` for a value out of range; a whole number not declared is at least 1."""
    if value is None and one.default is None:
        return
    about = one.metadata or setting(one.default, "").metadata
    if about["least"] is not None:
        check_at_least(one.name, value, about["least"])
    if about["is_share"]:
        check_share(one.name, value)
    if about["choices"]:
        check_choice(one.name, value, about["choices"])
    if about["check"] is not None:
        about["check"](one.name, value)


def suggest_name(name: object, known: Iterable[str]) -> str:
    """Return ``did you mean 'threshold'?``, or nothing if no known name is near."""
    near = get_close_matches(str(name).lower().replace("-", "_"), list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def suggest_value(value: object, known: Iterable[object]) -> str:
    """Return the same behind a semicolon, for the end of a message; of texts alone."""
    near = suggest_name(value, [one for one in known if isinstance(one, str)])
    return f"; {near}" if near and isinstance(value, str) else ""


def check_at_least(name: str, value: object, least: int) -> None:
    """Raise `SettingsError` unless a value is a whole number, and not below *least*."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        what = f"the text {value!r}" if isinstance(value, str) else repr(value)
        raise SettingsError(f"{name} must be a whole number >= {least}, got {what}")


def check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raise `SettingsError` unless a value is one of the choices."""
    if not any(value is choice or value == choice for choice in choices):
        known, hint = ", ".join(map(repr, choices)), suggest_value(value, choices)
        raise SettingsError(f"{name} must be one of {known}, got {value!r}{hint}")


def check_share(name: str, value: object) -> None:
    """Raise `SettingsError` unless *value* is a number in [0, 1]."""
    if isinstance(value, str):
        raise SettingsError(f"{name} must be a number in [0, 1], got the text {value!r}")
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        percent = value if isinstance(value, int | float) and value in range(2, 101) else None
        hint = f"; did you mean {percent / 100:g}?" if percent else ""
        raise SettingsError(f"{name} must be in [0, 1], got {value!r}{hint}")


def check_cosine(name: str, value: Any) -> None:
    """Raise `SettingsError` unless a value is a number in [-1, 1]."""
    if not -1 <= value <= 1:
        raise SettingsError(f"{name} must be in [-1, 1], got {value!r}")


def check_positive(name: str, value: Any) -> None:
    """Raise `SettingsError` unless a value is a number above 0."""
    if not value > 0:
        raise SettingsError(f"{name} must be > 0, got {value!r}")


def check_not_negative(name: str, value: Any) -> None:
    """Raise `SettingsError` unless a value is a number, and not below 0."""
    if not value >= 0:
        raise SettingsError(f"{name} must be >= 0, got {value!r}")
