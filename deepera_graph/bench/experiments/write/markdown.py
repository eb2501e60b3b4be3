"""What an experiment found, as Markdown."""

from collections.abc import Sequence

from deepera_graph.bench.experiments.experiment import Experiment, ExperimentResult, Grid
from deepera_graph.bench.experiments.write.cells import head, shown


def markdown(experiment: Experiment, result: ExperimentResult, *, figures: bool = True) -> str:
    """Return one document: tables, what was found, and links to the figures beside it."""
    parts = [f"# {experiment.title}", experiment.measures]
    if result.findings:
        parts.append("\n".join(f"- {line}" for line in result.findings))
    for grid in result.grids:
        parts += [f"## {grid.title}", *([grid.note] if grid.note else []), table(grid)]
    if figures:
        parts += [f"![{one.title}]({one.name}.png)" for one in result.drawings]
    return "\n\n".join(parts) + "\n"


def table(grid: Grid) -> str:
    """Return a grid as a Markdown table, without its title."""
    if not grid.rows:
        return "Nothing to measure."
    units = [column.unit for column in grid.columns]
    lines = [
        [_escaped(head(column)) for column in grid.columns],
        ["---" if unit == "text" else "---:" for unit in units],
        *([_escaped(shown(cell, unit)) for cell, unit in zip(row, units, strict=True)]
          for row in grid.rows),
    ]  # fmt: skip
    return "\n".join(map(_line, lines))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
