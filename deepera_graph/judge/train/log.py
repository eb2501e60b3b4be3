"""What happens in training, a JSON object a line."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

Event = Mapping[str, Any]
Log = Callable[[Event], None]
SCORE, DONE = "score", "done"


def silent(event: Event) -> None:
    """Tell nobody."""


@contextmanager
def log_to(path: Path, also: Log = silent) -> Iterator[Log]:
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


def events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log, in order."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
