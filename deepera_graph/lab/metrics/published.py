"""Which reading of a printed "relative position" fits the hit rates that are printed beside it.

The DeepEra paper prints HitRate@1, HitRate@3 and an RP without its formula. The two hit rates bound
what any mean over questions can be, so that each row says which readings are possible.
"""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from deepera_graph.calibration.instance import DatasetError, MetricError

TOLERANCE = 0.6  # points: for rounding, and for figures that are means over three runs
N_PASSAGES = 30  # of a pool in the paper
_COLUMNS = ("HitRate@1", "HitRate@3", "RP")


class PrintedRow(NamedTuple):
    """One row of a printed table, in percent."""

    name: str
    hit_1: float
    hit_3: float
    position: float


class Bounds(NamedTuple):
    """The lowest and the highest mean that two hit rates allow, in percent."""

    low: float
    high: float

    def hold(self, value: float, *, tolerance: float = TOLERANCE) -> bool:
        """Whether a printed figure is within them."""
        return self.low - tolerance <= value <= self.high + tolerance


class PositionCheck(NamedTuple):
    """How many rows of a table fit each reading; one may fit both."""

    n_rows: int
    n_reciprocal: int  # the mean reciprocal rank
    n_linear: int  # 1 - (rank - 1) / (N - 1)
    neither: tuple[str, ...]  # names of the rows that fit none


def reciprocal_bounds(hit_1: float, hit_3: float) -> Bounds:
    """Return what a mean reciprocal rank may be, in percent.

    Between rank 1 and rank 3 a question gives 1/2 or 1/3; behind, between 0 and 1/4.
    """
    _check(hit_1, hit_3)
    between = hit_3 - hit_1
    return Bounds(hit_1 + between / 3, hit_1 + between / 2 + (100 - hit_3) / 4)


def linear_bounds(hit_1: float, hit_3: float, *, n_passages: int = N_PASSAGES) -> Bounds:
    """Return what a mean of 1 - (rank - 1) / (N - 1) may be, in percent."""
    _check(hit_1, hit_3)
    steps, between = n_passages - 1, hit_3 - hit_1
    low = hit_1 + between * (1 - 2 / steps)
    return Bounds(low, hit_1 + between * (1 - 1 / steps) + (100 - hit_3) * (1 - 3 / steps))


def _check(hit_1: float, hit_3: float) -> None:
    if not 0 <= hit_1 <= hit_3 <= 100:
        raise MetricError(
            f"hit rates must be in percent, HitRate@1 not above HitRate@3, got {hit_1} and {hit_3}"
        )


def check_positions(
    rows: Iterable[PrintedRow], *, n_passages: int = N_PASSAGES, tolerance: float = TOLERANCE
) -> PositionCheck:
    """Count the rows of a table that each reading of the position explains."""
    n_rows = n_reciprocal = n_linear = 0
    neither = []
    for row in rows:
        reciprocal = reciprocal_bounds(row.hit_1, row.hit_3)
        linear = linear_bounds(row.hit_1, row.hit_3, n_passages=n_passages)
        fits = [one.hold(row.position, tolerance=tolerance) for one in (reciprocal, linear)]
        n_rows += 1
        n_reciprocal += fits[0]
        n_linear += fits[1]
        if not any(fits):
            neither.append(row.name)
    return PositionCheck(n_rows, n_reciprocal, n_linear, tuple(neither))


def read_printed_rows(path: Path) -> Sequence[PrintedRow]:
    """Read a CSV file with the columns ``name``, ``HitRate@1``, ``HitRate@3`` and ``RP``.

    Raises:
        DatasetError: A column is missing, or a cell is no number; the message names the line.
    """
    rows: list[PrintedRow] = []
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            try:
                numbers = [float(line[column]) for column in _COLUMNS]
            except (KeyError, TypeError, ValueError) as error:
                raise DatasetError(
                    f"{path}, row {len(rows) + 1}: needs numbers in {', '.join(_COLUMNS)}"
                ) from error
            rows.append(PrintedRow(line.get("name") or f"row {len(rows) + 1}", *numbers))
    return rows
