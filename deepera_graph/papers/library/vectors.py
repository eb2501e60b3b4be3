"""Vectors of papers beside a base: one file of rows, mapped into memory, compared exactly.

A base says how many rows count, what made them and what they add up to; rows that were written and
never committed do not count, and a file with other rows is refused.
"""

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from deepera_graph.errors import StoreError
from deepera_graph.judges.embeddings import LOCAL, EvidenceEmbeddings
from deepera_graph.literature.paper_keys import clean_text
from deepera_graph.papers.library import VECTORS
from deepera_graph.stores.embeddings import (
    Floats,
    check_units,
    map_rows,
    name_embeddings,
    write_rows,
)

DECIMALS = 6  # of a cosine: about what single precision holds
_BLOCK = 1 << 14  # rows
_PROBE = "A survey of methods for searching scientific papers by what they are about."
_LEAST_ALIKE = 0.99  # cosine of the probe's vectors, then and now
_MOST_CHARACTERS = 8_000  # of a query that are embedded


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorsInfo:
    """What a base says of its vectors."""

    base: str  # they belong to
    embeddings: str  # that made them
    dimensions: int
    count: int = 0  # rows that count
    checksum: int = 0  # CRC-32 of these rows
    probe: tuple[float, ...] = ()  # of a fixed text: other weights of the same name are told by it
    url: str = ""  # of the Qdrant server that has them; empty if they lie beside the base

    def to_json(self) -> str:
        """Return it as a base keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "VectorsInfo":
        """Read `to_json`."""
        plain = json.loads(text)
        return cls(**{**plain, "probe": tuple(plain["probe"])})


def name_of(embeddings: Any) -> str:
    """Return what a base calls embeddings: ``local``, or their class and their model."""
    return LOCAL if isinstance(embeddings, EvidenceEmbeddings) else name_embeddings(embeddings)


def embed_rows(embeddings: Any, texts: Sequence[str], names: Sequence[str]) -> Floats:
    """Return vectors of length 1; shape (n_texts, n_dimensions)."""
    return check_units(embeddings.embed_documents(list(texts)), names, "paper")


def probe(embeddings: Any) -> tuple[float, ...]:
    """Return the vector of a fixed text."""
    row = check_units([embeddings.embed_query(_PROBE)], ["probe"], "text")[0]
    return tuple(round(float(number), 5) for number in row)


def check_embeddings(info: VectorsInfo, embeddings: Any, place: str) -> None:
    """Raise `StoreError` unless embeddings are those that a base was built with."""
    name = name_of(embeddings)
    if name != info.embeddings:
        raise StoreError(
            f"the vectors of {place!r} were made by the embeddings {info.embeddings!r}, not by "
            f"{name!r}"
        )
    now = probe(embeddings)
    if len(now) != info.dimensions:
        raise StoreError(
            f"the vectors of {place!r} have {info.dimensions} dimensions, those of {name!r} now "
            f"have {len(now)}"
        )
    if info.probe and any(info.probe) and float(np.dot(now, info.probe)) < _LEAST_ALIKE:
        raise StoreError(
            f"the vectors of {place!r} were made by {name!r} with other weights; embed again with "
            "overwrite"
        )


def vectors_path(base: Path) -> Path:
    """Return where the vectors of a base are."""
    return base.with_name(base.name + VECTORS)


def append_rows(path: Path, info: VectorsInfo, rows: Floats) -> VectorsInfo:
    """Write rows after those that count, and wait for the disk; return what the base is to say."""
    with path.open("r+b" if info.count else "w+b") as file:
        write_rows(file, rows, since=info.count)
        file.flush()
        os.fsync(file.fileno())
    checksum = zlib.crc32(rows.tobytes(), info.checksum)
    return replace(info, count=info.count + len(rows), checksum=checksum)


def open_rows(path: Path, info: VectorsInfo, *, checksum: bool = True) -> Floats:
    """Map the rows into memory; shape (count, dimensions)."""
    if not path.is_file():
        raise StoreError(
            f"the vectors of the base are missing: no such file: {str(path)!r}; it must be "
            "beside the base. Search with mode='sparse', or build again with the same embeddings"
        )
    try:
        rows = map_rows(path)[: info.count]
    except (ValueError, KeyError) as error:
        raise StoreError(f"{str(path)!r} is not a file of vectors of papers") from error
    if rows.shape[1] != info.dimensions:
        raise StoreError(
            f"the vectors in {str(path)!r} are of another base: they have {rows.shape[1]} "
            f"dimensions, and the base's have {info.dimensions}"
        )
    if len(rows) < info.count:
        raise StoreError(
            f"the vectors in {str(path)!r} are cut off: there must be {info.count} rows"
        )
    if checksum and _checksum(rows) != info.checksum:
        raise StoreError(
            f"the vectors in {str(path)!r} are damaged, or of another base: their checksum differs"
        )
    return rows


def _checksum(rows: Floats) -> int:
    total = 0
    for start in range(0, len(rows), _BLOCK):
        total = zlib.crc32(rows[start : start + _BLOCK].tobytes(), total)
    return total


def rank_rows(rows: Floats, query: Floats) -> Iterator[list[tuple[float, int]]]:
    """Yield cosine and place of the best rows, ever more of them, those that tie all together."""
    # Cosines are rounded before they are compared, so that equal rows are equal wherever they lie.
    scores = np.round(np.asarray(rows @ query, dtype=np.float64), DECIMALS)
    n = 256
    while True:
        if n < len(scores):
            edge = np.partition(scores, len(scores) - n)[len(scores) - n]
            best = np.flatnonzero(scores >= edge)
        else:
            best = np.arange(len(scores))
        order = best[np.lexsort((best, -scores[best]))]
        yield [(float(scores[place]), int(place)) for place in order]
        if n >= len(scores):
            return
        n *= 8


def embed_query(embeddings: Any, text: str) -> Floats:
    """Return the vector of a query, of length 1."""
    row = embeddings.embed_query(clean_text(text)[:_MOST_CHARACTERS])
    return np.asarray(check_units([row], ["query"], "text")[0], dtype=np.float32)


class RowsHere:
    """Vectors in the file beside the base; *places* are rows by the number of their paper."""

    def __init__(self, rows: Floats, places: Mapping[int, int]) -> None:
        self._rows = rows
        self._numbers = np.zeros(len(rows), dtype=np.int64)
        for number, place in places.items():
            self._numbers[place] = number

    def rank(self, query: Floats, _: object) -> Iterator[list[tuple[float, int]]]:
        """Yield cosine and number of the best papers, ever more of them."""
        for best in rank_rows(self._rows, query):
            pairs = ((score, int(self._numbers[place])) for score, place in best)
            yield [(score, number) for score, number in pairs if number]
