"""Who reads the pages of a PDF, pypdf or PDFium as Chromium has it, and their columns."""

import io
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from threading import Lock
from typing import Any, Literal, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.packages import call_foreign, check_extra, describe_error, import_extra
from deepera_graph.settings.ranges import check_choice

# As TeX draws them, before their letters: ``ˇSimi´c``, ``Garc´ ıa``; and no "5´ end".
_ACCENTS = dict(zip("´¨ˇ˘˙˚˝", "\u0301\u0308\u030c\u0306\u0307\u030a\u030b", strict=True))
_ACCENTED = re.compile(rf"(?<!\d)(?P<accent>[{''.join(_ACCENTS)}])\x20?(?P<letter>[A-Za-zı])")
_MIDDLE = (0.3, 0.7)  # of the width of a page's text, where a gutter may be
_LEAST_ROWS = 5  # with words on both sides of it
_LEAST_SHARE = 0.4  # of all rows
_LEAST_WORDS = 3  # in a row of a column, on average: fewer are a table
_SHOWN_BESIDE = 12  # letters on either side of the gutter, by which a text is seen to run across
_N_PLACES = 200  # that are tried


class Segment(NamedTuple):
    """Words of a row without a wide gap; left and right are on any one scale."""

    left: float
    right: float
    text: str


Row = Sequence[Segment]  # from left to right, not empty


def order_columns(rows: Sequence[Row], plain: str) -> str:
    """Return a page in the order of reading: *plain*, unless that runs across two columns."""
    # Most files have their columns one after the other, and so do the libraries. Where they do not,
    # the rows that a gutter divides are read left column first; a row that crosses it, such as a
    # title, stands between what is above and below it.
    gutter = _find_gutter(rows)
    if gutter is None or not _runs_across(rows, gutter, plain):
        return plain
    lines, right = list[str](), list[str]()
    for row in rows:
        if any(one.left < gutter < one.right for one in row):
            lines += [*right, _join(row)]
            right = []
            continue
        first, second = _divide(row, gutter)
        lines += [_join(first)] if first else []
        right += [_join(second)] if second else []
    return "\n".join([*lines, *right])


def _divide(row: Row, gutter: float) -> tuple[Row, Row]:
    """Return what stands left and right of it."""
    left = [one for one in row if one.right <= gutter]
    return left, [one for one in row if one.left >= gutter]


def _join(row: Row) -> str:
    return " ".join(one.text.strip() for one in row)


def _find_gutter(rows: Sequence[Row]) -> float | None:
    """Return where two columns meet; None if there are not two."""
    segments = [one for row in rows for one in row]
    if not segments:
        return None
    begin, end = min(one.left for one in segments), max(one.right for one in segments)
    first, last = (begin + share * (end - begin) for share in _MIDDLE)
    places = [first + (last - first) * at / _N_PLACES for at in range(_N_PLACES + 1)]
    crossed = {place: sum(one.left < place < one.right for one in segments) for place in places}
    least = min(crossed.values())
    best = [place for place in places if crossed[place] == least]
    gutter = best[len(best) // 2]
    return gutter if _divides(rows, gutter) else None


def _divides(rows: Sequence[Row], gutter: float) -> bool:
    """Tell whether there is prose on both sides, and not the columns of a table."""
    pairs = _find_pairs(rows, gutter)
    n_lines = sum(any(one.right <= gutter for one in row) for row in rows)
    if len(pairs) < max(_LEAST_ROWS, _LEAST_SHARE * n_lines):
        return False
    words = [[len(one.text.split()) for one in pair] for pair in pairs]
    return all(sum(side) >= _LEAST_WORDS * len(pairs) for side in zip(*words, strict=True))


def _find_pairs(rows: Sequence[Row], gutter: float) -> list[tuple[Segment, Segment]]:
    """Return where, from top to bottom, the right column follows the left one."""
    # They stand in one row, or in two where the lines of the columns are not at one height.
    return [
        (one, following)
        for one, following in pairwise(one for row in rows for one in row)
        if one.right <= gutter <= following.left
    ]


def _runs_across(rows: Sequence[Row], gutter: float, plain: str) -> bool:
    """Tell whether most rows of a text go on from the left column into the right one."""
    letters = "".join(plain.split())
    seams = [
        "".join(left.text.split())[-_SHOWN_BESIDE:] + "".join(right.text.split())[:_SHOWN_BESIDE]
        for left, right in _find_pairs(rows, gutter)
    ]
    return sum(seam in letters for seam in seams) > len(seams) / 2


PdfReader = Literal["pypdf", "pdfium"]
_PACKAGES: Mapping[str, tuple[str, str]] = {  # the module, and the extra that brings it
    "pypdf": ("pypdf", "documents"),
    "pdfium": ("pypdfium2", "pdfium"),
}
IMAGE = "an image without text"
_BROKEN = "broken, or not a PDF file"
_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\0": ""}
)
_LONG_LINES = 64  # letters: a page of shorter ones was read column by column
_STEP, _MANY_STEPS = 0.3, 5  # of the width of a page, to the right; as many as so many rows take
_WORDS = re.compile(r"\S(?:.*?\S)?(?= {3}|\s*$)")
_SOFT_BREAK = re.compile("[\ufffe\x02]\r?\n?")  # how PDFium marks a hyphen that ends a line


class PdfPages(NamedTuple):
    """What was read of the pages, by their numbers, counted from 1."""

    texts: dict[int, str]
    bad: dict[int, str]  # what is wrong with the others
    info: dict[str, str]  # what the file says of itself: ``Title``, ``Author``, ...


def check_pdf_reader(reader: str, file: Path | None = None) -> None:
    """Raise `SettingsError` unless there is such a reader, and its package is installed."""
    check_reader_name(reader)
    module, extra = _PACKAGES[reader]
    what = "reading PDF files" if file is None else f"reading {file}"
    check_extra(module, extra=extra, what=what)


def check_reader_name(reader: str) -> None:
    """Raise `SettingsError` unless there is such a reader."""
    check_choice("pdf_reader", reader, tuple(_PACKAGES))


def read_pages(name: object, content: bytes, reader: PdfReader) -> PdfPages:
    """Read the pages of a file, each in the order of reading; a bad one costs itself alone."""
    read = _read_with_pypdf if reader == "pypdf" else _read_with_pdfium
    return read(name, content)


def _gather(n_pages: int, read: Callable[[int], str]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the texts of the pages, and what is wrong with those that cannot be read."""
    texts, bad = dict[int, str](), dict[int, str]()
    for number in range(1, n_pages + 1):
        try:
            text = read(number - 1)
        except Exception as error:  # noqa: BLE001  # the boundary to foreign code
            bad[number] = IMAGE if isinstance(error, _ImageError) else describe_error(error)
        else:
            clean = text.translate(_LIGATURES).encode("utf-8", "ignore").decode()
            texts[number] = _ACCENTED.sub(_put_on, clean)
    return texts, bad


def _put_on(found: re.Match[str]) -> str:
    """Put an accent on the letter behind it; one that the letter cannot have stays."""
    letter = found["letter"].replace("ı", "i")
    whole = unicodedata.normalize("NFC", letter + _ACCENTS[found["accent"]])
    return whole if len(whole) == 1 else found[0]


class _ImageError(Exception):
    """A page shows something, and has no text."""


def _read_with_pypdf(name: object, content: bytes) -> PdfPages:
    pypdf: Any = import_extra("pypdf")

    def open_file() -> Any:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError(f"{name}: protected by a password; save a copy without one")
        if not len(reader.pages):
            raise InputError(f"{name}: has no pages")
        return reader

    with _Quiet():
        reader = call_foreign(f"{name}: {_BROKEN}", open_file, error=InputError)
        texts, bad = _gather(len(reader.pages), lambda at: _read_pypdf_page(reader.pages[at]))
        return PdfPages(texts, bad, _read_pypdf_info(reader))


def _read_pypdf_page(page: Any) -> str:
    lefts: list[float] = []

    def note(text: str, shift: Sequence[float], place: Sequence[float], *_: Any) -> None:
        if text.strip():
            lefts.append(place[4] * shift[0] + place[5] * shift[2] + shift[4])

    text: str = page.extract_text(visitor_text=note)
    if not text.strip():
        if "/Resources" in page and len(page["/Resources"].get("/XObject", ())) > 0:
            raise _ImageError
        return text
    try:
        if not _may_run_across(text, lefts, float(page.mediabox.width)):
            return text
        drawn = page.extract_text(extraction_mode="layout")
    except Exception:  # noqa: BLE001  # the text is there; a layout is more than some pages have
        return text
    return order_columns(list(_rows_of(drawn)), text)


def _may_run_across(text: str, lefts: Sequence[float], width: float) -> bool:
    """Tell whether a page may go to and fro between columns, before it is drawn to find out."""
    lengths = [len(line) for line in text.splitlines() if line.strip()]
    steps = sum(after - before > _STEP * width for before, after in pairwise(lefts))
    return median(lengths) >= _LONG_LINES or steps >= _MANY_STEPS


def _rows_of(drawn: str) -> Iterator[Row]:
    """Yield the rows of a page that is drawn with letters of one width."""
    for line in drawn.splitlines():
        if row := [Segment(*found.span(), found[0]) for found in _WORDS.finditer(line)]:
            yield row


def _read_pypdf_info(reader: Any) -> dict[str, str]:
    """Return what the file says of itself; nothing if that is broken."""
    try:
        about = reader.metadata or {}
        return {str(key).lstrip("/"): str(value).strip() for key, value in about.items()}
    except Exception:  # noqa: BLE001  # the boundary to foreign code
        return {}


class _Quiet:
    """Keeps pypdf from telling what it mends in files; what it cannot mend it raises.

    The level of its logger is that of the process: it is put back when the last reader has done.
    """

    _logger, _lock = logging.getLogger("pypdf"), Lock()
    _n_readers, _before = 0, logging.NOTSET

    def __enter__(self) -> None:
        with self._lock:
            if not _Quiet._n_readers:
                _Quiet._before = self._logger.level
                self._logger.setLevel(logging.CRITICAL)
            _Quiet._n_readers += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            _Quiet._n_readers -= 1
            if not _Quiet._n_readers:
                self._logger.setLevel(_Quiet._before)


def _read_with_pdfium(name: object, content: bytes) -> PdfPages:
    pdfium: Any = import_extra("pypdfium2")
    password_error = import_extra("pypdfium2.raw").FPDF_ERR_PASSWORD

    def open_file() -> Any:
        try:
            document = pdfium.PdfDocument(content)
        except pdfium.PdfiumError as error:
            if getattr(error, "err_code", None) == password_error:
                message = f"{name}: protected by a password; save a copy without one"
                raise InputError(message) from error
            raise
        if not len(document):
            raise InputError(f"{name}: has no pages")
        return document

    document = call_foreign(f"{name}: {_BROKEN}", open_file, error=InputError)
    try:
        texts, bad = _gather(len(document), lambda at: _read_pdfium_page(document, at))
        info = {key: value.strip() for key, value in document.get_metadata_dict().items() if value}
    finally:
        document.close()
    return PdfPages(texts, bad, info)


def _read_pdfium_page(document: Any, at: int) -> str:
    page = document[at]
    try:
        texts = page.get_textpage()
        try:
            text = _SOFT_BREAK.sub("-\n", texts.get_text_range()).replace("\r\n", "\n")
            if not text.strip():
                if any(True for _ in page.get_objects()):
                    raise _ImageError
                return text
            boxes = [texts.get_rect(n) for n in range(texts.count_rects())]
            rows = _rows_of_boxes([(box, texts.get_text_bounded(*box)) for box in boxes])
        finally:
            texts.close()
    finally:
        page.close()
    return order_columns(rows, text)


Box = tuple[float, float, float, float]  # left, bottom, right, top


def _rows_of_boxes(boxes: Sequence[tuple[Box, str]]) -> list[Row]:
    """Put boxes that are at one height into rows, from top to bottom."""
    rows: list[list[tuple[Box, str]]] = []
    for box, text in sorted(boxes, key=lambda one: -_height_of(one[0])):
        _, bottom, _, top = box
        if rows and bottom <= _height_of(rows[-1][0][0]) <= top:
            rows[-1].append((box, text))
        else:
            rows.append([(box, text)])
    return [[Segment(box[0], box[2], text.strip()) for box, text in sorted(row)] for row in rows]


def _height_of(box: Box) -> float:
    """Return where the middle of a box is."""
    return (box[1] + box[3]) / 2
