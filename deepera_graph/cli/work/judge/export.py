"""What `deepera judge export` does."""

from dataclasses import dataclass
from pathlib import Path

import typer

from deepera_graph.cli.work.bench.outputs import check_folder
from deepera_graph.cli.work.judge.stages import stages
from deepera_graph.cli.work.terminal import write_json
from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.model import SUMS
from deepera_graph.training.weights import (
    ENCODER,
    HEAD,
    ROUNDED,
    TOKENIZER,
    copy_judge,
    export_encoder,
    read_sums,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of an export, as they were given."""

    out: Path
    base: Path | None
    bits: int
    weights: Path | None
    overwrite: bool


def run(request: Request, *, as_json: bool, quiet: bool) -> None:
    """Write the files, and name them with their checksums.

    Raises:
        SettingsError: An option is wrong, files would be lost, a package is missing, or there are
            no such weights.
    """
    if request.base is not None and request.weights is not None:
        raise SettingsError("give --base or --weights, not both")
    if request.weights is not None and request.bits != ROUNDED:
        raise SettingsError("--bits is for base weights: a trained judge is copied as it is")
    check_folder(request.out, (ENCODER, TOKENIZER, HEAD, SUMS), overwrite=request.overwrite)
    if request.weights is not None:
        copy_judge(request.weights, request.out)
    else:
        with stages(hidden=quiet) as log:
            export_encoder(
                request.out,
                request.base,
                bits=request.bits,
                watch=lambda step: log({"step": step}),
            )
    sums = read_sums(request.out)
    if as_json:
        write_json({"out": str(request.out), "sha256": sums})
    elif not quiet:
        for name, digest in sums.items():
            size = (request.out / name).stat().st_size
            typer.echo(f"{request.out / name}: {size / 1e6:.1f} MB, SHA-256 {digest}")
