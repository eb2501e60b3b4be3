"""What `deepera bench realism` does."""

from dataclasses import dataclass
from pathlib import Path

import typer

from deepera_graph.bench.data.readers import open_dataset
from deepera_graph.bench.realism_report import Realism, markdown, plain, realism
from deepera_graph.cli.exits import SOME_FAILED
from deepera_graph.cli.work.bench.names import split_names
from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.terminal import json_bytes, progress_bar, write_json

_MARKDOWN = "realism.md"
_JSON = "realism.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a realism report, as they were given."""

    data: tuple[Path, ...]
    types: str | None
    out: Path | None
    overwrite: bool
    strict: bool


def run(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Measure every data set, write the report, and show it.

    Raises:
        SettingsError: An option is wrong, or results would be lost.
        DatasetError: A data set cannot be read, or has no distractors.
        typer.Exit: A data set is flagged, with `strict`.
    """
    check_folder(request.out, (_MARKDOWN, _JSON), overwrite=request.overwrite)
    kinds = None if request.types is None else split_names("--types", request.types)
    reports = []
    with progress_bar("measuring", total=len(request.data), hidden=quiet) as bar:
        for path in request.data:
            reports.append(realism(open_dataset(path), kinds=kinds))
            bar.move(to=len(reports), count=len(reports))
    _write(request.out, reports)
    if as_json:
        write_json([plain(one) for one in reports])
    elif not quiet:
        typer.echo(_text(reports), nl=False)
    if request.strict and any(one.flagged for one in reports):
        raise typer.Exit(SOME_FAILED)


def _write(folder: Path | None, reports: list[Realism]) -> None:
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARKDOWN).write_text(_text(reports), encoding="utf-8", newline="\n")
    (folder / _JSON).write_bytes(json_bytes([plain(one) for one in reports]))


def _text(reports: list[Realism]) -> str:
    return "\n".join(map(markdown, reports))
