"""Measures of how far a sentence agrees with what is asked."""

from collections.abc import Iterator
from typing import Final

from deepera_graph.judges.trained.direction.numbers import measure_numbers
from deepera_graph.judges.trained.direction.question import COMPARED, Asked
from deepera_graph.judges.trained.direction.sentence import (
    NEAR,
    SignedWords,
    is_negated,
    read_words,
)
from deepera_graph.judges.trained.direction.signs import BAD_OUTCOME, POLAR


def measure_agreement(
    asked: Asked, sentence: str, read: SignedWords
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
    asked: Asked, read: SignedWords, place: int, way: int, *, is_turned: bool
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


def _is_close(asked: Asked, read: SignedWords, place: int) -> bool:
    around = read.stems[max(0, place - NEAR) : place + NEAR + 1]
    return not asked.stems.isdisjoint(around)


def _is_of_control(asked: Asked, read: SignedWords, place: int) -> bool:
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


def _is_turned(asked: Asked, sentence: str) -> bool:
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
