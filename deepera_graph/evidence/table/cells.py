"""The cells of a study that rules fill: effect sizes, intervals, p values and their direction."""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Literal, get_args

from deepera_graph.evidence.table.designs import Cell, Span, find_design
from deepera_graph.evidence.table.effects import (
    BARE_INTERVAL,
    CURRENCY,
    FROM_TO,
    INTERVAL,
    STEP,
    P,
    bounds_of,
    end_of_value,
    find_effect,
    has_inside,
    is_named,
    list_effects,
    mask_brackets,
    name_measure,
    to_float,
    unit_of,
    value_of,
    write_interval,
    write_p,
    write_value,
)
from deepera_graph.evidence.table.studies import find_size
from deepera_graph.evidence.table.ways import NULL, find_way
from deepera_graph.judges.trained.direction.wording import read_question, read_words
from deepera_graph.text.words import Sentence, split_sentences

_AIM = re.compile(
    r"\b(?:to\s+(?:test|examine|assess|determine|investigate)|whether|unknown|aims?)\b", re.I
)
# What begins a clause on another comparison; "but this was not" goes on with the same one.
_TURN = re.compile(
    r"(?:;|,?\s\b(?:whereas|while|but|(?:al)?though|however|yet)\b|,\s+and\b)\s+(?!(?:this|these|that|which|the\s+(?:difference|effect))\b)"
)
# What may stand between results of different outcomes, "between A and B" does not.
_AND = re.compile(rf"{_TURN.pattern}|,?\s\band\s+", re.IGNORECASE)
_COMMA = re.compile(rf"{_AND.pattern}|,\s+", re.IGNORECASE)
# Behind what one outcome came to: "falls (2% in each group) or pain (5% v 7%, p = 0.4)".
_NEXT = re.compile(r"_\s*(?:,(?!\s*respectively)|\b(?:and|or|but)\b)(?=[^_]*_*\Z)")
_PAIR = re.compile(r"\bbetween\s+[^,;()_]{1,60}?\sand\b", re.IGNORECASE)
_FIRST_TURN = re.compile(r"\s*(?:(?:al)?though|while|whereas|despite)\b", re.IGNORECASE)
_OF_SAME = re.compile(r"(?:ed|es|ose|ell)\s+(?:it|them)\b")
# What says of the same outcome that it was not so in others: "not in clay", "but raised it in men".
_WHERE_NOT = re.compile(
    r"\s*(?:not|(?:had|has|have|showed|made)\s+(?:no|little)\s+(?:\w+\s+)?(?:effect|change|difference))"
    r"\s+(?P<how>in|among|at|under|during|after|when|where)\b",
    re.IGNORECASE,
)
_OTHERWISE = re.compile(
    r"\b(?:but|while|whereas|though|although)\s+(?:\w+\s+){0,3}?\w+(?:ed|es|ose|ell)\s+(?:it|them)\s+"
    r"(?:in|among|at|under|during|after|when|where)\b",
    re.IGNORECASE,
)
_OF_ALL = re.compile(r"neither|none", re.IGNORECASE)
# A clause without a subject may be of the comparison before it: "but did not differ".
_NO_SUBJECT = re.compile(
    r"\s*(?:not|no|did|does|do|was|were|is|are|it|they|without|only|remained|which)\b",
    re.IGNORECASE,
)
_WHERE = re.compile(  # what ends the outcome of a question
    "in|of|among|for|by|with|during|after|on|at|from|to|than|over|under|when|while|and|or"
)
_GROUP = re.compile("in|among|by|with|without|during|after|on|at|than|over|under|when|while")
_FORMULA = re.compile(r"\b[A-Z][A-Za-z]*\d[A-Za-z\d.]*\b")  # "N2O", "HbA1c"
RuledColumn = Literal["n", "design", "effect", "unit", "measure", "interval", "p", "direction"]
_ACRONYM = re.compile(r"\b([A-Z]{2,6})s?\b")
_MOST_ACRONYMS = 50  # of a text
Told = tuple[Sentence, dict[str, Cell]]
RULED: tuple[str, ...] = get_args(RuledColumn)
FINDING = ("effect", "unit", "measure", "interval", "p", "direction")  # told in one sentence


@dataclass(frozen=True, slots=True)
class AskedOutcome:
    """What is asked for: its stems, and the acronyms that a text has for it."""

    stems: Set[str]
    acronyms: Set[str] = frozenset()

    def count_in(self, said: str) -> int:
        """Return how many of the stems a text names; an acronym names them all."""
        if not self.acronyms.isdisjoint(_ACRONYM.findall(said)):
            return len(self.stems)
        named = set(map(str.lower, _FORMULA.findall(said)))
        return len(self.stems & (read_words(said).known | named))


def _find_acronyms(text: str, stems: Set[str]) -> frozenset[str]:
    """Return the acronyms whose words, which a text has, name all of some stems."""
    found = {
        one: re.search(r"\w*[\s-]+".join(rf"\b{letter}" for letter in one) + r"\w*", text, re.I)
        for one in [*dict.fromkeys(_ACRONYM.findall(text))][:_MOST_ACRONYMS]
    }
    return frozenset(
        one for one, words in found.items() if words and stems <= read_words(words[0]).known
    )


def read_cells(
    text: str,
    decides: Span | None = None,
    *,
    outcome: Set[str] = frozenset(),
    title: str = "",
    question: str = "",
) -> dict[str, Cell]:
    """Return the cells that a text, of a study of a title, tells, by the names of their columns."""
    # The finding is of one sentence: of those that tell most, the first; one in the part of the
    # text that *decides*, [start, end), comes before all others, which may be of another outcome.
    # The *outcome* that is asked for, stems, may stand in another clause than the first effect; a
    # *question* tells which of two groups is compared with the other.
    asked = None
    if outcome:
        asked = AskedOutcome(outcome, _find_acronyms(f"{title}\n{text}", outcome))
    found = [
        (one, _read_sentence(one.text, one.start, asked, question)) for one in split_sentences(text)
    ]
    start, end = decides or (0, 0)
    deciding = [(one, cells) for one, cells in found if one.start < end and start < one.end]
    told = [(one, cells) for one, cells in found if cells]
    named = [asked.count_in(one.text) if asked else 0 for one, _ in told]
    whole = [one for one, many in zip(told, named, strict=True) if many == len(outcome)]
    chosen = [(one, cells) for one, cells in deciding if cells]
    chosen = _find_numbers(chosen, whole if outcome else []) or chosen
    chosen = chosen or (whole if deciding else told)
    is_open = any(cells is None for _, cells in deciding)
    is_other = any(named) and not any(asked and asked.count_in(one.text) for one, _ in chosen)
    finding = {} if is_open or is_other else max((one[1] for one in chosen), key=_rank, default={})
    known = {"n": find_size(text, title), "design": find_design(text), **finding}
    return {name: cell for name, cell in known.items() if cell is not None}


def _find_numbers(chosen: Sequence[Told], whole: Sequence[Told]) -> list[Told]:
    """Return the one finding of the whole outcome with numbers, which a conclusion has none of."""
    ways = {way.value if (way := cells.get("direction")) else "" for _, cells in chosen}
    if len(ways) != 1 or any(cells.keys() != {"direction"} for _, cells in chosen):
        return []
    found = [pair for pair in whole if _rank(pair[1])[0]]
    is_same = len(found) == 1 and (way := found[0][1].get("direction")) and {way.value} == ways
    return found if is_same else []


def find_outcome(question: str) -> frozenset[str]:
    """Return the stems of what a question asks a change of: of ``lower HbA1c in women`` HbA1c."""
    asked = read_question(question)
    words, stems = asked.read.words, asked.read.stems
    start, end = 0, _find_subject(words, asked.read.signs)
    if not end:
        start = asked.place + 1
        ends = (n for n in range(start + 1, len(words)) if _WHERE.fullmatch(words[n]))
        end = next(ends, len(words))
    # "N2O" is three words, of which none has a stem.
    said = "".join(words[start:end])
    named = {one.lower() for one in _FORMULA.findall(question) if one.lower() in said}
    # Where no word of change is known, all but the first thing that is named.
    _, *others = [one for one in asked.read.stems if one] or [""]
    return frozenset(stems[start:end]) - {""} | named or frozenset(others)


def _find_subject(words: Sequence[str], signs: Sequence[str]) -> int:
    """Return where the subject ends of "is the yield higher in fields with lime?"; 0 of others."""
    if not {*words[:1]} & {"is", "are", "was", "were"}:
        return 0
    for place in range(2, len(words)):
        after = words[place + 1 + (words[place] in ("more", "less")) :][:1]
        is_passive = words[place].endswith("ed") and after == ("by",)
        if signs[place] == "link" and not is_passive:
            return 0
        if (is_passive or signs[place] in ("up", "down")) and any(map(_GROUP.fullmatch, after)):
            return place
    return 0


def _rank(cells: Mapping[str, Cell]) -> tuple[bool, bool, bool]:
    """Order findings: whole ones first."""
    has_effect, has_test = "effect" in cells, "interval" in cells or "p" in cells
    return (has_effect and has_test, has_effect, has_test)


def _read_sentence(
    said: str, start: int, asked: AskedOutcome | None, question: str
) -> dict[str, Cell] | None:
    """Return what a sentence, which begins at *start*, says of one comparison."""
    # None if it has results of several outcomes, and the one that is asked for does not tell which.
    said = STEP.sub(lambda step: " " * len(step[0]), CURRENCY.sub(" ", said))
    is_mixed = _OTHERWISE.search(said)
    if asked and (len(spans := _split_results(said)) > 1 or is_mixed):
        named = [asked.count_in(said[slice(*part)]) for part in spans]
        if is_mixed or not (most := max(named)) or named.count(most) > 1:
            return None
        begin, end = spans[named.index(most)]
        others = [said[slice(*one)] for one in spans if one != (begin, end)]
        if any(_is_exception(one, said[begin:end], asked) for one in others):
            return None
        return _read_sentence(said[begin:end], start + begin, None, question)
    effect = find_effect(said)
    clause = _cut_clause(said, effect or P.search(said))
    end, most_end = _find_reach(said, effect, clause)
    p = P.search(said, end, most_end) or _find_before(said, clause[0], effect)
    interval = _find_interval(said, effect, end, most_end)
    null = _find_null(said, effect, clause, most_end)
    is_told = effect or p or interval or FROM_TO.search(said) or (null and not _AIM.search(said))
    if not is_told:
        return {}
    bounds = None if interval is None else bounds_of(interval)
    if bounds and effect and not has_inside(bounds, to_float(value_of(effect))):
        interval = bounds = None  # it is of another effect
    parts = (
        ("effect", effect, write_value),
        ("unit", effect, unit_of),
        ("measure", effect, name_measure),
        ("interval", interval, write_interval),
        ("p", p, write_p),
    )
    cells = {
        name: Cell(value=shown, span=(start + found.start(), start + found.end()))
        for name, found, write in parts
        if found is not None and (shown := write(found))
    }
    is_ratio = effect is not None and bool(effect.groupdict().get("ratio"))
    way = find_way(said, effect, bounds, p, null, is_ratio=is_ratio, question=question)
    return cells | ({"direction": Cell(value=way, span=(start, start + len(said)))} if way else {})


def _is_exception(clause: str, finding: str, asked: AskedOutcome) -> bool:
    """Tell whether a clause says of a finding in some that it was not so in others."""
    if _OF_SAME.search(clause):
        return True  # "low doses reduced falls by 5%, while high ones increased them by 3%"
    found = _WHERE_NOT.match(clause)
    if not found or asked.count_in(clause):
        return False
    where = re.findall(rf"\b{found['how']}\s+([^,;()]+)", finding, re.IGNORECASE)
    return bool(where) and not asked.count_in(where[-1])


def _find_interval(
    said: str, effect: re.Match[str] | None, end: int, most_end: int
) -> re.Match[str] | None:
    """Return the interval of an effect; beside none, the only one."""
    found = INTERVAL.search(said, end, most_end)
    if effect is None:
        return None if found and INTERVAL.search(said, found.end(), most_end) else found
    return found or (BARE_INTERVAL.match(said, effect.end()) if is_named(effect) else None)


def _find_null(
    said: str, effect: re.Match[str] | None, clause: Span, most_end: int
) -> re.Match[str] | None:
    """Return what says that nothing differs, but not of another effect behind the first."""
    found = NULL.search(said[slice(*clause)])
    is_behind = found and effect and clause[0] + found.start() >= most_end
    return None if found and is_behind and not _OF_ALL.search(found[0]) else found


def _cut_clause(said: str, effect: re.Match[str] | None) -> Span:
    """Return where a sentence tells an effect, if its other parts have tests of their own."""
    if effect is None:
        return 0, len(said)
    turns = [one.end() for one in _TURN.finditer(mask_brackets(said))]
    begin = max((one for one in turns if one <= effect.start()), default=0)
    end = min((one for one in turns if one >= effect.end()), default=len(said))
    rest = [one for one in (said[:begin], said[end:]) if one]
    is_alone = _is_tested(said[begin:end]) or not any(map(_is_tested, rest))
    return (begin, end) if is_alone and all(map(_is_apart, rest)) else (0, len(said))


def _find_reach(said: str, effect: re.Match[str] | None, clause: Span) -> Span:
    """Return where the tests of an effect may stand: behind it, and before another one."""
    if effect is None:
        return clause
    behind = [one for one in list_effects(said) if effect.end() <= one.start() < clause[1]]
    masked = mask_brackets(said)
    other = (one for one in behind if _COMMA.search(masked, effect.end(), one.start()))
    return end_of_value(effect), next((one.start() for one in other), clause[1])


def _find_before(said: str, begin: int, effect: re.Match[str] | None) -> re.Match[str] | None:
    """Return the p value before an effect, if both are of one clause."""
    found = None if effect is None else P.search(said, begin, effect.start())
    if found is None or effect is None:
        return None
    return None if _AND.search(mask_brackets(said), found.end(), effect.start()) else found


def _split_results(said: str) -> list[Span]:
    """Return the parts of a sentence that have results, of what may be different outcomes."""
    masked = _PAIR.sub(lambda found: "_" * len(found[0]), mask_brackets(said))
    found = [("effect", one) for one in (*list_effects(said), *FROM_TO.finditer(said))]
    tests = (("p", P), ("interval", INTERVAL), ("null", NULL))
    found += [(kind, one) for kind, pattern in tests for one in pattern.finditer(said)]
    parts: list[Span] = []
    begin, end, kinds = 0, 0, set[str]()
    for kind, one in sorted(found, key=lambda pair: pair[1].start()):
        is_inside, has_test = masked[one.start()] == "_", bool(kinds & {"p", "interval"})
        is_new = kind in ("effect", "null") and not is_inside
        is_new = is_new or (has_test and (is_inside or kind == "null"))
        is_listed = kind in kinds or (is_new and kind != "effect") or _FIRST_TURN.match(said)
        marks = _COMMA if is_listed else _AND
        turn = marks.search(masked, end, one.start()) if kinds and end <= one.start() else None
        if is_inside and kinds and (after := _NEXT.search(masked, end, one.start())):
            turn, is_new = turn or after, True
        if turn and (is_new or kind in kinds) and not _is_same(said[turn.end() :], kind, one):
            parts.append((begin, turn.start()))
            begin, kinds = turn.end(), set()
        kinds.add(kind)
        end = max(end, one.end())
    return [*parts, (begin, len(said))]


def _is_same(clause: str, kind: str, found: re.Match[str]) -> bool:
    """Tell whether a clause says of the result before it that it was not significant."""
    is_plain = re.search(r"significan|differ", found[0], re.IGNORECASE)
    return kind == "null" and bool(is_plain and _NO_SUBJECT.match(clause))


def _is_tested(clause: str) -> bool:
    return bool(P.search(clause) or INTERVAL.search(clause))


def _is_apart(clause: str) -> bool:
    """Tell whether a clause is of a comparison of its own: by its test, or what did not change."""
    found = NULL.search(clause)
    of_same = r"significan|differ" if _NO_SUBJECT.match(clause) else r"significan"
    return _is_tested(clause) or bool(found and not re.search(of_same, found[0], re.IGNORECASE))
