"""Fit what answers BioASQ questions without a model, and show what it reaches.

    python benchmarks/bioasq/extractive.py GOLDEN [--out FILE]

GOLDEN is a folder with the golden sets of at least two editions, as BioASQ names them
(``10B3_golden.json``, also compressed as ``.json.gz``). All figures are cross-validated: an edition
is answered by weights fitted on the others.
"""

import argparse
import json
import sys
from pathlib import Path

from deepera_graph.bioasq.phase_b.local.yes_no import WEIGHTS
from deepera_graph.lab.training.fitting.typed_answers import read_golden, train, write_weights


def main() -> None:
    """Fit, write the weights, and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("golden", type=Path)
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    chosen = parser.parse_args()
    found = train(list(read_golden(chosen.golden)))
    write_weights(chosen.out, found)
    sys.stdout.write(json.dumps(found["cross_validated"], indent=1) + "\n")


if __name__ == "__main__":
    main()
