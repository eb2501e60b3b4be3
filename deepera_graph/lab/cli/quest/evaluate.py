"""`deepera-lab bench quest evaluate`: compare searches for papers on a benchmark made so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli.shared import options
from deepera_graph.errors import SettingsError
from deepera_graph.lab.cli import running
from deepera_graph.lab.cli.papers import PaperOptions, papers

QUERIES = "queries.jsonl"


def evaluate(
    build: Annotated[
        Path, typer.Argument(metavar="BUILD", help="Folder of `deepera-lab bench quest build`.")
    ],
    *,
    chosen: PaperOptions,
    chat: options.ChatOptions,
    results: running.ResultOptions,
    output: options.OutputOptions,
) -> None:
    """Compare searches on the questions of a build, as `deepera-lab bench papers` does."""
    queries = build / QUERIES
    if not queries.is_file():
        raise SettingsError(
            f"{str(build)!r} has no {QUERIES}, which `deepera-lab bench quest build` writes when "
            "all its questions are done"
        )
    papers(queries, chosen=chosen, chat=chat, results=results, output=output)
