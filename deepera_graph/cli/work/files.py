"""The files of `deepera rerank`: opened late, never overwritten by accident."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

from deepera_graph.errors import SettingsError
from deepera_graph.jobs.files import ResumableOutput

STANDARD = "-"
REPORT_SUFFIX = ".report.json"
MANIFEST_SUFFIX = ".manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where questions come from, and where rankings and the report go; ``-`` is stdin or stdout."""

    source: str
    out: str
    report: Path | None
    overwrite: bool
    resume: bool = False

    @property
    def to_stdout(self) -> bool:
        """Whether rankings go to stdout."""
        return self.out == STANDARD

    @property
    def report_path(self) -> Path | None:
        """Where the report goes: as asked, or beside a regular file of rankings, or nowhere."""
        return self._beside(REPORT_SUFFIX) if self.report is None else self.report

    @property
    def manifest_path(self) -> Path | None:
        """Where the manifest goes: beside a regular file of rankings, or nowhere."""
        return self._beside(MANIFEST_SUFFIX)

    def check_resume(self, *, dry_run: bool) -> None:
        """Raise `SettingsError` if a resume is asked for that cannot be."""
        if not self.resume:
            return
        if self.overwrite or dry_run:
            other = "--overwrite" if self.overwrite else "--dry-run"
            raise SettingsError(f"give --resume or {other}, not both")
        if self.source == STANDARD:
            raise SettingsError("--resume needs a file for IN; stdin cannot be read again")
        if self.manifest_path is None:
            raise SettingsError(f"--resume needs a file for --out, got {self.out!r}")

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
        out = None if self.to_stdout else Path(self.out)
        outputs = [path for path in (out, self.report_path, self.manifest_path) if path is not None]
        for path in outputs:
            if path.is_dir() or not os.access(path.parent, os.W_OK):
                raise SettingsError(f"{str(path)!r} cannot be written")
            if self.source != STANDARD and _same(path, Path(self.source)):
                raise SettingsError(f"{str(path)!r} is the input; write somewhere else")
            if path.is_file() and not (self.overwrite or self.resume):
                raise SettingsError(
                    f"{str(path)!r} exists; give --overwrite to replace it, or --resume to go on"
                )
        for one, other in combinations(outputs, 2):
            if _same(one, other):
                raise SettingsError(f"{str(one)!r} cannot be two of rankings, report and manifest")

    @contextmanager
    def open_source(self) -> Iterator[tuple[BinaryIO, int | None]]:
        """Open the questions; also return their size in bytes, if it is known."""
        if self.source == STANDARD:
            yield sys.stdin.buffer, None
            return
        with Path(self.source).open("rb") as source:
            yield source, os.fstat(source.fileno()).st_size or None

    @contextmanager
    def open_out(self, ran: Mapping[str, Any]) -> Iterator[ResumableOutput | BinaryIO]:
        """Open the rankings; *ran* is what `describe_run` says of this run.

        Raises:
            SettingsError: They are to be continued, but are of another run.
        """
        if self.to_stdout:
            sys.stdout.flush()
            yield sys.stdout.buffer
        elif self.manifest_path is None:
            with Path(self.out).open("wb") as device:
                yield device
        else:
            with ResumableOutput(
                Path(self.out),
                self.manifest_path,
                ran,
                resume=self.resume,
                overwrite=self.overwrite,
            ) as out:
                yield out

    def _beside(self, suffix: str) -> Path | None:
        out = Path(self.out)
        if self.to_stdout or (out.exists() and not out.is_file()):
            return None
        return out.with_name(out.name.removesuffix(".jsonl") + suffix)


def _same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.absolute() == other.absolute()
