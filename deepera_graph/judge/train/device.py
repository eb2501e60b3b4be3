"""Where the encoder of a training runs: on a GPU if onnxruntime has one at hand, else here."""

from collections.abc import Collection
from importlib import import_module

from deepera_graph.judge.encoder import ON_CPU, Encoder
from deepera_graph.judge.train.log import Log
from deepera_graph.telemetry import send_nothing

_GPU = "CUDAExecutionProvider"  # of the package onnxruntime-gpu


def pick(available: Collection[str]) -> tuple[str, ...]:
    """Return the providers to ask for, the first that works being used."""
    return (_GPU, *ON_CPU) if _GPU in available else ON_CPU


def available() -> list[str]:
    """Return the providers that the installed onnxruntime has."""
    send_nothing()
    return list(import_module("onnxruntime").get_available_providers())


def tell(encoder: Encoder, asked: Collection[str], log: Log) -> None:
    """Log where the encoder runs; and that a GPU was asked for in vain, if so."""
    runs_on = encoder.provider
    in_vain = {"failed": _GPU} if _GPU in asked and runs_on != _GPU else {}
    log({"step": "encoder", "runs on": runs_on, **in_vain})
