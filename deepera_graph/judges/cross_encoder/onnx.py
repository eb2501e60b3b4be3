"""A cross-encoder in ONNX: pairs as tokens, the model that reads them, and its export."""

import ctypes
import json
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.cross_encoder.models import Pair, PairModel, PairReading, logits_of
from deepera_graph.packages import (
    call_foreign,
    describe_error,
    import_extra,
    send_nothing,
    threads_here,
)
from deepera_graph.stores.embeddings import hash_files

_USUAL_MAX_TOKENS = 512
_NO_LIMIT = 1_000_000  # tokenizers that have no limit name one above it
_PADS = ("[PAD]", "<pad>", "<|padding|>")


class PairTokens(NamedTuple):
    """One pair: ids, and 0 for the question, 1 for the passage, where the tokenizer tells."""

    ids: Sequence[int]
    types: Sequence[int]
    n_cut: int = 0  # tokens of the passage that were left out
    n_cut_question: int = 0


class PairTokenizer:
    """Cuts pairs into tokens; of one that is too long, the end of its longer part is left out.

    Where that is as long as the other one both are cut, as sentence-transformers and the tokenizers
    of Hugging Face do it by default, so that a model reads here what it was trained on.
    Truncation and padding that a ``tokenizer.json`` sets are put aside; what stands in
    ``config.json`` and ``tokenizer_config.json`` beside it counts too.
    """

    def __init__(self, path: Path, *, max_tokens: int | None = None) -> None:
        package = import_extra("tokenizers")
        self._tokenizer = call_foreign(
            f"{path} is no tokenizer", lambda: package.Tokenizer.from_file(str(path))
        )
        own, model = (_read_json(path, one) for one in ("tokenizer_config.json", "config.json"))
        self._pad = self._find_pad(model)
        limits = (own.get("model_max_length"), model.get("max_position_embeddings"))
        self.max_tokens = self._find_max_tokens(max_tokens, limits)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def encode(self, pair: Pair) -> PairTokens:
        """Cut one pair into tokens; an `InputError` if there is no room for both parts."""
        whole = self._tokenizer.encode(*pair)
        n_over = len(whole.ids) - self.max_tokens
        if n_over <= 0:
            return PairTokens(whole.ids, whole.type_ids)
        question, passage = (
            [place for place, one in enumerate(whole.sequence_ids) if one == part]
            for part in (0, 1)
        )
        n_asked, n_read = _share(len(question) + len(passage) - n_over, question, passage)
        if n_asked < 1:
            raise InputError(
                f"max_tokens leaves no room for a question and a passage, got {self.max_tokens}"
            )
        left_out = {*question[n_asked:], *passage[n_read:]}
        kept = [place for place in range(len(whole.ids)) if place not in left_out]
        ids, types = ([row[place] for place in kept] for row in (whole.ids, whole.type_ids))
        return PairTokens(ids, types, len(passage) - n_read, len(question) - n_asked)

    def arrays(self, batch: Sequence[PairTokens]) -> dict[str, NDArray[np.int64]]:
        """Return the inputs of a model by name, padded at the end, shape (n_pairs, n_longest)."""
        shape = len(batch), max(len(one.ids) for one in batch)
        ids = np.full(shape, self._pad, dtype=np.int64)
        types, mask = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        for row, one in enumerate(batch):
            n = len(one.ids)
            ids[row, :n], types[row, :n], mask[row, :n] = one.ids, one.types, 1
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}

    def _find_pad(self, config: Mapping[str, Any]) -> int:
        padding = self._tokenizer.padding
        if padding is not None:
            return int(padding["pad_id"])
        found = (self._tokenizer.token_to_id(one) for one in _PADS)
        known = next((id for id in found if id is not None), None)
        return int(config.get("pad_token_id") or 0) if known is None else int(known)

    def _find_max_tokens(self, asked: int | None, given: Iterable[object]) -> int:
        limits = [int(one) for one in given if isinstance(one, int | float) and 0 < one < _NO_LIMIT]
        if asked is None:
            truncation = self._tokenizer.truncation
            set_by_file = [int(truncation["max_length"])] if truncation else []
            return min(_USUAL_MAX_TOKENS, *limits, *set_by_file, _NO_LIMIT)
        most = min(limits, default=_NO_LIMIT)
        if asked > most:
            raise SettingsError(f"max_tokens must be at most {most} for this model, got {asked}")
        return asked


def _share(n_room: int, question: Sequence[int], passage: Sequence[int]) -> tuple[int, int]:
    """Return how many tokens of question and passage are kept where both together are too many."""
    shorter = min(len(question), len(passage))
    few = shorter if 2 * shorter <= n_room else n_room // 2
    return (few, n_room - few) if len(question) <= len(passage) else (n_room - few, few)


def _read_json(beside: Path, name: str) -> Mapping[str, Any]:
    path = beside.with_name(name)
    if not path.is_file():
        return {}
    plain = call_foreign(f"{path} is not JSON", lambda: json.loads(path.read_text("utf-8")))
    return plain if isinstance(plain, dict) else {}


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
        """Give up the session: its threads are not there in a forked child."""
        # It is never freed there, not even at the child's end: it would wait for them forever.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._session))
        self._session = None

    def _run(self, batch: Sequence[PairTokens]) -> list[float]:
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
    raise SettingsError(f"{path} needs a {name} in the same folder")


def _tell_cut(tokens: PairTokens) -> str:
    """Return what of a pair was not read; empty if all was."""
    cut = {"passage": tokens.n_cut, "question": tokens.n_cut_question}
    parts = [f"the last {n} tokens of the {name}" for name, n in cut.items() if n]
    return f"{' and '.join(parts)} were not read" if parts else ""


OPSET = 17
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_WHAT = "exporting a model"


def trace(
    module: Any,  # of torch, in evaluation mode; it is called with the values of *given*
    given: Mapping[str, Any],  # inputs by name, an example, each of shape (n_texts, n_tokens)
    target: Path,  # the file
    *,
    of_texts: Sequence[str] = (),  # names of the outputs whose first axis alone is free
    of_tokens: Sequence[str] = (),  # names of those, after them, whose second axis is free, too
) -> None:
    """Write a module as ONNX, for any number of texts of any length."""
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
    """Write an ONNX model with weights of eight bits, scaled per output channel."""
    # One bit stays free (`reduce_range`), as processors without VNNI would overflow.
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
