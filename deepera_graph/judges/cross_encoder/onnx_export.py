"""Models of torch as ONNX files: traced, and with weights of eight bits."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepera_graph.packages import import_extra

OPSET = 17
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_WHAT = "exporting a model"


def trace(
    module: Any,
    given: Mapping[str, Any],
    target: Path,
    *,
    of_texts: Sequence[str] = (),
    of_tokens: Sequence[str] = (),
) -> None:
    """Write a module as ONNX, for any number of texts of any length.

    Args:
        module: Of torch, in evaluation mode; it is called with the values of *given*.
        given: Inputs by name, an example, each of shape (n_texts, n_tokens).
        target: The file.
        of_texts: Names of the outputs whose first axis alone is free.
        of_tokens: Names of those, after them, whose second axis is free, too.
    """
    import_extra("onnx", extra="train", what=_WHAT)
    first, free = {0: "texts"}, {0: "texts", 1: "tokens"}
    axes = dict.fromkeys((*given, *of_tokens), free) | dict.fromkeys(of_texts, first)
    import_extra("torch", extra="train", what=_WHAT).onnx.export(
        module,
        tuple(given.values()),
        str(target),
        input_names=list(given),
        output_names=[*of_texts, *of_tokens],
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )


def quantize(whole: Path, target: Path) -> None:
    """Write an ONNX model with weights of eight bits, scaled per output channel.

    One bit stays free (`reduce_range`), as processors without VNNI would overflow.
    """
    quantization = import_extra("onnxruntime.quantization", extra="train", what=_WHAT)
    onnx = import_extra("onnx", extra="train", what=_WHAT)
    quantization.quantize_dynamic(
        str(whole),
        str(target),
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
        extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
    )


@contextmanager
def silence() -> Iterator[None]:
    """Keep to itself what other packages warn of: free shapes, new heads, steps not needed here."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
