"""What a text turns around of its source: changes, negations, sides; words in ``drift.toml``."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import STOP_WORDS, held, split_sentences, stem_verb

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_ENOUGH = 0.5  # share of the words of a clause that a sentence has if it is about the same
_NEAR = 5  # words between a negation and what it negates
_SHORTEST = 3  # letters of a word that can be denied
_FEWEST = 2  # words in common that say that a comparison is about the same
_COUNTED = "ˢ"  # marks a noun that looks like a verb of change


def _signed(pairs: Sequence[Mapping[str, str]]) -> dict[str, tuple[str, int]]:
    """Return what each word stands for, and which side of it."""
    signed: dict[str, tuple[str, int]] = {}
    for pair in pairs:
        key = pair["for"].split()[0]
        for name, sign in (("for", 1), ("against", -1)):
            signed.update(dict.fromkeys(pair[name].split(), (f"{key}+", sign)))
    return signed


_LISTS = read_lists(__file__)
_SETS = {name: frozenset(text.split()) for name, text in _LISTS.items() if isinstance(text, str)}
_NEGATIONS, _ABSENCES, _MODIFIERS = (_SETS[one] for one in ("negations", "absences", "modifiers"))
_FINDINGS, _COMPARISONS = _signed(_LISTS["findings"]), _signed(_LISTS["comparisons"])
_PATTERNS = [re.compile(one, re.IGNORECASE | re.VERBOSE) for one in _LISTS["patterns"].values()]
_BRACKETS, _CLAUSE, _NOT_ONLY, _DESIGNS, _GROUPS, _NOUNS, _JOINED, _WITHOUT, _THAN, *_PATTERNS = (
    _PATTERNS
)
APART, NO_AMOUNT = _PATTERNS
_KEYS = frozenset(key for key, _ in _FINDINGS.values())
_AMOUNT, _WORTH = (_COMPARISONS[one][0] for one in ("higher", "better"))
_DENYING = frozenset(word for word, (_, sign) in _FINDINGS.items() if sign < 0)
_WAYS = dict.fromkeys(_SETS["up"], 1) | dict.fromkeys(_SETS["down"], -1)  # of a word of change
AMOUNTS = (  # of a word beside an amount: its sign, 0 for either
    {word: sign for word, (key, sign) in _COMPARISONS.items() if key == _AMOUNT}
    | dict.fromkeys(_SETS["gained"], 1)
    | dict.fromkeys(_SETS["lost"], -1)
    | dict.fromkeys(_SETS["differing"], 0)
    | _WAYS
)
_LESSENING = _ABSENCES | _SETS["lost"] | _SETS["down"]  # "a higher loss of yield" is no more yield
_PAIRS, _MORE_PAIRS = (
    [pair.split("/") for pair in _LISTS[name].split()]
    for name in ("opposites", "opposites_of_falls")
)
OPPOSITES = dict([*_PAIRS, *((down, up) for up, down in _PAIRS), *_MORE_PAIRS])


class _Clause(NamedTuple):
    text: str
    words: tuple[str, ...]  # in lower case
    sentence: str
    is_denied: bool  # whether anything in the sentence denies


def hide_designs(text: str) -> str:
    """Return a text without "double-blind" and "in four blocks", which are no changes."""
    # "Not waxed apples" and "those who were not waxed" are named so: "nonwaxed" denies nothing.
    return _GROUPS.sub(_name_group, _DESIGNS.sub(" ", text))


def _name_group(found: re.Match[str]) -> str:
    is_finding = found["what"].lower() in {*_WAYS, *_FINDINGS, *_MODIFIERS, *_SETS["evidential"]}
    return found[0] if is_finding else f"{found['who']} non{found['what']}"


@held()
def _read_clauses(text: str) -> tuple[_Clause, ...]:
    found: list[_Clause] = []
    text = _NOUNS.sub(rf"\g<before>\g<fewer>\g<noun>\g<counted>\g<accident>{_COUNTED}", text)
    text = _JOINED.sub(rf"\g<before>\g<noun>{_COUNTED}", text)
    for one in split_sentences(hide_designs(text)):
        words = _list_words(_NOT_ONLY.sub(" ", one.text))
        is_denied = any(
            _denies(word) or word in _DENYING or word.startswith(("non", "un")) for word in words
        )
        found += (
            _Clause(clause, _list_words(clause), one.text, is_denied)
            for clause in _CLAUSE.split(_BRACKETS.sub(" ", one.text))
            if clause.strip()
        )
    return tuple(found)


def _list_words(text: str) -> tuple[str, ...]:
    return tuple(one.group().lower() for one in WORD.finditer(text))


def _denies(word: str) -> bool:
    return _is_negation(word) or word in _ABSENCES


def _is_negation(word: str) -> bool:
    return word in _NEGATIONS or word.endswith(("n't", "n’t"))


class _Change(NamedTuple):
    phrase: str  # the word, with what negates it
    says: tuple[int, bool]  # up or down, and whether it is negated
    clause: frozenset[str]  # stems of what changes, within the clause
    sentence: frozenset[str]
    text: str  # of the sentence
    without: frozenset[str]  # stems of what is away in the sentence: "without nets"

    def is_of(self, other: "_Change") -> bool:
        """Tell whether nothing is away in one of two that is there in the other."""
        if self.says[1] and not _SETS["negations"].isdisjoint(_list_words(other.text)):
            return False  # "and B did not"
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
        least, about = _ENOUGH * len(one.clause), one.clause
        near = [other for other in known if about and len(about & other.sentence) >= least]
        most = max((len(about & other.clause) for other in near), default=0)
        same = [other for other in near if len(about & other.clause) == most]
        if same and all(one.says != other.says and one.is_of(other) for other in same):
            found[f"{one.phrase}, where the passage has {same[0].phrase}"] = None
    return list(found)


def _read_changes(text: str) -> Iterator[_Change]:
    for clause in _read_clauses(text):
        for place, word in enumerate(clause.words):
            if word not in _WAYS or not _SETS["slowing"].isdisjoint(clause.words[place:][:3]):
                continue
            before = clause.words[max(0, place - _NEAR) : place]
            negating = [n for n, one in enumerate(before) if _is_negation(one)]
            if not negating and "without" in before and _is_without(before):
                negating = [before.index("without")]
            phrase = _quote(before, negating[-1], word) if negating else word
            about, whole = (
                frozenset(
                    stem_verb(one)
                    for one in words
                    if one not in STOP_WORDS and not _is_negation(one) and one not in _WAYS
                )
                for words in (clause.words, _list_words(clause.sentence))
            )
            away = _list_words(" ".join(_WITHOUT.findall(clause.sentence)))
            without = frozenset(map(stem_verb, away)) - STOP_WORDS
            yield _Change(
                phrase, (_WAYS[word], bool(negating)), about, whole, clause.sentence, without
            )


def _quote(before: Sequence[str], start: int, word: str) -> str:
    start -= bool(start and before[start - 1] in _SETS["auxiliaries"])
    return f"“{' '.join([*before[start:], word])}”"


def _is_without(before: Sequence[str]) -> bool:
    """Tell whether "without" stands right before a word of change, but for "a" or "significant"."""
    words = [one for one in before if one not in _MODIFIERS]
    return STOP_WORDS.issuperset(words[words.index("without") :])


class _Mention(NamedTuple):
    """A word of a clause: what it stands for, and whether it is affirmed."""

    word: str
    key: str
    own: int  # -1 for what the word list calls the opposite
    reached: int  # by a negation: -1; 1 if not, 0 if it may be
    clause: frozenset[str]
    is_absence: bool  # whether the clause says that something is away
    is_denied: bool  # whether anything in the sentence denies

    def __str__(self) -> str:
        word = self.word.rstrip(_COUNTED)
        return f"“not {word}”" if self.reached < 0 else word


class _Relation(NamedTuple):
    """Two sides of a clause: of a comparison, or of what one thing does to another."""

    word: str
    key: str
    sign: int
    left: frozenset[str]
    right: frozenset[str]
    measured: frozenset[str] | set[str] = frozenset()  # "conduct" of "conduct better"


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
    told, known = _read_clauses(summary), _read_clauses(passage)
    found = [*_turned_words(told, known)]
    graded = _grade([*told, *known])
    found += _turned_relations(_comparisons(told, graded), [*_comparisons(known, graded)])
    found += _exchanged(_actions(told), [*_actions(known)])
    return list(dict.fromkeys(found))


def _turned_words(told: Sequence[_Clause], known: Sequence[_Clause]) -> Iterator[str]:
    mentions: dict[str, list[_Mention]] = {}
    for one in _mentions(known):
        mentions.setdefault(one.key, []).append(one)
    for one in _mentions(told):
        about = one.clause - {one.key}
        shared = [(len(about & other.clause), other) for other in mentions.get(one.key, ())]
        most = max((n for n, _ in shared), default=0)
        same = [other for n, other in shared if n == most]
        if most >= max(_ENOUGH * len(about), 1) and not any(_agree(one, other) for other in same):
            yield f"{one}, where the passage has {same[0]}"


def _agree(one: _Mention, other: _Mention) -> bool:
    if one.own * one.reached * other.own * other.reached >= 0 or one.is_absence != other.is_absence:
        return True
    affirmed = one if one.reached > 0 else other
    return one.own == other.own and affirmed.is_denied


def _mentions(clauses: Sequence[_Clause]) -> Iterator[_Mention]:
    for clause in clauses:
        words = _list_words(_NOT_ONLY.sub(" ", clause.text))
        reach, stems = _reach(words), _stems(clause.words)
        is_absence = any(one in _ABSENCES for one in words)
        for place, word in enumerate(words):
            if word in STOP_WORDS or _denies(word) or len(word) < _SHORTEST:
                continue
            key, own = _FINDINGS.get(word, (stem_verb(word), 1))
            reached = reach.get(place, 1)
            if reached == 0 and key in _KEYS and _is_evidential(words, place):
                reached = -1
            yield _Mention(
                word=word,
                key=key,
                own=own,
                reached=reached,
                clause=stems,
                is_absence=is_absence,
                is_denied=clause.is_denied,
            )


def _reach(words: Sequence[str]) -> dict[int, int]:
    """Return the places that negations reach: -1 for what is negated, 0 for what may be."""
    reach: dict[int, int] = {}
    for place, word in enumerate(words):
        if not _denies(word):
            continue
        next_word = words[place + 1] if place + 1 < len(words) else ""
        is_open = _is_negation(word) and next_word not in _SETS["prepositions"]
        for after in range(place + 1, min(place + 1 + _NEAR, len(words))):
            if words[after] in STOP_WORDS:
                continue
            reach[after] = -1 if is_open else reach.get(after, 0)
            is_open = is_open and words[after] in _MODIFIERS
    return reach


def _is_evidential(words: Sequence[str], place: int) -> bool:
    """Whether a negated word such as evidence or show stands before a place."""
    return any(
        words[one] in _SETS["evidential"] and reached < 0
        for one, reached in _reach(words).items()
        if one < place
    )


def _turned_relations(told: Iterator[_Relation], known: Sequence[_Relation]) -> Iterator[str]:
    for one in told:
        about = one.left | one.right
        shared = [len(about & (other.left | other.right)) for other in known]
        near = [
            other
            for other, n in zip(known, shared, strict=True)
            if _is_on_scale(one, other)
            and n == max(shared)
            and n >= max(_ENOUGH * len(about), _FEWEST)
        ]
        if near and all(one.sign * other.sign * _orientation(one, other) < 0 for other in near):
            swapped = " of it the other way round" if one.sign == near[0].sign else ""
            yield f"{one.word}, where the passage has {near[0].word}{swapped}"


def _is_on_scale(one: _Relation, other: _Relation) -> bool:
    """Tell whether two compare the same, also "conducts better" and "higher conductivity"."""
    is_amount = _AMOUNT in (one.key, other.key)
    return one.key == other.key or (is_amount and not one.measured.isdisjoint(other.measured))


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
        return -1 if right <= one.left and not left <= one.left else 0
    return 1 if one.left and left <= one.left else 0


def _grade(clauses: Sequence[_Clause]) -> dict[str, str]:
    """Return each "sweet" that a clause has less of, and its "sweeter": what both stand for."""
    graded: dict[str, str] = {}
    for one in clauses:  # "sweeter than", but not "higher in winter than"
        if _COMPARISONS.keys().isdisjoint(one.words):
            than = (word for word, after in pairwise(one.words) if after == "than")
            graded |= {word: stem_verb(word) for word in than if word.endswith("er")}
    known = {*(words := [word for one in clauses for word in one.words])}
    for word in {word for less, word in pairwise(words) if less == "less"} - STOP_WORDS:
        base, last = word.rstrip("ey"), word[-1]
        if more := known & {f"{base}{end}er" for end in ("", "i", last, f"{last}i")}:
            graded |= dict.fromkeys([word, *more], word)
    return graded


def _comparisons(clauses: Sequence[_Clause], graded: Mapping[str, str]) -> Iterator[_Relation]:
    for clause in clauses:
        words = clause.words
        compared = [one for one in words if one in _COMPARISONS or graded.get(one, one) != one]
        place = words.index(compared[0]) if len(compared) == 1 else -1
        if place < 0 or any(map(_is_negation, words[max(0, place - _NEAR) : place])):
            continue  # "not lower" is neither
        key, sign = _COMPARISONS.get(word := words[place], ("", 1))
        degree = graded.get("".join(words[place + 1 : place + 2]) if key == _AMOUNT else word, "")
        left, *right = map(_list_words, _THAN.split(clause.text, maxsplit=1))
        sides = [_stems([x for x in one if x not in graded]) for one in (left, sum(right, ()))]
        measured = _stems(words[:place][-1:]) if key == _WORTH else {degree} - {""}
        if key == _AMOUNT and not degree and _LESSENING.isdisjoint(words):
            measured = frozenset(one.removesuffix("iv").removesuffix("th") for one in sides[0])
        yield _Relation(word, degree or key, sign, sides[0], sides[1], measured)


def _exchanged(told: Iterator[_Relation], known: Sequence[_Relation]) -> Iterator[str]:
    for one in told:
        same = [other for other in known if other.key == one.key]
        swapped = [
            other
            for other in same
            if one.left & (other.right - one.right)  # "in rats", which both have, says nothing
            and (one.right - other.right) & other.left
            and not one.left & other.left
        ]
        if swapped and len(swapped) == len(same):
            yield f"{one.word}, where the passage has its sides the other way round"


def _actions(clauses: Sequence[_Clause]) -> Iterator[_Relation]:
    for clause in clauses:
        words = clause.words
        for place, word in enumerate(words):
            if word not in _SETS["actions"]:
                continue
            left, right = _stems(words[:place]), _stems(words[place + 1 :])
            before, after = words[place - 1] if place else "", "".join(words[place + 1 : place + 2])
            if before in _SETS["passive"] and after == "by":
                left, right = right, left
            elif before in _SETS["passive"] or not left or not right:
                continue
            yield _Relation(word, stem_verb(word), 1, left, right)


def _stems(words: Sequence[str]) -> frozenset[str]:
    """Return what words are about: neither negations nor comparisons nor stop words."""
    return frozenset(
        _FINDINGS.get(one, (stem_verb(one), 1))[0]
        for one in words
        if one not in STOP_WORDS
        and one not in _COMPARISONS
        and one not in _MODIFIERS
        and not _denies(one)
    )
