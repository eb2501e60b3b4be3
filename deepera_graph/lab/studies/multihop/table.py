"""Tables of what methods reach on questions of several hops."""

from collections.abc import Sequence
from typing import Any

from deepera_graph.calibration.statistics import Interval
from deepera_graph.lab.studies.multihop.methods import MEANINGS, OF_STEPS
from deepera_graph.lab.studies.multihop.study import HopRow
from deepera_graph.lab.tables import format_rows


def hop_table(rows: Sequence[HopRow]) -> str:
    """Return a Markdown table a data set, in percent, best recall at 10 in bold."""
    tables = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == dataset]
        tables.append(_one_table(dataset, own))
    return "\n".join(tables)


def describe_methods(rows: Sequence[HopRow]) -> str:
    """Return what the methods of a table do, as a Markdown list."""
    names = dict.fromkeys(row.method for row in rows)
    lines = [f"- {name}: {MEANINGS[name]}" for name in names]
    if any(name in OF_STEPS for name in names):
        lines += ["", "Sub-questions are given with the right answers of those before them."]
    return "\n".join(lines)


def _one_table(dataset: str, rows: Sequence[HopRow]) -> str:
    cutoffs = list(rows[0].recall)
    main = 10 if 10 in cutoffs else cutoffs[-1]
    best = max(row.recall[main].mean for row in rows)
    head = [
        "method",
        *(f"recall@{k}" for k in cutoffs),
        *(f"all@{k}" for k in cutoffs if k >= main),
        "minus baseline",
        "read",
        "s",
    ]
    body = []
    for row in rows:
        cells = [
            _percent(row.recall[k], interval=k == main, bold=k == main and _is(row, best, main))
            for k in cutoffs
        ]
        cells += [_percent(row.complete[k]) for k in cutoffs if k >= main]
        cells.append("" if row.difference is None else _signed(row.difference))
        body.append([row.method, *cells, f"{row.passages:.0f}", f"{row.seconds:.2f}"])
    return f"### {dataset}: {rows[0].n_questions} questions\n\n{format_rows(head, body)}"


def _is(row: HopRow, best: float, cutoff: int) -> bool:
    return row.recall[cutoff].mean == best


def _percent(one: Interval, *, interval: bool = False, bold: bool = False) -> str:
    mean = f"{100 * one.mean:.1f}"
    mean = f"**{mean}**" if bold else mean
    return f"{mean} [{100 * one.low:.1f}, {100 * one.high:.1f}]" if interval else mean


def _signed(one: Interval) -> str:
    return f"{100 * one.mean:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


def plain_rows(rows: Sequence[HopRow]) -> list[dict[str, Any]]:
    """Return rows as plain data, shares in [0, 1]."""
    return [
        {
            "dataset": row.dataset,
            "method": row.method,
            "questions": row.n_questions,
            "recall": {str(k): one._asdict() for k, one in row.recall.items()},
            "complete": {str(k): one._asdict() for k, one in row.complete.items()},
            "difference": None if row.difference is None else row.difference._asdict(),
            "passages": row.passages,
            "seconds": row.seconds,
        }
        for row in rows
    ]
