"""Which directions a sentence cannot have by its own words and tests, whatever a model says."""

import re
from typing import Final

from deepera_graph.judges.trained.direction.sides import order_sides
from deepera_graph.judges.trained.direction.wording import (
    COMPARED,
    POLAR,
    ReadQuestion,
    SignedWords,
    is_negated,
    measure_numbers,
    read_question,
    read_words,
)
from deepera_graph.schema import Direction
from deepera_graph.text.plain import read_lists

_LISTS: Final = read_lists(__file__)
_ASKED, _MOVED, _AWAY, _BY, _ELSEWHERE, _SEVERAL = (
    re.compile(_LISTS[one], re.IGNORECASE | re.VERBOSE)
    for one in ("asked", "moved", "away", "by", "elsewhere", "several")
)
_TESTED: Final = frozenset(["p significant", "interval is clear"])
_UNTESTED: Final = frozenset(["p not significant", "interval holds none"])
_RATIOS: Final = frozenset(["ratio above", "ratio below", "ratio alike"])
_TEST: Final = re.compile(r"\b[pP]\s?[<=>≤≥]|\b(?:CI|CrI)\b|\b(?:confidence|credible) interval")
_ENDS: Final = re.compile(r"[,;:]")
_RATIO: Final = re.compile(r"\ba?(?:OR|RR|HR)\b|ratio|relative risk")
_YES_OR_NO: Final = frozenset[Direction](["supports", "contradicts"])


def is_doubtful(question: str, quote: str, direction: Direction) -> bool:
    """Tell whether a quoted sentence says by itself that it does not have a direction."""
    # Only of a question whether something makes an outcome go up or down.
    asked = read_question(question)
    words, signs = asked.read.words, asked.read.signs[: asked.place]
    is_plain = _ASKED.fullmatch(words[asked.place]) if asked.kind in ("up", "down") else None
    if not is_plain or asked.negated or not asked.first or not POLAR.keys().isdisjoint(signs):
        return False
    if direction == "no_difference":
        return _has_exception(quote)
    if direction not in _YES_OR_NO:
        return False
    is_null = direction == "supports" and _finds_nothing(quote)
    return is_null or _find_way(asked, quote) == (-1 if direction == "supports" else 1)


def _has_exception(quote: str) -> bool:
    """Tell whether a difference that was tested was not found in others alone."""
    found = _ELSEWHERE.search(quote)
    before = {one for one, _ in measure_numbers(quote[: found.start()], 0)} if found else set()
    return bool(before & _TESTED) and not before & _UNTESTED


def _finds_nothing(quote: str) -> bool:
    """Tell whether the only test of a sentence leaves it open whether anything differs."""
    found = {one for one, _ in measure_numbers(quote, 0)}
    is_ratio = bool(found & _RATIOS)
    is_one = len(_TEST.findall(quote)) == 1 and is_ratio == bool(_RATIO.search(quote))
    is_open = bool(found & _UNTESTED) and not found & _TESTED
    return is_one and is_open and not _SEVERAL.search(quote)


def _find_way(asked: ReadQuestion, quote: str) -> int:
    """Return 1 where all words of a sentence go as is asked, -1 where all go the other way."""
    # Only where it has one comparison, of what is asked about, and names the outcome; else 0.
    said = order_sides(asked, quote)
    before, *others = COMPARED.split(said)
    outcome = asked.outcome - asked.first
    if len(others) > 1 or _AWAY.search(before) or not outcome <= read_words(before).known:
        return 0
    if others and not asked.first.isdisjoint(read_words(others[0]).known):
        return 0
    read = read_words(before)
    signs = {
        0 if is_negated(read.signs, place) else POLAR[sign]
        for place, sign in enumerate(read.signs)
        if sign in POLAR and read.stems[place] not in outcome and read.words[place] != "under"
    }
    n_moved = len([one for one in read.words if _MOVED.fullmatch(one)])
    is_told = len(signs) == 1 and n_moved == 1 and _is_studied(asked, read)
    return signs.pop() * POLAR[asked.kind] if is_told else 0


def _is_studied(asked: ReadQuestion, read: SignedWords) -> bool:
    """Tell whether a sentence says plainly that what is asked about was there."""
    places = [place for place, one in enumerate(read.stems) if one in asked.first]
    if not asked.first <= read.known or places[-1] - places[0] >= len(places):
        return False
    ahead = [one for one in read.words[: places[0]] if one != "the"][-1:]
    behind = read.words[places[-1] + 1 :][:1]
    if ahead and not _ENDS.fullmatch(ahead[0]):  # "higher with coffee", not "with less coffee"
        is_whole = not behind or not behind[0].isalpha() or _BY.fullmatch(behind[0])
        return bool(_BY.fullmatch(ahead[0]) and is_whole)
    return bool(behind) and bool(_MOVED.fullmatch(behind[0]))  # "coffee raised alertness"
