"""What a question asks about and no passage names, so that none can answer it."""

from collections.abc import Sequence

from deepera_graph.judges.heuristic.topicality import (
    BEGINNING,
    find_acronyms,
    find_terms,
    is_general,
    is_listed,
    read_question_terms,
    same_meaning,
)
from deepera_graph.text.words import content_words, stem, stems

_SHORTEST = 5  # letters of a word that may be missed; shorter ones have too many other forms


def find_missing(question: str, texts: Sequence[str]) -> list[str]:
    """Return the words of a question that name its subject and occur in no text in any form.

    They are words of a science, not such as any question may use. Other forms are those with the
    same beginning or stem, the listed words of the same meaning, and abbreviations of either.
    """
    whole = " ".join(texts).lower()
    absent = [
        word
        for word in dict.fromkeys(content_words(question))
        if _tells(word) and stem(word)[:BEGINNING] not in whole
    ]
    if not absent or not texts:
        return []
    need = read_question_terms(question, "")
    found = {term for text in texts for term in find_terms(need, stems(text), find_acronyms(text))}
    return [word for word in absent if same_meaning(stem(word)) not in found]


def _tells(word: str) -> bool:
    is_long = len(word) >= _SHORTEST and word.isalpha()
    return is_long and not is_general(word) and is_listed(word)
