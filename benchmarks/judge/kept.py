"""Passages a second: encoded anew, from memory, and from the vectors kept on disk.

    python benchmarks/judge/kept.py --rounds 5

Every round asks about new passages of about 128 tokens, in turn: without a folder; with one that is
empty, which is filled; another question from memory, once so that the reader reads the best
passages and once without it; the same question again; and another with the memory emptied, as
another process finds it, from disk. CPU time stands beside the clock: other work on the machine
lengthens the one more than the other.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from run import QUESTION, passages

from deepera_graph.judges.trained.backend import Weights
from deepera_graph.judges.trained.kept import KeptVectors
from deepera_graph.judges.trained.model import EvidenceModel
from deepera_graph.text.words import forget_all

INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
COLD, KEPT, DISK = "cold, nothing kept", "cold, kept on disk", "from disk"
MEMORY, AGAIN, UNREAD = "from memory", "from memory, asked again", "from memory, without the reader"
# in this order: what comes first fills the memory, and each but one is asked anew
WAYS = {
    COLD: QUESTION,
    KEPT: QUESTION,
    MEMORY: "Is the response after weeks of treatment higher than with placebo?",
    AGAIN: "Is the response after weeks of treatment higher than with placebo?",
    UNREAD: "Does the dose of the protein change the risk of mice?",
    DISK: "Was the reduction in the group measured at baseline significant?",
}


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
        unread = copy(keeping)
        unread.reader = None
        models = {COLD: plain, UNREAD: unread}
        for number in range(chosen.rounds + 1):
            texts = passages(chosen.passages, number)
            shown = [{"text": text, "title": "", "section": ""} for text in texts]
            for name, question in WAYS.items():
                model = models.get(name, keeping)
                if name in (COLD, KEPT, DISK):
                    model.encoder.restart()
                    forget_all()
                taken = measure(partial(model.judge, question, INTENT, shown))
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
