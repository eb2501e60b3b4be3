"""Fit the weights that say which way evidence points, and show what they reach.

    python benchmarks/judge/direction.py DATA [--more FOLDER] [--out FILE]

Labels may be partly known: where a study's answer is no, its passage contradicts or finds no
difference, and the fit counts the probability of both together.

DATA holds the folders ``scifact``, ``pubmedqa_dev``, ``evidence_inference`` and ``sciences``, as
far as they are there; *more* the labels ``directions.jsonl``, ``topics.jsonl`` and
``near_misses.jsonl``, and the libraries ``libraries.jsonl``, ``more_libraries.jsonl`` and
``unseen_libraries.jsonl``, which nothing is fitted to.

Checksums beside the weights are renewed. The second table is of wording and the shipped reader
together, as the judge goes by both, on at most 300 passages a set whose questions the reader was
not taught: how many have a direction, and how many of these are right, by set and by direction.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
from labelled import (
    MADE,
    NOT_YES,
    TRIALS,
    YES,
    LabelledDirection,
    Labels,
    label_libraries,
    read_labelled,
)
from numpy.typing import NDArray

from deepera_graph.judges.trained.direction.model import (
    DIRECTIONS,
    UNCLEAR,
    WEIGHTS,
    DirectionModel,
    choose_direction,
    describe,
)
from deepera_graph.judges.trained.model import SHIPPED, SUMS, EvidenceModel
from deepera_graph.lab.training.lessons.pools import hash_question
from deepera_graph.lab.training.lessons.snippets import digest
from deepera_graph.lab.training.train_reader import read_held_out
from deepera_graph.lab.training.weights import import_package, write_sums
from deepera_graph.schema import Direction

N_FOLDS: Final = 5
RIGHT: Final = 0.8  # share of what is not called unclear, in the mean of the sets
L2: Final = 6.0
FEWEST = 25  # passages that must have a feature
DIGITS = 2
COLUMNS = ("passages", "right", "macro_f1", "unclear", "right_of_clear")
N_READ = 300
Likely = Mapping[Direction, float]
Judged = tuple[LabelledDirection, Likely]
Called = tuple[Direction, bool]


@dataclass(frozen=True, slots=True)
class _Table:
    """Features of passages as a sparse matrix, and which directions may be right, 0 or 1."""

    values: Any  # scipy.sparse, (passages, features)
    allowed: NDArray[np.float64]  # (passages, directions)
    weights: NDArray[np.float64]  # (passages,)


def _tabulate(
    rows: Sequence[LabelledDirection],
    described: Sequence[Mapping[str, float]],
    places: Mapping[str, int],
) -> _Table:
    sparse = import_package("scipy.sparse")
    cells = [
        (row, places[name], value)
        for row, found in enumerate(described)
        for name, value in found.items()
        if name in places
    ]
    lines, columns, values = zip(*cells, strict=True)
    matrix = sparse.csr_matrix((values, (lines, columns)), shape=(len(rows), len(places)))
    allowed = np.array([[float(one in row.labels) for one in DIRECTIONS] for row in rows])
    return _Table(matrix, allowed, np.array([row.weight for row in rows]))


def fit_model(
    rows: Sequence[LabelledDirection],
    described: Sequence[Mapping[str, float]],
    *,
    l2: float = L2,
    threshold: float = 0.0,
) -> DirectionModel:
    """Fit a multinomial logistic regression in which the right one of several labels is hidden."""
    used = [place for place, row in enumerate(rows) if row.weight]
    rows, described = [rows[place] for place in used], [described[place] for place in used]
    seen = Counter(name for one in described for name in one)
    places = {name: n for n, name in enumerate(sorted(k for k in seen if seen[k] >= FEWEST))}
    table = _tabulate(rows, described, places)
    n_features, n_ways = len(places), len(DIRECTIONS)

    def loss(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = flat.reshape(n_features + 1, n_ways)
        sums = table.values @ weights[1:] + weights[0]
        sums -= sums.max(axis=1, keepdims=True)
        likely = np.exp(sums)
        likely /= likely.sum(axis=1, keepdims=True)
        right = (likely * table.allowed).sum(axis=1)
        wrong = likely - likely * table.allowed / right[:, None]
        wrong *= table.weights[:, None]
        slope = np.vstack([wrong.sum(axis=0), table.values.T @ wrong + l2 * weights[1:]])
        cost = -(table.weights * np.log(right)).sum() + l2 / 2 * (weights[1:] ** 2).sum()
        return float(cost), slope.ravel()

    start = np.zeros((n_features + 1) * n_ways)
    found = import_package("scipy.optimize").minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}
    )
    weights = found.x.reshape(n_features + 1, n_ways).round(DIGITS)
    kept = {name: tuple(weights[place + 1].tolist()) for name, place in places.items()}
    return DirectionModel(
        tuple(weights[0].tolist()), {name: one for name, one in kept.items() if any(one)}, threshold
    )


def cross_validate(
    rows: Sequence[LabelledDirection], described: Sequence[Mapping[str, float]]
) -> NDArray[np.float64]:
    """Return (passages, directions) probabilities, each from a fit that saw none of its group."""
    folds = np.array([int(digest(row.group)[:8], 16) % N_FOLDS for row in rows])
    likely = np.zeros((len(rows), len(DIRECTIONS)))
    for fold in range(N_FOLDS):
        others, own = np.flatnonzero(folds != fold).tolist(), np.flatnonzero(folds == fold).tolist()
        model = fit_model([rows[n] for n in others], [described[n] for n in others])
        for place in own:
            likely[place] = list(model.weigh(described[place]).values())
    return likely


def measure(
    rows: Sequence[LabelledDirection], likely: NDArray[np.float64], threshold: float
) -> dict[str, dict[str, Any]]:
    """Return by set what is right, in percent; where labels are partly known, of yes and not."""
    sets: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        sets[row.set].append(place)
        if row.set.startswith(TRIALS):
            sets[TRIALS].append(place)
    return {name: _measure_set(rows, likely, places, threshold) for name, places in sets.items()}


def _measure_set(
    rows: Sequence[LabelledDirection],
    likely: NDArray[np.float64],
    places: Sequence[int],
    threshold: float,
) -> dict[str, Any]:
    sort_of = _name_half if any(rows[n].labels == NOT_YES for n in places) else _name_one
    pairs = [sort_of(rows[n].labels, likely[n]) for n in places]
    sure = [pair for n, pair in zip(places, pairs, strict=True) if likely[n].max() >= threshold]
    return {
        "passages": len(pairs),
        "right": _share(pairs),
        "macro_f1": _macro_f1(pairs),
        "unclear": round(100 * (1 - len(sure) / len(pairs)), 1),
        "right_of_clear": _share(sure),
    }


def _name_half(labels: Labels, likely: NDArray[np.float64]) -> tuple[str, str]:
    says_yes = likely[DIRECTIONS.index("supports")] >= 0.5
    return "yes" if labels == YES else "not", "yes" if says_yes else "not"


def _name_one(labels: Labels, likely: NDArray[np.float64]) -> tuple[str, str]:
    return next(iter(labels)), DIRECTIONS[int(likely.argmax())]


def _share(pairs: Sequence[tuple[str, str]]) -> float:
    return round(100 * sum(one == other for one, other in pairs) / (len(pairs) or 1), 1)


def _macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    names = sorted({one for one, _ in pairs})
    right = Counter(one for one, other in pairs if one == other)
    both = Counter(one for pair in pairs for one in pair)
    return round(100 * sum(2 * right[one] / both[one] for one in names) / len(names), 1)


def choose_threshold(rows: Sequence[LabelledDirection], likely: NDArray[np.float64]) -> float:
    """Return the least threshold above which `RIGHT` of all is right, in the mean of the sets."""
    for threshold in np.arange(0.3, 0.9, 0.01).round(2).tolist():
        found = measure(rows, likely, threshold).items()
        right = [one["right_of_clear"] for name, one in found if name not in MADE]
        if np.mean(right) >= 100 * RIGHT:
            return float(threshold)
    return 0.9


class TrainedDirections(NamedTuple):
    """What came of fitting directions."""

    measured: Mapping[str, Mapping[str, Any]]  # by set, in percent, see `measure`
    rows: Sequence[LabelledDirection]
    likely: NDArray[np.float64]  # of each row, by a fit that saw none of its group


def train(data: Path, out: Path, *, more: Path | None = None) -> TrainedDirections:
    """Fit on all sets and write the weights with their record."""
    rows = read_labelled(data, more=more)
    described = [describe(row.question, row.text, row.quote) for row in rows]
    likely = cross_validate(rows, described)
    threshold = choose_threshold(rows, likely)
    real = [place for place, row in enumerate(rows) if row.set not in MADE]
    measured = measure([row for row in rows if row.set not in MADE], likely[real], threshold)
    model = fit_model(rows, described, threshold=threshold)
    record = {
        "model": "multinomial logistic regression, partly known labels marginalised",
        "penalty": L2,
        "passages": dict(Counter(row.set for row in rows if row.weight)),
        "folds": f"{N_FOLDS}, by question, article or topic",
        "cross_validated": measured,
        "directions": DIRECTIONS,
        "threshold": threshold,
        "bias": model.bias,
        "weights": model.weights,
    }
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    out.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8", newline="\n")
    return TrainedDirections(measured, rows, likely)


def list_unread(
    trained: TrainedDirections, model: DirectionModel, more: Path
) -> dict[str, list[Judged]]:
    """Return passages of questions that the reader was not taught, by set."""
    held_out = read_held_out(SHIPPED)
    found: dict[str, list[Judged]] = defaultdict(list)
    for row, likely in zip(trained.rows, trained.likely.tolist(), strict=True):
        is_unread = row.set.startswith("scifact dev") or hash_question(row.question) in held_out
        if is_unread and row.set not in MADE:
            found[row.set].append((row, dict(zip(DIRECTIONS, likely, strict=True))))
    for row in label_libraries([more / "unseen_libraries.jsonl"]):
        likely = model.weigh(describe(row.question, row.text, row.quote))
        found["unseen libraries"].append((row, likely))
    return found


def read_together(judged: Mapping[str, Sequence[Judged]]) -> dict[str, list[Called]]:
    """Return what each passage is called by wording and reader, and whether that is right."""
    found: dict[str, list[Called]] = defaultdict(list)
    if (reader := EvidenceModel.load().reader) is None:
        return found
    for name, rows in judged.items():
        for row, likely in Random(0).sample(rows, min(N_READ, len(rows))):
            [reading] = reader.read(row.question, [row.text])
            way = choose_direction(likely, reading.directions.tolist())
            found[name].append((way, way in row.labels))
    return found


def list_called(found: Mapping[str, Sequence[Called]]) -> Iterator[tuple[str, int, int, int]]:
    """Yield a set or a direction, its passages, per cent called, and per cent right of these."""
    every = [one for its in found.values() for one in its]
    ways = {f"called {way}": [one for one in every if one[0] == way] for way in DIRECTIONS}
    for name, its in {**found, **ways}.items():
        right = [is_right for way, is_right in its if way != UNCLEAR]
        called = round(100 * len(right) / max(len(its), 1))
        yield name, len(its), called, round(100 * sum(right) / max(len(right), 1))


def main() -> None:
    """Fit, write the weights, and print what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--more", type=Path, default=Path(__file__).parent)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    chosen = parser.parse_args()
    trained = train(chosen.data, chosen.out, more=chosen.more)
    if (chosen.out.parent / SUMS).is_file():
        write_sums(chosen.out.parent)
    lines = [f"{'cross-validated, %':<24}" + "".join(f"{name:>16}" for name in COLUMNS)]
    lines += [
        f"{name:<24}" + "".join(f"{found[column]:>16}" for column in COLUMNS)
        for name, found in sorted(trained.measured.items())
    ]
    unread = list_unread(trained, DirectionModel.load(chosen.out), chosen.more)
    heads = ("passages", "called", "right of these")
    lines.append(f"\n{'with the reader, %':<24}" + "".join(f"{one:>16}" for one in heads))
    for name, *found in list_called(read_together(unread)):
        lines.append(f"{name:<24}" + "".join(f"{one:>16}" for one in found))
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
