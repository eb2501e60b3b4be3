"""The named features of a passage: what its sentences that match the question best say of it.

A sentence is measured by how far its words agree with what is asked, by its numbers (p values,
intervals, ratios, pairs that are compared), and as a row of signs relative to the question.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from deepera_graph.judges.trained.direction.wording import (
    BAD_OUTCOME,
    COMPARED,
    NEAR,
    POLAR,
    ReadQuestion,
    SignedWords,
    is_negated,
    read_question,
    read_words,
)
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


def _rank_sentences(asked: ReadQuestion, sentences: Sequence[str], quote: str) -> list[str]:
    """Return the sentences, the quoted one first, then by how much of the question they name."""

    def key(place: int) -> tuple[bool, float]:
        sentence = sentences[place]
        read = read_words(sentence)
        named = len(asked.stems & read.known) + len(asked.outcome & read.known)
        is_quote = bool(quote) and (sentence in quote or quote.strip() in sentence)
        return is_quote, named + 1.0 * read.finds + 0.5 * place / len(sentences)

    order = sorted(range(len(sentences)), key=key, reverse=True)
    return [sentences[place] for place in order]


def _describe_question(asked: ReadQuestion, found: defaultdict[str, float]) -> None:
    found[f"asks {asked.kind}"] = 1
    found["asks not"] = asked.negated
    found["asks for a comparison"] = bool(asked.second)
    found["claims"] = asked.is_claim
    found[f"asks value {asked.value}"] = 1


def _find_clause(asked: ReadQuestion, sentence: str) -> str:
    """Return the part of a sentence that names most of the outcome, and tells a finding."""

    def key(clause: str) -> float:
        read = read_words(clause)
        return len(asked.outcome & read.known) + 0.5 * read.finds

    return max(_CLAUSE.split(sentence), key=key)


def _describe_sentences(
    name: str,
    asked: ReadQuestion,
    sentences: Sequence[str],
    most: int,
    found: defaultdict[str, float],
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
def _tell(asked: ReadQuestion, sentence: str) -> _Told:
    read = read_words(sentence)
    measures = list(measure_agreement(asked, sentence, read))
    said = _SAID.intersection(one for one, _ in measures) | _SAID.intersection(read.signs)
    return _Told(measures, "+".join(sorted(said)) or "nothing", relate_signs(asked, read))


def measure_agreement(
    asked: ReadQuestion, sentence: str, read: SignedWords
) -> Iterator[tuple[str, float]]:
    """Yield named measures of what a sentence says against what is asked."""
    is_turned = _is_turned(asked, sentence)
    way = POLAR.get(asked.kind, 0) if asked.kind in ("up", "down") else 0
    for place, sign in enumerate(read.signs):
        if sign in POLAR:
            yield from _judge_sign(asked, read, place, way, is_turned=is_turned)
    near = read.near
    shared = [one for one in asked.near if one in near]
    for one in shared:
        same = asked.near[one] == near[one]
        yield ("same word, same way" if same else "same word, other way"), 1 / len(shared)
    denies = "not" in read.signs
    if denies:
        yield ("both negate" if asked.negated else "negates alone"), 1.0
    elif asked.negated:
        yield "asked negated, not said", 1.0
    yield from measure_numbers(sentence, way * (-1 if is_turned else 1))
    if read.parity and asked.parity:
        yield (
            ("signs multiply alike" if read.parity == asked.parity else "signs multiply apart"),
            1.0,
        )
    yield "turned", float(is_turned)
    yield "names", len(asked.stems & read.known) / (len(asked.stems) or 1)


def _judge_sign(
    asked: ReadQuestion, read: SignedWords, place: int, way: int, *, is_turned: bool
) -> Iterator[tuple[str, float]]:
    """Yield whether one polar word goes the way that is asked about, or the other."""
    sign = read.signs[place]
    denied = "not " * is_negated(read.signs, place)
    turned = -1 if is_turned or _is_of_control(asked, read, place) else 1
    value = 0
    if way and sign in ("up", "down"):
        value = POLAR[sign] * way * turned
    elif asked.value:
        value = _find_value(read, place) * asked.value * turned
    if value:
        kind = "agrees" if value > 0 else "opposes"
        yield f"{denied}{kind}", 0.5
        if _is_close(asked, read, place):
            yield f"{denied}{kind} near", 0.5
    elif not way and not asked.value:
        yield f"{denied}moves", 0.5


def _find_value(read: SignedWords, place: int) -> int:
    """Return +1 for good news, -1 for bad news, 0 where a polar word is neither."""
    sign = read.signs[place]
    if sign in ("good", "bad"):
        return POLAR[sign]
    around = read.words[max(0, place - 4) : place + 5]
    return -POLAR[sign] if any(map(BAD_OUTCOME.match, around)) else 0


def _is_close(asked: ReadQuestion, read: SignedWords, place: int) -> bool:
    around = read.stems[max(0, place - NEAR) : place + NEAR + 1]
    return not asked.stems.isdisjoint(around)


def _is_of_control(asked: ReadQuestion, read: SignedWords, place: int) -> bool:
    """Tell whether a polar word is said of those compared with, as in ``higher with placebo``."""
    if read.signs[place + 1 : place + 2] == ("than",):
        return False
    for where in range(place + 1, min(len(read.words), place + 1 + _FAR)):
        if read.signs[where] == "than" or read.words[where] in (";", ","):
            return False
        if read.stems[where] in asked.first and read.stems[where]:
            return False
        if read.stems[where] in asked.second or read.words[where] in _CONTROL:
            return True
    return False


_FAR = 9  # words between a polar word and of whom it is said
_CONTROL: Final = frozenset(
    ["control", "controls", "placebo", "untreated", "sham", "conventional", "usual"]
)


def _is_turned(asked: ReadQuestion, sentence: str) -> bool:
    """Tell whether a sentence compares the other way round than the question does."""
    if not asked.first or not asked.second:
        return False
    parts = COMPARED.split(sentence, maxsplit=1)
    if len(parts) < 2:
        return False
    before, after = (frozenset(read_words(part).stems) for part in parts)
    kept = len(asked.first & before) / len(asked.first) + len(asked.second & after) / len(
        asked.second
    )
    turned = len(asked.first & after) / len(asked.first) + len(asked.second & before) / len(
        asked.second
    )
    return turned > kept


_P_VALUE: Final = re.compile(
    r"\bp(?:\s*-?\s*values?)?(?:\s*(?:of|was|were|is))?\s*([<>=≤≥])\s*(0?[.·]\d+|0|1(?:\.0+)?)\b",
    re.IGNORECASE,
)
_INTERVAL: Final = re.compile(
    r"(?:\bCI|confidence|interval|\brange|\bHR|\bOR|\bRR|ratio)\D{0,24}?"
    r"(?:95\s*%?\D{0,24}?)?([-−–]?\d+(?:[.·]\d+)?)\s*%?\s*(?:to|and|,|;|–|-|—|−)\s*"
    r"([-−–]?\d+(?:[.·]\d+)?)"
)
_RATIO: Final = re.compile(
    r"\b(?:a?OR|a?HR|RR|IRR|(?:odds|hazards?|risk|rate|relative)\s+(?:ratio|risk))s?\b\D{0,20}?"
    r"(\d+[.·]\d+)"
)
_PAIR: Final = re.compile(
    r"(\d+(?:[.·]\d+)?)\s*%?[^\d.;]{0,40}?\b(?:vs\.?|versus|compared\s+(?:with|to)|against|than)\s"
    r"[^\d.;]{0,40}?(\d+(?:[.·]\d+)?)"
)
_ALPHA = 0.05
_APART = 0.2
_NEAR_ONE = 0.1  # of a ratio, so far from 1: alike, unless an interval or a p-value says otherwise


def measure_numbers(sentence: str, way: int) -> Iterator[tuple[str, float]]:
    """Yield what numbers say: significance, intervals that hold no difference, ratios, pairs."""
    if not any(map(str.isdigit, sentence)):
        return
    for sign, number in _P_VALUE.findall(sentence):
        is_significant = _to_float(number) <= _ALPHA and sign not in (">", "≥")
        yield ("p significant" if is_significant else "p not significant"), 1.0
    ratios = [_to_float(one) for one in _RATIO.findall(sentence)]
    none = 1.0 if ratios or "ratio" in sentence else 0.0
    for ends in _INTERVAL.findall(sentence):
        low, high = sorted(map(_to_float, ends))
        yield ("interval holds none" if low <= none <= high else "interval is clear"), 1.0
    for ratio in ratios:
        if abs(ratio - 1) <= _NEAR_ONE:
            yield "ratio alike", 1.0
        else:
            yield ("ratio above" if ratio > 1 else "ratio below"), 1.0
            yield from _judge_order("ratio", ratio, 1.0, way)
    yield from _judge_pairs(sentence, way)


def _judge_pairs(sentence: str, way: int) -> Iterator[tuple[str, float]]:
    for pair in _PAIR.findall(sentence):
        one, other = map(_to_float, pair)
        yield from _judge_order("pair", one, other, way)
        if one or other:
            is_apart = abs(one - other) > _APART * max(abs(one), abs(other))
            yield ("pair apart" if is_apart else "pair alike"), 1.0


def _judge_order(name: str, one: float, other: float, way: int) -> Iterator[tuple[str, float]]:
    if way and one != other:
        yield f"{name} {'agrees' if (one > other) == (way > 0) else 'opposes'}", 1.0


def _to_float(number: str) -> float:
    return float(re.sub("[−–]", "-", number).replace("·", "."))


def relate_signs(asked: ReadQuestion, read: SignedWords) -> list[str]:
    """Return a sentence as signs relative to the question; other words are ``_``, once a row."""
    signs: list[str] = []
    for word, sign, one in zip(read.words, read.signs, read.stems, strict=True):
        new = (_relate_sign(asked, sign) if sign else "") or _name_word(asked, word, one)
        if not signs or new not in "_Q0AC" or signs[-1] != new:
            signs.append(new)
    return signs


def _name_word(asked: ReadQuestion, word: str, one: str) -> str:
    for name, known in (("A", asked.first), ("C", asked.second), ("Q", asked.stems)):
        if one and one in known:
            return name
    if word[0].isdigit():
        return "0"
    return word if word in _KEPT else "_"


_KEPT: Final = frozenset(
    (
        *("in", "by", "for", "of", "to", "with", "after", "before", "as", "at", "and", "or"),
        *("did", "was", "were", "is", "are", "does", "do", "difference", "group", "between"),
        *("all", "any", "most", "=", "<", ">", "%", ";"),
    )
)


def _relate_sign(asked: ReadQuestion, sign: str) -> str:
    """Return a sign relative to the way the question asks."""
    if sign in ("up", "down") and asked.kind in ("up", "down"):
        return "same" if sign == asked.kind else "opposite"
    if sign in ("good", "bad") and asked.kind in ("good", "bad"):
        return "SAME" if sign == asked.kind else "OPPOSITE"
    if sign == "null" and asked.kind == "null":
        return "SAME"
    if sign == "not" and asked.negated:
        return "also not"
    return sign


def find_grams(signs: Sequence[str], most: int) -> Iterator[str]:
    """Yield all runs of 1 to *most* signs that neither begin nor end with another word."""
    for size in range(1, most + 1):
        for start in range(len(signs) - size + 1):
            gram = signs[start : start + size]
            if gram[0] != "_" and gram[-1] != "_":
                yield " ".join(gram)
