"""The encoder: a text becomes vectors of its tokens, by onnxruntime; no torch is needed."""

import os
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from deepera_graph.telemetry import send_nothing

Floats = NDArray[np.float32]
Offsets = NDArray[np.int64]
Ids = NDArray[np.int64]
MOST_TOKENS = 256
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class Encoded:
    """A text as its tokens' vectors.

    Attributes:
        tokens: What the encoder gives, shape (n_tokens, n_dimensions); the first and the last are
            the marks of beginning and end.
        offsets: Characters that a token stands for, shape (n_tokens, 2); empty for the marks.
    """

    tokens: Floats
    offsets: Offsets

    @cached_property
    def units(self) -> Floats:
        """Token vectors of length 1."""
        return unit(self.tokens)

    @cached_property
    def mean(self) -> Floats:
        """Vector of the whole text, of length 1, shape (n_dimensions,)."""
        return unit(self.tokens.mean(axis=0))

    def part(self, start: int, end: int) -> NDArray[np.bool_]:
        """Tell which tokens lie within characters *start* to *end*, shape (n_tokens,)."""
        first, last = self.offsets[:, 0], self.offsets[:, 1]
        return (first >= start) & (last <= end) & (last > first)


def unit(vectors: Floats) -> Floats:
    """Return vectors scaled to length 1, along the last axis."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, 1e-12), dtype=np.float32)


class Encoder:
    """Encodes texts, each on its own and in full.

    The weights are quantized dynamically: in a batch, a text's vectors would depend on its company.
    Texts are therefore encoded one a call, and many calls at once keep the cores busy.

    Args:
        model: ONNX file; takes `input_ids`, `attention_mask` and `token_type_ids`, gives one vector
            a token.
        tokenizer: Its ``tokenizer.json``.
        threads: Calls at once, >= 1; one a core if None.
        max_tokens: Most tokens a call, marks included; a longer text is encoded in pieces.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        threads: int | None = None,
        max_tokens: int = MOST_TOKENS,
    ) -> None:
        self._model, self._tokenizer, self.max_tokens = model, tokenizer, max_tokens
        self._threads = threads or _cores()
        self.renew()
        _ALIVE.add(self)

    def open(self) -> None:
        """Read the files, which is otherwise done at first use."""
        _ = self._words, self._session

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vectors of each text; a blank one has those of its marks alone.

        A lone surrogate, which no encoding of Unicode has, counts as U+FFFD.
        """
        if len(texts) <= 1:
            return [self._one(text) for text in texts]
        return list(self._pool.map(self._one, texts))

    def renew(self) -> None:
        """Have threads of its own; a forked child has none of its parent's."""
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="deepera-encoder")

    def _one(self, text: str) -> Encoded:
        found = self._words.encode(_LONE_SURROGATE.sub("\ufffd", text))
        ids, offsets = np.array(found.ids, np.int64), np.array(found.offsets, np.int64)
        if len(ids) <= self.max_tokens:
            return Encoded(self._run(ids), offsets)
        return self._in_pieces(ids, offsets)

    def _in_pieces(self, ids: Ids, offsets: Offsets) -> Encoded:
        """Encode a long text piece by piece, each between marks of its own."""
        n_inside = self.max_tokens - 2
        n_pieces = -(-(len(ids) - 2) // n_inside)
        inside = zip(
            np.array_split(ids[1:-1], n_pieces),
            np.array_split(offsets[1:-1], n_pieces),
            strict=True,
        )
        no_place = np.zeros((1, 2), np.int64)
        tokens, places = [], []
        for piece, where in inside:
            tokens.append(self._run(np.concatenate([ids[:1], piece, ids[-1:]])))
            places += [no_place, where, no_place]
        return Encoded(np.concatenate(tokens), np.concatenate(places))

    def _run(self, ids: Ids) -> Floats:
        row = ids[None]
        given = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        return np.asarray(self._session.run(None, given)[0][0], np.float32)

    @cached_property
    def _words(self) -> Any:
        words = import_module("tokenizers").Tokenizer.from_file(str(self._tokenizer))
        words.no_padding()
        words.no_truncation()
        return words

    @cached_property
    def _session(self) -> Any:
        send_nothing()
        onnxruntime = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(
            str(self._model), options, providers=["CPUExecutionProvider"]
        )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _renew_all() -> None:
    for encoder in list(_ALIVE):
        encoder.renew()


_ALIVE: "WeakSet[Encoder]" = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
