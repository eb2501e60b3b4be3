"""Progress of a training or a measurement on stderr: what is being done, in one line."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from deepera_graph.training.weights import Log

_LONGEST = 90


@contextmanager
def stages(*, hidden: bool) -> Iterator[Log]:
    """Give what is to be told of every step; no line if hidden or stderr is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    disabled = hidden or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disabled) as progress:
        task = progress.add_task("reading")

        def log(event: Mapping[str, Any]) -> None:
            progress.update(task, description=described(event))

        yield log


def described(event: Mapping[str, Any]) -> str:
    """Return an event as one short line."""
    rest = ", ".join(f"{name} {_short(value)}" for name, value in event.items() if name != "step")
    line = f"{event.get('step', 'fit')}: {rest}" if rest else str(event.get("step", "fit"))
    return line.replace("[", "(").replace("]", ")")[:_LONGEST]


def _short(value: Any) -> str:
    if isinstance(value, list):
        return str(len(value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)
