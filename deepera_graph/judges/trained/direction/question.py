"""What a yes/no question turns on: which way it asks, of whom, compared with whom."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from deepera_graph.judges.trained.direction.sentence import SignedWords, read_words
from deepera_graph.judges.trained.direction.signs import BAD_OUTCOME, POLAR
from deepera_graph.text.questions import looks_like_claim

COMPARED: Final = re.compile(
    r"\b(?:(?:as\s+)?compared\s+(?:with|to)|versus|vs\.?|than|relative\s+to|in\s+comparison\s+with)"
    r"\s+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """What a question asks about, and which way it asks."""

    kind: str  # the sign of its predicate: up, down, good, bad, null, link, or none
    place: int  # of the predicate
    value: int  # +1 if yes is good news, -1 if bad, 0 if neither
    negated: bool
    is_claim: bool
    read: SignedWords
    stems: frozenset[str]
    outcome: frozenset[str]  # stems after the predicate
    near: Mapping[str, int]  # sign of the nearest polar word, by stem
    parity: int  # product of all its signs, 0 if it has none
    first: frozenset[str]  # stems of who is asked about, before what they are compared with
    second: frozenset[str]  # stems of what they are compared with


@lru_cache(maxsize=64)
def read_question(question: str) -> Asked:
    """Read what a question asks from its wording."""
    read = read_words(question)
    kind, place = _find_predicate(read)
    value = 0
    if kind in ("good", "bad"):
        value = POLAR[kind]
    elif kind in ("up", "down"):
        after = read.words[place + 1 : place + 8]
        value = -POLAR[kind] if any(map(BAD_OUTCOME.match, after)) else 0
    is_negated = any(sign == "not" for sign in read.signs[max(0, place - 5) : place + 5])
    parts = COMPARED.split(question, maxsplit=1)
    first: frozenset[str] = frozenset()
    second: frozenset[str] = frozenset()
    if len(parts) == 2:
        one, other = (frozenset(read_words(part).stems) - {""} for part in parts)
        first, second = one - other, other - one
    else:
        first = frozenset(read.stems[:place]) - {""}
    return Asked(
        kind="null" if is_negated and kind in ("link", "none") else kind,
        place=place,
        value=value,
        negated=is_negated,
        is_claim=looks_like_claim(question),
        read=read,
        stems=frozenset(read.stems) - {""},
        outcome=frozenset(read.stems[place + 1 :]) - {""} or frozenset(read.stems) - {""},
        near=read.near,
        parity=read.parity,
        first=first,
        second=second,
    )


def _find_predicate(read: SignedWords) -> tuple[str, int]:
    """Return the sign that the question turns on, and its place; ``none`` if it has no sign.

    A polar verb goes before a polar word after a linking one (``is associated with higher``), that
    before any other polar word, and that before a word of likeness or a link.
    """
    polar = [
        place
        for place, sign in enumerate(read.signs)
        if sign in POLAR and not _is_modifier(read, place)
    ]
    verbs = [place for place in polar if not _NO_VERB.search(read.words[place])]
    links = [place for place, sign in enumerate(read.signs) if sign == "link"]
    links += [place for place, word in enumerate(read.words) if place and word in _BEING]
    after = [place for place in polar if links and place > min(links)]
    for found in (verbs, after, polar):
        if found:
            return read.signs[found[0]], found[0]
    for wanted in ("null", "link"):
        if wanted in read.signs:
            return wanted, read.signs.index(wanted)
    return "none", len(read.signs)


_NO_VERB: Final = re.compile(
    r"(?:ed|ing|tions?|sions?|ments?|[ae]nce|[ae]ncy|er|est|ity|ive|[ae]nt|low|high|loss|deficient|negative"
    r"|positive|positively|negatively|more|less|excess)$"
)
_BEING: Final = frozenset(["is", "are", "was", "were", "have", "has", "had", "can", "be", "been"])


def _is_modifier(read: SignedWords, place: int) -> bool:
    """Tell whether a polar word only describes a thing, as in ``low-dose`` or ``X-induced``."""
    after = read.words[place + 1] if place + 1 < len(read.words) else ""
    before = read.words[place - 1] if place else ""
    return after == "-" or before == "-"
