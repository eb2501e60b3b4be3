"""Progress of a benchmark on stderr: a bar a ranker and data set."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from deepera_graph.bench.run import Step, Watch


@contextmanager
def bars(*, hidden: bool) -> Iterator[Watch]:
    """Give what is to be told of every question; no bar if hidden or stderr is no terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    disabled = hidden or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=disabled) as progress:
        tasks: dict[tuple[str, str], TaskID] = {}

        def watch(step: Step) -> None:
            name = (step.dataset, step.ranker)
            if name not in tasks:
                what = f"{step.dataset}: {step.ranker}"
                tasks[name] = progress.add_task(what, total=step.n_questions)
            progress.update(tasks[name], completed=step.n_done)

        yield watch
