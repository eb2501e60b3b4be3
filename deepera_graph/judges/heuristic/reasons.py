"""What anybody can check of a passage and of its quote: the reason of the local judge."""

from collections.abc import Sequence

from deepera_graph.judges.heuristic.analysis import SentenceReading, read_sentences
from deepera_graph.judges.heuristic.roles import GROUNDED, list_signs
from deepera_graph.judges.heuristic.topicality import (
    BEGINNING,
    CUE_NAMES,
    find_acronyms,
    find_terms,
    is_general,
    is_listed,
    read_question_terms,
    same_meaning,
)
from deepera_graph.schema import Window
from deepera_graph.text.words import content_words, stem, stems, words

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


MOST_NAMED = 4  # words of each kind
# letters that no word of a passage may begin with if a word of the question is lacking; shorter
# words have forms that begin in another way, as *kept*
_BEGINNING, _LEAST = 4, 5


def explain_quote(question: str, window: Window, quote: str) -> str:
    """Say which words of a question a passage has and lacks, and how its quote reads.

    For instance ``has wax, apples; lacks storage; quote states a result: 'fallen', 31%``. A word is
    had if one of the same stem is there; one of which there is only another form, such as its
    abbreviation, is neither had nor lacked. Of many words the first are named.
    """
    has, lacks = find_words(question, f"{window['title']} {window['text']}")
    readings = read_sentences(quote, "result")
    best = max(readings, key=lambda one: one.grounding, default=None)
    parts = (
        _name("has", has),
        _name("lacks", lacks),
        f"quote {_describe(best)}" if best is not None else "",
    )
    return "; ".join(filter(None, parts))


def find_words(question: str, text: str) -> tuple[list[str], list[str]]:
    """Return the telling words of a question that a text has, and those that it has in no form."""
    telling = [one for one in dict.fromkeys(content_words(question)) if not is_general(one)]
    inside, beginnings = stems(text), {one[:_BEGINNING] for one in words(text)}
    found = find_terms(read_question_terms(question, ""), inside, find_acronyms(text))
    known = frozenset(inside)
    has = [one for one in telling if stem(one) in known]
    lacks = [
        one
        for one in telling
        if len(one) >= _LEAST
        and one[:_BEGINNING] not in beginnings
        and not {stem(one), same_meaning(stem(one))} & {*known, *found}
    ]
    return has, lacks


_PLANS = (("intention", "an aim"), ("aim", "an aim"), ("speculation", "a supposition"))


def _describe(reading: SentenceReading) -> str:
    """Say what a sentence states, with its words; what it plans or supposes; or what it has."""
    signs = ", ".join(list_signs(reading))
    if reading.grounding >= GROUNDED:
        return f"states a result: {signs}" if signs else "states a result"
    counts = dict(zip(CUE_NAMES, reading.cues, strict=True))
    planned = next((said for name, said in _PLANS if counts[name]), "")
    if planned:
        return f"reads like {planned}"
    if signs:
        return f"has {signs}"
    return "has a number" if counts["figure"] else "has no number"


def _name(verb: str, some: Sequence[str]) -> str:
    more = len(some) - MOST_NAMED
    named = f"{verb} {', '.join(some[:MOST_NAMED])}" if some else ""
    return f"{named} and {more} more" if more > 0 else named
