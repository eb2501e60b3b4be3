"""Fit what answers BioASQ questions without a model, and show what it reaches.

    python benchmarks/bioasq/extractive.py QUESTIONS DATA [--more FOLDER] [--out FILE]

QUESTIONS is a file of BioASQ's form with snippets and answers (PubMedQA's development half); DATA
holds the labelled sets that the direction head learns from, of which PubMedQA's own are left out;
*more* holds the labels ``directions.jsonl`` and the topics of benchmarks/judge. All figures are
cross-validated over questions.
"""

import argparse
import json
import sys
from pathlib import Path

from deepera_graph.bioasq.phase_b.local.yes_no import WEIGHTS
from deepera_graph.bioasq.questions import read_questions
from deepera_graph.lab.training.fitting.typed_answers import fit_directions, train, write_weights


def main() -> None:
    """Fit, write the weights, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--more", type=Path, default=Path(__file__).parents[1] / "judge")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    chosen = parser.parse_args()
    found = train(read_questions(chosen.questions), fit_directions(chosen.data, chosen.more))
    write_weights(chosen.out, found)
    for name, part in found.items():
        sys.stdout.write(f"{name}: {json.dumps(part['cross_validated'])}\n")


if __name__ == "__main__":
    main()
