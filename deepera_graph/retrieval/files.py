"""The files that a source names: one, those of a folder, of a ZIP archive, or of a pattern."""

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast
from zipfile import BadZipFile, ZipFile

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.documents import FORMS, LOOKED_INTO, PDF, find_form
from deepera_graph.retrieval.documents.pdf_pages import check_pdf_reader
from deepera_graph.retrieval.skipped import OTHER_KIND, Skipped, describe_other_kinds
from deepera_graph.text.files.records import GZIP, SUFFIXES, open_records, suffix_of

ZIP = ".zip"
KNOWN_SUFFIXES = (*SUFFIXES, *FORMS)
_PATTERN = frozenset("*?[")
_NOT_OURS = (".", "~$")  # hidden files, and what Word writes beside a file that is open
_OF_MACS = "__MACOSX"
_NO_SUFFIX = "without suffix"
_INSTEAD = {
    ".doc": "save it as DOCX or PDF",
    **dict.fromkeys((".odt", ".rtf", ".epub", ".pages"), "save it as DOCX or PDF"),
    ".enw": "export the library as RIS",
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save the sheet as CSV"),
}


class InFile(NamedTuple):
    """A file that may be read."""

    path: Path  # as it is told; of a member of an archive ARCHIVE/NAME
    size: int  # bytes, of a member when unpacked
    archive: ZipFile | None = None
    member: str = ""

    @contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open it, decompressed, and the file as it is stored, which tells how far it is read.

        Raises:
            InputError: It cannot be opened; or while reading: it is damaged.
        """
        if self.archive is None:
            with open_records(self.path) as opened:
                yield opened
            return
        try:
            raw = cast("BinaryIO", self.archive.open(self.member))
        except (BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
            raise InputError(f"{self.path} cannot be unpacked: {error}") from error
        with raw, open_records(self.path, io.BufferedReader(_Member(raw, self.path))) as opened:
            yield opened


class _Member(io.RawIOBase):
    """A member of an archive; says which one is damaged."""

    def __init__(self, raw: BinaryIO, path: Path) -> None:
        self._raw, self._path = raw, path

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer."""
        try:
            part = self._raw.read(len(buffer))
        except (BadZipFile, OSError, EOFError, ValueError) as error:
            raise InputError(f"{self._path} cannot be unpacked: {error}") from error
        buffer[: len(part)] = part
        return len(part)

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._raw.tell()


def find_files(
    sources: Sequence[Path], pdf_reader: str = "pypdf"
) -> tuple[list[InFile], list[Skipped]]:
    """Return the files that can be read, each once, and those of other kinds.

    Folders and archives are looked through in order of names. Links are followed, into no folder
    twice. Hidden files are passed over.

    Raises:
        InputError: A source is missing, or none of its files can be read.
        SettingsError: A PDF file is named, and its reader is not installed.
    """
    found, others = dict[Path, InFile](), list[Skipped]()
    for source in sources:
        files, skipped = _find(source, pdf_reader)
        found.update({file.path: file for file in files if file.path not in found})
        others += skipped
    return list(found.values()), others


def _find(path: Path, pdf_reader: str) -> tuple[list[InFile], list[Skipped]]:
    if path.is_dir():
        unread = list[Skipped]()
        files = list(_unpack(_walk(path, unread.append), unread.append))
        return _choose(files, unread, pdf_reader, f"the folder {str(path)!r}")
    if path.exists():
        if path.suffix.lower() == ZIP:
            return _choose(_list_archive(path), [], pdf_reader, f"the archive {str(path)!r}")
        return [_check_kind(path, pdf_reader)], []
    if _PATTERN.isdisjoint(str(path)):
        raise InputError(f"there is no file {str(path)!r}")
    matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not matches:
        raise InputError(f"no file matches {str(path)!r}")
    unread = list[Skipped]()
    inside = [file for one in matches for file in _unpack(_files_of(one), unread.append)]
    return _choose(inside, unread, pdf_reader, f"what matches {str(path)!r}")


def _files_of(path: Path) -> Iterable[InFile]:
    return _walk(path, lambda _: None) if path.is_dir() else [_file(path)]


def _file(path: Path) -> InFile:
    return InFile(path, path.stat().st_size)


def _check_kind(path: Path, pdf_reader: str) -> InFile:
    file, suffix = _file(path), suffix_of(path)
    if suffix in LOOKED_INTO:
        suffix = _look_into(file)
    if suffix not in KNOWN_SUFFIXES:
        instead = f"; {_INSTEAD[suffix]}" if suffix in _INSTEAD else ""
        raise InputError(
            f"{path}: cannot read this kind of file; known are {', '.join(KNOWN_SUFFIXES)}, "
            f"with {GZIP} or without, and {ZIP}{instead}"
        )
    if suffix == PDF:
        check_pdf_reader(pdf_reader, path)
    return file


def _look_into(file: InFile) -> str:
    """Return what a file is whose suffix says little; its suffix if that cannot be told."""
    try:
        with file.open() as (source, _):
            return find_form(file.path, source)
    except InputError:
        return suffix_of(file.path)


def _walk(folder: Path, on_skip: Callable[[Skipped], None]) -> Iterator[InFile]:
    """Yield the files of a folder in order of their names, those of folders in it, too."""

    def note(error: OSError) -> None:
        on_skip(Skipped(str(error.filename), f"cannot be read: {error.strerror}"))

    paths, seen = list[Path](), set[tuple[int, int]]()
    for here, folders, names in os.walk(folder, onerror=note, followlinks=True):
        about = Path(here).stat()
        folders[:] = [name for name in folders if not name.startswith(_NOT_OURS)]
        if (about.st_dev, about.st_ino) in seen:
            folders.clear()
            continue
        seen.add((about.st_dev, about.st_ino))
        paths += [Path(here, name) for name in names if not name.startswith(_NOT_OURS)]
    for path in sorted(paths):
        if path.is_file():
            yield _file(path)
        elif path.is_symlink():
            on_skip(Skipped(path.as_posix(), "the link leads nowhere"))


def _unpack(files: Iterable[InFile], on_skip: Callable[[Skipped], None]) -> Iterator[InFile]:
    """Yield the files, and in place of an archive what is in it."""
    for file in files:
        if file.path.suffix.lower() != ZIP:
            yield file
            continue
        try:
            yield from _list_archive(file.path)
        except InputError as error:
            on_skip(Skipped(file.path.as_posix(), str(error).removeprefix(f"{file.path} ")))


def _list_archive(path: Path) -> list[InFile]:
    try:
        archive = ZipFile(path)
    except (BadZipFile, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return [
        InFile(Path(f"{path}/{one.filename}"), one.file_size, archive, one.filename)
        for one in sorted(archive.infolist(), key=lambda one: Path(one.filename))
        if not one.is_dir()
        and not any(part.startswith((*_NOT_OURS, _OF_MACS)) for part in Path(one.filename).parts)
    ]


def _choose(
    files: Iterable[InFile], unread: list[Skipped], pdf_reader: str, where: str
) -> tuple[list[InFile], list[Skipped]]:
    """Tell the files of known kinds from the others, which is an error if there are none."""
    reasons: dict[str, str] = {}
    try:
        check_pdf_reader(pdf_reader)
    except SettingsError as error:
        reasons[PDF] = str(error)
    known, others = list[InFile](), list[Skipped]()
    for file in files:
        suffix = suffix_of(file.path)
        kind = _look_into(file) if suffix in LOOKED_INTO else suffix
        if kind in KNOWN_SUFFIXES and kind not in reasons:
            known.append(file)
        else:
            others.append(_name_unread(file, suffix, reasons.get(kind, "")))
    if not known:
        found = f"; {describe_other_kinds(others)}" if others else ""
        raise InputError(f"{where} holds no {', '.join(KNOWN_SUFFIXES)} file{found}")
    return known, [*others, *unread]


def _name_unread(file: InFile, suffix: str, reason: str) -> Skipped:
    """Name a file that is not read: for a *reason* that can be mended, or as of another kind."""
    place = file.path.as_posix()
    return Skipped(place, reason) if reason else Skipped(place, OTHER_KIND, suffix or _NO_SUFFIX)
