"""Looks at passages, kept in a file exactly as they were."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np

from deepera_graph.errors import SettingsError
from deepera_graph.judge.measures import Look
from deepera_graph.judge.model import sha256_of

_TABLES = (
    "CREATE TABLE IF NOT EXISTS pairs "
    "(key BLOB PRIMARY KEY, plain BLOB, cosines BLOB, matches BLOB)",
    "CREATE TABLE IF NOT EXISTS texts "
    "(key BLOB PRIMARY KEY, vector BLOB, body BLOB, sentences BLOB)",
)
_FIND = (
    "SELECT plain, cosines, matches, vector, body, sentences FROM pairs, texts "
    "WHERE pairs.key = ? AND texts.key = ?"
)

_FORMAT = "4"  # to be raised whenever `deepera_graph.judge.measures.look` gives other numbers

Key = tuple[str, str, str]  # question, title, text


class Shelf:
    """Looks in an SQLite file: about 10 KB a text, and half a KB a text and question.

    Args:
        file: Of one encoder's weights alone; it is made if missing.

    Raises:
        SettingsError: It cannot be opened, or is another kind of file.
    """

    def __init__(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._rows = sqlite3.connect(file)
            for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF", *_TABLES):
                self._rows.execute(statement)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(f"{str(file)!r} cannot keep what was read: {error}") from error

    def find(self, keys: Sequence[Key]) -> dict[Key, Look]:
        """Return those looks that are kept."""
        rows = ((key, self._rows.execute(_FIND, _names(key)).fetchone()) for key in keys)
        return {key: _thawed(*row) for key, row in rows if row is not None}

    def keep(self, looks: Mapping[Key, Look]) -> None:
        """Add looks."""
        pairs, texts = [], []
        for key, one in looks.items():
            pair, text = _names(key)
            plain = np.array(one.plain, np.float64).tobytes()
            pairs.append((pair, plain, one.cosines.tobytes(), one.matches.tobytes()))
            texts.append((text, *(x.tobytes() for x in (one.vector, one.body, one.sentences))))
        with self._rows:
            self._rows.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)", pairs)
            self._rows.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?)", texts)

    def close(self) -> None:
        """Let go of the file."""
        self._rows.close()


@contextmanager
def open_shelf(folder: Path | None, weights: Sequence[Path]) -> Iterator[Shelf | None]:
    """Give the shelf of an encoder's weights in a folder; none if there is no folder.

    Args:
        folder: It is made if missing.
        weights: The encoder's files: other weights never find what these have kept.

    Raises:
        SettingsError: The folder cannot be written.
    """
    if folder is None:
        yield None
        return
    name = sha256("".join([_FORMAT, *map(sha256_of, weights)]).encode()).hexdigest()[:16]
    shelf = Shelf(folder / f"looks-{name}.sqlite")
    try:
        yield shelf
    finally:
        shelf.close()


def _names(key: Key) -> tuple[bytes, bytes]:
    """Return what names question and text, and what names the text."""
    question, title, text = key
    name = _digest(f"{len(title)}\n{title}\n{text}")
    return _digest(question) + name, name


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _thawed(plain: bytes, *arrays: bytes) -> Look:
    """Return the look of a row, its columns in the order of `_FIND`."""
    cosines, matches, vector, body, sentences = (np.frombuffer(one, np.float32) for one in arrays)
    return Look(
        plain=tuple(np.frombuffer(plain, np.float64).tolist()),
        vector=vector,
        body=body,
        sentences=sentences.reshape(-1, len(vector)),
        cosines=cosines,
        matches=matches,
    )
