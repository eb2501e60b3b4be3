"""The results as Markdown tables, one for each number of passages."""

from collections.abc import Iterable, Sequence
from typing import Any

from figures import Figures
from rankers import BASE

Json = dict[str, Any]
_COLUMNS = (
    "ranker", "wall s", "ratio", "own s", "wall / own", "calls", "prompt tokens", "ratio",
    "uncached", "ratio", "output", "ratio", "peak MB",
)  # fmt: skip


def tables(results: Sequence[Json]) -> str:
    """Write all results; ratios are to RankGPT with windows of 20 and step 10."""
    counts = sorted({one["passages"] for one in results})
    return "\n\n".join(table(n, [one for one in results if one["passages"] == n]) for n in counts)


def table(n_passages: int, results: Sequence[Json]) -> str:
    """Write the results for one number of passages."""
    measured = {one["ranker"]: _medians(one) for one in results if one.get("questions")}
    base = measured.get(BASE)
    rows = [
        _row(one, measured[one["ranker"]], base)
        if one["ranker"] in measured
        else [one["name"], one["skipped"], *[""] * (len(_COLUMNS) - 2)]
        for one in results
    ]
    head = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS))]
    return "\n".join([f"**{n_passages} passages**", "", *head, *map(_line, rows)])


def _row(result: Json, found: Figures, base: Figures | None) -> list[str]:
    return [
        result["name"] + ("" if result["right"] else " (**wrong ranking**)"),
        f"{found.wall:.2f}",
        _ratio(found.wall, base and base.wall),
        f"{found.own:.2f}",
        _ratio(found.wall, found.own),
        f"{found.calls:.0f}" + (f" (+{found.refused:.0f} refused)" if found.refused else ""),
        f"{found.prompt:.0f}",
        _ratio(found.prompt, base and base.prompt),
        f"{found.uncached:.0f}",
        _ratio(found.uncached, base and base.uncached),
        f"{found.output:.0f}",
        _ratio(found.output, base and base.output),
        f"{result['peak_mb']:.0f}",
    ]


def _medians(result: Json) -> Figures:
    return Figures.medians([Figures(**one) for one in result["questions"]])


def _ratio(value: float, base: float | None) -> str:
    return f"{value / base:.2f}" if base else "–"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
