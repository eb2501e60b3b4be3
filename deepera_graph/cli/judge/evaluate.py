"""The options of `deepera judge evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing
from deepera_graph.cli.judge import given

_FITS = "Judges fitted for the measurement"
EPILOG = f"""[bold]Examples:[/bold]

  deepera judge evaluate --data mine.jsonl

  deepera judge evaluate --data mine.jsonl --weights weights --tau 0.9 -o report

  deepera judge evaluate --data sets/ --cross-validate --folds 5 --keep vectors -o report

{given.ABOUT_DATA}

[bold]Measured[/bold] are HitRate@1, HitRate@3, RP and nDCG@10, and what a threshold keeps:
passages a question, their precision, questions with any golden passage kept, and questions left
empty. Intervals are of 95 % over groups of questions: those that are alike, share evidence or have
the same candidates. The report adds other thresholds and how far probabilities hold.

Weights say nothing about questions they were trained on; those are counted. With --cross-validate
judges are fitted on the other folds instead, so that every figure is of a question not trained on.

It needs more packages: pip install 'deepera-graph\\[train]'.

{CODES}"""


def evaluate(
    data: given.Data,
    *,
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="What is measured.", show_default="those of this package"
        ),
    ] = None,
    tau: Annotated[
        float, typer.Option(metavar="P", help="Probability from which a passage is kept.")
    ] = 0.8,
    cross_validate: Annotated[
        bool,
        typer.Option(
            "--cross-validate",
            help="Measure judges fitted on the other folds.",
            rich_help_panel=_FITS,
        ),
    ] = False,
    folds: Annotated[
        int | None,
        typer.Option(metavar="K", min=2, help="Folds.", show_default="5", rich_help_panel=_FITS),
    ] = None,
    first: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="Also measure over the first N candidates; not where all are of one article.",
            show_default="all passages",
        ),
    ] = None,
    joined: Annotated[
        bool,
        typer.Option(
            "--joined",
            help="Also measure questions that are asked twice with the evidence of both.",
        ),
    ] = False,
    sets: given.Sets = None,
    split: given.Split = "test",
    candidates: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=1,
            help="Documents BM25 finds for a question of a BEIR folder.",
            rich_help_panel="Data",
        ),
    ] = 100,
    seed: given.Seed = 0,
    keep: given.Keep = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Where evaluation.md, evaluation.json and figures go.",
            show_default="nowhere",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an evaluation in FOLDER.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Measure a judge on labelled passages, with intervals."""
    given.check(data)
    with needing("judge evaluate", "train"):
        from deepera_graph.cli.work.judge import evaluate as work  # noqa: PLC0415 - quick --help

    work.run(
        work.Request(
            data=tuple(data),
            weights=weights,
            tau=tau,
            cross_validate=cross_validate,
            folds=folds,
            first=first,
            joined=joined,
            sets=sets,
            split=split,
            n_candidates=candidates,
            seed=seed,
            keep=keep,
            out=out,
            overwrite=overwrite,
        ),
        as_json=as_json,
        quiet=quiet,
    )
