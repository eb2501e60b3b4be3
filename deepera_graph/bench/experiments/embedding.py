"""Embedding study: how well retrieval tells evidence from look-alikes put into its store."""

from collections.abc import Sequence

import numpy as np

from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.experiments.experiment import (
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
)
from deepera_graph.bench.experiments.lab import Lab, Material
from deepera_graph.bench.experiments.numbers import estimates
from deepera_graph.bench.experiments.searchers import Scores, Searcher, searchers
from deepera_graph.bench.experiments.store import Store, first_places, gather, ranks
from deepera_graph.bench.experiments.ways import curve
from deepera_graph.bench.figures.curves import Curve, CurveFigure
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.named import compute
from deepera_graph.bench.table import Estimate

CUTS = (1, 3, 5, 10, 30)
_DEEPEST = max(CUTS)
_Row = tuple[Cell, ...]


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    rows: list[_Row] = []
    findings = []
    for material in lab.materials():
        store = gather(material.dataset)
        if store.look_alikes:
            for name, search in searchers(lab.setup).items():
                try:
                    rows += _rows(lab, material, store, name, search)
                except DatasetError as error:
                    findings.append(f"{material.name}: {name} is left out: {error}.")
            findings.append(
                f"{material.name}: a store of {len(store.texts):,} passages, of which "
                f"{len(store.look_alikes):,} are look-alikes."
            )
        else:
            findings.append(f"{material.name}: left out, as it holds no labelled look-alike.")
    grid = Grid(
        name="embeddings",
        title="Embedding study",
        columns=(
            Column("data set"),
            Column("embeddings"),
            Column("look-alikes in", "percent"),
            *(Column(f"NRS@{k}", "percent") for k in CUTS),
            Column("CDR", "percent"),
            Column("HitRate@10", "percent"),
        ),
        rows=tuple(rows),
        note=(
            "All passages of a data set in one store, with a share of its look-alikes drawn at "
            "random. NRS@k: share of the first k that are no look-alike, of any question; CDR: "
            "share of the pairs of a golden passage and its own look-alike in the right order. "
            "bm25 and lsa (TF-IDF cut down to 256 dimensions) need no model."
        ),
    )
    return ExperimentResult(grids=(grid,), drawings=_figures(rows), findings=tuple(findings))


def measure(store: Store, scores: Scores, share: float, seed: int) -> list[list[Judged]]:
    """Return the first 30 places of each question, and its evidence and look-alikes in order.

    Args:
        store: All passages.
        scores: Shape (n_questions, n_texts).
        share: Share of the look-alikes put in, in (0, 1].
        seed: Of the draw.
    """
    places = store.with_share(share, seed)
    inside = set(map(int, places))
    heads, pairs = [], []
    for number, (wanted, row) in enumerate(zip(store.questions, scores, strict=True)):
        rank = ranks(row, places)
        mine = {str(own): str(parent) for parent, own in wanted.pairs if own in inside}
        golden = {str(place): 1 for place in wanted.golden}
        head = tuple(map(str, first_places(row, places, _DEEPEST)))
        others = dict.fromkeys(id for id in head if int(id) in store.look_alikes)
        heads.append(Judged(str(number), head, len(places), golden, others))
        members = sorted({*mine, *mine.values()}, key=lambda id, rank=rank: rank[int(id)])  # type: ignore[misc]  # binds the loop's own
        pairs.append(Judged(str(number), tuple(members), len(places), golden, mine))
    return [heads, pairs]


def _rows(lab: Lab, material: Material, store: Store, name: str, search: Searcher) -> list[_Row]:
    """Measure one way to search.

    Raises:
        DatasetError: It cannot search these texts.
    """
    scores = search(store.texts, [one.question for one in store.questions])
    rows: list[_Row] = []
    for share in lab.setup.shares:
        heads, pairs = measure(store, scores, share, lab.setup.seed)
        columns = [
            *(compute(f"NRS@{k}", heads) for k in CUTS),
            compute("CDR", pairs),
            compute("HitRate@10", heads),
        ]
        rows.append((material.name, name, share, *estimates(columns, lab.setup)))
    return rows


def _figures(rows: Sequence[_Row]) -> tuple[CurveFigure, ...]:
    if not rows:
        return ()
    return tuple(
        CurveFigure(
            name=name,
            title=title,
            x_label="look-alikes in, percent",
            y_label=f"{label}, percent",
            panels=_panels(rows, column),
        )
        for name, title, label, column in (
            ("nrs", "Share of the first 10 that are no look-alike", "NRS@10", 3 + CUTS.index(10)),
            ("cdr", "Evidence before its own look-alike", "CDR", 3 + len(CUTS)),
        )
    )


def _panels(rows: Sequence[_Row], column: int) -> dict[str, dict[str, Curve]]:
    panels: dict[str, dict[str, Curve]] = {}
    for data, name in dict.fromkeys((str(row[0]), str(row[1])) for row in rows):
        mine = [row for row in rows if row[:2] == (data, name)]
        x = [100 * float(row[2]) for row in mine if isinstance(row[2], float)]
        means = [row[column] for row in mine]
        known = [one if isinstance(one, Estimate) else Estimate(*[np.nan] * 4) for one in means]
        panels.setdefault(data, {})[name] = curve(x, known)
    return panels


EXPERIMENT = Experiment(
    name="embeddings",
    title="Embedding study",
    measures=(
        "How well retrieval tells evidence from look-alikes that were put into its store: NRS and "
        "CDR, for BM25 and for embeddings."
    ),
    run=run,
)
