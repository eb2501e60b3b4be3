"""Findings that a text turns around: negations lost or added, opposites, arguments exchanged.

Changes in amount, "rose" for "fell", are in `changes`. The words are in ``opposites.toml``.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph.text.words import STOP_WORDS, split_sentences, stem

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|whereas|while|although|though|yet)\b", re.IGNORECASE)
_THAN = re.compile(
    r"\b(?:than|versus|vs|compared (?:with|to)|relative to|(?:superior|inferior) to)\b",
    re.IGNORECASE,
)
_PASSIVE = frozenset({"is", "are", "was", "were", "be", "been", "being"})
_NOT_ONLY = re.compile(r"\bnot (?:only|just|merely|least)\b", re.IGNORECASE)
_ENOUGH = 0.5  # share of the words of a clause that a sentence has if it is about the same
_NEAR = 5  # words after a negation that it may reach
_SHORTEST = 3  # letters of a word that can be denied
_FEWEST = 2  # words in common that say that a comparison is about the same


class _Mention(NamedTuple):
    """A word of a clause: what it stands for, and whether it is affirmed."""

    word: str
    key: str
    own: int  # -1 for what the word list calls the opposite
    reached: int  # by a negation: -1; 1 if not, 0 if it may be
    clause: frozenset[str]
    is_absence: bool  # whether the clause says that something is away
    is_denied: bool  # whether anything in the sentence denies

    @property
    def sign(self) -> int:
        return self.own * self.reached

    def __str__(self) -> str:
        return f"not {self.word}" if self.reached < 0 else self.word


class _Relation(NamedTuple):
    """Two sides of a clause: of a comparison, or of what one thing does to another."""

    word: str
    key: str
    sign: int
    left: frozenset[str]
    right: frozenset[str]


def turned_findings(summary: str, passage: str) -> list[str]:
    """List what a summary turns around, e.g. ``effective, where the passage has not effective``.

    - A negation is lost or added: the clause of the passage with the most words in common decides,
      and the other side must be free of anything that denies.
    - A word stands where the passage has its opposite: "worsened" for "improved".
    - A comparison is turned, or its sides are exchanged: "higher in A than in B" for "lower in A
      than in B". Both at once say the same.
    - What acts and what is acted on are exchanged: "A causes B" for "B causes A".

    Where it is not clear that both are about the same, nothing is listed.

    Source:
        Changed causal chains, failure signature FA-4 of the DeepEra study; the rules are ours.
    """
    found = [*_turned_words(summary, passage)]
    found += _turned_relations(_comparisons(summary), [*_comparisons(passage)])
    found += _exchanged(_actions(summary), [*_actions(passage)])
    return list(dict.fromkeys(found))


def _turned_words(summary: str, passage: str) -> Iterator[str]:
    known: dict[str, list[_Mention]] = {}
    for one in _mentions(passage):
        known.setdefault(one.key, []).append(one)
    for one in _mentions(summary):
        same = _about_the_same(one, known.get(one.key, ()))
        if same and not any(_agree(one, other) for other in same):
            yield f"{one}, where the passage has {same[0]}"


def _agree(one: _Mention, other: _Mention) -> bool:
    if one.sign * other.sign >= 0 or one.is_absence != other.is_absence:
        return True
    affirmed = one if one.reached > 0 else other
    return one.own == other.own and affirmed.is_denied


def _about_the_same(one: _Mention, known: Sequence[_Mention]) -> list[_Mention]:
    about = one.clause - {one.key}
    near = [
        other
        for other in known
        if about and len(about & other.clause) >= max(_ENOUGH * len(about), 1)
    ]
    most = max((len(about & other.clause) for other in near), default=0)
    return [other for other in near if len(about & other.clause) == most]


def _mentions(text: str) -> Iterator[_Mention]:
    for clause, is_denied in _clauses(text):
        words = [one.group().lower() for one in _WORD.finditer(_NOT_ONLY.sub(" ", clause))]
        reach = _reach(words)
        stems = _stems(clause)
        is_absence = any(one in _lexicon().absences for one in words)
        for place, word in enumerate(words):
            if word in STOP_WORDS or _denies(word) or len(word) < _SHORTEST:
                continue
            key, own = _lexicon().findings.get(word, (stem(word), 1))
            reached = reach.get(place, 1)
            if reached == 0 and key in _lexicon().keys and _is_evidential(words, place):
                reached = -1
            yield _Mention(
                word=word,
                key=key,
                own=own,
                reached=reached,
                clause=stems,
                is_absence=is_absence,
                is_denied=is_denied,
            )


def _reach(words: Sequence[str]) -> dict[int, int]:
    """Return the places that negations reach: -1 for what is negated, 0 for what may be."""
    reach: dict[int, int] = {}
    lexicon = _lexicon()
    for place, word in enumerate(words):
        if not _denies(word):
            continue
        next_word = words[place + 1] if place + 1 < len(words) else ""
        is_open = _is_negation(word) and next_word not in lexicon.prepositions
        for after in range(place + 1, min(place + 1 + _NEAR, len(words))):
            if words[after] in STOP_WORDS:
                continue
            reach[after] = -1 if is_open else reach.get(after, 0)
            is_open = is_open and words[after] in lexicon.modifiers
    return reach


def _is_evidential(words: Sequence[str], place: int) -> bool:
    """Whether a negated word such as evidence or show stands before a place."""
    return any(
        words[one] in _lexicon().evidential and reached < 0
        for one, reached in _reach(words).items()
        if one < place
    )


def _is_negation(word: str) -> bool:
    return word in _lexicon().negations or word.endswith(("n't", "n’t"))


def _denies(word: str) -> bool:
    return _is_negation(word) or word in _lexicon().absences


def _is_against(word: str) -> bool:
    return _lexicon().findings.get(word, ("", 1))[1] < 0 or word.startswith(("non", "un"))


def _turned_relations(told: Iterator[_Relation], known: Sequence[_Relation]) -> Iterator[str]:
    for one in told:
        about = one.left | one.right
        shared = [len(about & (other.left | other.right)) for other in known]
        near = [
            other
            for other, n in zip(known, shared, strict=True)
            if other.key == one.key and n == max(shared) and n >= max(_ENOUGH * len(about), _FEWEST)
        ]
        if near and all(one.sign * other.sign * _orientation(one, other) < 0 for other in near):
            yield f"{one.word}, where the passage has {near[0].word} of it the other way round"


def _orientation(one: _Relation, other: _Relation) -> int:
    """Return 1 if the sides are the same, -1 if they are exchanged, 0 if that is not clear."""
    both = other.left & other.right
    left, right = other.left - both, other.right - both
    if not right:  # neither says with what it compares: the words must be the same
        return int(not one.right and one.left == other.left)
    if one.right:
        swapped = one.left & right and one.right & left and not one.right & right
        same = one.right & right and not one.left & right and not one.right & left
        return bool(same) - bool(swapped)
    if one.left & right:
        return -1 if not left <= one.left else 0
    return 1 if one.left and left <= one.left else 0


def _comparisons(text: str) -> Iterator[_Relation]:
    for clause, _ in _clauses(text):
        before, *after = _THAN.split(clause, maxsplit=1)
        words = [one.group().lower() for one in _WORD.finditer(clause)]
        compared = [one for one in words if one in _lexicon().comparisons]
        if len(compared) != 1:
            continue
        key, sign = _lexicon().comparisons[compared[0]]
        place = words.index(compared[0])
        is_negated = any(map(_is_negation, words[max(0, place - _NEAR) : place]))
        if is_negated:
            continue  # "not lower" is neither
        yield _Relation(compared[0], key, sign, _stems(before), _stems(" ".join(after)))


def _exchanged(told: Iterator[_Relation], known: Sequence[_Relation]) -> Iterator[str]:
    for one in told:
        same = [other for other in known if other.key == one.key]
        swapped = [
            other
            for other in same
            if one.left & other.right
            and one.right & other.left
            and not one.left & other.left
            and not one.right & other.right
        ]
        if swapped and len(swapped) == len(same):
            yield f"{one.word}, where the passage has its sides the other way round"


def _actions(text: str) -> Iterator[_Relation]:
    for clause, _ in _clauses(text):
        found = list(_WORD.finditer(clause))
        for place, one in enumerate(found):
            word = one.group().lower()
            if word not in _lexicon().actions:
                continue
            left, right = _stems(clause[: one.start()]), _stems(clause[one.end() :])
            before = found[place - 1].group().lower() if place else ""
            after = found[place + 1].group().lower() if place + 1 < len(found) else ""
            if before in _PASSIVE and after == "by":
                left, right = right, left
            elif before in _PASSIVE or not left or not right:
                continue
            yield _Relation(word, stem(word), 1, left, right)


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    """Yield clauses, and whether anything in their sentence denies."""
    for span in split_sentences(text):
        sentence = text[span.start : span.end]
        words = (one.group().lower() for one in _WORD.finditer(_NOT_ONLY.sub(" ", sentence)))
        is_denied = any(_denies(one) or _is_against(one) for one in words)
        for clause in _CLAUSE.split(sentence):
            if clause.strip():
                yield clause, is_denied


def _stems(text: str) -> frozenset[str]:
    """Return what a text is about: neither negations nor comparisons nor stop words."""
    lexicon = _lexicon()
    words = (one.group().lower() for one in _WORD.finditer(text))
    return frozenset(
        lexicon.findings.get(one, (stem(one), 1))[0]
        for one in words
        if one not in STOP_WORDS
        and one not in lexicon.comparisons
        and one not in lexicon.modifiers
        and not _denies(one)
    )


class _Lexicon(NamedTuple):
    negations: frozenset[str]
    absences: frozenset[str]
    prepositions: frozenset[str]
    modifiers: frozenset[str]
    evidential: frozenset[str]
    actions: frozenset[str]
    findings: Mapping[str, tuple[str, int]]  # what a word stands for, and which side of it
    comparisons: Mapping[str, tuple[str, int]]
    keys: frozenset[str]


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    plain = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    findings = _signed(plain["findings"])
    return _Lexicon(
        negations=frozenset(plain["negations"].split()),
        absences=frozenset(plain["absences"].split()),
        prepositions=frozenset(plain["prepositions"].split()),
        modifiers=frozenset(plain["modifiers"].split()),
        evidential=frozenset(plain["evidential"].split()),
        actions=frozenset(plain["actions"]["words"].split()),
        findings=findings,
        comparisons=_signed(plain["comparisons"]),
        keys=frozenset(key for key, _ in findings.values()),
    )


def _signed(pairs: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, int]]:
    signed: dict[str, tuple[str, int]] = {}
    for pair in pairs:
        key = pair["for"].split()[0]
        for name, sign in (("for", 1), ("against", -1)):
            signed.update(dict.fromkeys(pair[name].split(), (f"{key}+", sign)))
    return signed
