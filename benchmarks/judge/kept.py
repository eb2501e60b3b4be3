"""Passages a second: encoded anew, from memory, and from the vectors kept on disk.

    python benchmarks/judge/kept.py --rounds 5

Every round asks about new passages of about 128 tokens, in four ways in turn: without a folder;
with one that is empty, which is filled; again, from memory; and again with the memory emptied, as
another process finds it, from disk. CPU time stands beside the clock: other work on the machine
lengthens the one more than the other.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from run import QUESTION, passages

from deepera_graph.judges.trained.backend import Weights
from deepera_graph.judges.trained.kept import KeptVectors
from deepera_graph.judges.trained.model import EvidenceModel

INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
WAYS = ("cold, nothing kept", "cold, kept", "from memory", "from disk")


def measure(work: Callable[[], object]) -> tuple[float, float]:
    """Return how many seconds work takes by the clock, and of CPU."""
    began, used = perf_counter(), process_time()
    work()
    return perf_counter() - began, process_time() - used


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (default: 5)")
    parser.add_argument("--passages", type=int, default=120, help="passages a round (default: 120)")
    chosen = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    plain = EvidenceModel.load()
    with tempfile.TemporaryDirectory() as folder:
        keeping = plain.keeping(Path(folder), max_mb=256, weights=Weights().place())
        for number in range(chosen.rounds + 1):
            texts = passages(chosen.passages, number)
            shown = [{"text": text, "title": "", "section": ""} for text in texts]
            for name in WAYS:
                model = plain if name == WAYS[0] else keeping
                if name != "from memory":
                    model.encoder.restart()
                taken = measure(partial(model.judge, QUESTION, INTENT, shown))
                if number:  # the first round warms up
                    found[name].append(taken)
            sys.stderr.write(f"round {number} of {chosen.rounds}\n")
        n_bytes = KeptVectors(Path(folder), "", max_mb=256).count_bytes()
    n_kept = chosen.passages * (chosen.rounds + 1)
    lines = [
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {chosen.passages} passages of "
        f"about 128 tokens a round, {n_bytes / n_kept / 1000:.0f} KB a passage on disk",
        "",
        "| | passages a second, median | lowest | highest | CPU milliseconds a passage |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, taken in found.items():
        speeds = [chosen.passages / seconds for seconds, _ in taken]
        cpu = median(used for _, used in taken) / chosen.passages * 1000
        lines.append(
            f"| {name} | {median(speeds):.0f} | {min(speeds):.0f} | {max(speeds):.0f} | {cpu:.1f} |"
        )
    sys.stdout.write("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
