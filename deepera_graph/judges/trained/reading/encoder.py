"""The encoder: a text becomes vectors of its tokens, by onnxruntime; no torch is needed."""

import math
import os
import re
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cache, cached_property
from importlib import import_module
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, Protocol, Self, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.reading.vectors import Encoded, Floats, Halves, Offsets
from deepera_graph.packages import send_nothing

Ids = NDArray[np.int64]
MAX_TOKENS = 256
PROJECTION = "projection"
# bytes of vectors that are kept for the next question: 240 passages of 128 tokens
MAX_KEPT = 24_000_000
MAX_AHEAD = 250_000  # characters; the vectors of 400, about 100 tokens, take 150 KB
ON_CPU = ("CPUExecutionProvider",)
_SLOWER = ["SkipLayerNormFusion"]  # its kernel takes longer than the two steps that it fuses
UsedT = TypeVar("UsedT")
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")


class KeepsVectors(Protocol):
    """What an encoder asks of a place where vectors are kept; see `kept.KeptVectors`."""

    @property
    def has_room(self) -> bool:
        """Whether something can be added and nothing has to give way."""

    def find(self, text: str) -> Encoded | None:
        """Return what is kept of a text, or None."""

    def add(self, text: str, encoded: Encoded) -> None:
        """Keep a text, or note that it was used."""

    def flush(self) -> None:
        """Write what was added."""

    def restart(self) -> None:
        """Be as new in a forked child."""


class _Memory:
    """The texts encoded lately; those asked for longest ago give way."""

    def __init__(self) -> None:
        self._held, self._n_bytes = OrderedDict[str, Encoded](), 0

    def __contains__(self, text: str) -> bool:
        return text in self._held

    def find(self, text: str) -> Encoded | None:
        found = self._held.get(text)
        if found is not None:
            self._held.move_to_end(text)
        return found

    def add(self, text: str, encoded: Encoded) -> None:
        size = encoded.tokens.nbytes
        if size > MAX_KEPT or text in self._held:
            return
        self._held[text] = encoded
        self._n_bytes += size
        while self._n_bytes > MAX_KEPT:
            self._n_bytes -= self._held.popitem(last=False)[1].tokens.nbytes


class Encoder:
    """Encodes texts, each on its own and in full.

    The weights are quantized dynamically: in a batch, a text's vectors would depend on the others.
    Texts are therefore encoded one a call, and many calls at once keep the cores busy.

    Vectors are rounded to 16 bits, which is how they are kept: a text has the same ones whether it
    was kept or not.

    The ONNX model takes `input_ids`, `attention_mask` and `token_type_ids`, and gives one vector a
    token; its metadata may have a `PROJECTION` of means, a column for each dimension that comes of
    it, as 16-bit floats in base 64.
    A text beyond *max_tokens*, marks included, is encoded in pieces. The first of
    *providers* that works is used; on a CPU vectors are those the shipped judge was trained on.
    """

    def __init__(
        self,
        model: Path,
        tokenizer: Path,
        *,
        threads: int | None = None,
        max_tokens: int = MAX_TOKENS,
        providers: Sequence[str] = ON_CPU,
    ) -> None:
        self._model, self._tokenizer, self.max_tokens = model, tokenizer, max_tokens
        self._providers = list(providers)
        self._threads = threads or _count_cores()
        self._store: KeepsVectors | None = None
        self.restart()
        _ALIVE.add(self)

    def keeping(self, store: KeepsVectors) -> Self:
        """Return an encoder that looks into a store before it encodes, and fills it.

        It shares all else with this one: model, threads, and what is held in memory.
        """
        twin = copy(self)
        twin._store = store
        _ALIVE.add(twin)
        return twin

    def keep_held(self, texts: Sequence[str]) -> None:
        """Keep those texts whose vectors are in memory, as long as nothing has to give way."""
        if self._store is None:
            return
        for text in texts:
            with self._lock:
                held = self._memory.find(text)
            if held is not None and self._store.has_room:
                self._store.add(text, held)
        self._store.flush()

    def open(self) -> None:
        """Read the files, which is otherwise done at first use."""
        _ = self._splitter, self._projection

    @property
    def provider(self) -> str:
        """Where it runs."""
        return str(self._session.get_providers()[0])

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vectors of each text; a blank one has those of its marks alone.

        A lone surrogate, which no encoding of Unicode has, counts as U+FFFD.
        """
        return self.encode_each(texts, lambda _, encoded: encoded)

    def encode_each(
        self, texts: Sequence[str], use: Callable[[int, Encoded], UsedT]
    ) -> list[UsedT]:
        """Encode each text, and return what *use* makes of its place and its vectors, in order.

        What is in memory is used first, before it gives way, in the calling thread. Otherwise *use*
        is called in the thread that has encoded: so all threads share the work, and no vectors are
        held longer than they are used. Long texts are encoded first, so that no thread waits long
        at the end.
        """
        with self._lock:
            held = [place for place, text in enumerate(texts) if text in self._memory]
        found = {place: use(place, self._take(texts[place])) for place in held}
        others = [place for place in range(len(texts)) if place not in found]
        sizes = [len(texts[place]) for place in others]
        encoded = self.run_each(
            sizes, lambda number: use(others[number], self._take(texts[others[number]]))
        )
        found.update(zip(others, encoded, strict=True))
        if self._store is not None:
            self._store.flush()
        return [found[place] for place in range(len(texts))]

    def run_each(self, sizes: Sequence[int], work: Callable[[int], UsedT]) -> list[UsedT]:
        """Return what *work* makes of each place, in order; in the threads, large ones first."""
        if len(sizes) <= 1:
            return [work(place) for place in range(len(sizes))]
        order = sorted(range(len(sizes)), key=lambda place: -sizes[place])
        found = self._pool.map(lambda place: (place, work(place)), order)
        return [one for _, one in sorted(found, key=itemgetter(0))]

    def read_ahead(self, texts: Sequence[str]) -> None:
        """Begin to encode texts that will soon be asked for; return at once.

        At most `MAX_AHEAD` characters wait to be asked for: of these texts the first; older ones
        are given up.
        """
        sizes = accumulate(map(len, texts))
        with self._lock:
            for text, n_characters in zip(texts, sizes, strict=True):
                is_new = text not in self._begun and text not in self._memory
                if n_characters <= MAX_AHEAD and is_new:
                    self._begun[text] = self._pool.submit(self._obtain, text)
            n_waiting = sum(map(len, self._begun))
            while n_waiting > MAX_AHEAD:
                oldest = next(iter(self._begun))
                n_waiting -= len(oldest)
                self._begun.pop(oldest).cancel()

    def restart(self) -> None:
        """Have threads of its own; a forked child has none of its parent's."""
        self._lock, self._begun = Lock(), dict[str, Future[Encoded]]()
        self._memory = _Memory()
        if self._store is not None:
            self._store.restart()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="deepera-encoder")

    def _take(self, text: str) -> Encoded:
        """Encode a text, or take what was begun ahead; wait only for what is being done."""
        with self._lock:
            begun = self._begun.pop(text, None)
            found = self._memory.find(text)
        is_new = begun is None or begun.cancel()
        if found is None:
            found = self._obtain(text) if begun is None or is_new else begun.result()
            self._keep(text, found)
        if self._store is not None:
            self._store.add(text, found)
        return found

    def _obtain(self, text: str) -> Encoded:
        """Take a text from the store, or encode it."""
        kept = None if self._store is None else self._store.find(text)
        return (
            self._encode_one(text) if kept is None else replace(kept, projection=self._projection)
        )

    def _keep(self, text: str, encoded: Encoded) -> None:
        """Hold vectors for the next question."""
        with self._lock:
            self._memory.add(text, encoded)

    def tokenize(self, text: str) -> tuple[Ids, Offsets]:
        """Return the numbers of a text's tokens, marks included, and where each stands."""
        found = self._splitter.encode(_LONE_SURROGATE.sub("\ufffd", text))
        return np.array(found.ids, np.int64), np.array(found.offsets, np.int64)

    def _encode_one(self, text: str) -> Encoded:
        ids, offsets = self.tokenize(text)
        if len(ids) <= self.max_tokens:
            return Encoded(self._run(ids), offsets, self._projection)
        return Encoded(*self._in_pieces(ids, offsets), self._projection)

    def _in_pieces(self, ids: Ids, offsets: Offsets) -> tuple[Halves, Offsets]:
        """Encode a long text piece by piece, each between marks of its own."""
        n_pieces = count_pieces(len(ids) - 2, self.max_tokens - 2)
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
        return np.concatenate(tokens), np.concatenate(places)

    def _run(self, ids: Ids) -> Halves:
        row = ids[None]
        given = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        return np.asarray(self._session.run(None, given)[0][0], np.float16)

    @cached_property
    def _splitter(self) -> Any:
        splitter = import_module("tokenizers").Tokenizer.from_file(str(self._tokenizer))
        splitter.no_padding()
        splitter.no_truncation()
        return splitter

    @cached_property
    def _session(self) -> Any:
        return open_session(self._model, self._providers)

    @cached_property
    def _projection(self) -> Floats | None:
        """What the model says of means of its tokens; see `Encoded`."""
        written = self._session.get_modelmeta().custom_metadata_map.get(PROJECTION)
        if written is None:
            return None
        numbers = np.frombuffer(b64decode(written, validate=True), "<f2")
        side = math.isqrt(len(numbers))
        return np.ascontiguousarray(numbers.reshape(side, side).T, np.float32)


@cache
def _register_arena() -> None:
    """Have all models take memory from one arena: one each holds more that nobody uses."""
    onnxruntime = import_module("onnxruntime")
    kinds = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
    about = onnxruntime.OrtMemoryInfo("Cpu", kinds[0], 0, kinds[1])
    onnxruntime.create_and_register_allocator(about, None)


def count_pieces(n_tokens: int, most: int) -> int:
    """Return in how many pieces a text is read, none longer than *most* tokens; at least 1."""
    return max(1, -(-n_tokens // most))


def open_session(model: Path, providers: Sequence[str] = ON_CPU) -> Any:
    """Return an ONNX model that runs in the thread that calls it, and in no other."""
    send_nothing()
    onnxruntime = import_module("onnxruntime")
    _register_arena()
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.use_env_allocators", "1")
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        str(model), options, providers=list(providers), disabled_optimizers=_SLOWER
    )


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _restart_all() -> None:
    for encoder in list(_ALIVE):
        encoder.restart()


_ALIVE: "WeakSet[Encoder]" = WeakSet()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)
