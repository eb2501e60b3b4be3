"""Of how many a study is, as rules read it in a text."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain

from deepera_graph.evidence.table.designs import Cell, Span, find_design
from deepera_graph.text.plain import read_lists
from deepera_graph.text.terms import SPELT, read_spelt
from deepera_graph.text.words import split_sentences

_LISTS = read_lists(__file__)
# What stands before a number that is part of a name: "type 2", "C57BL/6"; each of one width.
_NAMES = (
    *_LISTS["numbered"].split(),
    *("influenza A", "[A-Za-z]/", r"[A-Za-z]\d/", r"[A-Za-z]\d\d/", r"[A-Za-z]\d{3}/", r"\.\d{3}/"),
)
_UNNAMED = "".join(
    rf"(?<!{one})" if one.endswith("/") else rf"(?<!\b(?i:{one})\s)" for one in _NAMES
)
# Formats of battery cells, which are no counts: "commercial 18650 cells".
_FORMAT = (
    rf"(?:{'|'.join(_LISTS['formats'].split())})\s(?=(?:[\w/-]+\s){{0,3}}?(?:cells|batteries)\b)"
)
_COUNT = (
    rf"(?P<n>(?<![\w.,])\d{{1,3}}(?:[,\s\u00a0\u2009\u202f]\d{{3}})+\b"
    rf"|(?<![\w.,–-])(?!{_FORMAT})(?:\d{{3,}}|{_UNNAMED}\d\d?)\b|\b(?<!-){_UNNAMED}{SPELT})(?![.,]\d|\s?%|-)"
)
# A word of a noun phrase: "C57BL/6J", "Apoe−/−", "(WT)".
_PART = rf"(?:(?!(?!{_FORMAT})\d\d+\s)[\w×][\w/+×−–-]*(?:\.\w[\w/+-]*)*|\([A-Za-z][\w/+-]*\))"
# Of a group, not of a study: "n = 24/group", "twelve mice per group".
_EACH = r"(?:\s*/|\s*(?:per|each|apiece|in\s+(?:each|every|both))\b)"
_SIZE = re.compile(
    r"(?<![\w])[nN]\s*=\s*(?P<n>\d{1,3}(?:[,\s]\d{3})+\b|\d+)\b"
    rf"(?P<each>(?:\s+[a-z]+)?{_EACH}|[^()\[\];.=]{{1,80}}?\b(?:and|vs\.?|versus)\s+\d[\d,]*\s+(?:in|for)\b)?"
)
_CASES = re.compile(
    rf"{_COUNT}\s+(?:{_PART}\s+){{0,5}}?(?:cases|patients)\b[^.;]{{0,40}}?\band\s+(?P<m>\d[\d,]*)\s+"
    r"(?:\w+\s+){0,2}controls\b"
)
_BESIDE_OF = re.compile(_LISTS["beside_of"], re.IGNORECASE)
_DEED = r"\b[Ww]e\s+(?:\w+ly\s+)?\w+(?:ed|ew|ook|ept)"
_THEM = (
    r"(?!vs\b|studies|trials|times|groups|types|kinds|years|weeks|days|months|hours|minutes)"
    r"[a-z]+s\b"
)
_DONE = re.compile(rf"(?:\bIn|{_DEED})\s+(?:all\s+)?{_COUNT}\s+(?:{_PART}\s+){{0,2}}?{_THEM}")
_COUNTED = [
    re.compile(
        rf"{least}{_COUNT}\s+(?:(?!{_LISTS['no_part']}){_PART}\s+){{0,{most}}}?(?:{nouns})\b", re.I
    )
    for kind, most, least in (
        *(("people", 3, ""), ("animals", 4, ""), ("things", 3, "")),
        ("asked", 3, r"(?=\d[\d,]{2})"),  # a test of people has no hundred questions
    )
    for nouns in ("|".join(_LISTS[kind].split()),)
] + [_DONE]
_N_LIVING = 2  # of these kinds
_THINGS = _COUNTED[_N_LIVING]
_COUNTED.insert(
    _N_LIVING,
    re.compile(
        rf"{_COUNT}\s+(?:(?:were|was)\s+(?:\w+ly\s+)?(?:enrolled|recruited|randomi[sz]ed|included"
        r"|analy[sz]ed|assigned|allocated)|underwent\s+randomi[sz]ation|took\s+part)\b"
    ),
)
# Those of the enrolled who were randomised, or whose data were analysed.
_TAKEN = re.compile(
    rf"{_COUNT}\s+(?:(?!of\b|and\b|to\b){_PART}\s+){{0,4}}?(?:(?:were|was)\s+(?:\w+ly\s+)?"
    r"(?:randomi[sz]ed|included|analy[sz]ed|assigned|allocated)|underwent\s+randomi[sz]ation)\b",
    re.IGNORECASE,
)
_TAKEN_THERE = re.compile(r"\b(?:randomi[sz]|randomly|assigned|allocated|followed)", re.IGNORECASE)
_ENROLLED_BEFORE = re.compile(
    r"\b(?:enrol|recruit|register|identif)\w*\s+(?:all\s+)?$|\bOf\s+(?:the\s+)?$"
)
_ENROLLED_AFTER = re.compile(
    r"\s+(?:(?:who|that)\s+)?(?:(?:were|was)\s+)?(?:enrolled|recruited|registered|identified)\b"
)
# A group, of those that are studied side by side: "300 coffee users", "24 wild-type mice".
_LIVING = "|".join([*_LISTS["people"].split(), *_LISTS["animals"].split()])
_GROUP = re.compile(
    rf"{_COUNT}\s+(?:(?!of\b|and\b|to\b){_PART}\s+){{0,4}}?"
    rf"(?:(?P<living>{_LIVING}|controls|cases|carriers|siblings|twins"
    r"|(?!papers|numbers|centers|clusters|implants|plants|cancers|tumors|factors)"
    r"[a-z-]+(?:[^m]ents|[^d]ers|ists))"
    rf"|(?P<thing>{'|'.join(_LISTS['things'].split())}))\b|{_COUNT.replace('?P<n>', '?P<rest>')}"
    r"(?=\s+(?P<how>to|without)\b)",
    re.IGNORECASE,
)
# A group that has its noun from the next one: "40 obese and 42 lean mice".
_HALF = (
    rf"{_COUNT}\s+(?:(?!(?:{_LIVING}|{_LISTS['no_kind']})\b)[a-z][\w-]*(?:[^\Ws]|ous|less)\s+){{1,2}}"
    r"(?:and|versus|vs\.?)\s+"
)
_HALF_BEFORE = re.compile(rf"{_HALF}\Z", re.IGNORECASE)
_BOTH = re.compile(
    rf"{_DEED}\s+{_HALF}{_COUNT.replace('?P<n>', '?P<m>')}\s+(?:{_PART}\s+){{1,2}}?"
    rf"(?!(?:{_LISTS['no_subjects']})\b){_THEM}"
)
_OTHERS = re.compile(
    rf"\b(?:each|every|per)\b|{_COUNT}\s+(?!years?|weeks?|days?|months?|hours?)[a-z]"
)
_BESIDE = re.compile(
    r"(?:\s+(?!(?:of|whom|including|per|each|which|only)\b)[A-Za-z][\w/’'-]*){0,5}?,?\s+"
    r"(?P<by>and|with|versus|vs\.?|against|than)\s+(?:(?:in|of|by|to)\s+)?(?:the\s+)?|,\s+"
)
_STUDY = (
    r"(?:follow|enrol|recruit|stud|includ|compar|randomi[sz]|assign|allocat|match|examin|measur|keep"
    r"|kept|interview|survey|test|treat|fed|gave|given|us(?=ed))\w*"
)
_STUDIED = re.compile(rf"\b{_STUDY}", re.IGNORECASE)
# How many a study says that it is of.
_TOLD_BEFORE = re.compile(rf"\b(?:total\s+of|{_STUDY}|enrol\w*)\s+(?:all\s+)?$", re.IGNORECASE)
_SAMPLE_OF = re.compile(r"\b(?:in|among|of|with)\s+(?:all\s+|the\s+)?$", re.IGNORECASE)
_SAMPLE_BEFORE = re.compile(
    r"\b[Ww]e\s+(?:\w+ly\s+)?(?:enrol|recruit|randomi|stud|follow|survey|includ|test)\w*\s+(?:all\s+)?$"
)
_SAMPLE_AFTER = re.compile(
    r"(?:\s+aged\s[^,.;]{1,30}?)?\s+(?:were|was)\s+(?:\w+ly\s+)?(?:enrolled|recruited|randomi[sz]ed|included|followed|surveyed)\b"
    r"(?!\s+(?:to|in)\b)"
)
_TOTAL = re.compile(r"\b(?:total|overall)(?:ling|\s+of)?\s+$", re.IGNORECASE)
_TOLD_AFTER = re.compile(
    rf"\s+(?:who\s+)?(?:were|was)\s+(?:\w+ly\s+)?(?:{_STUDY}|enrolled|analy[sz]ed)\b"
)
# Of whom each is said to get something: "120 received coffee and 118 received placebo".
_ARM = re.compile(
    rf"{_COUNT}\s+(?!(?:of|to|and)\b)(?:{_PART}\s+){{0,3}}?(?:(?:were|was)\s+)?(?:\w+ly\s+)?"
    r"(?:receiv\w+|took|drank|ate|got|fed|assigned|allocated|randomi[sz]ed|given|treated|underwent)\b"
    rf"|\band\s+{_COUNT.replace('?P<n>', '?P<rest>')}(?=\s+to\b)",
    re.IGNORECASE,
)
_GROUP_END = re.compile(
    rf"\s*(?:\Z|[.,;:()])|\s+(?:for|in|from|who|that|at|over|on|with|without|during|by|to|aged|fed"
    rf"|given|treated|exposed|receiving|(?:was|were)\s+(?:\w+ly\s+)?{_STUDY})\b"
)
# Of whom not all took part: "500 people were screened", "we approached 90 schools".
_ASKED = "scheduled|screened|invited|approached|contacted|assessed"
_ANY = re.compile(_COUNT)
_EACH_AFTER = re.compile(rf"{_EACH}(?!\s+(?:year|month|day))|\s(?:[ck]?m|ha|m?L|g)\s?[-−–⁻^²³]")
_ABOUT = re.compile(
    r"\b(?:over|more\s+than|nearly|almost|at\s+least|up\s+to|fewer\s+than)\s+$", re.IGNORECASE
)
_OF_THEM = re.compile(r"\bof\s+(?:whom|them|these|which)\b|\b(?:includ|complet)\w+")
_NO_SIZE = re.compile(rf"\b(?:eligible|{_ASKED})\b|\s(?:[mb]illion|thousand)\b")
# ... or that were seen, and not studied: "we counted 11,342 birds".
_ASKED_BEFORE = re.compile(
    rf"\b(?:{_ASKED}|recorded|counted|detected|sighted)\s+(?:all\s+)?$", re.IGNORECASE
)
# What a group had, and not of how many it is: "mean 61 vs 25 beetles", "on average 25 beetles".
_VALUE_BEFORE = re.compile(
    r"\d\s+(?:and|or|vs\.?|versus|against|(?:as\s+)?compared\s+(?:with|to))\s+$"
    r"|\b(?:held|hosted|harbou?red|sheltered|attracted|supported)\s+$"  # "fields held 40 bees"
    r"|\b(?:means?|medians?|averag\w+)\s+(?:(?:of|was|were)\s+)?(?:\d[\d.,]*\s+and\s+)?$",
    re.IGNORECASE,
)
_SEEN_AT = re.compile(  # of more than these places: "12,490 ninth graders in 65 schools"
    rf"{_COUNT}\s+(?!(?:[kmµ]?g|t|[cm]?m|ha|m?L|years?|weeks?|days?|hours?|months?)\b)"
    r"(?:[A-Za-z][\w-]*\s+){1,5}?(?:in|from|at|across|on|of)\s+(?:the\s+)?$"
)
_OF_EACH = re.compile(r"\b\d[\d,]*\s+(?:of|/)\s+(?:the\s+)?(?P<n>\d[\d,]*)\b(?!\s*%)")
_ASKED_AFTER = re.compile(
    rf"\s+(?:(?:who|that)\s+)?(?:(?:were|was)\s+)?(?:initially\s+)?(?:{_ASKED}|eligible)\b"
)
_FAR = 200  # characters that are read on either side of a count
_OF_STUDIES = ("meta-analysis", "systematic review", "review")
_LEAST_THINGS, _MOST_ARMS = 5, 5


def find_size(text: str, title: str = "") -> Cell | None:
    """Return of how many a study is: told as such, people, animals, then what was measured."""
    if found := _CASES.search(text):
        total = _to_int(found["n"]) + _to_int(found["m"])
        return Cell(value=str(total), span=found.span())
    design = find_design(title) or find_design(text)
    if design is not None and design.value in _OF_STUDIES:
        return next(_read_sizes(text), None) or _find_total(text)
    groups = list(_sum_groups(text))
    sizes = (_grow(_narrow(text, one), groups, text) for one in _count_nouns(text, _COUNTED))
    return next(chain(_read_sizes(text), sizes, groups, _sum_both(text)), None)


def _find_total(text: str) -> Cell | None:
    """Return of how many people or animals a review is: the only size, or the one told as total."""
    for pattern in _COUNTED[:_N_LIVING]:
        found = [one for one in pattern.finditer(text) if _is_size(text, one)]
        leads = [text[max(0, one.start() - 20) : one.start()] for one in found]
        told = [one for one, lead in zip(found, leads, strict=True) if _TOTAL.search(lead)] or found
        if told:
            best, is_one = told[0], len({_to_int(one["n"]) for one in told}) == 1
            return Cell(value=str(_to_int(best["n"])), span=best.span()) if is_one else None
    return None


def _read_sizes(text: str) -> Iterator[Cell]:
    """Yield a size that is told as ``n = 20``, of several in a sentence their sum."""
    for sentence in split_sentences(text):
        found = list(_SIZE.finditer(sentence.text))
        if not found or any(one["each"] for one in found):
            continue
        spans = found[0].start() + sentence.start, found[-1].end() + sentence.start
        yield Cell(value=str(sum(_to_int(one["n"]) for one in found)), span=spans)


def _narrow(text: str, size: Cell) -> Cell:
    """Return those who were randomised or analysed, of those who were enrolled."""
    start, end = size.span
    before = text[max(0, start - 20) : start]
    if not (_ENROLLED_BEFORE.search(before) or _ENROLLED_AFTER.match(text, end)):
        return size
    of_them = (
        one
        for one in _TAKEN.finditer(text, end)
        if _LEAST_THINGS <= _to_int(one["n"]) < int(size.value)
        and _is_size(text, one)
        and not _TAKEN_THERE.search(text[start : one.start()])
    )
    if taken := next(of_them, None):
        return Cell(value=str(_to_int(taken["n"])), span=taken.span())
    return size


def _grow(size: Cell, groups: Sequence[Cell], text: str) -> Cell | None:
    """Return the largest of a size and the sums of groups; None if a size told is another."""
    best = max([size, *groups], key=lambda one: int(one.value))
    if best is size:
        return None if _is_group(text, size) else size
    is_part = best.span[0] <= size.span[0] < best.span[1]
    return best if is_part or not _is_told(text, size.span) else None


def _is_group(text: str, size: Cell) -> bool:
    """Tell whether more of the same things are counted beside a size that no words call all."""
    start, end = size.span
    said = [one for one in split_sentences(text) if one.start <= start][-1]
    lead = text[said.start : start] or text[start : start + 3]
    is_all = re.fullmatch(r"(?:In|Of|Among)\s+(?:all\s+)?", lead) or _TOTAL.search(lead)
    is_sample = _is_sample(text, size.span) and not text.startswith(" to ", end)
    if (is_all and _BESIDE_OF.search(said.text)) or _find_half(said.text, start - said.start):
        return True
    if is_all or is_sample or _TOLD_AFTER.match(text, end) or _OF_THEM.search(said.text):
        return False
    thing = text[start:end].rsplit(maxsplit=1)[-1]
    same = rf"(?:\s+(?!of\b|and\b|to\b){_PART}){{0,3}}?\s+(?:{thing}|ones)\b"
    found = re.finditer(rf"{_COUNT}(?:{same}|(?=\.?\Z))", said.text, re.IGNORECASE)
    others = [one for one in found if not start <= one.start("n") + said.start < end]
    counts = [_to_int(one["n"]) for one in others if _is_size(said.text, one)]
    return bool(counts) and (len(counts) == 1 or sum(counts) != int(size.value))


def _is_sample(text: str, span: Span) -> bool:
    """Tell whether a size is said to be that of a study, not of a background or a group."""
    before = text[max(0, span[0] - 30) : span[0]]
    return bool(_SAMPLE_BEFORE.search(before) or _SAMPLE_AFTER.match(text, span[1]))


def _is_told(text: str, span: Span) -> bool:
    before = text[max(0, span[0] - 30) : span[0]]
    return bool(_TOLD_BEFORE.search(before) or _TOLD_AFTER.match(text, span[1]))


def _sum_groups(text: str) -> Iterator[Cell]:
    """Yield the sums of groups that are studied side by side in a sentence."""
    for sentence in split_sentences(text):
        said = sentence.text
        yield from _sum_arms(said, sentence.start)
        run: list[re.Match[str]] = []
        for found in [*_GROUP.finditer(said), None]:
            if found and run and _is_beside(said, run[-1], found):
                run.append(found)
                continue
            if len(run) > 1 and _are_studied(said, run):
                sizes = [_to_int(one["n"] or one["rest"]) for one in run]
                total = _add(said, sizes)
                if total >= _LEAST_THINGS:
                    spans = run[0].start() + sentence.start, run[-1].end() + sentence.start
                    yield Cell(value=str(total), span=spans)
            run = [found] if found and found["n"] else []
            if run and (half := _find_half(said, run[0].start())):
                run.insert(0, half)


def _find_half(said: str, end: int) -> re.Match[str] | None:
    """Return the group before a count that has its noun from there; one of a kind is none."""
    found = _HALF_BEFORE.search(said, 0, end)
    return found if found and _to_int(found["n"]) > 1 else None


def _sum_both(text: str) -> Iterator[Cell]:
    """Yield the sum of two groups of things that no list has: "we kept 9 ripe and 9 raw figs"."""
    for sentence in split_sentences(text):
        said = sentence.text
        found = _BOTH.search(said)
        if found and _is_size(said, found) and _GROUP_END.match(said, found.end()):
            rest = f"{said[: found.start()]} {said[found.end() :]}"
            total, start = _to_int(found["n"]) + _to_int(found["m"]), sentence.start
            if total >= _LEAST_THINGS and not _OTHERS.search(rest):
                spans = start + found.start("n"), start + found.end()
                yield Cell(value=str(total), span=spans)


def _sum_arms(said: str, start: int) -> Iterator[Cell]:
    """Yield the sum of groups that each got something in a sentence."""
    arms = list(_ARM.finditer(said.partition(";")[0]))
    if len(arms) > 1 and arms[0]["n"] and all(_is_size(said, one) for one in arms if one["n"]):
        sizes = [_to_int(one["n"] or one["rest"]) for one in arms]
        total = max(sizes) if 2 * max(sizes) >= sum(sizes) and len(sizes) > 2 else _add(said, sizes)
        if total >= _LEAST_THINGS and "whom" not in said[arms[0].start() : arms[-1].end()]:
            yield Cell(value=str(total), span=(start + arms[0].start(), start + arms[-1].end()))


def _add(said: str, sizes: Sequence[int]) -> int:
    """Return the sum of groups, or the largest if what is counted right after it sums to it."""
    most = max(sizes)
    counts = [_to_int(one["n"]) for one in _ANY.finditer(said)]
    after = counts[counts.index(most) + 1 :] if most in counts else []
    is_total = any(
        sum(after[begin:end]) == most
        for begin in range(len(after))
        for end in range(begin + 2, min(begin + _MOST_ARMS, len(after)) + 1)
    )
    return most if is_total else sum(sizes)


def _is_beside(said: str, one: re.Match[str], other: re.Match[str]) -> bool:
    """Tell whether a group is named right after another one, and is of the same kind."""
    between = said[one.end() : other.start()]
    if not (found := _BESIDE.fullmatch(between)):
        return False
    if other["rest"]:
        needed = "to" if other["how"] == "to" else "with"
        return found["by"] == "and" and needed in between.split()
    return bool(one["living"] and other["living"]) or one["thing"] == other["thing"] is not None


def _are_studied(said: str, run: Sequence[re.Match[str]]) -> bool:
    """Tell whether groups are those of a study, not how many of one had something."""
    first, last = run[0], run[-1]
    is_one = len(run) == 2 and said[: last.start()].endswith(", ")  # "in 240 adults, 120 women"
    if is_one or re.search(r"(?:\d\s+of|\bOf)\s+$", said[: first.start()]):
        return False
    if any(one["n"] and not _is_size(said, one) for one in run):
        return False
    is_compared = re.search(r"\bthan\b", said[first.end() : last.start()])
    is_ended = last["rest"] or _GROUP_END.match(said, last.end())
    is_between = said[: first.start()].endswith("between ")
    return bool(is_ended and (is_compared or is_between or _STUDIED.search(said)))


def _count_nouns(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[Cell]:
    """Yield the largest count of each kind that is a size."""
    for pattern in patterns:
        found = [one for one in pattern.finditer(text) if _is_size(text, one)]
        found = [one for one in found if not _VALUE_BEFORE.search(text[: one.start("n")][-30:])]
        if pattern is _THINGS:
            found = [one for one in found if not _is_place(text, one)]
        of_many = [one for one in found if _to_int(one["n"]) >= _LEAST_THINGS]
        if of_many:
            best = max(of_many, key=lambda one: _to_int(one["n"]))
            told = [one for one in of_many if _is_sample(text, one.span())]
            if told and not _SAMPLE_OF.search(text[max(0, best.start() - 20) : best.start()]):
                best = max(told, key=lambda one: _to_int(one["n"]))
            yield Cell(value=str(_to_int(best["n"])), span=best.span())


def _is_place(text: str, found: re.Match[str]) -> bool:
    """Tell whether more was studied at as many places: "12,490 graders in 65 schools"."""
    seen = _SEEN_AT.search(text[max(0, found.start() - _FAR) : found.start()])
    return bool(seen and _to_int(seen["n"]) > _to_int(found["n"]))


def _is_size(text: str, found: re.Match[str]) -> bool:
    """Tell a size from a year, a time and a dose."""
    inner = text[found.end("n") : found.end()]
    is_time = re.match(
        r"\s*(?:years?|weeks?|days?|months?|hours?|minutes?|mg|g|kg|km|m|mm|ml)\b", inner
    )
    before = text[max(0, found.start() - 9) : found.start()]
    is_year = re.fullmatch(r"(?:19|20)\d\d", found["n"]) and re.search(
        r"(?:\b(?:in|since|of|during|by|until|from|to|and|after|before|through)|[-–])\s*$",
        before,
        re.IGNORECASE,
    )
    is_each = re.search(r"(?:\bper\s|±\s?)$", before) or _EACH_AFTER.match(text, found.end())
    lead = text[max(0, found.start("n") - 20) : found.start("n")]
    near = text[max(0, found.start() - _FAR) : found.end() + _FAR]
    is_group = re.search(r"\d\s+of\s+$", lead) and len(_OF_EACH.findall(near)) > 1
    is_asked = (
        is_group
        or _ABOUT.search(lead)
        or _ASKED_BEFORE.search(lead)
        or _ASKED_AFTER.match(text, found.end())
    )
    return not (is_time or is_year or is_each or is_asked or _NO_SIZE.search(inner))


def _to_int(said: str) -> int:
    digits = re.sub(r"[,\s]", "", said)
    return int(digits) if digits.isdigit() else read_spelt(said)
