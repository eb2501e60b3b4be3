"""Fit the weights that say which way evidence points, and show what they reach.

    python benchmarks/judge/direction.py DATA [--more FOLDER] [--out FILE]

DATA holds the folders ``scifact``, ``pubmedqa_dev``, ``evidence_inference`` and ``sciences``, as
far as they are there; *more* the labels ``directions.jsonl``, ``topics.jsonl`` and
``near_misses.jsonl``, and the libraries ``libraries.jsonl``, ``more_libraries.jsonl`` and
``unseen_libraries.jsonl``, which nothing is fitted to.

Checksums beside the weights are renewed. The second table is of wording and the shipped reader
together, as the judge goes by both, on at most 300 passages a set whose questions the reader was
not taught: how many have a direction, and how many of these are right, by set and by direction.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from deepera_graph.judges.trained.direction.model import (
    DIRECTIONS,
    UNCLEAR,
    WEIGHTS,
    DirectionModel,
    choose_direction,
    describe,
)
from deepera_graph.judges.trained.model import SHIPPED, SUMS, EvidenceModel
from deepera_graph.lab.training.fitting.direction import TrainedDirections, train
from deepera_graph.lab.training.fitting.labelled import MADE, LabelledDirection, label_libraries
from deepera_graph.lab.training.lessons.pools import hash_question
from deepera_graph.lab.training.train_reader import read_held_out
from deepera_graph.lab.training.weights import write_sums
from deepera_graph.schema import Direction

COLUMNS = ("passages", "right", "macro_f1", "unclear", "right_of_clear")
N_READ = 300
Likely = Mapping[Direction, float]
Judged = tuple[LabelledDirection, Likely]
Called = tuple[Direction, bool]


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
