"""The options of `deepera judge train`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing
from deepera_graph.cli.judge import given

EPILOG = f"""[bold]Examples:[/bold]

  deepera judge train --data mine.jsonl -o weights

  deepera judge train --data beir/ --split train --candidates 40 --validation 0.2 -o weights

  deepera judge train --data sets/ --data mine.jsonl -o weights --keep vectors

  deepera judge evaluate --data mine.jsonl --cross-validate

{given.ABOUT_DATA}

[bold]Training[/bold] fits trees over measures of frozen vectors, so no GPU is needed: about five
minutes per thousand questions, most of it reading. (With onnxruntime-gpu installed, reading is
tried on the GPU; the log says where it ran.) In a BEIR folder the documents that BM25 finds
and nobody judged golden are the negatives. The same data, seed and machine give the same bytes.
What the data cannot teach - which passages are aims, methods or background of the same paper - is
taken from the judge whose encoder is used. `local_backend(weights=FOLDER)` judges with the result;
FOLDER also gets a log, and a record of what was trained on. Nothing there is replaced before
training is done: an interrupted one leaves train.jsonl.part, and weights that were there as they
were.

It needs more packages: pip install 'deepera-graph\\[train]'.

{CODES}"""


def train(
    data: given.Data,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the weights go.")
    ],
    encoder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Weights whose encoder is used, e.g. from `deepera judge export`.",
            show_default="those of this package",
        ),
    ] = None,
    validation: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Hold out this share of the questions and let their MAP@10 choose which variants "
            "of the pools are trained on, too.",
            show_default="choose nothing",
        ),
    ] = None,
    sets: given.Sets = None,
    split: given.Split = "train",
    candidates: Annotated[
        int,
        typer.Option(
            metavar="K",
            min=2,
            help="Documents BM25 finds for a question of a BEIR folder.",
            rich_help_panel="Data",
        ),
    ] = 40,
    seed: given.Seed = 0,
    keep: given.Keep = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace weights in FOLDER.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Train a judge on labelled passages."""
    given.check(data)
    with needing("judge train", "train"):
        from deepera_graph.cli.work.judge import train as work  # noqa: PLC0415 - quick --help

    work.run(
        work.TrainingPlan(
            data=tuple(data),
            out=out,
            encoder=encoder,
            sets=work.names("--sets", sets),
            split=split,
            n_candidates=candidates,
            validation=validation,
            seed=seed,
            keep=keep,
        ),
        overwrite=overwrite,
        as_json=as_json,
        quiet=quiet,
    )
