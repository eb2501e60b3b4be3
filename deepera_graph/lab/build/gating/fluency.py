"""Whether a text is running prose: its words in order, held against the same words shuffled.

Common words stand for themselves and all others for their endings, so that a few thousand words are
enough to learn which follows which.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deepera_graph.demo import read_corpus

_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_N_COMMON = 300  # words that stand for themselves
_N_ENDINGS = 80  # of two letters, for all others
_SHARES = (0.7, 0.25, 0.05)  # of the pair, of its second class alone, of any class
MOST_TEXTS = 2_000
_LEAST_WORDS = 12  # of a text; below this any order is as good
_N_SHUFFLES = 100
_OTHER = "-"


class ProseModel:
    """How likely a class of words is after another one, learnt from passages of a corpus."""

    # Source: Brown et al. (1992), Class-based n-gram models of natural language, section 3, with
    # classes by frequency and ending; the two are mixed as in Jelinek and Mercer (1980).

    def __init__(self, texts: Sequence[str]) -> None:
        words = Counter(word for text in texts for word in _read_words(text))
        ranked = sorted(words, key=lambda word: (-words[word], word))
        endings: Counter[str] = Counter()
        for word in ranked[_N_COMMON:]:
            endings[_ending(word)] += words[word]
        known = sorted(endings, key=lambda one: (-endings[one], one))[:_N_ENDINGS]
        names = dict.fromkeys([_OTHER, *ranked[:_N_COMMON], *known])
        self._classes = {name: place for place, name in enumerate(names)}
        self._log_likely = self._learn(texts)

    @classmethod
    def fit(cls, texts: Iterable[str]) -> Self:
        """Return a model of the first 2 000 texts, and of 122 abstracts that come with the package.

        With the latter prose in English is known for what it is by a small corpus of one subject.
        """
        common = (one.page_content for hard in (False, True) for one in read_corpus(hard=hard))
        return cls([*islice(texts, MOST_TEXTS), *common])

    def measure_order(self, text: str) -> float | None:
        """Return how much likelier a text is than its words in any order; None below 12 words.

        In standard deviations of 100 shuffles, over the square root of the number of words, with
        which they grow: 0.5 to 1.5 for prose, and about 0 for words at random.
        """
        words = _read_words(text)
        if len(words) < _LEAST_WORDS:
            return None
        classes = self._classify(words)
        rng = np.random.default_rng(0)
        orders = rng.permuted(np.tile(classes, (_N_SHUFFLES, 1)), axis=1)
        shuffled = self._log_likely[orders[:, :-1], orders[:, 1:]].mean(axis=1)
        spread = float(shuffled.std())
        own = float(self._log_likely[classes[:-1], classes[1:]].mean())
        gain = (own - float(shuffled.mean())) / spread if spread > 0 else 0.0
        return gain / math.sqrt(len(words))

    def _learn(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return log probabilities of the second class after the first; shape (n, n)."""
        n = len(self._classes)
        pairs = np.zeros((n, n))
        for text in texts:
            for first, second in pairwise(self._classify(_read_words(text))):
                pairs[first, second] += 1
        pair, single, any_ = _SHARES
        before = pairs.sum(axis=1, keepdims=True)
        alone = pairs.sum(axis=0) / max(1.0, pairs.sum())
        after: NDArray[np.float64] = pairs / np.maximum(before, 1)
        likely: NDArray[np.float64] = np.log(pair * after + single * alone + any_ / n)
        return likely

    def _classify(self, words: Sequence[str]) -> NDArray[np.intp]:
        known, other = self._classes, self._classes[_OTHER]
        return np.array(
            [known.get(word, known.get(_ending(word), other)) for word in words], np.intp
        )


def _read_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _ending(word: str) -> str:
    return "-0" if word[0].isdigit() else f"-{word[-2:]}"
