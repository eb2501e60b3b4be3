"""Whether texts of several requests should be read in one call of the model.

    python benchmarks/serve/batching.py

The local judge reads one text a call, and keeps every core busy with calls side by side. This
compares that with batches of texts of like length, padded, on the same cores in the same run: how
fast they are, and how much the vectors of a text differ from those it has alone.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from load import make_jobs

from deepera_graph.judges.trained.model import FILES, SHIPPED
from deepera_graph.judges.trained.reading.encoder import Encoder

SIZES = (1, 4, 8, 16, 32)


def run_batch(session: Any, rows: Sequence[Any]) -> list[Any]:
    """Return the vectors of tokenized texts, read in one call."""
    longest = max(map(len, rows))
    ids = np.zeros((len(rows), longest), np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    found = session.run(None, given)[0]
    return [one[: len(row)] for one, row in zip(found, rows, strict=True)]


def open_model(threads: int) -> Any:
    """Return the encoder's model with so many threads for one call."""
    onnxruntime = import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    return onnxruntime.InferenceSession(str(SHIPPED / FILES[0]), options)


def measure(rows: Sequence[Any], size: int, cores: int) -> tuple[float, list[Any]]:
    """Return the seconds for all texts in batches of a size on all cores, and the vectors."""
    order = sorted(rows, key=len)
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    session = open_model(1)  # one call a core, as the judge does
    started = perf_counter()
    with ThreadPoolExecutor(cores) as pool:
        found = [
            one for batch in pool.map(lambda one: run_batch(session, one), batches) for one in batch
        ]
    return perf_counter() - started, found


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--texts", type=int, default=120)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    encoder = Encoder(SHIPPED / FILES[0], SHIPPED / FILES[1])
    texts = make_jobs(1, given.texts, n_sentences=3, seed=5)[0]["documents"]
    rows = [encoder.tokenize(one)[0] for one in texts]
    seconds: dict[int, list[float]] = {size: [] for size in SIZES}
    differences: dict[int, float] = {}
    for _ in range(given.rounds):
        _, alone = measure(rows, 1, given.cores)
        for size in SIZES:
            took, found = measure(rows, size, given.cores)
            seconds[size].append(took)
            differences[size] = max(
                float(np.abs(one - other).max()) for one, other in zip(alone, found, strict=True)
            )
    told = {
        size: {
            "texts_a_second": round(len(rows) / median(each), 1),
            "largest_difference_of_a_vector": round(differences[size], 4),
        }
        for size, each in seconds.items()
    }
    sys.stdout.write(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
