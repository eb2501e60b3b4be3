"""How much each ranker loses when look-alikes are added: relative change between two data sets."""

from typing import NamedTuple

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.table import Table


class Change(NamedTuple):
    """One metric of one ranker on two data sets.

    `relative` is (after - before) / before, e.g. -0.5 for half as much; not a number where before
    is 0.
    """

    ranker: str
    metric: str
    before: float
    after: float
    relative: float


def changes(table: Table, before: str, after: str) -> list[Change]:
    """Return a change a ranker and metric, in the order of the table.

    Args:
        table: It holds both data sets.
        before: Name of the data set without look-alikes.
        after: Name of the one with them.

    Raises:
        MetricError: The table does not hold one of the two.
    """
    names = [survey.name for survey in table.surveys]
    for name in (before, after):
        if name not in names:
            raise MetricError(f"data set must be one of {names}, got {name!r}")
    return [
        Change(row.ranker, metric, old.mean, new.mean, _relative(old.mean, new.mean))
        for row in table.rows
        if row.dataset == before
        for metric, old, new in zip(
            table.metrics,
            row.estimates,
            table.of(after, row.ranker).estimates,
            strict=True,
        )
    ]


def _relative(before: float, after: float) -> float:
    return (after - before) / before if before else float("nan")
