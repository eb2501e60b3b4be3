"""What makes the official evaluator of BioASQ end with an exception while it reads a file.

Source: BioASQ/Evaluation-Measures at 8c8e689, class `data.Task1bData`; Gson 2.2.4 parses.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from deepera_graph.bioasq.questions import SNIPPET_KEYS

OFFSETS = ("offsetInBeginSection", "offsetInEndSection")
ENDS = "at which the official evaluator ends"


class Crash(NamedTuple):
    """A field at which the evaluator ends with an exception, and why."""

    field: str
    message: str


def find_crashes(fields: Any) -> Iterator[Crash]:
    """Yield what in a question ends the evaluator while it reads the file."""
    if not isinstance(fields, Mapping):
        yield Crash("question", f"expected an object, got {fields!r:.80}, {ENDS}")
        return
    for name, value in fields.items():
        yield from _crashes_of_field(name, value)


def _crashes_of_field(name: str, value: Any) -> Iterator[Crash]:
    if name in ("id", "type", "body") and not _is_text(value):
        yield Crash(name, f"must be text, got {value!r:.80}, {ENDS}")
    elif name in ("documents", "snippets", "concepts", "triples") and not isinstance(value, list):
        yield Crash(name, f"must be a list, got {value!r:.80}, {ENDS}")
    elif name == "documents":
        wrong = [one for one in value if not _is_text(one)]
        yield from (Crash(name, f"must hold texts, got {one!r:.80}, {ENDS}") for one in wrong)
    elif name == "snippets":
        for number, one in enumerate(value, start=1):
            yield from _crashes_of_snippet(f"snippet {number}", one)
    elif name == "exact_answer":
        yield from _crashes_of_exact(value)


def _is_text(value: Any) -> bool:
    """Say whether the evaluator's parser takes a value for text; numbers are some to it."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_offset(value: Any) -> bool:
    if not _is_text(value):
        return False
    try:
        return float(value) == int(float(value)) and abs(float(value)) < 2**31
    except (ValueError, OverflowError):
        return False


def _crashes_of_snippet(where: str, fields: Any) -> Iterator[Crash]:
    if not isinstance(fields, Mapping):
        yield Crash(where, f"expected an object, got {fields!r:.80}, {ENDS}")
        return
    for name, value in fields.items():
        if name not in SNIPPET_KEYS:
            known = ", ".join(SNIPPET_KEYS)
            yield Crash(where, f"the key {name!r} is none of {known}, {ENDS}")
        elif name in OFFSETS and not _is_offset(value):
            yield Crash(where, f"{name} must be a whole number, got {value!r:.80}, {ENDS}")
        elif not _is_text(value):
            yield Crash(where, f"{name} must be text, got {value!r:.80}, {ENDS}")


def _crashes_of_exact(exact: Any) -> Iterator[Crash]:
    if isinstance(exact, str):
        return
    if not isinstance(exact, list):
        wanted = 'text, or a list of lists such as [["iron"]]'
        yield Crash("exact_answer", f"must be {wanted}, got {json.dumps(exact)[:80]}, {ENDS}")
        return
    for names in exact:
        if not isinstance(names, list):
            got = json.dumps(names, ensure_ascii=False)[:80]
            message = f"must be a list of lists, [[...]], got {got} in the outer one, {ENDS}"
            yield Crash("exact_answer", message)
        elif not all(map(_is_text, names)):
            wrong = next(one for one in names if not _is_text(one))
            message = f"an inner list must hold texts alone, got {json.dumps(wrong)[:80]}, {ENDS}"
            yield Crash("exact_answer", message)
