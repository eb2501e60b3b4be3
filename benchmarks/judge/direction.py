"""Fit the weights that say which way evidence points, and show what they reach.

    python benchmarks/judge/direction.py DATA [--more FOLDER] [--out FILE]

DATA holds the folders ``scifact``, ``pubmedqa_dev``, ``evidence_inference`` and ``sciences``, as
far as they are there; *more* the labels ``directions.jsonl``, and ``topics.jsonl`` and
``near_misses.jsonl``.
"""

import argparse
import sys
from pathlib import Path

from deepera_graph.judges.trained.direction.model import WEIGHTS
from deepera_graph.lab.training.fitting.direction import train

COLUMNS = ("passages", "right", "macro_f1", "unclear", "right_of_clear")


def main() -> None:
    """Fit, write the weights, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--more", type=Path, default=Path(__file__).parent)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    chosen = parser.parse_args()
    measured = train(chosen.data, chosen.out, more=chosen.more)
    lines = [f"{'cross-validated, %':<24}" + "".join(f"{name:>16}" for name in COLUMNS)]
    lines += [
        f"{name:<24}" + "".join(f"{found[column]:>16}" for column in COLUMNS)
        for name, found in sorted(measured.items())
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
