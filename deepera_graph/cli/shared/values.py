"""What the text of an option may be, read or refused with the value."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from deepera_graph.settings.thresholds import PerIntent, Threshold

EMBEDDINGS = "--embeddings"
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_THRESHOLDS = "a number from 0 to 1, gap[:FLOOR], quantile:SHARE[:FLOOR] or KIND=T,...,default=T"


def form_of(out: Path | None, forms: Mapping[str, str]) -> str:
    """Return the form that the suffix of a file names; the first one without file or suffix."""
    suffix = "" if out is None else out.suffix.lower()
    if suffix and suffix not in forms:
        raise SettingsError(
            f"--out must end with {', '.join(forms)}, or --format name the form; got {str(out)!r}"
        )
    return forms[suffix] if suffix else next(iter(forms.values()))


def check_preset(name: str) -> None:
    """Raise `SettingsError` unless there is a preset of this name."""
    from deepera_graph.settings import preset

    preset(name)


def check_url(url: str) -> None:
    """Raise `SettingsError` unless the address of a chat model's server can be one."""
    if not re.match(r"https?://[^/]", url):
        from deepera_graph.web import hide_login

        shown = hide_login(url)
        raise SettingsError(f"--base-url must start with http:// or https://, got {shown!r}")


def check_variable(name: str) -> None:
    """Raise `SettingsError`, without the name, if the key itself may stand in its place."""
    # A name that is not written like one, as `MY_KEY` is, counts if there is such a variable.
    if not _PLAIN_VARIABLE.fullmatch(name) and not os.environ.get(name):
        raise SettingsError(
            "no API key: --api-key-env takes the name of an environment variable that is set, "
            "not the key itself"
        )


def check_call_timeout(seconds: float) -> None:
    """Raise `SettingsError` unless a call may take some time, and not for ever."""
    if not 0 < seconds < float("inf"):
        raise SettingsError(f"call_timeout must be > 0 seconds, and a number, got {seconds!r}")


def check_name(embeddings: str) -> None:
    """Raise `SettingsError` unless this may be the name of embeddings."""
    from deepera_graph.judges.embeddings import split_name

    split_name(embeddings, EMBEDDINGS)


def read_max_words(text: str | None) -> int | None:
    """Return the most words of a passage; None if texts are not to be cut."""
    from deepera_graph.retrieval.files import MAX_WORDS

    if text is None:
        return MAX_WORDS
    if text == "off":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise SettingsError(f"max_words must be a whole number >= 1 or 'off', got {text!r}")
    return int(text)


def read_threshold(text: str) -> Threshold:
    """Read ``0.8``, ``gap:0.5``, ``quantile:0.1:0.5`` or ``mechanism=0.7,default=0.8``."""
    from deepera_graph.settings.thresholds import Gap, Quantile

    name, *numbers = text.split(":")
    if "=" in text:
        return _read_per_intent(text)
    if name == "gap" and len(numbers) < 2:
        return Gap(**_read_numbers(text, ("floor",), numbers))
    if name == "quantile" and 1 <= len(numbers) < 3:
        return Quantile(**_read_numbers(text, ("share", "floor"), numbers))
    return _read_number(text, text)


def _read_per_intent(text: str) -> PerIntent:
    from deepera_graph.settings.thresholds import PerIntent

    pairs = (part.partition("=") for part in text.split(","))
    values: dict[Any, float] = {kind.strip(): _read_number(text, value) for kind, _, value in pairs}
    default = {"default": values.pop("default")} if "default" in values else {}
    return PerIntent(values=values, **default)


def _read_numbers(text: str, names: tuple[str, ...], numbers: list[str]) -> dict[str, float]:
    pairs = zip(names, numbers, strict=False)
    return {name: _read_number(text, number) for name, number in pairs}


def _read_number(text: str, number: str) -> float:
    try:
        return float(number)
    except ValueError as error:
        raise SettingsError(f"--threshold must be {_THRESHOLDS}, got {text!r}") from error
