"""Fits the weights of the rules judge to labelled passages.

Run as ``python -m deepera_graph.backends.local.fit --cues FILE.jsonl ... --measures FILE.jsonl ...
-o weights.json``. A line holds a ``question`` and its ``contexts``, each with ``text``,
``is_golden`` and ``is_distractor``. Golden passages and look-alikes of the first files teach what a
result sentence looks like, all passages of the second how the measures add up. The judge reads
constants, not the output: copying them is a decision.
"""

import argparse
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from deepera_graph.backends.local.cues import CUE_NAMES, count_cues
from deepera_graph.backends.local.grounding import HIGHEST_COUNT
from deepera_graph.backends.local.intent import recognize
from deepera_graph.backends.local.logistic import fit_logistic
from deepera_graph.backends.local.measures import Measures, study
from deepera_graph.roles import PassageTask, intent_fields
from deepera_graph.text.sentences import split_sentences
from deepera_graph.text.words import words

Instance = Mapping[str, Any]
_SET_TOTAL = 4000.0


def fit_cues(sets: Iterable[Iterable[Instance]]) -> dict[str, float]:
    """Weight of each cue: sentences of golden passages against those of their look-alikes.

    Every set counts the same, however many sentences it has.
    """
    rows: list[list[float]] = []
    labels: list[bool] = []
    shares: list[float] = []
    for instances in sets:
        pairs = [pair for instance in instances for pair in _sentences(instance)]
        rows.extend(_cue_row(sentence) for sentence, _ in pairs)
        labels.extend(is_golden for _, is_golden in pairs)
        shares.extend([_SET_TOTAL / len(pairs)] * len(pairs))
    fitted = fit_logistic(rows, labels, shares)
    return dict(zip(("intercept", *CUE_NAMES), fitted, strict=True))


def fit_measures(instances: Iterable[Instance]) -> dict[str, float]:
    """Weight of each measure: golden passages against all others of the same question."""
    rows: list[Measures] = []
    labels: list[bool] = []
    for instance in instances:
        for task, is_golden in _tasks(instance):
            found = study(task)
            if found:
                rows.append(found.measures)
                labels.append(is_golden)
    return dict(zip(("intercept", *Measures._fields), fit_logistic(rows, labels), strict=True))


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the weights and write them."""
    parser = argparse.ArgumentParser(description="Fit the weights of the rules judge.")
    parser.add_argument("--cues", nargs="+", type=Path, required=True)
    parser.add_argument("--measures", nargs="+", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    weights = {
        "cues": fit_cues(_read(file) for file in chosen.cues),
        "measures": fit_measures(chain.from_iterable(map(_read, chosen.measures))),
    }
    chosen.output.write_text(json.dumps(weights, indent=1) + "\n", encoding="utf-8")


def _read(file: Path) -> Iterator[Instance]:
    with file.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _sentences(instance: Instance) -> Iterator[tuple[str, bool]]:
    for passage in instance["contexts"]:
        if passage["is_golden"] or passage["is_distractor"]:
            for sentence in split_sentences(passage["text"]):
                yield sentence.text, passage["is_golden"]


def _cue_row(sentence: str) -> list[float]:
    counts = count_cues(sentence, words(sentence))
    return [math.log1p(min(count, HIGHEST_COUNT)) for count in counts]


def _tasks(instance: Instance) -> Iterator[tuple[PassageTask, bool]]:
    question = instance["question"]
    fields = intent_fields(recognize({"question": question, "problem": ""}))
    for passage in instance["contexts"]:
        task = PassageTask(
            question=question, intent=fields, text=passage["text"], title="", section=""
        )
        yield task, passage["is_golden"]


if __name__ == "__main__":
    main()
