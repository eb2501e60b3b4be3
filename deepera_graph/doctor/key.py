"""The API key: where it is, never what it is."""

import os
import re

from deepera_graph.doctor.finding import Finding

DEFAULT_VARIABLE = "OPENAI_API_KEY"
_NAME = "key"
_PLAIN_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,39}")


def look_at_key(variable: str, *, needed: bool) -> Finding:
    """Return whether the variable is set, and to something that can be sent."""
    if not _PLAIN_VARIABLE.fullmatch(variable) and variable not in os.environ:
        return Finding(
            _NAME,
            "fail",
            "the variable named is not set, and its name looks like a key itself",
            "give --api-key-env the name of an environment variable, not the key",
        )
    key = os.environ.get(variable, "")
    if not key.strip():
        if not needed:
            return Finding(_NAME, "ok", f"{variable} is not set; many local servers need none")
        return Finding(_NAME, "fail", f"{variable} is not set", f"export {variable}=...")
    return _shape(variable, key)


def _shape(variable: str, key: str) -> Finding:
    if not key.strip().isascii() or not key.strip().isprintable():
        return Finding(
            _NAME,
            "fail",
            f"{variable} holds characters that no HTTP header can",
            f"copy the key into {variable} again",
        )
    if key.strip()[0] in "\"'":
        return Finding(
            _NAME,
            "warn",
            f"{variable} begins with a quotation mark",
            "set it without quotation marks",
        )
    return Finding(_NAME, "ok", f"{variable} is set")
