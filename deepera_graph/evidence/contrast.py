"""Where a statement and a sentence part ways: a change and none, more and less, groups exchanged.

What the words of ``clauses.toml`` do not tell for certain is left alone.
"""

import re
from collections.abc import Iterator, Sequence, Set
from itertools import takewhile
from typing import NamedTuple

from deepera_graph.evidence.clauses import (
    CONTROL,
    DENIES,
    GENERAL,
    GROUPED,
    LEAST_SHARED,
    MEASURES,
    MOST_READ,
    NOTHING,
    PATTERNS,
    Clause,
    acts_where_nothing_does,
    cut_clauses,
    stems,
)
from deepera_graph.evidence.table.effects import (
    FROM_TO,
    INTERVAL,
    NAMED,
    SIGNIFICANT,
    P,
    bounds_of,
    mask_brackets,
    to_float,
)
from deepera_graph.judges.trained.direction.wording import read_words
from deepera_graph.text.drift.parts import hide_designs, list_set_apart
from deepera_graph.text.words import content_words, stem_verb

MAY_OPPOSE = "may say the opposite"  # in all notes that a passage, or a part of it, may do so
OPPOSITE = f"it {MAY_OPPOSE}: "
LEAVES, KEEPS = "it has the exception ", "it is so where the claim has "
FINDS_NOTHING = f"{OPPOSITE}the passage finds no change"
_CHANGES, _PREVENTS = PATTERNS["changes"], PATTERNS["prevents"]
_SUBJECT = PATTERNS["predicate"]
_ENOUGH = 0.5  # share of the words of an exception that a statement has if it is about it


def list_contrasts(statement: str, sentence: str) -> list[str]:
    """Say where a sentence says something else than a statement, a note each."""
    # Those that begin with `OPPOSITE` say that it may be the reverse.
    statement, sentence = (hide_designs(one[:MOST_READ]) for one in (statement, sentence))
    known = cut_clauses(sentence)
    found: list[str] = []
    for one in cut_clauses(statement):
        found += {_keep(one, other) for other in known} - {""}
        near = _find_nearest(one, known)
        if near is None:
            continue
        is_apart = one.about & list_set_apart(sentence)
        notes = [_except(one, near), "" if is_apart else _deny(one, near, known)]
        notes = [*filter(None, notes)] or [*_turn_shares(one, near), *_turn_numbers(one, near)]
        found += notes
    return [*dict.fromkeys(found)]


def _find_nearest(one: Clause, known: Sequence[Clause]) -> Clause | None:
    """Return the part with most words of a statement; None if several are as near, or none is."""
    # What acts in the first one acts in others, too: "wax cut rust, but scab was unchanged".
    # Of parts that share as many, the one that shares most words that tell no change is nearer.
    about, first = one.about, stems(_SUBJECT.split(known[0].text)[0])
    shared = [len(about & (other.about | first)) for other in known]
    nearest = [other for other, n in zip(known, shared, strict=True) if n == max(shared)]
    things = stems(_CHANGES.sub(" ", one.whole))
    told_of = [len(things & (other.about | first)) for other in nearest]
    nearest = [other for other, n in zip(nearest, told_of, strict=True) if n == max(told_of)]
    told = stems(NOTHING.sub(" ", nearest[0].text)) - GROUPED  # "Mould did not differ" has one
    topic = stems(_SUBJECT.split(nearest[0].text)[0]) - MEASURES
    is_near = max(shared) >= min(LEAST_SHARED, max(len(told), 1)) or (topic and topic <= about)
    return nearest[0] if is_near and len(nearest) == 1 else None


def _except(one: Clause, other: Clause) -> str:
    """Say that a statement is of what a sentence leaves out."""
    left_out = stems(other.exception) - (_affirmed(other) or other.about)
    is_told = _is_of(left_out, one.about) and not PATTERNS["apart"].search(one.text)
    return f"{LEAVES}“{other.exception}”" if is_told else ""


def _keep(one: Clause, other: Clause) -> str:
    """Say that a sentence is of what a statement leaves out."""
    left_out, told = stems(one.exception) - one.about - stems(other.exception), _affirmed(other)
    is_near = len((one.about | left_out & told) & other.about) >= LEAST_SHARED
    return f"{KEEPS}“{one.exception}”" if _is_of(left_out, told) and is_near else ""


def _is_of(left_out: Set[str], about: Set[str]) -> bool:
    left_out = left_out - GENERAL
    return len(left_out & about) > _ENOUGH * len(left_out)


def _affirmed(part: Clause) -> set[str]:
    """Return the stems of a part up to "than" or "without"; none if it denies something."""
    read = read_words(part.text)
    signed = [*zip(read.words, read.signs, strict=True)]
    is_denied = any(sign in DENIES and word != "without" for word, sign in signed)
    if is_denied or NOTHING.search(part.text):
        return set()
    told = takewhile(lambda it: it[0] != "without" and it[1] not in ("but", "than"), signed)
    return stems(" ".join([part.subject, *(word for word, _ in told)]))


def _deny(one: Clause, other: Clause, known: Sequence[Clause]) -> str:
    """Say that one of a statement and a sentence finds a change where the other finds none."""
    if stems(other.exception) & one.about - other.about:
        return ""
    topic = stems(NOTHING.sub(" ", one.text)) & stems(NOTHING.sub(" ", other.text))
    sides = _finds_change(one.text, topic), _finds_change(other.text, topic)
    is_clear, shown = _weigh_numbers(other.text)
    is_silent = sides == (None, False)
    if is_silent and acts_where_nothing_does(one, other):
        return FINDS_NOTHING
    if not sides[0]:
        finds = sides[1] or (sides[1] is None and is_clear and _read_numbers(other) is not None)
        is_turned = sides[0] is False and finds and is_clear is not False and _has_both(one, other)
        is_open = any(_may_be_of(one, part, other) for part in known)
        return f"{OPPOSITE}the passage finds a change" if is_turned and not is_open else ""
    if sides[1] is False:
        return FINDS_NOTHING
    if left := _find_unlike(one, other, known):
        return f"it may be of what is not so: “{left.text.strip(' .,;')}”"
    is_chance = is_clear is False and _weigh_numbers(one.text)[0] is None
    return f"its difference may be due to chance: {shown}" if is_chance else ""


def _has_both(one: Clause, other: Clause) -> bool:
    """Tell whether a part has words of both sides of what finds nothing: of A and of B."""
    sides = [stems(text) for text in NOTHING.split(one.text, maxsplit=1)]
    return all(not side or side & other.about for side in sides)


def _find_unlike(one: Clause, nearest: Clause, known: Sequence[Clause]) -> Clause | None:
    """Return a part that finds nothing, and has words of a statement that the nearest lacks."""
    for part in known:
        told = stems(NOTHING.sub(" ", part.text)) - GROUPED
        if told <= one.about and told - nearest.about and _finds_change(part.text, set()) is False:
            return part
    return None


def _may_be_of(one: Clause, part: Clause, nearest: Clause) -> bool:
    """Tell whether a statement that nothing changes may be of another part than the nearest."""
    denials = [NOTHING.search(text) for text in (one.text, part.text)]
    said = {found[0].lower() if found else "" for found in denials}
    is_told = (part.about & one.about) - nearest.about or len(said) == 1
    return all(denials) and bool(is_told)


def _finds_change(text: str, topic: Set[str]) -> bool | None:
    """Tell whether a text says that something changes, or that nothing does; None if neither."""
    # Words of the *topic*, stems, are none that say so: "night cooling".
    if _PREVENTS.search(text):
        return None
    rest = NOTHING.sub(" ", text)
    if not any(stem_verb(found[0].lower()) not in topic for found in _CHANGES.finditer(rest)):
        return False if rest != text else None
    bare = re.sub(r"\b[Nn]o-", "", text)  # "no-till" denies nothing
    return None if rest != text or "not" in read_words(bare).signs else True


def _weigh_numbers(text: str) -> tuple[bool | None, str]:
    """Tell whether p values and intervals all show a difference, or none does; and the first."""
    weighed: dict[str, bool | None] = {}
    for p in P.finditer(text):
        value = to_float(p["value"])
        is_less = value <= SIGNIFICANT if p["sign"] in "<≤" else value < SIGNIFICANT
        weighed[p[0]] = None if p["sign"] in ("<≤" if not is_less else ">≥") else is_less
    for found in INTERVAL.finditer(text):
        low, high = bounds_of(found)
        is_ratio = PATTERNS["ratio"].search(text[: found.start()])
        none = 1 if is_ratio else 0
        is_open = not is_ratio and low >= 0
        weighed[found[0]] = None if is_open else not low <= none <= high
    said = {*weighed.values()}
    return (said.pop() if len(said) == 1 else None), next(iter(weighed), "")


class _Side(NamedTuple):
    """What is more, or less, in whom: one of two groups, or of what acts."""

    word: str
    axis: str
    way: int
    what: set[str]
    who: set[str]
    other: set[str]  # with whom it is compared; empty if that is not said


def _read_sides(part: Clause) -> Iterator[_Side]:
    """Yield comparisons of groups: "colds were longer with wax than without"."""
    text = mask_brackets(part.text)
    for name in ("compared", "having", "occurring", "being", "counted", "linked"):
        for found in PATTERNS[name].finditer(text):
            axis, way = _weigh_word(found["how"])
            other = stems(found["other"] or "") or {CONTROL for _ in found["other"] or ""}
            what, *beside = PATTERNS["beside"].split(found["what"], maxsplit=1)
            if PATTERNS["frequency"].match(what):
                what = found.groupdict().get("deed") or what
            who = _name(" ".join([found["who"], *beside]))
            yield _Side(found["how"].lower(), axis, way, stems(what), who, other)


def _weigh_word(word: str) -> tuple[str, int]:
    """Return what a word of change is of, an amount, a worth or a speed, and which way it goes."""
    for axis in ("amount", "worth", "speed"):
        for way, side in ((1, "up"), (-1, "down")):
            if PATTERNS[f"{axis}_{side}"].match(word):
                return axis, way
    return "", 0


def _read_action(part: Clause) -> _Side | None:
    """Return what changes what, if one thing is said to: "wax reduced mould"."""
    text = mask_brackets(part.whole)
    found = [*PATTERNS["action"].finditer(text)]
    if len(found) != 1 or NOTHING.search(text) or PATTERNS["compares"].search(text):
        return None
    axis, way = _weigh_word(found[0]["verb"])
    left, right = stems(text[: found[0].start()]), stems(text[found[0].end() :])
    return _Side(found[0]["verb"], axis, way, right - left, left - right, set()) if axis else None


def _read_ratio(part: Clause) -> _Side | None:
    """Return what a ratio says to be more or less with what a part names, if nothing else does."""
    found = [one for one in NAMED.finditer(part.text) if one["ratio"]]
    # "With wax versus placebo" is as "with wax"; a link goes the way of its ratio.
    text, *against = PATTERNS["compares"].split(
        PATTERNS["links"].sub(" ", mask_brackets(part.text))
    )
    about, others = _name(f"{part.subject} {text}"), _name(" ".join(against))
    if len(found) != 1 or _CHANGES.search(text) or (against and CONTROL not in others):
        return None
    value, is_clear = to_float(found[0]["value"]), _weigh_numbers(part.text)[0]
    if value == 1 or not is_clear or CONTROL in about or PATTERNS["wanted"].search(text):
        return None
    return _Side(f"a ratio of {value:g}", "amount", 1 if value > 1 else -1, about, about, set())


def _is_of_control(mine: _Side, side: _Side) -> bool:
    """Tell whether one of two is of a control, and the other, of the same thing, is not."""
    is_same = mine.axis == side.axis and (mine.what <= side.what or side.what <= mine.what)
    are_named = all((mine.who - GENERAL, side.who - GENERAL)) and not mine.other | side.other
    return is_same and are_named and (CONTROL in mine.who) != (CONTROL in side.who)


def _turn_shares(one: Clause, other: Clause) -> Iterator[str]:
    """Yield what one thing lowers in a statement, and is more with it in a sentence."""
    if NOTHING.search(other.text):
        return
    action = _read_action(one)
    told = [action, action._replace(what=action.who, who=action.what)] if action else []
    acting = [] if told else [_read_action(other)]
    for mine in told or _read_sides(one):
        for side in filter(None, [*_read_sides(other), *acting, _read_ratio(other)]):
            way = _compare(mine, side, one.text, other.text)
            if way and (mine.way == side.way) != (way > 0):
                where = "with" if way > 0 else "without"
                yield f"{OPPOSITE}{mine.word}, where the passage has {side.word} {where} it"
            elif _is_of_control(mine, side) and mine.way == side.way:
                yield f"it has “{side.word}” in another group, not in that of the claim"


def _compare(mine: _Side, side: _Side, text: str, sentence: str) -> int:
    """Return 1 if two are of the same group, -1 if of the other one; 0 if that is not clear."""
    if mine.axis != side.axis or not (mine.what & side.what) - MEASURES:
        return 0
    levels = [{*map(str.lower, PATTERNS["level"].findall(one))} for one in (text, sentence)]
    if not side.other:
        told = mine.who - GENERAL, side.who - GENERAL
        is_same = all(told) and (told[0] <= told[1] or told[1] <= told[0])
        is_same = is_same and (CONTROL in mine.who) == (CONTROL in side.who)
        if mine.other:
            same, turned = mine.who - mine.other, mine.other - mine.who
            return bool(same & side.who) - bool(turned & side.who)
        rest = [one - {*side.word.split(), *mine.word.split()} for one in levels]
        return int(bool(is_same) and rest[0] == rest[1])
    if (mine.other - mine.what) & side.what and (side.other - side.what) & mine.what:
        return -1  # "fewer flowers in shade than in sun"
    with_it, without = side.who - side.other, side.other - side.who
    who, against = mine.who - mine.other, mine.other - mine.who
    is_all = without - GROUPED <= who  # "in the top half" may stand beside either
    same = who & with_it or against & without
    turned = (who & without if is_all else set()) or against & with_it
    return bool(same) - bool(turned)


class _Numbers(NamedTuple):
    """Two numbers of one unit, and whose they are."""

    shown: tuple[str, str]
    groups: tuple[set[str], set[str]]  # each without what both have


def _read_numbers(part: Clause) -> _Numbers | None:
    text = part.whole
    texts = mask_brackets(text), PATTERNS["remark"].sub(lambda one: "_" * len(one[0]), text), text
    found = next(filter(None, map(_find_pair, texts)), None)
    if not found:
        return None
    one, other = found
    before, between, after = (
        text[: one.start()],
        text[one.end() : other.start()],
        PATTERNS["end"].split(text[other.end() :])[0],
    )
    if PATTERNS["follows"].match(between):
        groups = _name(between), _name(after)
    elif not content_words(PATTERNS["compares"].sub(" ", between)):
        sides = [before, after] if "respectively" in text else [before]
        sign = PATTERNS["joined" if "respectively" in text else "compares"]
        halves = [sign.split(one) for one in sides]
        told = [half for half in halves if len(half) == 2]
        if len(told) != 1:
            return None
        groups = _name(told[0][0]), _name(told[0][1])
    elif PATTERNS["precedes"].match(between):
        groups = _name(before), _name(between)
    else:
        return None
    shown = one[0].strip(), other[0].strip()
    return _Numbers(shown, (groups[0] - groups[1], groups[1] - groups[0]))


def _name(text: str) -> set[str]:
    """Return the stems of a group; one without a thing is a control."""
    return stems(text) | ({CONTROL} if PATTERNS["lacking"].search(text) else set())


def _find_pair(text: str) -> list[re.Match[str]]:
    """Return two numbers of one unit, shares rather than others, if there are no more."""
    units: dict[str, list[re.Match[str]]] = {}
    for one in PATTERNS["number"].finditer(text):
        units.setdefault(one["unit"].lower(), []).append(one)
    units = {"%": units["%"]} if "%" in units else units
    pairs = [pair for pair in units.values() if len(pair) == 2]
    pairs = pairs if units else [[*PATTERNS["bare_number"].finditer(mask_brackets(text))]]
    return pairs[0] if len(pairs) == 1 and len(pairs[0]) == 2 else []


def _turn_numbers(one: Clause, other: Clause) -> Iterator[str]:
    """Yield numbers whose groups are exchanged, and a change that they turn around."""
    yield from _turn_course(one, other)
    known = _read_numbers(other)
    if known is None or known.shown[0] == known.shown[1]:
        return
    told = _read_numbers(one)
    if told and sorted(told.shown) == sorted(known.shown):
        mine = told.groups if told.shown == known.shown else told.groups[::-1]
        same = [len(a & b) for a, b in zip(mine, known.groups, strict=True)]
        turned = [len(a & b) for a, b in zip(mine, known.groups[::-1], strict=True)]
        if (all(turned) and sum(turned) > sum(same)) or (any(turned) and not any(same)):
            yield f"the groups of {told.shown[0]} and {told.shown[1]} are exchanged"
    elif not (
        told
        or _CHANGES.search(mask_brackets(other.text))
        or NOTHING.search(f"{one.text}. {other.text}")
    ):
        yield from _turn_order(one, other, known)


def _turn_course(one: Clause, other: Clause) -> Iterator[str]:
    """Yield what a statement lowers, and goes from a lower to a higher number in a sentence."""
    course, mine = FROM_TO.search(other.text), _read_action(one)
    is_other = PATTERNS["lacking"].search(f"{one.text} {other.text}") or NOTHING.search(other.text)
    if course is None or mine is None or mine.axis != "amount" or is_other:
        return
    if len([*_CHANGES.finditer(other.text)]) > 1:
        return  # "mould fell when wax rose from 2 to 4 g" is of what acts
    gain = to_float(course["high"]) - to_float(course["low"])
    about = other.about
    is_same = (mine.what - MEASURES) & about and (mine.who - GENERAL) & about
    if is_same and CONTROL not in about and mine.way * gain < 0:
        shown = f"{course['low']} to {course['high']}"
        yield f"{OPPOSITE}{mine.word}, where the passage has a change from {shown}"


def _turn_order(one: Clause, other: Clause, known: _Numbers) -> Iterator[str]:
    """Yield what is more in one of two groups, where the numbers say that it is less."""
    first, second = (to_float(re.sub(r"[^\d.·]", "", shown)) for shown in known.shown)
    for side in [*_read_sides(one)] or [*filter(None, [_read_action(one)])]:
        who = side.who - side.other
        at = [bool(who & group) - bool(side.other & group) for group in known.groups]
        if side.axis != "amount" or not side.what & other.about or sorted(at) not in _APART:
            continue
        if side.way * (at[0] - at[1]) * (first - second) < 0:
            numbers = f"{known.shown[0]} and {known.shown[1]}"
            yield f"{OPPOSITE}{side.word}, where the numbers of the passage are {numbers}"


_APART = ([0, 1], [-1, 1], [-1, 0])  # one group is that of a statement, or the other is not
