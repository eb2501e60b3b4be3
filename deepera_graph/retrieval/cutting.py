"""Texts cut between sentences into parts of usual length."""

from collections.abc import Iterator
from math import ceil

from deepera_graph.text.words import Sentence, split_sentences

MAX_WORDS = 350  # most abstracts stay whole


def cut_text(text: str, *, max_words: int | None = MAX_WORDS) -> list[str]:
    """Cut a text into the fewest parts of about equal length; a short one stays as it is.

    Parts are verbatim and hold every sentence once; words are told by white space, and a sentence
    of more than *max_words* is a part. None cuts nothing.
    """
    n_words = len(text.split())
    if max_words is None or n_words <= max_words:
        return [text.strip()] if n_words else []
    goal = n_words / ceil(n_words / max_words)
    groups = _group_sentences(split_sentences(text), goal, max_words)
    return [text[group[0].start : group[-1].end] for group in groups]


def _group_sentences(
    sentences: list[Sentence], goal: float, limit: int
) -> Iterator[list[Sentence]]:
    group: list[Sentence] = []
    n_words = 0
    for sentence in sentences:
        length = len(sentence.text.split())
        if group and (n_words >= goal or n_words + length > limit):
            yield group
            group, n_words = [], 0
        group.append(sentence)
        n_words += length
    if group:
        yield group
