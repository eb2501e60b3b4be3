"""The options of `deepera bench realism`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

EPILOG = f"""[bold]Examples:[/bold]

  deepera bench realism built.jsonl

  deepera bench realism natural.jsonl built.jsonl --out realism

  deepera bench realism built.jsonl --types misleading,speculative --json

A classifier that sees only length, the first words, or style (function words, punctuation, how
numbers are written) is asked to tell labelled distractors from the other passages of pools it has
not seen. An AUC of 0.5 means it cannot; above 0.65 the data set is flagged: a reranker could learn
the style in place of the evidence. Distractors of one kind are compared with a mixture, so the
golden passages of the same pools are shown as a yardstick.

It needs more packages: pip install 'deepera-graph\\[bench]'.

{CODES}"""


def realism(
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA", help="Data sets with labelled distractors."),
    ],
    *,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...", help="Only distractors of these types.", show_default="all"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where realism.md and realism.json go.",
            show_default="nowhere",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace results in FOLDER.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with code 1 if a data set is flagged.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Say whether distractors can be told from other passages by style alone."""
    with needing("bench", "bench"):
        from deepera_graph.cli.work.bench import realism as work  # noqa: PLC0415 - quick --help

    work.run(
        work.Request(data=tuple(data), types=types, out=out, overwrite=overwrite, strict=strict),
        as_json=as_json,
        quiet=quiet,
    )
