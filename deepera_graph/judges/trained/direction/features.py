"""The named features of a passage: what its sentences that match the question best say of it."""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from deepera_graph.judges.trained.direction.agreement import measure_agreement
from deepera_graph.judges.trained.direction.question import Asked, read_question
from deepera_graph.judges.trained.direction.sentence import read_words
from deepera_graph.judges.trained.direction.sequence import find_grams, relate_signs
from deepera_graph.text.words import split_sentences

_CLAUSE: Final = re.compile(r";|,?\s(?:whereas|while|but|although)\s|,\s(?:and|with|which)\s")
_GRAM: Final = 0.3  # less than a measure, as there are many
_SAID: Final = frozenset(
    ["agrees", "opposes", "not agrees", "not opposes", "moves", "not moves", "null", "not"]
)


def describe(question: str, text: str, quote: str = "") -> dict[str, float]:
    """Return the named features of a passage, each in [-1, 1]; those that are 0 are left out."""
    asked = read_question(question)
    sentences = [one.text for one in split_sentences(text)] or [text]
    ranked = _rank_sentences(asked, sentences, quote)
    found: defaultdict[str, float] = defaultdict(float)
    _describe_question(asked, found)
    clause = _find_clause(asked, ranked[0])
    for name, chosen, most in (
        ("", ranked[:1], 2),
        ("clause: ", [clause], 3),
        ("next: ", ranked[1:2], 2),
        ("best: ", ranked[:3], 1),
        ("last: ", sentences[-1:], 1),
    ):
        _describe_sentences(name, asked, chosen, most, found)
    return {name: max(-1.0, min(1.0, value)) for name, value in found.items() if value}


def _rank_sentences(asked: Asked, sentences: Sequence[str], quote: str) -> list[str]:
    """Return the sentences, the quoted one first, then by how much of the question they name."""

    def key(place: int) -> tuple[bool, float]:
        sentence = sentences[place]
        read = read_words(sentence)
        named = len(asked.stems & read.known) + len(asked.outcome & read.known)
        is_quote = bool(quote) and (sentence in quote or quote.strip() in sentence)
        return is_quote, named + 1.0 * read.finds + 0.5 * place / len(sentences)

    order = sorted(range(len(sentences)), key=key, reverse=True)
    return [sentences[place] for place in order]


def _describe_question(asked: Asked, found: defaultdict[str, float]) -> None:
    found[f"asks {asked.kind}"] = 1
    found["asks not"] = asked.negated
    found["asks for a comparison"] = bool(asked.second)
    found["claims"] = asked.is_claim
    found[f"asks value {asked.value}"] = 1


def _find_clause(asked: Asked, sentence: str) -> str:
    """Return the part of a sentence that names most of the outcome, and tells a finding."""

    def key(clause: str) -> float:
        read = read_words(clause)
        return len(asked.outcome & read.known) + 0.5 * read.finds

    return max(_CLAUSE.split(sentence), key=key)


def _describe_sentences(
    name: str, asked: Asked, sentences: Sequence[str], most: int, found: defaultdict[str, float]
) -> None:
    """Add what the sentences say, in an order that does not depend on the hash seed."""
    share = 1 / (len(sentences) or 1) ** 0.5
    mood = "asked not, " if asked.negated else ""
    for sentence in sentences:
        told = _tell(asked, sentence)
        for one, value in told.measures:
            found[f"{name}{mood}{one}"] += value * share
        found[f"{name}{mood}says {told.said}"] += share
        for gram in dict.fromkeys(find_grams(told.sequence, most)):
            found[f"{name}{gram}"] += _GRAM * share
        if most > 1:
            for sign in filter(None, ("nothing", *read_words(sentence).signs)):
                found[f"{name}{mood}{asked.kind}{asked.value:+}? {sign}"] = _GRAM


class _Told(NamedTuple):
    """What a sentence says against what is asked."""

    measures: Sequence[tuple[str, float]]  # with their names
    said: str  # which of `_SAID`, joined
    sequence: Sequence[str]


@lru_cache(maxsize=256)  # a sentence may be the best, the last and one of several at once
def _tell(asked: Asked, sentence: str) -> _Told:
    read = read_words(sentence)
    measures = list(measure_agreement(asked, sentence, read))
    said = _SAID.intersection(one for one, _ in measures) | _SAID.intersection(read.signs)
    return _Told(measures, "+".join(sorted(said)) or "nothing", relate_signs(asked, read))
