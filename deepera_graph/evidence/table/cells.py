"""The cells of a study that rules fill: effect sizes, intervals, p values and their direction."""

import re
from collections.abc import Mapping, Set
from typing import Literal, get_args

from deepera_graph.evidence.table.studies import Cell, Span, find_design, find_size
from deepera_graph.judges.trained.direction.wording import (
    POLAR,
    read_question,
    read_words,
    sign_of,
)
from deepera_graph.text.words import split_sentences

Way = Literal["higher", "lower", "no difference", ""]
_NUMBER = r"[-−–+]?\s?\d*[.·]?\d+"
_UNIT = (
    r"(?:\s?%|\s?°C|\s?(?:[a-zA-Zµμ]{1,6}/(?:[a-zA-Zµμ]{1,6}\d?|min|day))"
    r"|\s(?:mmHg|kg|mg|g|mm|cm|km|m|MPa|N|points?|units?|minutes|min|hours?|days?|weeks?|months?"
    r"|years?|seconds|s|times|fold)\b)"
)
_RATIO = r"(?:hazard|odds|risks?|rate|prevalence|incidence(?:\s+rate)?|response|likelihood)\s+ratio"
_RATIOS = rf"{_RATIO}|relative\s+risk|(?-i:a?HR|a?OR|a?RR|I?RR|PR|SHR)|ratio"
_OTHERS = r"""
    (?:weighted\s+|standardi[sz]ed\s+)?mean\s+difference | W?MD | SMD | risk\s+difference
  | Cohen['’]?s?\s+d | Hedges['’]?\s+g | effect\s+size | beta | β | (?-i:\b[drg]\b(?=\s*=))
"""
_NAMED = re.compile(
    rf"""
    (?<![\w-]) (?: (?P<ratio>{_RATIOS}) | (?P<other>{_OTHERS}) ) (?![\w-])
    (?: \s*[(\[]\s*a?(?:HR|OR|RR|IRR|PR|SHR|MD|SMD|WMD|d|g)\s*[)\]] )?
    (?: \s+for\s+(?:[\w-]+\s+){{0,6}}?[\w-]+(?=,|\s+(?:was|of|is)\b|\s*[=:]) )?
    (?: \s*(?:was|of|is|=|:|,)\s* | \s+(?=\d|[-−–]\d) )
    (?P<value>{_NUMBER}) (?P<unit>{_UNIT})? (?![\d.]*\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STEP_WAY = (
    r"(?:increases?|increments?|rise|gain|decreases?|decrement|reduction|decline|drop|fall|higher|lower"
    r"|greater|more|fewer|less|longer|shorter|older|larger|smaller|heavier)\b"
)
_STEP_UNIT = r"(?:[-\s]?[A-Za-zµμ%°·][\w/%·^²−-]*)?(?:\s+[\w/-]+){0,2}?[-\s]+"
_DEVIATION = r"(?:SDs?|s\.d\.|standard[-\s]deviations?|units?|points?)\b"
# By how much an exposure differs, which is no effect: "each 10 nmol/l higher level".
_STEP = re.compile(
    rf"""
    \b(?:per|each|every|(?:an?|one)(?=[-\s][^.;]{{1,90}}\b(?:associated|linked|related|predict\w*
      |correspond\w*|correlated)\s[^.;]*(?:\b(?:lower|higher|more|less|fewer|longer|shorter|greater
      |smaller|increase|decrease|reduction|odds|risk|hazard|rate|ratio)|\d)))
    \s+(?:additional\s+|extra\s+|further\s+|one[-\s])*
    (?: (?!\d+(?:[,\s]?000)+\b|100[-,\s]+(?:person|patient|people|women|men|child|birth|live))
        \d+(?:[.,·]\d+)?(?:{_STEP_UNIT}|[-\s]+){_STEP_WAY}
      | (?:\d+(?:[.·]\d+)?[-\s]?)?{_DEVIATION}(?:(?:\s+[\w/-]+){{0,2}}?[-\s]+{_STEP_WAY})?
      | [a-z]+[-\s](?:[a-z]+[-\s])?(?:increases?|increments?|decreases?|decrement|rise)\b
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_BY = re.compile(
    rf"\bby\s+(?:about\s+|an?\s+(?:average\s+of\s+)?)?(?P<value>{_NUMBER})(?P<unit>{_UNIT})"
)
_MORE = re.compile(
    rf"(?P<value>(?<![\w.]){_NUMBER})(?P<unit>{_UNIT})\s+(?:(?:per\s+)?\w+\s+)?"
    r"(?:lower|higher|more|less|fewer|longer|shorter|greater|smaller|larger|cooler|warmer|faster"
    r"|slower|heavier|lighter|increase|decrease|reduction|rise|fall|drop|gain|loss)\b"
)
_OF = re.compile(
    r"\b(?:increase|decrease|reduction|rise|fall|drop|gain|loss|decline|difference)\s+(?:of|was)\s+"
    rf"(?:about\s+|only\s+)?(?P<value>{_NUMBER})(?P<unit>{_UNIT})"
)
_LEVEL = (
    r"(?:9\d(?:\.\d)?\s?%?\s?-?\s*)?(?:CI|CrI|confidence\s+interval|credible\s+interval)s?"
    r"(?:\s*[(\[]\s*(?:CI|CrI)s?\s*[)\]])?(?:\s*9\d(?:\.\d)?\s?%)?"
)
_BOUNDS = (
    rf"(?P<low>[-−–]?\d*[.·]?\d+)(?:{_UNIT})?\s*(?:\bto\b|,|;|-|–|−|—)\s*"
    rf"(?P<high>[-−–]?\d*[.·]?\d+)(?P<unit>{_UNIT})?"
)
_INTERVAL = re.compile(rf"\b{_LEVEL}\s*(?:\bwas\b|\bof\b|[,:;=(\[]|\s)*\s*{_BOUNDS}", re.IGNORECASE)
# A comma stands in one of decimals: "[2, 5]" are citations.
_BARE_INTERVAL = re.compile(
    rf"\s*[(\[]\s*(?:(?=-?\d*[.·]\d+[,;]\s?-?\d*[.·]\d)|(?![^)\]]*[,;])){_BOUNDS}\s*[)\]]"
)
_P = re.compile(
    r"(?<![\w])[pP](?:\s?-?\s?value)?\s*(?P<sign>[=<>≤≥])\s*(?P<value>[01]?[.·]\d+|[01]\b)"
)
_NULL = re.compile(
    r"""
    \b(?: (?:did|does|do|was|were|is|are|had|has|have|showed|shows|found)\s+(?:not|no)\b
        (?!\s+only) (?:\s+\w+){0,3}?\s*
        (?:differ|change|alter|affect|improve|reduce|increase|lower|raise|effect|associat
          |benefit|significant|influence|impact|correlat|delay|postpone|prolong|extend|shorten
          |lengthen|prevent|worsen)\w*
      | no\s+(?:\w+\s+){0,2}
        (?:effect|differences?|associations?|changes?|benefit|correlations?|different)
      | (?:was|were|is|are|remained)\s+(?:very\s+)?
        (?:similar|equal|unchanged|comparable|the\s+same)
      | not\s+significant\w*
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_AIM = re.compile(
    r"\b(?:to\s+(?:test|examine|assess|determine|investigate)|whether|unknown|aims?)\b", re.I
)
# What two groups came to, side by side: neither is the difference between them.
_SIDE_BY_SIDE = re.compile(
    rf"\d{_UNIT}[^.;]{{0,80}}?\b(?:and|against|versus|vs)\b[^.;]{{0,60}}?\d{_UNIT}"
)
_THAN = re.compile(r"\bthan\b")
# What begins a clause on another comparison; "but this was not" goes on with the same one.
_TURN = re.compile(
    r"(?:;|,?\s\b(?:whereas|while|but)\b|,\s+and\b)\s+(?!(?:this|these|that|which|the\s+(?:difference|effect))\b)"
)
# A clause without a subject is of the comparison before it: "but did not reach significance".
_NO_SUBJECT = re.compile(
    r"\s*(?:not|no|did|does|do|was|were|is|are|it|they|without|only|remained)\b", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z]+(?:['’]t)?")
# Of people who fall: "more falls", "the risk of falls".
_FALLS = re.compile(r"\b((?:of|in|or|for|and|had|few|any|more|less|with|\w+(?:ed|er))\s+)falls\b")
# What makes a time longer: "delayed sleep by 40 minutes", also "delayed the decline of memory".
_LATER = re.compile(
    r"(?P<before>\b[a-z]+)?(?P<gap>[^a-z]{1,9}|\A)"
    r"\b(?:delay(?:s|ed|ing)?|postpon\w+|prolong\w*|extend(?:s|ed|ing)?)\b"
    r"(?P<other>-|\s+(?:to|from|over|follow|release|period|work|our|these|previous)\b)?"
    r"(?:\s+(?:the\s+)?(?:\w+\s+)?(?:declines?|decreases?|increases?|loss|rise|fall|reduction)\b)?"
)
# Before such a word as a noun or an adjective: "reduced the delay", "by prolonged fasting".
_NAMED_LATER = frozenset("the of in by with after during on from for no any".split())  # noqa: SIM905
_DELAY_OF = re.compile(r"\b(?:an?|mean|average|median)\s+(?:\w+\s+)?delay(?=\s+of\b)")
_LEAST_P = 0.05
_WHERE = re.compile(  # what ends the outcome of a question
    "in|of|among|for|by|with|during|after|on|at|from|to|than|over|under|when|while|and|or"
)
RuledColumn = Literal["n", "design", "effect", "unit", "measure", "interval", "p", "direction"]
RULED: tuple[str, ...] = get_args(RuledColumn)
FINDING = ("effect", "unit", "measure", "interval", "p", "direction")  # told in one sentence


def read_cells(
    text: str, decides: Span | None = None, *, outcome: Set[str] = frozenset(), title: str = ""
) -> dict[str, Cell]:
    """Return the cells that a text, of a study of a title, tells, by the names of their columns."""
    # The finding is of one sentence: of those that tell most, the first; one in the part of the
    # text that *decides*, [start, end), comes before all others, which may be of another outcome.
    # The *outcome* that is asked for, stems, may stand in another clause than the first effect.
    found = [(one, _read_sentence(one.text, one.start, outcome)) for one in split_sentences(text)]
    told = [(one, cells) for one, cells in found if cells]
    start, end = decides or (0, 0)
    deciding = [cells for one, cells in told if one.start < end and start < one.end]
    finding = max(deciding or [cells for _, cells in told], key=_rank, default={})
    known = {"n": find_size(text, title), "design": find_design(text), **finding}
    return {name: cell for name, cell in known.items() if cell is not None}


def find_outcome(question: str) -> frozenset[str]:
    """Return the stems of what a question asks a change of: of ``lower HbA1c in women`` HbA1c."""
    asked = read_question(question)
    words, stems = (one[asked.place + 1 :] for one in (asked.read.words, asked.read.stems))
    end = next((n for n, word in enumerate(words) if n and _WHERE.fullmatch(word)), len(words))
    return frozenset(stems[:end]) - {""}


def _rank(cells: Mapping[str, Cell]) -> tuple[bool, bool, bool]:
    """Order findings: whole ones first."""
    has_effect, has_test = "effect" in cells, "interval" in cells or "p" in cells
    return (has_effect and has_test, has_effect, has_test)


def _read_sentence(said: str, start: int, outcome: Set[str]) -> dict[str, Cell]:
    """Return what a sentence, which begins at *start*, says of one comparison."""
    said = _STEP.sub(lambda step: " " * len(step[0]), said)
    found = _NAMED.search(said)
    is_ratio = bool(found and found["ratio"])
    named = found or _OF.search(said)
    is_told_apart = bool(_SIDE_BY_SIDE.search(said)) and not _THAN.search(said)
    effect = named if is_told_apart else found or _BY.search(said) or _MORE.search(said) or named
    clause = _cut_clause(said, effect)
    if asked := _find_asked(said, clause, outcome):
        return _read_sentence(said[slice(*asked)], start + asked[0], outcome)
    p = _P.search(said, *clause)
    end = effect.end() if effect else 0
    interval = _INTERVAL.search(said, end, clause[1]) or (
        _BARE_INTERVAL.match(said, end) if named else None
    )
    is_null = bool(_NULL.search(said[slice(*clause)]))
    if effect is None and p is None and interval is None and (not is_null or _AIM.search(said)):
        return {}
    value = None if effect is None else _to_float(effect["value"])
    low_high = None if interval is None else _bounds_of(interval)
    if low_high and value is not None and not _holds(low_high, value):
        interval = low_high = None  # it is of another effect
    parts = (
        ("effect", effect, _write_value),
        ("unit", effect, lambda one: (one["unit"] or "").strip()),
        ("measure", effect, _name_measure),
        ("interval", interval, _write_interval),
        ("p", p, _write_p),
    )
    cells = {
        name: Cell(value=shown, span=(start + found.start(), start + found.end()))
        for name, found, write in parts
        if found is not None and (shown := write(found))
    }
    way = _find_way(
        said,
        effect,
        value,
        low_high,
        p,
        is_ratio=is_ratio,
        is_null=is_null,
        is_plain=named is not None or not is_told_apart,
    )
    return cells | ({"direction": Cell(value=way, span=(start, start + len(said)))} if way else {})


def _cut_clause(said: str, effect: re.Match[str] | None) -> Span:
    """Return where a sentence tells an effect, if its other parts have tests of their own."""
    if effect is None:
        return 0, len(said)
    turns = [one.end() for one in _TURN.finditer(_mask_brackets(said))]
    begin = max((one for one in turns if one <= effect.start()), default=0)
    end = min((one for one in turns if one >= effect.end()), default=len(said))
    rest = said[:begin], said[end:]
    are_apart = all(_is_apart(one) for one in rest if one) and _is_tested(said[begin:end])
    return (begin, end) if are_apart else (0, len(said))


def _find_asked(said: str, clause: Span, outcome: Set[str]) -> Span | None:
    """Return the part beside a clause that names the outcome, if the clause does not."""
    parts = [(0, clause[0]), (clause[1], len(said))]
    known = read_words(said[slice(*clause)]).known
    return next(
        (
            part
            for part in parts
            if outcome and outcome <= read_words(said[slice(*part)]).known and not outcome & known
        ),
        None,
    )


def _is_tested(clause: str) -> bool:
    return bool(_P.search(clause) or _INTERVAL.search(clause))


def _is_apart(clause: str) -> bool:
    """Tell whether a clause is of a comparison of its own: by its test, or what did not change."""
    found = None if _NO_SUBJECT.match(clause) else _NULL.search(clause)
    return _is_tested(clause) or (found is not None and "significan" not in found[0].lower())


def _mask_brackets(said: str) -> str:
    masked = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", lambda found: "_" * len(found[0]), said)
    return masked if masked == said else _mask_brackets(masked)


def _bounds_of(interval: re.Match[str]) -> tuple[float, float]:
    low, high = _to_float(interval["low"]), _to_float(interval["high"])
    return min(low, high), max(low, high)


def _holds(bounds: tuple[float, float], value: float) -> bool:
    """Tell whether an interval holds an effect, whose sign may be told in words."""
    low, high = bounds
    return low <= value <= high or low <= -value <= high


def _name_measure(effect: re.Match[str]) -> str:
    groups = effect.groupdict()
    return " ".join((groups.get("ratio") or groups.get("other") or "change").split())


def _tidy(number: str) -> str:
    plain = re.sub(r"[−–]", "-", number.replace("·", ".")).replace(" ", "").removeprefix("+")
    return re.sub(r"\A(-?)\.", r"\g<1>0.", plain)


def _to_float(number: str) -> float:
    return float(_tidy(number))


def _write_value(effect: re.Match[str]) -> str:
    return f"{_tidy(effect['value'])}{' '.join((effect['unit'] or '').split(' '))}"


def _write_interval(found: re.Match[str]) -> str:
    return f"{_tidy(found['low'])} to {_tidy(found['high'])}{found['unit'] or ''}"


def _write_p(found: re.Match[str]) -> str:
    sign = "" if found["sign"] == "=" else found["sign"]
    return f"{sign}{_tidy(found['value'])}"


def _find_way(
    said: str,
    effect: re.Match[str] | None,
    value: float | None,
    bounds: tuple[float, float] | None,
    p: re.Match[str] | None,
    *,
    is_ratio: bool,
    is_null: bool,
    is_plain: bool,
) -> Way:
    """Tell which way an outcome goes: by the interval and p, the ratio, then by words and sign."""
    centre = 1.0 if is_ratio else 0.0
    holds_null = bounds is not None and min(bounds) <= centre <= max(bounds)
    is_large = p is not None and p["sign"] in "=>≥" and _to_float(p["value"]) >= _LEAST_P
    if is_null or holds_null or is_large:
        return "no difference"
    if is_ratio and value is not None:
        return "higher" if value > 1 else "lower" if value < 1 else "no difference"
    if value is not None and value < 0:
        return "lower"
    if not is_plain:
        return ""
    at = len(said) if effect is None else effect.start()
    if effect is not None and effect.re in (_MORE, _OF):
        at = effect.end()
    return _read_way(said[:at]) or _read_way(said)


def _tell_later(found: re.Match[str]) -> str:
    """Return ``higher`` for a verb that makes a time longer, nothing for a noun or adjective."""
    before = found["before"] or ""
    is_named = before in _NAMED_LATER or sign_of(before) in POLAR or found["other"]
    return f"{before} {'' if is_named else 'higher'} "


def _read_way(said: str) -> Way:
    """Return the way of the last word that goes up or down; nothing where none does."""
    said = _LATER.sub(_tell_later, _DELAY_OF.sub(" higher", _FALLS.sub(r"\1", said.lower())))
    signs = [sign for word in _WORD.findall(said) if (sign := sign_of(word)) in POLAR]
    if not signs:
        return ""
    return "higher" if POLAR[signs[-1]] > 0 else "lower"
