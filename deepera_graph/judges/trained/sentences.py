"""Which sentence of a passage answers the question: the one that is quoted."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import PassageMatch, ResultsClassifier, sigmoid
from deepera_graph.judges.trained.trees import Trees

Doubles = NDArray[np.float64]
SENTENCE_FEATURES = (
    "cosine", "match", "cosine_behind", "match_behind", "shared", "shared_behind", "role",
    "results", "role_behind", "place", "last", "first", "length", "aim", "finding",
    "cosine_results", "match_results",
)  # fmt: skip
READER_WEIGHT = 0.5  # of the reader's log odds beside what the trees say
_WORD = re.compile(r"[a-z0-9]+")
_STEM = 6  # characters of a word that count
# function words and forms of asking
_STOP = frozenset("""
a an and are as at be been between by can could did do does for from had has have how in into is it
its may no not of on or our should than that the their there these those this to was we were what
when which who whom whose why with would
""".split())  # fmt: skip  # noqa: SIM905
_AIM = re.compile(
    r"\b(?:aim|objective|we investigat|to determine|to examine|to assess|whether|remain|unknown|"
    r"unclear|we (?:asked|test|study|studied))\b",
    re.IGNORECASE,
)
_FINDING = re.compile(
    r"\b(?:conclu|we (?:find|found|show|demonstrat|report|observ)|suggest|here,? we|"
    r"results? (?:show|indicat|demonstrat)|(?:these|our) (?:results|findings|data))",
    re.IGNORECASE,
)


def compute_sentence_features(
    question: str, sentences: Sequence[str], match: PassageMatch, classifier: ResultsClassifier
) -> Doubles:
    """Return what tells the sentence that answers from the others, shape (n_sentences, n_features).

    The columns are `SENTENCE_FEATURES`; "behind" is how far it is below the best of the passage.
    """
    n = len(sentences)
    cosine, matched = (np.asarray(one, np.float64) for one in (match.cosines, match.matches))
    role = classifier.predict_sentences(match.sentences)
    results = sigmoid(role)
    asked = _stems(question)
    shared = np.array([len(asked & _stems(one)) / max(1, len(asked)) for one in sentences])
    place = np.arange(n) / max(1, n - 1)
    columns = (
        cosine, matched, cosine - cosine.max(), matched - matched.max(),
        shared, shared - shared.max(), role, results, role - role.max(),
        place, place == 1, np.arange(n) == 0,
        np.log([len(one) + 1.0 for one in sentences]),
        np.array([_AIM.search(one) is not None for one in sentences]),
        np.array([_FINDING.search(one) is not None for one in sentences]),
        cosine * results, matched * results,
    )  # fmt: skip
    return np.column_stack(columns).astype(np.float64)


def weigh_sentences(
    question: str,
    sentences: Sequence[str],
    match: PassageMatch,
    classifier: ResultsClassifier,
    trees: Trees,
    *,
    read: Doubles | None = None,
) -> Doubles:
    """Return how well each sentence answers, log odds but for a scale, shape (n_sentences,).

    *read* are the reader's log odds of each, if it has read the passage. Zeros if the sentences are
    not those that were matched.
    """
    if not sentences or len(sentences) != len(match.cosines):
        return np.zeros(len(sentences))
    found = trees.predict(compute_sentence_features(question, sentences, match, classifier))
    if read is not None and len(read) == len(sentences):
        found = found + READER_WEIGHT * read
    return np.asarray(found, np.float64)


def choose_sentence(
    question: str,
    sentences: Sequence[str],
    match: PassageMatch,
    classifier: ResultsClassifier,
    trees: Trees,
    *,
    read: Doubles | None = None,
) -> int:
    """Return the place of the sentence that answers best, from 0; see `weigh_sentences`."""
    if len(sentences) < 2:
        return 0
    return int(weigh_sentences(question, sentences, match, classifier, trees, read=read).argmax())


def _stems(text: str) -> set[str]:
    return {one[:_STEM] for one in _WORD.findall(text.lower()) if one not in _STOP}
