"""What a text says went up or down, or did not, compared with the text it was made from."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from deepera_graph.text.words import STOP_WORDS, split_sentences, stem

Way = Literal["up", "down"]
# Verbs and nouns of change alone: "lower in A" may well be said as "higher in B".
_UP = re.compile(
    r"(?:increas(?:e|es|ed|ing)|ris(?:e|es|ing|en)|rose|grew|grow(?:s|n|ing)?|growth|climb(?:s|ed"
    r"|ing)?|elevat(?:e|es|ed|ing|ion)|rais(?:e|es|ed|ing)|doubl(?:e|es|ed|ing))"
)
_DOWN = re.compile(
    r"(?:decreas(?:e|es|ed|ing)|f(?:a|e)ll|fall(?:s|ing|en)|reduc(?:e|es|ed|ing|tion|tions)"
    r"|declin(?:e|es|ed|ing)|drop(?:s|ped|ping)?|diminish(?:es|ed|ing)?|lower(?:s|ed|ing)"
    r"|shr(?:i|a|u)nk(?:s|ing)?|halv(?:e|es|ed|ing))"
)
_NEGATIONS = frozenset(
    {"not", "no", "never", "neither", "nor", "without", "cannot", "unable", "hardly"}
    | {"fail", "fails", "failed", "failing"}
)
_FORMS = (  # of a rise, and of a fall
    ("increase", "decrease"), ("increases", "decreases"), ("increased", "decreased"),
    ("increasing", "decreasing"), ("rise", "fall"), ("rises", "falls"), ("rose", "fell"),
    ("risen", "fallen"), ("rising", "falling"), ("raises", "lowers"),
    ("raised", "lowered"), ("raising", "lowering"), ("doubled", "halved"), ("grew", "shrank"),
    ("grows", "shrinks"), ("elevated", "diminished"), ("climbed", "dropped"),
)  # fmt: skip
_OPPOSITES = dict(_FORMS) | {down: up for up, down in _FORMS}
_OPPOSITES |= {"reduce": "increase", "reduces": "increases", "reduced": "increased"}
_OPPOSITES |= {"reducing": "increasing", "reduction": "increase", "reductions": "increases"}
_OPPOSITES |= {"decline": "rise", "declines": "rises", "declined": "rose", "declining": "rising"}
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|whereas|while|although|though|yet)\b", re.IGNORECASE)
_NEAR = 5  # words between a negation and what it negates
_ENOUGH = 0.5  # share of the words about a change that a sentence has if it is about the same


class _Change(NamedTuple):
    word: str
    way: Way
    is_negated: bool
    clause: frozenset[str]  # stems of what changes, within the clause
    sentence: frozenset[str]

    def says_as(self, other: "_Change") -> bool:
        return (self.way, self.is_negated) == (other.way, other.is_negated)


def turned_changes(summary: str, passage: str) -> list[str]:
    """List the changes that a summary turns around, e.g. ``rose, where the passage has fell``.

    Of each verb of change the clause of the passage with the most words in common decides; where
    no clause has any, all changes of the sentences that have half of the words. A negation counts:
    "reduced" is turned where the passage has "did not reduce". A comparison with an adjective,
    higher or lower, is not looked at, as both directions may say the same.

    Source:
        Changed causal chains, failure signature FA-4 of the DeepEra study; the rules are ours.
    """
    known = list(_read_changes(passage))
    found: dict[str, None] = {}
    for change in _read_changes(summary):
        same = _about_the_same(change, known)
        if same and not any(change.says_as(one) for one in same):
            found[f"{_show(change)}, where the passage has {_show(same[0])}"] = None
    return list(found)


def turn_changes(text: str) -> list[str]:
    """Return a text with one change turned around, a version for each, and with all of them.

    A verb becomes its opposite: ``rose`` for ``fell``, ``increases`` for ``reduces``.
    """
    places = [one for one in _WORD.finditer(text) if one.group().lower() in _OPPOSITES]
    turned = [_turn(text, [one]) for one in places]
    return [*turned, _turn(text, places)] if len(turned) > 1 else turned


def _turn(text: str, places: Sequence[re.Match[str]]) -> str:
    for one in reversed(places):
        word = _OPPOSITES[one.group().lower()]
        word = word.capitalize() if one.group()[0].isupper() else word
        text = f"{text[: one.start()]}{word}{text[one.end() :]}"
    return text


def _about_the_same(change: _Change, known: Sequence[_Change]) -> list[_Change]:
    near = [
        one
        for one in known
        if change.clause and len(change.clause & one.sentence) >= _ENOUGH * len(change.clause)
    ]
    most = max((len(change.clause & one.clause) for one in near), default=0)
    return [one for one in near if len(change.clause & one.clause) == most] if most else near


def _show(change: _Change) -> str:
    return f"not {change.word}" if change.is_negated else change.word


def _read_changes(text: str) -> Iterator[_Change]:
    for span in split_sentences(text):
        sentence = text[span.start : span.end]
        whole = _stems(sentence)
        for clause in _CLAUSE.split(sentence):
            words = [one.group().lower() for one in _WORD.finditer(clause)]
            stems = _stems(clause)
            for place, word in enumerate(words):
                way = _way_of(word)
                if way is not None:
                    before = words[max(0, place - _NEAR) : place]
                    is_negated = any(one in _NEGATIONS or one.endswith("n't") for one in before)
                    yield _Change(word, way, is_negated, stems, whole)


def _way_of(word: str) -> Way | None:
    if _UP.fullmatch(word):
        return "up"
    return "down" if _DOWN.fullmatch(word) else None


def _stems(text: str) -> frozenset[str]:
    """Return the stems of what a text is about: neither changes, negations nor stop words."""
    words = (one.group().lower() for one in _WORD.finditer(text))
    return frozenset(
        stem(one)
        for one in words
        if one not in STOP_WORDS and one not in _NEGATIONS and _way_of(one) is None
    )
