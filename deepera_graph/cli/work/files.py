"""The files of `deepera rerank`: opened late, never overwritten by accident."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from deepera_graph.errors import SettingsError

STANDARD = "-"
REPORT_SUFFIX = ".report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where questions come from, and where rankings and the report go; ``-`` is stdin or stdout."""

    source: str
    out: str
    report: Path | None
    overwrite: bool

    @property
    def to_stdout(self) -> bool:
        """Whether rankings go to stdout."""
        return self.out == STANDARD

    @property
    def report_path(self) -> Path | None:
        """Where the report goes: as asked, or beside a regular file of rankings, or nowhere."""
        if self.report is not None:
            return self.report
        out = Path(self.out)
        if self.to_stdout or (out.exists() and not out.is_file()):
            return None
        return out.with_name(out.name.removesuffix(".jsonl") + REPORT_SUFFIX)

    def check_source(self) -> None:
        """Raise `SettingsError` unless the questions can be read."""
        source = Path(self.source)
        if self.source == STANDARD:
            return
        if not source.exists():
            raise SettingsError(f"there is no file {self.source!r}")
        if source.is_dir() or not os.access(source, os.R_OK):
            raise SettingsError(f"{self.source!r} is a folder or cannot be read")

    def check_outputs(self) -> None:
        """Raise `SettingsError` if a file would be lost, or cannot be written."""
        outputs = [*([] if self.to_stdout else [Path(self.out)]), *_some(self.report_path)]
        for path in outputs:
            if path.is_dir() or not os.access(path.parent, os.W_OK):
                raise SettingsError(f"{str(path)!r} cannot be written")
            if self.source != STANDARD and _same(path, Path(self.source)):
                raise SettingsError(f"{str(path)!r} is the input; write somewhere else")
            if path.is_file() and not self.overwrite:
                raise SettingsError(f"{str(path)!r} exists; give --overwrite to replace it")
        if len(outputs) > 1 and _same(*outputs):
            raise SettingsError(f"{self.out!r} cannot be both the rankings and the report")

    @contextmanager
    def open_source(self) -> Iterator[tuple[BinaryIO, int | None]]:
        """Open the questions; also return their size in bytes, if it is known."""
        if self.source == STANDARD:
            yield sys.stdin.buffer, None
            return
        with Path(self.source).open("rb") as source:
            yield source, os.fstat(source.fileno()).st_size or None

    @contextmanager
    def open_out(self) -> Iterator["LateFile | BinaryIO"]:
        """Open the rankings."""
        if self.to_stdout:
            sys.stdout.flush()
            yield sys.stdout.buffer
            return
        with LateFile(Path(self.out), overwrite=self.overwrite) as out:
            yield out


class LateFile:
    """A file that is made when the first line is written, or when the block ends well.

    A run that fails before it has anything to show leaves nothing behind, and an old file as it
    was.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self._path, self._mode = path, "wb" if overwrite or _is_device(path) else "xb"
        self._file: BinaryIO | None = None

    def __enter__(self) -> "LateFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._opened()
        if self._file is not None:
            self._file.close()

    def write(self, data: bytes) -> int:
        """Write a line."""
        return self._opened().write(data)

    def flush(self) -> None:
        """Hand the line over to the system."""
        self._opened().flush()

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self._file = self._path.open(self._mode)  # type: ignore[assignment]  # both are binary
        return self._file  # type: ignore[return-value]  # it is open now


def _some(path: Path | None) -> list[Path]:
    return [] if path is None else [path]


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.absolute() == other.absolute()


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()
