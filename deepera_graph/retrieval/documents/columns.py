"""Two columns that a PDF file writes line by line, put in the order of reading."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

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
    """Return a page in the order of reading: *plain*, unless that runs across two columns.

    Most files have their columns one after the other, and so do the libraries. Where they do not,
    the rows that a gutter divides are read left column first; a row that crosses it, such as a
    title, stands between what is above and below it.

    Args:
        rows: What stands on the page, from top to bottom.
        plain: The text as the library gives it.
    """
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
    """Return where, from top to bottom, the right column follows the left one.

    They stand in one row, or in two where the lines of the columns are not at one height.
    """
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
