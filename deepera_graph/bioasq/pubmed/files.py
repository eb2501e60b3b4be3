"""PubMed's baseline and update files as a stream of records and deletions.

A record is cut out of its file at its end tag and parsed alone: one that is ill-formed costs no
neighbour, memory does not grow with the file, and what a file declares (DTD, entities) is passed
over unread, so nothing is fetched or expanded.

Source:
    https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd and
    https://www.nlm.nih.gov/bsd/licensee/elements_descriptions.html
"""

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from gzip import GzipFile
from io import BufferedReader
from pathlib import Path
from typing import Any, Literal, get_args

from deepera_graph.bioasq.pubmed.records import (
    SHOWN,
    Cutter,
    Deleted,
    PubmedRecord,
    RecordError,
    RecordFault,
    parse_piece,
)
from deepera_graph.errors import InputError

FileFault = Literal["empty", "not PubMed", "cut off", "wrong MD5"]
Fault = RecordFault | FileFault
OF_FILES: tuple[FileFault, ...] = get_args(FileFault)
MOST_KEPT = 100  # broken records that are told one by one; all are counted
SUFFIXES = (".xml", ".xml.gz")
_OFFICIAL = re.compile(r"pubmed\d\dn\d+\.xml(?:\.gz)?")
_BLOCK = 1 << 18  # bytes read at once
_MAGIC = b"\x1f\x8b"
_ENCODING = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_HTML = re.compile(rb"\s*(?:<!DOCTYPE\s+html|<html|<head|<body)", re.IGNORECASE)
_MD5 = re.compile(r"\b[0-9a-fA-F]{32}\b")
_PMID = re.compile(rb"<PMID[^>]*>\s*(\d+)\s*</PMID>")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordProblem:
    """A record or a file that could not be used, or not wholly."""

    file: str
    fault: Fault
    reason: str
    number: int | None = None  # of the record in its file, from 1; None for the file itself
    pmid: str | None = None  # if it can be read

    def __str__(self) -> str:
        """Return ``pubmed25n0003.xml.gz, record 17 (PMID 123): ill-formed: ...``."""
        place = "" if self.number is None else f", record {self.number}"
        known = f" (PMID {self.pmid})" if self.pmid else ""
        return f"{self.file}{place}{known}: {self.fault}: {self.reason}"


class RecordProblems:
    """What could not be used: all counted by fault; files and the first records are kept."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: list[RecordProblem] = []

    def add(self, problem: RecordProblem) -> None:
        """Count a problem, and keep it unless there are many."""
        self.counts[problem.fault] += 1
        if len(self.first) < MOST_KEPT or problem.fault in OF_FILES:
            self.first.append(problem)

    @property
    def has_bad_file(self) -> bool:
        """Whether a whole file is at fault."""
        return any(self.counts[fault] for fault in OF_FILES)


OnRead = Callable[[int], None]


def find_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files to read, in the order in which later ones win."""
    # A folder stands for its ``.xml`` and ``.xml.gz`` files, nested ones too, by name. Where all
    # files are named as PubMed names them (``pubmed25n0001.xml.gz``), their names alone give the
    # order, as they number baseline and update files through; else it is the order of *paths*.
    files: dict[Path, None] = {}
    given = [paths] if isinstance(paths, str | Path) else paths
    for path in map(Path, given):
        files |= dict.fromkeys(_find_below(path))
    found = [*files]
    if all(_OFFICIAL.fullmatch(one.name) for one in found):
        found.sort(key=lambda one: (one.name.partition(".")[0], one.name))
    twice = [name for name, n in Counter(one.name for one in found).items() if n > 1]
    if twice:
        raise InputError(f"two files are named {twice[0]}: give each of them once")
    return found


def _find_below(path: Path) -> list[Path]:
    if path.is_dir():
        below = [one for one in sorted(path.rglob("*")) if one.name.lower().endswith(SUFFIXES)]
        if not below:
            raise InputError(f"the folder {str(path)!r} holds no {' or '.join(SUFFIXES)} file")
        return [one for one in below if one.is_file()]
    if not path.exists():
        raise InputError(f"no such file: {str(path)!r}")
    if not path.name.lower().endswith(SUFFIXES):
        raise InputError(f"{path}: expected {' or '.join(SUFFIXES)}, as PubMed's files are named")
    return [path]


def read_pubmed(
    paths: str | Path | Iterable[str | Path],
    *,
    problems: RecordProblems | None = None,
    on_read: OnRead | None = None,
) -> Iterator[PubmedRecord | Deleted]:
    """Yield the records and deletions of files and folders, file after file, as they stand there.

    What a later file or a higher version replaces is not worked out here, see
    `deepera_graph.bioasq.pubmed.corpus.write_corpus`. Memory holds one record.

    Args:
        paths: Files ``.xml`` or ``.xml.gz``, or folders; see `find_files` for their order.
        problems: Takes what cannot be used, which then costs itself alone; without it the first
            problem is an error. A file that is cut off is read up to there.
        on_read: Called with the bytes that were read of all files so far, as they are on disk.

    Raises:
        InputError: A path is missing or of another kind; or, without *problems*, a record or a
            file cannot be used.
        SettingsError: lxml is not installed (extra ``bioasq``).
    """
    n_before = 0
    for path in find_files(paths):
        yield from read_file(path, problems=problems, n_before=n_before, on_read=on_read)
        n_before += path.stat().st_size


def read_file(
    path: Path,
    *,
    problems: RecordProblems | None = None,
    n_before: int = 0,
    on_read: OnRead | None = None,
) -> Iterator[PubmedRecord | Deleted]:
    """Yield the records and deletions of one file; see `read_pubmed`."""
    reader = _FileReader(path, problems, n_before, on_read)
    try:
        with path.open("rb") as raw:
            yield from reader.read(raw)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


class _Hashed:
    """A file that is hashed and counted as it is read."""

    def __init__(self, raw: BufferedReader) -> None:
        self.raw, self.md5, self.n_read = raw, hashlib.md5(usedforsecurity=False), 0

    def read(self, n: int = -1) -> bytes:
        block = self.raw.read(n)
        self.md5.update(block)
        self.n_read += len(block)
        return block

    read1 = read


class _FileReader:
    """Reads one file, and says what is wrong with it."""

    def __init__(
        self, path: Path, problems: RecordProblems | None, n_before: int, on_read: OnRead | None
    ) -> None:
        self._path, self._problems = path, problems
        self._n_before, self._on_read = n_before, on_read
        self._n, self._broken_off = 0, ""
        self._head = b""
        self._encoding: str | None = None

    def read(self, raw: BufferedReader) -> Iterator[PubmedRecord | Deleted]:
        source = _Hashed(raw)
        cutter = Cutter(self._blocks(source))
        first: bytes | None = None  # stray text, which may be that of a file of another kind
        for piece in cutter.pieces():
            if not piece.name:
                if self._n:
                    self._add_stray(piece.xml)
                first = first or piece.xml
                continue
            if not self._n and first is not None:
                self._add_stray(first)
            self._n += 1
            try:
                yield from parse_piece(piece, cutter.set_tag, self._encoding)
            except RecordError as error:
                found = _PMID.search(piece.xml) if error.fault == "ill-formed" else None
                self._add(error.fault, str(error), self._n, found[1].decode() if found else None)
        self._check_end(source, cutter)

    def _blocks(self, source: _Hashed) -> Iterator[bytes]:
        """Yield the file's bytes, decompressed if they are compressed, whatever its name says."""
        is_gzip = source.raw.peek(len(_MAGIC)).startswith(_MAGIC)
        stream: Any = source
        if is_gzip:
            stream = GzipFile(fileobj=stream, mode="rb")
        try:
            # read1: of a file that is cut off, what was decompressed before is not lost
            while block := stream.read1(_BLOCK):
                if not self._head:
                    self._head = block[:SHOWN]
                    found = _ENCODING.search(self._head)
                    self._encoding = found[1].decode() if found else None
                yield block
                if self._on_read is not None:
                    self._on_read(self._n_before + source.n_read)
        except (OSError, EOFError, zlib.error) as error:
            if not is_gzip:
                raise
            self._broken_off = str(error)

    def _check_end(self, source: _Hashed, cutter: "Cutter") -> None:
        while source.read(_BLOCK):  # what decompression left
            pass
        if not source.n_read or (not self._head and not self._broken_off):
            self._add("empty", "there is nothing in it")
        elif self._broken_off or (cutter.is_pubmed and not cutter.is_closed):
            why = self._broken_off or "it has no </PubmedArticleSet>"
            self._add("cut off", f"{why}; {self._n} record{'s' * (self._n != 1)} before")
        elif not cutter.is_pubmed:
            self._add("not PubMed", self._describe_other())
        self._check_md5(source.md5.hexdigest())

    def _describe_other(self) -> str:
        if _HTML.match(self._head):
            return "it is an HTML page; was the download refused?"
        return f"it has no record of PubMed, it begins with {self._head[:40]!r}"

    def _check_md5(self, digest: str) -> None:
        beside = self._path.with_name(f"{self._path.name}.md5")
        if not beside.is_file():
            return
        found = _MD5.search(beside.read_text("utf-8", "replace"))
        if found is None:
            self._add("wrong MD5", f"{beside.name} holds no MD5")
        elif found[0].lower() != digest:
            self._add("wrong MD5", f"{beside.name} has {found[0]}, the file {digest}")

    def _add_stray(self, text: bytes) -> None:
        self._add("stray text", f"{text[:60].decode('utf-8', 'replace')!r}")

    def _add(
        self, fault: Fault, reason: str, number: int | None = None, pmid: str | None = None
    ) -> None:
        problem = RecordProblem(
            file=self._path.name, fault=fault, reason=reason, number=number, pmid=pmid
        )
        if self._problems is None:
            raise InputError(str(problem))
        self._problems.add(problem)
