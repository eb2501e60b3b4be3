"""Who is compared with whom: a sentence in which what is asked about comes second is turned round.

"Weeds were fewer in bare than in mulched plots" becomes "weeds were more in mulched than in bare
plots". What does not tell for certain which group is which is left as it is.
"""

import re
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import Final, NamedTuple

from deepera_graph.judges.trained.direction.wording import (
    COMPARED,
    POLAR,
    ReadQuestion,
    read_words,
    sign_of,
)
from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import GENERAL_STEMS, LONGEST, STOP_WORDS, stem

_LISTS: Final = read_lists(__file__)
_CONTROL, _LACKING, _MOVED, _ENDING, _ALLOTTED = (
    re.compile(_LISTS[one], re.IGNORECASE | re.VERBOSE)
    for one in ("control", "lacking", "moved", "ending", "allotted")
)
_OPPOSITES: Final = _LISTS["opposites"]
_COMPARATIVE: Final = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_THAN: Final = re.compile(rf"{COMPARED.pattern}(?!\d)", re.IGNORECASE)
_BOUND: Final = re.compile(
    r"[;:()\[\]]|,?\s(?:whereas|while|but|although|though|so|because|since|suggesting|indicating)\s"
    r"|,\s(?:and|thus|hence|therefore|which|with)\s|,(?=\s)"
)
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_WITHOUT: Final = re.compile(r"(?:un|non-?)(?P<what>\w{3,})")
_LATER: Final = re.compile(r"\b(?:in|for|among|during|after|under|on|at|with|of|by)\b")
_AHEAD: Final = re.compile(r"\W*(?:in|among|with|on|for|under|after)\s[^,]{1,60},\s*", re.I)
_FIGURE: Final = re.compile(r"(?<![\w.,−–-])\d+(?:\.\d+)?(?![\w.,]*\d)\s?%?")
_JOINT: Final = re.compile(
    r",?\s(?:and|but|while|whereas|versus|vs\.?|against|compared\s+(?:with|to))\s+(?:by\s+|only\s+)*",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    r"(?P<one>\d+(?:\.\d+)?(?:\s?%)?)(?P<joint>[^\d.;()]{0,20}?\b(?:vs\.?|versus|against|compared\s+(?:with|to))\s)"
    r"(?P<other>\d+(?:\.\d+)?(?:\s?%)?)"
)
_RATIO: Final = re.compile(
    r"\b(?:a?OR|a?HR|RR|IRR|(?:odds|hazards?|risk|rate|relative)\s+(?:ratio|risk))s?\b[^);]*?"
    r"(?=[);]|,\s*[pP]\b|\Z)"
)
_FEW = 6  # words that a group may have between the first and the last one that name it
_SOON = 2  # words behind ``without`` in which it is told without what
_NEAR = 3  # words behind a number that may say what it counts
_APART = 0.2  # share by which two numbers differ, if no p-value tells that they do
_NO_P: Final = re.compile(
    r"\b[pP]\s*(?:[>≥]|=\s*0?\.(?!0[0-5])\d)|\bNS\b|\bn\.s\.|not\s+significan"
)


Span = tuple[int, int]  # of a text, [start, end)


class _Groups(NamedTuple):
    """The stems of who is asked about, and of whom they are compared with, as far as asked."""

    studied: Set[str]
    others: Set[str]


@lru_cache(maxsize=256)  # a sentence may be the best, the last and one of several at once
def order_sides(asked: ReadQuestion, sentence: str) -> str:
    """Return a sentence with who is asked about compared with the others, not the reverse."""
    # A long one is left as it is: it is no sentence, and time is quadratic in its comparisons.
    groups = _find_groups(asked)
    if not groups.studied or len(sentence) > LONGEST:
        return sentence
    for than in _THAN.finditer(sentence):
        if turned := _turn(groups, sentence, than):
            return turned
    return _compare_figures(asked, groups, sentence) or sentence


@lru_cache(maxsize=64)
def _find_groups(asked: ReadQuestion) -> _Groups:
    """Return who is asked about; nobody if the question asks of a control itself."""
    words, signs = asked.read.words, asked.read.signs
    text = " ".join(words)
    than = COMPARED.search(f"{text} ")
    start = len(text[: than.start()].split()) if than else asked.place
    if _CONTROL.search(" ".join(words[:start])) or _LACKING.search(text if not than else ""):
        return _Groups(frozenset(), frozenset())
    if than is None:
        return _Groups(_list_telling(asked, range(asked.place)), frozenset())
    behind = start + len(than[0].split())
    while behind < len(words) and (_LATER.fullmatch(words[behind]) or words[behind] == "the"):
        behind += 1
    stop = next((n for n in range(behind, len(words)) if signs[n] in POLAR), len(words))
    end = next((n for n in range(behind, stop) if _LATER.fullmatch(words[n])), stop)
    near = _list_telling(asked, range(asked.place + 1, start))
    studied = near if any(_LATER.fullmatch(one) for one in words[asked.place + 1 : start]) else ()
    studied = studied or _list_telling(asked, range(min(asked.place, start)))
    others = _list_telling(asked, range(behind, end))
    return _Groups(frozenset(studied) - others, others - frozenset(studied))


def _list_telling(asked: ReadQuestion, places: Sequence[int]) -> frozenset[str]:
    read = asked.read
    stems = (read.stems[n] for n in places if n < len(read.stems) and not read.signs[n])
    return frozenset(stems) - GENERAL_STEMS - {""}


class _Side(NamedTuple):
    """Where a part of a sentence names who is studied, and the others."""

    studied: Span | None
    other: Span | None


def _find_side(groups: _Groups, text: str) -> _Side:
    """Return which groups a part of a sentence names."""
    other = _find_others(groups, text)
    named = [
        one.span()
        for one in _WORD.finditer(text)
        if _names(groups.studied, one[0]) and not (other and other[0] <= one.start() < other[1])
    ]
    return _Side(_join(text, named), other)


def _find_others(groups: _Groups, text: str) -> Span | None:
    if found := _CONTROL.search(text):
        return found.span()
    for one in _WORD.finditer(text):
        without = _WITHOUT.fullmatch(one[0].lower())
        if without and _names(groups.studied, without["what"]):
            return one.span()
    for found in _LACKING.finditer(text):
        behind = list(_WORD.finditer(text, found.end()))[:_SOON]
        if last := next((one for one in behind if _names(groups.studied, one[0])), None):
            return found.start(), last.end()
    named = [one.span() for one in _WORD.finditer(text) if _names(groups.others, one[0])]
    return _join(text, named)


def _names(stems: Set[str], word: str) -> bool:
    parts = {word, *word.split("-")}
    return any(stem(one.lower()) in stems for one in parts if one.lower() not in STOP_WORDS)


def _join(text: str, spans: Sequence[Span]) -> Span | None:
    if not spans:
        return None
    start, end = spans[0][0], spans[-1][1]
    return (start, end) if len(text[start:end].split()) <= _FEW else spans[0]


def _turn(groups: _Groups, sentence: str, than: re.Match[str]) -> str:
    """Return a sentence with its two groups exchanged and its comparative the other way."""
    start = max((one.end() for one in _BOUND.finditer(sentence, 0, than.start())), default=0)
    if _AHEAD.fullmatch(sentence, 0, start):  # "in controls, stroke was rarer than with aspirin"
        start = 0
    end = comma = _find_bound(sentence, than.end())
    is_ahead = not sentence[start : than.start()].strip() and sentence[end : end + 1] == ","
    if is_ahead:  # "compared with mulched plots, bare plots had more weeds"
        end = _find_bound(sentence, comma + 1)
    subject = sentence[comma:end] if is_ahead else sentence[start : than.start()]
    comparatives = [*_COMPARATIVE.finditer(subject)]
    if not comparatives:
        return ""
    more = comparatives[0 if is_ahead else -1]
    turned = _exchange(groups, subject, sentence[than.end() : comma], more)
    if not turned:
        return ""
    first, second = turned
    told = f"{than[0]}{second}{first}" if is_ahead else f"{first}{than[0]}{second}"
    return f"{sentence[:start]}{told}{_turn_figures(sentence[end:])}"


def _find_bound(sentence: str, start: int) -> int:
    found = _BOUND.search(sentence, start)
    return found.start() if found else len(sentence)


def _exchange(
    groups: _Groups, subject: str, compared_with: str, more: re.Match[str]
) -> tuple[str, str] | None:
    """Return both parts of a comparison turned round; None if it is not known to be reversed."""
    one, two = _find_side(groups, subject), _find_side(groups, compared_with)
    if one.studied or two.other or not one.other or not two.studied:
        return None
    studied, other = compared_with[slice(*two.studied)], subject[slice(*one.other)]
    parts = [(one.other, studied), (more.span(), str(_OPPOSITES[more[0].lower()]))]
    return _replace(subject, parts), _replace(compared_with, [(two.studied, other)])


def _replace(text: str, parts: Sequence[tuple[Span, str]]) -> str:
    for (start, end), new in sorted(parts, reverse=True):
        text = f"{text[:start]}{new}{text[end:]}"
    return text


def _turn_figures(text: str) -> str:
    """Return what stands behind a comparison with its pairs turned and without its ratios."""
    end = text.find(")") + 1 if text.lstrip().startswith("(") else 0
    told = _PAIR.sub(lambda one: f"{one['other']}{one['joint']}{one['one']}", text[:end])
    return f"{_RATIO.sub('', told)}{text[end:]}"


def _compare_figures(asked: ReadQuestion, groups: _Groups, sentence: str) -> str:
    """Return a sentence that tells a number of either group with a comparative instead."""
    for joint in _JOINT.finditer(sentence):
        start, end = _find_ends(sentence, joint)
        pair = _Pair(sentence[start : joint.start()], sentence[joint.end() : end])
        one, two = (_find_side(groups, part) for part in pair)
        if one.studied and two.other and not one.other and not two.studied:
            sides = one.studied, two.other
        elif one.other and two.studied and not one.studied and not two.other:
            sides = one.other, two.studied
        else:
            continue
        if said := _compare_pair(
            asked, groups, pair, sides, sentence[end:], is_turned=bool(one.other)
        ):
            return f"{sentence[:start]}{said}"
    return ""


def _find_ends(sentence: str, joint: re.Match[str]) -> tuple[int, int]:
    bounds = [one for one in _BOUND.finditer(sentence) if one.start() != joint.start()]
    start = max((one.end() for one in bounds if one.end() <= joint.start()), default=0)
    end = min((one.start() for one in bounds if one.start() >= joint.end()), default=len(sentence))
    return start, end


class _Pair(NamedTuple):
    """What is told of either group."""

    first: str
    second: str


_Sides = tuple[Span, Span]  # where either part names its group


def _compare_pair(
    asked: ReadQuestion,
    groups: _Groups,
    pair: _Pair,
    sides: _Sides,
    rest: str,
    *,
    is_turned: bool,
) -> str:
    """Return that an outcome was higher or lower with one group; nothing if that is not sure."""
    found = _find_figures(pair, sides)
    if len(found) < 2 or _NO_P.search(rest):
        return ""
    one, other = (float(figure[0].rstrip("% ")) for figure in found)
    if abs(one - other) <= _APART * max(one, other):
        return ""
    outcome = _find_outcome(asked, groups, pair, found[0])
    moved = _MOVED.search(outcome)
    if not outcome or _moves_otherwise(asked, f"{outcome} {pair.second}", moved):
        return ""
    is_fall = moved is not None and sign_of(moved[0].lower()) == "down"
    is_less = (one < other) ^ is_fall ^ is_turned
    step = -1 if is_turned else 1
    outcome = outcome[: moved.start()] if moved else _ENDING.sub("", outcome)
    first, second = [part[slice(*side)] for part, side in zip(pair, sides, strict=True)][::step]
    figures = " vs ".join([figure[0].strip() for figure in found][::step])
    told = f"{outcome.rstrip()} was {'lower' if is_less else 'higher'}"
    return f"{told} with {first} than with {second} {'' if moved else f'({figures})'}{rest}"


def _moves_otherwise(asked: ReadQuestion, said: str, moved: re.Match[str] | None) -> bool:
    """Tell whether an outcome goes another way in one group, or numbers are of how it changed."""
    read = read_words(said)
    signs = {
        sign
        for sign, one in zip(read.signs, read.stems, strict=True)
        if sign in POLAR and one not in asked.outcome
    }
    return bool(signs - {sign_of(moved[0].lower()) if moved else ""})


def _find_outcome(asked: ReadQuestion, groups: _Groups, pair: _Pair, figure: re.Match[str]) -> str:
    """Return the words of the first part that name what is asked about; nothing if none do.

    A whole number may tell how many there are of either group, and no outcome.
    """
    wanted = (asked.outcome or asked.stems) - groups.studied - groups.others
    before, behind = figure.string[: figure.start()], figure.string[figure.end() :]
    near = " ".join(_LATER.split(behind)[0].split()[:_NEAR])
    if not wanted.isdisjoint(read_words(near).stems):
        return f" {near}"
    is_counted = "%" not in figure[0] and "." not in figure[0] and not _MOVED.search(before)
    if (
        wanted.isdisjoint(read_words(before).stems)
        or is_counted
        or any(map(_ALLOTTED.search, pair))
    ):
        return ""
    return before


def _find_figures(pair: _Pair, sides: _Sides) -> list[re.Match[str]]:
    """Return the only number of each part before who it is told of, or else the only one behind."""
    before, behind = [], []
    for part, side in zip(pair, sides, strict=True):
        figures = [*_FIGURE.finditer(part)]
        before.append([one for one in figures if one.start() < side[0]])
        behind.append([one for one in figures if one.start() >= side[1]])
    found = before if any(before) else behind
    return [some[0] for some in found] if all(len(some) == 1 for some in found) else []
