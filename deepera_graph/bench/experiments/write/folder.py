"""All files of one experiment in a folder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deepera_graph.bench.experiments.experiment import Experiment, ExperimentResult
from deepera_graph.bench.experiments.write.csv_file import csv_text
from deepera_graph.bench.experiments.write.latex import latex
from deepera_graph.bench.experiments.write.markdown import markdown
from deepera_graph.bench.figures.save import figure_bytes

MANIFEST = "manifest.json"


def write_experiment(
    experiment: Experiment, result: ExperimentResult, manifest: dict[str, Any], folder: Path
) -> None:
    """Write ``NAME.md``, each table as CSV and LaTeX, each figure as SVG and PNG, and a manifest.

    Nothing written depends on when or where.

    Args:
        experiment: Names the Markdown file.
        result: What was found.
        manifest: What it depended on, as plain data.
        folder: Made when it is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in _files(experiment, result):
        (folder / name).write_bytes(data)
    whole = {**manifest, "experiment": experiment.name, **result.facts}
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_bytes(text.encode())


def _files(experiment: Experiment, result: ExperimentResult) -> Iterator[tuple[str, bytes]]:
    yield f"{experiment.name}.md", markdown(experiment, result).encode()
    for grid in result.grids:
        yield f"{grid.name}.csv", csv_text(grid).encode()
        yield f"{grid.name}.tex", latex(grid).encode()
    for drawing in result.drawings:
        figure = drawing.draw()
        for suffix in (".svg", ".png"):
            yield f"{drawing.name}{suffix}", figure_bytes(figure, suffix)
