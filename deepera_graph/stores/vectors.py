"""Vectors on disk: rows of single precision in a ``.npy`` file, which grows in place.

`numpy.load` reads it, too. A file of vectors of papers that 0.9 or an older version wrote begins
with 512 bytes of JSON in place of NumPy's header; it is read, and grows, as it is.
"""

import json
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_magic, write_array_header_1_0
from numpy.typing import NDArray

Floats = NDArray[np.float32]
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
    """Map the rows of a file into memory; shape (n_rows, n_dimensions).

    Raises:
        ValueError: It is no file of vectors.
    """
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
