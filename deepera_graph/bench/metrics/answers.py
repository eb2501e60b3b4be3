"""Token precision, recall and F1 of an answer."""

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deepera_graph.bench.metrics.values import Values

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class Overlap(NamedTuple):
    """Token overlap of an answer with the gold answer, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


class Overlaps(NamedTuple):
    """The three over many answers; their means are means over answers, not of counts."""

    precision: Values
    recall: Values
    f1: Values


def answer_tokens(text: str) -> list[str]:
    """Return the words in lower case, without punctuation and English articles.

    Source:
        Rajpurkar et al. (2016), SQuAD, section 6.1.
    """
    return _ARTICLE.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def token_overlap(answer: str, gold: str) -> Overlap:
    """Return precision, recall and F1 over shared tokens, each token as often as both have it.

    All three are 1 when neither text has a token, and 0 when only one has.

    Source:
        Rajpurkar et al. (2016, 2018), SQuAD 1.1 and 2.0.
    """
    found, wanted = answer_tokens(answer), answer_tokens(gold)
    if not found or not wanted:
        same = float(found == wanted)
        return Overlap(same, same, same)
    shared = (Counter(found) & Counter(wanted)).total()
    if not shared:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = shared / len(found), shared / len(wanted)
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def answer_overlaps(
    pairs: Iterable[tuple[str, str]], weights: Sequence[float] | None = None
) -> Overlaps:
    """Return the overlap of each (answer, gold answer).

    F1 is a mean of F1s, hence not the harmonic mean of the two other means.

    Args:
        pairs: Answers with their gold answers.
        weights: How much each counts, >= 0; 1 when None.
    """
    overlaps = [token_overlap(answer, gold) for answer, gold in pairs]
    return Overlaps(
        Values.of([one.precision for one in overlaps], weights),
        Values.of([one.recall for one in overlaps], weights),
        Values.of([one.f1 for one in overlaps], weights),
    )
