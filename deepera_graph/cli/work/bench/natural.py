"""What `deepera bench natural` does."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from deepera_graph.bench.build.natural import natural_instances
from deepera_graph.bench.data.documents import open_natural
from deepera_graph.bench.data.instance import Instance, write_rows
from deepera_graph.cli.work.backend import search_here
from deepera_graph.cli.work.bench.outputs import check_file
from deepera_graph.cli.work.place import Place
from deepera_graph.cli.work.terminal import Bar, progress_bar, write_json
from deepera_graph.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a natural data set, as they were given."""

    data: Path
    out: Path
    questions: Path | None
    n_candidates: int
    embeddings: str | None
    name: str
    overwrite: bool


def run(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Make the instances, write them, and say how many questions could not be used.

    Raises:
        SettingsError: An option is wrong, the file exists, or no question can be used.
        DatasetError: The data cannot be read.
    """
    check_file(request.out, overwrite=request.overwrite)
    search_here()
    source = open_natural(request.data, questions=request.questions)
    place = Place(
        collection=None, path=None, qdrant_url=None, mode=None, embeddings=request.embeddings
    )
    left_out: dict[str, str] = {}
    counts: Counter[str] = Counter()
    with progress_bar("questions", hidden=quiet) as bar:
        instances = natural_instances(
            source.documents(),
            source.questions(),
            n_candidates=request.n_candidates,
            embeddings=place.find_embeddings(),
            dataset=request.name or source.name,
            left_out=left_out,
        )
        n_written = write_rows(request.out, _counted(instances, counts, bar))
    if not n_written:
        request.out.unlink()
        raise SettingsError(f"no question of {request.data} can be used: {_reasons(left_out)}")
    _tell(request, n_written, counts, left_out, as_json=as_json, quiet=quiet)


def _counted(instances: Iterable[Instance], counts: Counter[str], bar: Bar) -> Iterator[Instance]:
    for number, instance in enumerate(instances, start=1):
        counts.update(one.distractor_type or "" for one in instance.contexts if one.is_distractor)
        bar.move(count=number)
        yield instance


def _tell(
    request: Request,
    n_written: int,
    counts: Counter[str],
    left_out: dict[str, str],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    if as_json:
        write_json(_plain(request, n_written, counts, left_out))
    elif not quiet:
        typer.echo(
            f"{request.out}: {n_written} questions with {counts.total()} look-alikes of "
            f"{len(counts)} types; {len(left_out)} left out{_why(left_out)}"
        )


def _plain(
    request: Request, n_written: int, counts: Counter[str], left_out: dict[str, str]
) -> dict[str, Any]:
    return {
        "out": str(request.out),
        "questions": n_written,
        "types": dict(counts.most_common()),
        "left_out": left_out,
    }


def _why(left_out: dict[str, str]) -> str:
    return f" ({_reasons(left_out)})" if left_out else ""


def _reasons(left_out: dict[str, str]) -> str:
    counts = Counter(left_out.values())
    return "; ".join(f"{n} because {reason}" for reason, n in counts.most_common()) or "none given"
