"""Old names of options, which work until 0.11."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deepera_graph.cli.shared.console import say

KEYS = {"collection": "library"}  # of the configuration
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
        old, equals, value = word.partition("=")
        new = _RENAMED.get(old, "--where" if old in _WHERE else "")
        if new not in known or old in known:
            yield word
            continue
        condition = _WHERE.get(old, "")
        if old not in told:
            shown = f"{new} '{condition}...'" if condition else new
            say(f"{old} is {shown} since 0.10; the old name ends with 0.11")
            told.add(old)
        if not condition:
            yield f"{new}{equals}{value}"
            continue
        value = value if equals else next(rest, "")
        names = [one.strip() for one in value.split(",")]
        yield new
        yield condition + (json.dumps(names) if len(names) > 1 else value)
