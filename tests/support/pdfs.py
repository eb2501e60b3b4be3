"""Small PDF files, written by hand: text in a standard font, images, many kinds of damage."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

_TOP, _LINE, _LEFT = 760, 14, 60
Column = Sequence[str]


def write_pdf(
    *pages: Sequence[str] | None,
    info: Mapping[str, str] | None = None,
    columns: Mapping[int, Sequence[Column]] | None = None,
    across: bool = False,
    lower: int = 0,
    drawn_as: bytes = b"",
) -> bytes:
    """Return a PDF file with the lines of each page; None is a page that is an image alone.

    Args:
        pages: The lines of each, in WinAnsi letters.
        info: What the file says of itself, such as ``{"Title": "Kelp"}``.
        columns: Of a page, by its place from 0, several columns below its lines.
        across: Whether the columns are written line by line, and not one after the other.
        drawn_as: What draws each page, in the language of PDF, in place of lines and columns.
        lower: How many points each column begins lower than the one before.
    """
    objects: list[bytes] = []

    def add(body: bytes) -> int:
        objects.append(body)
        return len(objects)

    catalog, tree, font, image = (add(b"") for _ in range(4))
    objects[catalog - 1] = b"<< /Type /Catalog /Pages %d 0 R >>" % tree
    objects[font - 1] = (
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
    )
    head = b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8"
    objects[image - 1] = _stream(b"\x7f", head + b" /ColorSpace /DeviceGray")
    kids = []
    for place, lines in enumerate(pages):
        if lines is None:
            drawn, resources = b"500 0 0 700 50 50 cm /Im Do", b"/XObject << /Im %d 0 R >>" % image
        else:
            drawn = _draw_page(lines, (columns or {}).get(place, []), across=across, lower=lower)
            drawn = drawn_as or drawn
            resources = b"/Font << /F %d 0 R >>" % font
        content = add(_stream(drawn))
        kids.append(
            add(
                b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
                b"/Resources << %b >> >>" % (tree, content, resources)
            )
        )
    named = b" ".join(b"%d 0 R" % kid for kid in kids)
    objects[tree - 1] = b"<< /Type /Pages /Kids [%b] /Count %d >>" % (named, len(kids))
    said = b"".join(
        b"/%b (%b) " % (key.encode(), _escape(text)) for key, text in (info or {}).items()
    )
    return _assemble(objects, b"/Root %d 0 R /Info %d 0 R" % (catalog, add(b"<< %b>>" % said)))


def _draw_page(
    lines: Sequence[str], columns: Sequence[Column], *, across: bool, lower: int
) -> bytes:
    drawn, top = [_draw(0, lines)], _TOP - _LINE * len(lines)
    if across:
        rows = list(zip_longest(*columns, fillvalue=""))
        for place, row in enumerate(rows):
            height = top - _LINE * place
            drawn += [_draw(at, [one], height - lower * at) for at, one in enumerate(row) if one]
    else:
        drawn += [_draw(at, column, top - lower * at) for at, column in enumerate(columns)]
    return b"\n".join(drawn)


def _draw(column: int, lines: Column, top: int = _TOP) -> bytes:
    begin = b"BT /F 10 Tf %d %d Td %d TL" % (_LEFT + 260 * column, top, _LINE)
    return b"\n".join([begin, *(b"(%b) Tj T*" % _escape(line) for line in lines), b"ET"])


def _escape(text: str) -> bytes:
    raw = text.encode("cp1252")
    return raw.replace(b"\\", rb"\\").replace(b"(", rb"\(").replace(b")", rb"\)")


def _stream(content: bytes, head: bytes = b"") -> bytes:
    return b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), head, content)


def _assemble(objects: Sequence[bytes], trailer: bytes) -> bytes:
    written, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    head = b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
    end = b"trailer\n<< /Size %d %b >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, len(written))
    return written + head + end


FOUR_REFERENCES = (  # parts of `draw_raised`: a list of references
    (b"References", b"0 -14 Td"),
    (b"", b""),
    (b"1. Lund A. Wax on apples. 2018.", b"0 -14 Td"),
    (b"", b""),
    (b"2. Roy B. More wax on apples. 2018.", b"0 -14 Td"),
    (b"", b""),
    (b"3. Mori K. Night cooling of pears. 2019.", b"0 -14 Td"),
    (b"", b""),
    (b"4. Dahl E. Sugar of pears in dry weeks. 2017.", b""),
)


def draw_raised(*parts):
    """A page as typesetters draw it: texts on a line, every other one small and raised."""
    drawn = [b"BT 60 700 Td"]
    for place, (text, at) in enumerate(parts):
        size = b"/F 6 Tf 4 Ts" if place % 2 else b"/F 11 Tf 0 Ts"
        drawn.append(b"%b (%b) Tj" % (size, text))
        drawn += [at] if at else []
    return b" ".join([*drawn, b"ET"])
