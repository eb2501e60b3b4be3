"""The files that a source names, and records of them that could not be used."""

import io
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil
from pathlib import Path, PurePath
from typing import Any, BinaryIO, NamedTuple, cast
from zipfile import BadZipFile, ZipFile

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.documents import FORMS, LOOKED_INTO, PDF, find_form
from deepera_graph.retrieval.documents.article import Article
from deepera_graph.retrieval.documents.pdf_pages import check_pdf_reader
from deepera_graph.retrieval.written import MAY_BE_WRITTEN, why_no_paper
from deepera_graph.text.jsonl import GZIP, open_records, suffix_of
from deepera_graph.text.plain import count, name_some
from deepera_graph.text.records import SUFFIXES
from deepera_graph.text.words import Sentence, split_sentences

OTHER_KIND = "cannot read this kind of file"
_HOW = "name a file itself to have it read"
_MOST_PLACES = 5  # named of those that are left out for one reason
_LINE = re.compile(r":\d+$")
_VALUE = re.compile(r"'.*'|\".*\"|\d+")


class Skipped(NamedTuple):
    """A record or a file that was left out."""

    place: str  # the file, and the line
    reason: str
    other_kind: str = ""  # the suffix, if it is a file of a kind that is never read
    without_text: bool = False  # whether it is a paper, or a row, that merely has no abstract
    is_known: bool = False  # whether another record has the same id and text, so nothing is lost
    is_written: bool = False  # whether it is no paper: a report of this package, or a manuscript

    @property
    def is_lost(self) -> bool:
        """Whether something of it could have been read, and was not."""
        return not (self.other_kind or self.without_text or self.is_known or self.is_written)

    def __str__(self) -> str:
        """Return the place and the reason."""
        return f"{self.place}: {self.reason}"


def describe_left_out(skipped: Sequence[Skipped], most: int = 5) -> list[str]:
    """Return a line on files of other kinds, and one on each kind of those that are no papers."""
    others = [one for one in skipped if not one.is_written]
    own: dict[str, list[str]] = {}
    for one in skipped:
        if one.is_written:
            own.setdefault(one.reason, []).append(one.place)
    lines = (
        f"skipped {count(len(places), 'file')} that {why}: {name_some(places, most)}; {_HOW}"
        for why, places in own.items()
    )
    return [*([describe_other_kinds(others, most)] if others else []), *lines]


def describe_other_kinds(skipped: Iterable[Skipped], most: int = 5) -> str:
    """Return ``skipped 2 files (1 .bib, 1 .png): lib.bib, plot.png``, and what would read them."""
    files = list(skipped)
    kinds = sorted(Counter(one.other_kind or PurePath(one.place).suffix for one in files).items())
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds)
    names = name_some([one.place for one in files], most)
    hints = "".join(f"; {one}" for one in dict.fromkeys(one.reason for one in files))
    hints = hints.replace(f"; {OTHER_KIND}", "")
    return f"skipped {count(len(files), 'file')} ({counts}): {names}{hints}"


class SkippedKind:
    """What was left out for one reason: how many, and the first of them."""

    def __init__(self) -> None:
        self.n = 0
        self.first: list[Skipped] = []

    def add(self, one: Skipped) -> None:
        """Count one."""
        self.n += 1
        if len(self.first) < _MOST_PLACES:
            self.first.append(one)

    def __str__(self) -> str:
        """Return ``6 records without text: lib.csv:3, 4, 6, 7, 9 and 1 more``."""
        one = self.first[0]
        if self.n == 1 and not (one.without_text or one.is_known):
            return str(one)
        what = "record" if _LINE.search(one.place) else "file"
        example = "e.g. " if len({each.reason for each in self.first}) > 1 else ""
        why = " without text" if one.without_text else f" ({example}{_shorten(one.reason)})"
        why = " with the id and text of another" if one.is_known else why
        more = f" and {self.n - len(self.first)} more" if self.n > len(self.first) else ""
        return f"{count(self.n, what)}{why}: {self._places()}{more}{self._advice()}"

    def _advice(self) -> str:
        """Return what all reasons say behind what is wrong: ``; save the table as UTF-8``."""
        one, *others = {each.reason.partition(";")[2] for each in self.first}
        is_told = one and not (others or self.first[0].without_text or self.first[0].is_known)
        return f";{one}" if is_told else ""

    def _places(self) -> str:
        """Name the file once for all its lines."""
        named, before = list[str](), None
        for place in (one.place for one in self.first):
            file, _, number = place.rpartition(":") if _LINE.search(place) else (place, "", "")
            named.append(number if file == before else place)
            before = file
        return ", ".join(named)


def kind_of(one: Skipped) -> str:
    """Return what records that are left out for the same reason have in common."""
    return f"{bool(_LINE.search(one.place))} {_VALUE.sub('', _shorten(one.reason))}"


def _shorten(reason: str) -> str:
    return reason.partition(";")[0]


MAX_WORDS = 350  # most abstracts stay whole


def cut_text(text: str, *, max_words: int | None = MAX_WORDS) -> list[str]:
    """Cut a text into the fewest parts of about equal length; a short one stays as it is."""
    # Parts are verbatim and hold every sentence once; words are told by white space, and a sentence
    # of more than *max_words* is a part. None cuts nothing.
    n_words = len(text.split())
    if max_words is None or n_words <= max_words:
        return [text.strip()] if n_words else []
    goal = n_words / ceil(n_words / max_words)
    groups = _group_sentences(split_sentences(text), goal, max_words)
    return [text[group[0].start : group[-1].end] for group in groups]


def cut_article(article: Article, max_words: int | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cut the sections of a document, and say where each part stands."""
    for section in [article.whole] if max_words is None else article.sections:
        end = 0
        for part in cut_text(section.text, max_words=max_words):
            start = section.text.index(part, end)
            end = start + len(part)
            yield part, section.find_place(start, end)


def _group_sentences(
    sentences: list[Sentence], goal: float, limit: int
) -> Iterator[list[Sentence]]:
    group: list[Sentence] = []
    n_words = 0
    for sentence in sentences:
        length = len(sentence.text.split())
        if group and (n_words >= goal or n_words + length > limit):
            yield group
            group, n_words = [], 0
        group.append(sentence)
        n_words += length
    if group:
        yield group


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


Opener = Callable[[Path], ZipFile]


class InFile(NamedTuple):
    """A file that may be read."""

    path: Path  # as it is told; of a member of an archive ARCHIVE/NAME
    size: int  # bytes, of a member when unpacked
    archive: Callable[[], ZipFile] | None = None  # opens it
    member: str = ""

    @contextmanager
    def open(self) -> Iterator[tuple[BinaryIO, BinaryIO]]:
        """Open it, decompressed, and the file as it is stored, which tells how far it is read."""
        if self.archive is None:
            with open_records(self.path) as opened:
                yield opened
            return
        try:
            raw = cast("BinaryIO", self.archive().open(self.member))
        except (BadZipFile, RuntimeError, NotImplementedError, OSError) as error:
            raise InputError(f"{self.path} cannot be unpacked: {error}") from error
        with raw, open_records(self.path, io.BufferedReader(_Member(raw, self.path))) as opened:
            yield opened


class _Member(io.RawIOBase):
    """A member of an archive; says which one is damaged."""

    def __init__(self, raw: BinaryIO, path: Path) -> None:
        self._raw, self._path = raw, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
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
    """Return the files that can be read, each once however named, and those of other kinds."""
    # Folders and archives are looked through in order of names. Links are followed, into no folder
    # twice. Hidden files are passed over. Of all archives one is open at a time.
    found, others = dict[str, InFile](), list[Skipped]()
    opener = lru_cache(maxsize=1)(ZipFile)
    for source in sources:
        files, skipped = _find(source, pdf_reader, opener)
        for file in files:
            found.setdefault(os.path.realpath(file.path), file)
        others += skipped
    return list(found.values()), others


def _find(path: Path, pdf_reader: str, opener: Opener) -> tuple[list[InFile], list[Skipped]]:
    if path.is_dir():
        unread = list[Skipped]()
        files = list(_unpack(_walk(path, unread.append), unread.append, opener))
        return _choose(files, unread, pdf_reader, f"the folder {str(path)!r}")
    if path.exists():
        if path.suffix.lower() == ZIP:
            files = _list_archive(path, opener)
            return _choose(files, [], pdf_reader, f"the archive {str(path)!r}")
        return [_check_kind(path, pdf_reader)], []
    if _PATTERN.isdisjoint(str(path)):
        raise InputError(f"no such file: {str(path)!r}")
    matches = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
    if not matches:
        raise InputError(f"no file matches {str(path)!r}")
    unread = list[Skipped]()
    inside = [file for one in matches for file in _unpack(_files_of(one), unread.append, opener)]
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


def _unpack(
    files: Iterable[InFile], on_skip: Callable[[Skipped], None], opener: Opener
) -> Iterator[InFile]:
    """Yield the files, and in place of an archive what is in it."""
    for file in files:
        if file.path.suffix.lower() != ZIP:
            yield file
            continue
        try:
            yield from _list_archive(file.path, opener)
        except InputError as error:
            on_skip(Skipped(file.path.as_posix(), str(error).removeprefix(f"{file.path} ")))


def _list_archive(path: Path, opener: Opener) -> list[InFile]:
    try:
        archive = opener(path)
    except (BadZipFile, OSError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return [
        InFile(Path(f"{path}/{one.filename}"), one.file_size, partial(opener, path), one.filename)
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
        if why := _look_for_own(file, kind):
            others.append(Skipped(file.path.as_posix(), why, is_written=True))
        elif kind in KNOWN_SUFFIXES and kind not in reasons:
            known.append(file)
        else:
            others.append(_name_unread(file, suffix, reasons.get(kind, "")))
    if not known:
        found = "".join(f"; {one}" for one in describe_left_out(others))
        raise InputError(f"{where} holds no {', '.join(KNOWN_SUFFIXES)} file{found}")
    return known, [*others, *unread]


def _look_for_own(file: InFile, suffix: str) -> str:
    """Return why a file is no paper, empty if it may be; what cannot be opened is told of later."""
    if suffix not in MAY_BE_WRITTEN:
        return ""
    try:
        with file.open() as (source, _):
            return why_no_paper(source, suffix)
    except (InputError, OSError):
        return ""


def _name_unread(file: InFile, suffix: str, reason: str) -> Skipped:
    """Name a file that is not read: for a *reason* that can be mended, or as of another kind."""
    place = file.path.as_posix()
    return Skipped(place, reason) if reason else Skipped(place, OTHER_KIND, suffix or _NO_SUFFIX)


_ZOTERO_NAME = re.compile(r".+ - ((?:19|20)\d\d) - (.+)")
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_LEAST_WORDS = 3  # of a file's name that is a title; "1-s2.0-S0003-main" is none


def read_file_name(file: Path) -> dict[str, Any]:
    """Return `title`, which may be empty, and maybe `year`, as in Zotero's ``A - 2019 - B.pdf``."""
    stem = re.sub(r"(?i)\.(?:pdf|docx?)(?:\.gz)?$", "", file.name).replace("_", " ")
    if found := _ZOTERO_NAME.fullmatch(stem):
        return {"title": found[2], "year": int(found[1])}
    stem = stem if " " in stem else stem.replace("-", " ")
    return {"title": stem if len(_LONG_WORD.findall(stem)) >= _LEAST_WORDS else ""}
