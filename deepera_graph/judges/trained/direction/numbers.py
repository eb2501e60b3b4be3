"""What the numbers of a sentence say: p values, intervals, ratios, pairs that are compared."""

import re
from collections.abc import Iterator
from typing import Final

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
