"""What a text turns around of its source: changes, negations, sides; words in ``parts.toml``."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deepera_graph.text.drift.parts import (
    ABSENCES,
    COUNTED,
    ENOUGH,
    KEYS,
    MODIFIERS,
    NEAR,
    PATTERNS,
    SETS,
    WAYS,
    ReadClause,
    denies,
    is_negation,
    list_meanings,
    list_set_apart,
    list_stems,
    list_words,
    read_parts,
)
from deepera_graph.text.drift.sides import turned_sides
from deepera_graph.text.words import STOP_WORDS, stem_verb

_SHORTEST = 3  # letters of a word that can be denied


class _Change(NamedTuple):
    phrase: str  # the word, with what negates it
    says: tuple[int, bool]  # up or down, and whether it is negated
    clause: frozenset[str]  # stems of what changes, within the clause
    sentence: frozenset[str]
    text: str  # of the sentence
    without: frozenset[str]  # stems of what is away in the sentence: "without nets"

    def is_of(self, other: "_Change") -> bool:
        """Tell whether nothing is away in one of two that is there in the other."""
        if self.says[1] and not SETS["negations"].isdisjoint(list_words(other.text)):
            return False  # "and B did not"
        if self.clause & list_set_apart(other.text) or other.clause & list_set_apart(self.text):
            return False
        mine, theirs = self.without - other.without, other.without - self.without
        return mine.isdisjoint(other.sentence) and theirs.isdisjoint(self.sentence)


def turned_changes(summary: str, passage: str) -> list[str]:
    """List the changes that a summary turns around, e.g. ``rose, where the passage has fell``."""
    # Of each verb of change the clause of the passage with the most words in common decides; where
    # no clause has any, all changes of the sentences that have half of the words. A negation
    # counts: "reduced" is turned where the passage has "did not reduce". Comparisons are left out.
    # Source: Changed causal chains, failure signature FA-4 of the DeepEra study; our own rules.
    known = list(_read_changes(passage))
    found: dict[str, None] = {}
    for one in _read_changes(summary):
        least, about = ENOUGH * len(one.clause), one.clause
        near = [other for other in known if about and len(about & other.sentence) >= least]
        most = max((len(about & other.clause) for other in near), default=0)
        same = [other for other in near if len(about & other.clause) == most]
        if same and all(one.says != other.says and one.is_of(other) for other in same):
            found[f"{one.phrase}, where the passage has {same[0].phrase}"] = None
    return list(found)


def _read_changes(text: str) -> Iterator[_Change]:
    for clause in read_parts(text):
        for place, word in enumerate(clause.words):
            if word not in WAYS or not SETS["slowing"].isdisjoint(clause.words[place:][:3]):
                continue
            before = clause.words[max(0, place - NEAR) : place]
            negating = [n for n, one in enumerate(before) if is_negation(one)]
            if not negating and "without" in before and _is_without(before):
                negating = [before.index("without")]
            phrase = _quote(before, negating[-1], word) if negating else word
            about, whole = (
                frozenset(
                    stem_verb(one)
                    for one in words
                    if one not in STOP_WORDS and not is_negation(one) and one not in WAYS
                )
                for words in (clause.borrowed + clause.words, list_words(clause.sentence))
            )
            away = list_words(" ".join(PATTERNS["without"].findall(clause.sentence)))
            without = frozenset(map(stem_verb, away)) - STOP_WORDS
            yield _Change(
                phrase, (WAYS[word], bool(negating)), about, whole, clause.sentence, without
            )


def _quote(before: Sequence[str], start: int, word: str) -> str:
    start -= bool(start and before[start - 1] in SETS["auxiliaries"])
    return f"“{' '.join([*before[start:], word])}”"


def _is_without(before: Sequence[str]) -> bool:
    """Tell whether "without" stands right before a word of change, but for "a" or "significant"."""
    words = [one for one in before if one not in MODIFIERS]
    return STOP_WORDS.issuperset(words[words.index("without") :])


class _Mention(NamedTuple):
    """A word of a clause: what it stands for, and whether it is affirmed."""

    word: str
    key: str
    own: int  # -1 for what the word list calls the opposite
    reached: int  # by a negation: -1; 1 if not, 0 if it may be
    clause: frozenset[str]
    is_absence: bool  # whether the clause says that something is away
    is_denied: bool  # whether anything else in the sentence denies
    unlike: frozenset[str]  # stems of what the sentence sets apart

    def __str__(self) -> str:
        word = self.word.rstrip(COUNTED)
        return f"“not {word}”" if self.reached < 0 else word


def turned_findings(summary: str, passage: str) -> list[str]:
    """List what a summary turns around, e.g. ``effective, where the passage has “not effective”``.

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
    told, known = read_parts(summary), read_parts(passage)
    return list(dict.fromkeys([*_turned_words(told, known), *turned_sides(told, known)]))


def _turned_words(told: Sequence[ReadClause], known: Sequence[ReadClause]) -> Iterator[str]:
    mentions: dict[str, list[_Mention]] = {}
    for one in _mentions(known):
        mentions.setdefault(one.key, []).append(one)
    said = [*_mentions(told)]
    unclear = {(one.clause, one.key) for one in said if one.own < 0}
    unclear &= {(one.clause, one.key) for one in said if one.own > 0}  # "improved impaired sleep"
    for one in said:
        if (one.clause, one.key) in unclear:
            continue
        about = one.clause - {one.key, *list_stems([one.word])}
        shared = [(len(about & other.clause), other) for other in mentions.get(one.key, ())]
        most = max((n for n, _ in shared), default=0)
        same = [other for n, other in shared if n == most]
        if most >= max(ENOUGH * len(about), 1) and not any(_agree(one, other) for other in same):
            yield f"{one}, where the passage has {same[0]}"


def _agree(one: _Mention, other: _Mention) -> bool:
    if one.own * one.reached * other.own * other.reached >= 0 or one.is_absence != other.is_absence:
        return True
    if one.clause & other.unlike or other.clause & one.unlike:
        return True
    affirmed = one if one.reached > 0 else other
    return one.own == other.own and affirmed.is_denied


def _mentions(clauses: Sequence[ReadClause]) -> Iterator[_Mention]:
    for clause in clauses:
        words = list_words(PATTERNS["not_only"].sub(" ", clause.text))
        reach, stems = _reach(words), clause.about
        unlike = list_set_apart(clause.sentence)
        is_absence = any(one in ABSENCES for one in words)
        for place, word in enumerate(words):
            if word in STOP_WORDS or denies(word) or len(word) < _SHORTEST:
                continue
            for key, own in list_meanings(word):
                reached = reach.get(place, 1)
                if reached == 0 and key in KEYS and _is_evidential(words, place):
                    reached = -1
                yield _Mention(
                    word=word,
                    key=key,
                    own=own,
                    reached=reached,
                    clause=stems,
                    is_absence=is_absence,
                    is_denied=bool(clause.denying - {word}),
                    unlike=unlike,
                )


def _reach(words: Sequence[str]) -> dict[int, int]:
    """Return the places that negations reach: -1 for what is negated, 0 for what may be."""
    reach: dict[int, int] = {}
    for place, word in enumerate(words):
        if not denies(word):
            continue
        next_word = words[place + 1] if place + 1 < len(words) else ""
        is_open = is_negation(word) and next_word not in SETS["prepositions"]
        for after in range(place + 1, min(place + 1 + NEAR, len(words))):
            if words[after] in STOP_WORDS:
                continue
            reach[after] = -1 if is_open else reach.get(after, 0)
            is_open = is_open and words[after] in MODIFIERS
    return reach


def _is_evidential(words: Sequence[str], place: int) -> bool:
    """Whether a negated word such as evidence or show stands before a place."""
    return any(
        words[one] in SETS["evidential"] and reached < 0
        for one, reached in _reach(words).items()
        if one < place
    )
