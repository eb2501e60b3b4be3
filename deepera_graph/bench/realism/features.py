"""What a text looks like, apart from what it is about: features in families, without labels."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]  # has no stubs
from sklearn.feature_extraction.text import (  # type: ignore[import-untyped]  # has no stubs
    CountVectorizer,
    TfidfVectorizer,
)
from sklearn.preprocessing import normalize  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.text.sentences import split_sentences
from deepera_graph.text.words import STOP_WORDS

LENGTH = "length"
OPENING = "opening"
STYLE = "style"
WORDS = "words"
ALL = "all"
FAMILIES = (LENGTH, OPENING, STYLE, WORDS, ALL)
_PIECE = re.compile(r"\w+|[^\w\s]")
_CAPITALS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_LEAST_TEXTS = 3


class Features(NamedTuple):
    """One family over texts; `matrix` is sparse, shape (n_texts, len(names))."""

    matrix: Any
    names: tuple[str, ...]


def features(texts: Sequence[str]) -> dict[str, Features]:
    """Return the families of features, as `FAMILIES` names them.

    - `length`: words, sentences, words a sentence and letters a word, each as a logarithm and its
      square, as a length that never varies is a mark too.
    - `opening`: the first word, the first two and the first three, with punctuation.
    - `style`: how often each function word occurs, and the shapes of the text: runs of one to four
      signs with every word written as ``a`` or ``A`` and every number as ``0``. Neither knows what
      a text is about, only how it is put together: hedges, punctuation, how numbers are given.
    - `words`: every word. It knows the topic, so it says less about style, and is no reason to
      call a set unrealistic.
    - `all`: the four together.
    """
    families = {
        LENGTH: _length(texts),
        OPENING: _opening(texts),
        STYLE: _joined([_function_words(texts), _shapes(texts)]),
        WORDS: _words(texts),
    }
    return {**families, ALL: _joined(list(families.values()))}


def shape(text: str) -> str:
    """Return a text with words as ``a`` or ``A``, numbers as ``0``, and all else as it is."""
    worded = _CAPITALS.sub(lambda found: "A" if found.group()[0].isupper() else "a", text)
    return _DIGITS.sub("0", worded)


def _length(texts: Sequence[str]) -> Features:
    rows = []
    for text in texts:
        n_words = max(1, len(text.split()))
        n_sentences = max(1, len(split_sentences(text)))
        rows.append([n_words, n_sentences, n_words / n_sentences, len(text) / n_words])
    plain = np.log(np.array(rows, dtype=np.float64))
    spread = plain.std(axis=0)
    scaled = (plain - plain.mean(axis=0)) / np.where(spread > 0, spread, 1)
    names = ("many words", "many sentences", "many words a sentence", "many letters a word")
    squared = tuple(name.replace("many", "far from the mean:") for name in names)
    return Features(csr_matrix(np.hstack([scaled, scaled**2])), (*names, *squared))


def _opening(texts: Sequence[str]) -> Features:
    counts = CountVectorizer(analyzer=_first_words, binary=True, min_df=_at_least(texts))
    return _counted(counts, texts, "opens with ")


def _first_words(text: str) -> list[str]:
    pieces = _PIECE.findall(text[:200].lower())[:3]
    return [" ".join(pieces[:n]) for n in range(1, len(pieces) + 1)]


def _function_words(texts: Sequence[str]) -> Features:
    counts = CountVectorizer(vocabulary=sorted(STOP_WORDS), token_pattern=r"[a-z]+")
    found = _counted(counts, texts, "word ")
    return Features(normalize(found.matrix.sqrt()), found.names)


def _shapes(texts: Sequence[str]) -> Features:
    counts = TfidfVectorizer(
        analyzer="char",
        ngram_range=(1, 4),
        preprocessor=shape,
        min_df=_at_least(texts),
        sublinear_tf=True,
    )
    return _counted(counts, texts, "shape ")


def _words(texts: Sequence[str]) -> Features:
    counts = TfidfVectorizer(
        token_pattern=r"(?u)\b\w+\b", min_df=_at_least(texts), sublinear_tf=True
    )
    return _counted(counts, texts, "word ")


def _counted(counts: Any, texts: Sequence[str], prefix: str) -> Features:
    try:
        matrix = counts.fit_transform(texts)
    except ValueError:  # no feature is frequent enough
        return Features(csr_matrix((len(texts), 1)), ("nothing frequent",))
    return Features(matrix, tuple(f"{prefix}`{name}`" for name in counts.get_feature_names_out()))


def _at_least(texts: Sequence[str]) -> int:
    """In how many texts a feature must occur; one that is in few cannot be learnt."""
    return min(_LEAST_TEXTS, len(texts))


def _joined(parts: Sequence[Features]) -> Features:
    matrix = hstack([part.matrix for part in parts]).tocsr()
    return Features(matrix, tuple(name for part in parts for name in part.names))
