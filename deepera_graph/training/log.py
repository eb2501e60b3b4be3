"""What happens in training, a JSON object a line."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

from deepera_graph.errors import SettingsError

Event = Mapping[str, Any]
Log = Callable[[Event], None]
SCORE, DONE = "score", "done"


def log_nothing(event: Event) -> None:
    """Tell nobody."""


@contextmanager
def write_log(path: Path, also: Log = log_nothing) -> Iterator[Log]:
    """Write events to a file as they come, each with the seconds since the beginning.

    Args:
        path: It is replaced at the end, by a file of that name and ``.part``, which stays if there
            is no end; every pool that is scored would be a line, and is none.
        also: Told of each event, too, without the seconds.
    """
    began = perf_counter()
    part = path.with_name(f"{path.name}.part")
    with part.open("w", encoding="utf-8", newline="\n") as file:

        def log(event: Event) -> None:
            if event.get("step") != SCORE:
                seconds = round(perf_counter() - began, 2)
                file.write(json.dumps({"seconds": seconds, **event}, ensure_ascii=False) + "\n")
                file.flush()
            also(event)

        yield log
    part.replace(path)


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log, in order."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def needed(name: str) -> ModuleType:
    """Import a package of the extra ``train``.

    Raises:
        SettingsError: It is not installed; the message says how to install it.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name.partition(".")[0]:
            raise
        raise SettingsError(
            f"training the judge needs {error.name}: pip install 'deepera-graph[train]'"
        ) from error
