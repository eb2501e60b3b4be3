"""A cross-encoder in an ONNX file; no torch is needed."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import SettingsError
from deepera_graph.judges.cross_encoder.pairs import Pair, PairModel, PairReading, logits_of
from deepera_graph.judges.cross_encoder.tokens import PairTokenizer, Tokens
from deepera_graph.packages import (
    call_foreign,
    describe_error,
    import_extra,
    send_nothing,
    threads_here,
)
from deepera_graph.stores.weights import hash_files

_KNOWN_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_WHOLE_NUMBERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_PROBE = ("Ice?", "It floats.")
_LONG_PROBE = (_PROBE[0], "Water is densest at 4 degrees, so lakes freeze from above. " * 4)
_SAME = 1e-3
_ONNX_BATCH_SIZE = 8  # a CPU gains nothing from more, and padding grows


class OnnxModel(PairModel):
    """A cross-encoder in an ONNX file, fp32 or int8, with a ``tokenizer.json`` beside it.

    The model takes `input_ids`, and `attention_mask` and `token_type_ids` if it wants them, whole
    numbers of shape (n_pairs, n_tokens), both free. It gives one logit a pair, or two, of which the
    second is that of a match.

    `mixes` is found by trial: int8 models that are quantized dynamically scale all that is in a
    batch by its largest number. Such a model is asked for one pair at a time, so that a judgement
    depends on its passage alone.
    """

    def __init__(
        self, path: Path, *, max_tokens: int | None = None, threads: int | None = None
    ) -> None:
        send_nothing()
        self._runtime = import_extra("onnxruntime")
        self._path, self._threads = path, threads
        vocabulary = _find_beside(path, "tokenizer.json")
        self._tokenizer = PairTokenizer(vocabulary, max_tokens=max_tokens)
        self.max_tokens = self._tokenizer.max_tokens
        folder = path.resolve().parent
        folder = folder.parent if folder.name == "onnx" else folder
        self.name = path.stem if path.stem != "model" else folder.name
        parts = sorted(one for one in path.parent.iterdir() if one.name.startswith(path.name))
        self.version = hash_files(vocabulary.parent, [*parts, vocabulary])
        self._session: Any = self._load()
        self._types = self._check_inputs()
        self._output = self._find_output()
        try:
            self.mixes = self._probe()
        except Exception as error:  # a probe may be too long, and its answer no logit
            raise SettingsError(f"{path} does not run: {describe_error(error)}") from error
        self.batch_size = 1 if self.mixes else _ONNX_BATCH_SIZE

    def read(self, pairs: Sequence[Pair]) -> list[PairReading]:
        """Return the logit of each pair."""
        batch = [self._tokenizer.encode(pair) for pair in pairs]
        return [
            PairReading(*one) for one in zip(self._run(batch), map(_tell_cut, batch), strict=True)
        ]

    def renew(self) -> None:
        """Give up the session: its threads are not there in a forked child.

        It is never freed there, not even at the child's end: it would wait for them forever.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None

    def _run(self, batch: Sequence[Tokens]) -> list[float]:
        if self._session is None:
            self._session = self._load()
        arrays = self._tokenizer.arrays(batch)
        given: dict[str, NDArray[Any]] = {
            name: arrays[name].astype(type, copy=False) for name, type in self._types.items()
        }
        return logits_of(self._session.run([self._output], given)[0], len(batch))

    def _load(self) -> Any:
        options = self._runtime.SessionOptions()
        options.intra_op_num_threads = threads_here(self._threads)
        options.log_severity_level = 3
        # Threads that spin gain a fifth on idle cores, and lose half where cores are shared.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        return call_foreign(
            f"{self._path} is no model that onnxruntime can run",
            lambda: self._runtime.InferenceSession(
                str(self._path), options, providers=["CPUExecutionProvider"]
            ),
        )

    def _check_inputs(self) -> dict[str, Any]:
        found = {one.name: one for one in self._session.get_inputs()}
        if "input_ids" not in found or not set(found) <= set(_KNOWN_INPUTS):
            raise SettingsError(
                f"{self._path} must take input_ids, and may take attention_mask and "
                f"token_type_ids; it takes {sorted(found)}"
            )
        for name, one in found.items():
            if one.type not in _WHOLE_NUMBERS:
                raise SettingsError(f"{self._path} must take whole numbers, {name} is {one.type}")
            if len(one.shape) != 2 or any(isinstance(axis, int) for axis in one.shape):
                raise SettingsError(
                    f"{self._path} must take any number of pairs of any length, but {name} has the "
                    f"shape {one.shape}; export it with dynamic axes"
                )
        return {name: _WHOLE_NUMBERS[one.type] for name, one in found.items()}

    def _find_output(self) -> str:
        found = {one.name: one.shape for one in self._session.get_outputs()}
        name = "logits" if "logits" in found else next(iter(found))
        shape = found[name]
        if len(shape) > 2 or (len(shape) == 2 and isinstance(shape[1], int) and shape[1] > 2):
            raise SettingsError(
                f"{self._path} must give one logit a pair, or two; {name} has the shape {shape}"
            )
        return str(name)

    def _probe(self) -> bool:
        """Run it once alone and once in company, and tell whether that makes a difference."""
        alone, company = (self._tokenizer.encode(pair) for pair in (_PROBE, _LONG_PROBE))
        first, second = self._run([alone])[0], self._run([alone, company])[0]
        return not abs(first - second) <= _SAME * max(1.0, abs(first))


def _find_beside(path: Path, name: str) -> Path:
    for folder in (path.parent, path.parent.parent):
        if (folder / name).is_file():
            return folder / name
    raise SettingsError(f"{path} needs a {name} beside it")


def _tell_cut(tokens: Tokens) -> str:
    """Return what of a pair was not read; empty if all was."""
    cut = {"passage": tokens.n_cut, "question": tokens.n_cut_question}
    parts = [f"the last {n} tokens of the {name}" for name, n in cut.items() if n]
    return f"{' and '.join(parts)} were not read" if parts else ""
