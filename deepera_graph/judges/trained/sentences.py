"""Which sentence of a passage answers: what tells it from the others, and the choice."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from deepera_graph.judges.trained.features import PassageMatch, ResultsClassifier
from deepera_graph.judges.trained.reading.vectors import Doubles, sigmoid
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.text.words import MOST_SENTENCES, held

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


class Sentences(NamedTuple):
    """The sentences of a passage that is compared with the question."""

    texts: Sequence[str]
    match: PassageMatch
    read: Doubles | None = None  # the reader's log odds of each, if it has read the passage

    @property
    def can_be_weighed(self) -> bool:
        """Whether there are any, and they are those that were matched."""
        return 0 < len(self.texts) == len(self.match.cosines)


class _Cues(NamedTuple):
    """What a sentence shows, whatever the question."""

    stems: frozenset[str]
    length: float  # number of characters, and one
    aims: bool  # whether it has words of an aim
    finds: bool  # whether it has words of a finding


def compute_sentence_features(
    question: str, sentences: Sequence[str], match: PassageMatch, classifier: ResultsClassifier
) -> Doubles:
    """Return what tells the sentence that answers from the others, shape (n_sentences, n_features).

    The columns are `SENTENCE_FEATURES`; "behind" is how far it is below the best of the passage.
    """
    return _compute_features(question, [Sentences(sentences, match)], classifier)


def _compute_features(
    question: str, passages: Sequence[Sentences], classifier: ResultsClassifier
) -> Doubles:
    """Return the features of the sentences of passages, one passage after the other."""
    sizes = np.array([len(one.texts) for one in passages])
    starts = np.cumsum(sizes) - sizes

    def behind(values: Doubles) -> Doubles:
        best = np.maximum.reduceat(values, starts)
        return np.asarray(values - np.repeat(best, sizes), np.float64)

    cosine = np.concatenate([one.match.cosines for one in passages]).astype(np.float64)
    matched = np.concatenate([one.match.matches for one in passages]).astype(np.float64)
    role = np.concatenate([classifier.predict_sentences(one.match.sentences) for one in passages])
    results = sigmoid(role)
    asked = _read_cues(question).stems
    cues = [_read_cues(text) for one in passages for text in one.texts]
    shared = np.array([len(asked & one.stems) / max(1, len(asked)) for one in cues])
    number = np.arange(len(cues)) - np.repeat(starts, sizes)
    place = number / np.repeat(np.maximum(1, sizes - 1), sizes)
    columns = (
        cosine, matched, behind(cosine), behind(matched),
        shared, behind(shared), role, results, behind(role),
        place, place == 1, number == 0, np.log([one.length for one in cues]),
        [one.aims for one in cues], [one.finds for one in cues],
        cosine * results, matched * results,
    )  # fmt: skip
    return np.array(columns, np.float64).T


def weigh_sentences(
    question: str, passages: Sequence[Sentences], classifier: ResultsClassifier, trees: Trees
) -> list[Doubles]:
    """Return how well each sentence of each passage answers, log odds but for a scale.

    All of a question's passages are weighed at once. Zeros where the sentences are not those that
    were matched.
    """
    weighed = [np.zeros(len(one.texts)) for one in passages]
    known = [place for place, one in enumerate(passages) if one.can_be_weighed]
    if not known:
        return weighed
    rows = _compute_features(question, [passages[place] for place in known], classifier)
    ends = np.cumsum([len(weighed[place]) for place in known])
    for place, found in zip(known, np.split(trees.predict(rows), ends[:-1]), strict=True):
        read = passages[place].read
        is_read = read is not None and len(read) == len(found)
        weighed[place] = found + READER_WEIGHT * np.asarray(read) if is_read else found
    return weighed


def choose_sentences(
    question: str, passages: Sequence[Sentences], classifier: ResultsClassifier, trees: Trees
) -> list[int]:
    """Return the place of the sentence of each passage that answers best; see `weigh_sentences`."""
    chosen = [0] * len(passages)
    several = [place for place, one in enumerate(passages) if len(one.texts) > 1]
    weighed = weigh_sentences(question, [passages[place] for place in several], classifier, trees)
    for place, found in zip(several, weighed, strict=True):
        chosen[place] = int(found.argmax())
    return chosen


def choose_sentence(
    question: str,
    sentences: Sequence[str],
    match: PassageMatch,
    classifier: ResultsClassifier,
    trees: Trees,
) -> int:
    """Return the place of the sentence of one passage that answers best, from 0."""
    return choose_sentences(question, [Sentences(sentences, match)], classifier, trees)[0]


@held(MOST_SENTENCES)
def _read_cues(text: str) -> _Cues:
    words = _WORD.findall(text.lower())
    return _Cues(
        stems=frozenset(one[:_STEM] for one in words if one not in _STOP),
        length=len(text) + 1.0,
        aims=_AIM.search(text) is not None,
        finds=_FINDING.search(text) is not None,
    )
