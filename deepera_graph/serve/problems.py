"""What is wrong with a request, in words that say what to change; over HTTP and over MCP."""

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

_SHOULD = re.compile(r"^(?:Input|List|String|Dictionary) should")
_COUNTED = ("too_long", "too_short", "string_too_long", "string_too_short")
_FORMS = frozenset({"str", "int", "float", "dict[str,any]", "GivenPassage"})  # one of which fits


def name_problems(error: ValidationError, form: type[BaseModel], what: str) -> list[str]:
    """Return what is wrong, a text for each place; *what* is how a field of the form is called."""
    places: dict[str, list[dict[str, Any]]] = {}
    for one in error.errors(include_url=False):
        name = ".".join(str(part) for part in one["loc"] if part not in _FORMS)
        places.setdefault(name, []).append(dict(one))
    known = list(form.model_fields)
    return [_say(name, problems, known, what) for name, problems in places.items()]


def _say(name: str, problems: Sequence[dict[str, Any]], known: list[str], what: str) -> str:
    problem = problems[0]
    if problem["type"] == "missing":
        return f"{name} is missing"
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known) or 'none'}"
        return f"there is no {what} {name!r}; {hint}"
    said = (_SHOULD.sub("must", one["msg"].removeprefix("Value error, ")) for one in problems)
    whole = " or ".join(dict.fromkeys(said)).replace(" or must be ", " or ")
    message = f"{name} {whole}".strip()
    counted = not name or problem["type"] in _COUNTED
    return message if counted else f"{message}, got {problem['input']!r:.80}"
