"""Parts of a long text, cut between sentences."""

from collections.abc import Iterator
from math import ceil

from deepera_graph.text.sentences import Sentence, split_sentences

MAX_WORDS = 200


def cut_text(text: str, *, max_words: int = MAX_WORDS) -> list[str]:
    """Cut a text into the fewest parts of about equal length; a short one stays as it is.

    Args:
        text: Any text.
        max_words: Most words (by white space) in a part, >= 1; one longer sentence is a part.

    Returns:
        Verbatim slices in order that hold every sentence once; none if the text is blank.
    """
    n_words = len(text.split())
    if n_words <= max_words:
        return [text.strip()] if n_words else []
    goal = n_words / ceil(n_words / max_words)
    groups = _groups(split_sentences(text), goal, max_words)
    return [text[group[0].start : group[-1].end] for group in groups]


def _groups(sentences: list[Sentence], goal: float, limit: int) -> Iterator[list[Sentence]]:
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
