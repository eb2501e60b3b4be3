"""The cells of a study that rules fill: effect sizes, intervals, p values and their direction."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from deepera_graph.evidence.table.studies import SentencePart, Span, find_design, find_size
from deepera_graph.judges.trained.direction.wording import POLAR, sign_of
from deepera_graph.text.words import Sentence, split_sentences

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
    (?: \s*\((?:HR|OR|RR|IRR|PR|MD|SMD|WMD|d|g)\) )?
    (?: \s*(?:was|of|is|=|:|,)\s* | \s+(?=\d|[-−–]\d) )
    (?P<value>{_NUMBER}) (?P<unit>{_UNIT})? (?![\d.]*\d)
    """,
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
_LEVEL = r"(?:9\d(?:\.\d)?\s?%?\s?-?\s*)?(?:CI|CrI|confidence\s+interval|credible\s+interval)s?"
_BOUNDS = (
    rf"(?P<low>[-−–]?\d*[.·]?\d+)(?:{_UNIT})?\s*(?:\bto\b|,|;|-|–|−|—)\s*"
    rf"(?P<high>[-−–]?\d*[.·]?\d+)(?P<unit>{_UNIT})?"
)
_INTERVAL = re.compile(rf"\b{_LEVEL}\s*(?:\bwas\b|\bof\b|[,:;=(\[]|\s)*\s*{_BOUNDS}", re.IGNORECASE)
_BARE_INTERVAL = re.compile(rf"\A\s*[(\[]\s*{_BOUNDS.replace('|,|;', '')}\s*[)\]]")
_P = re.compile(
    r"(?<![\w])[pP](?:\s?-?\s?value)?\s*(?P<sign>[=<>≤≥])\s*(?P<value>[01]?[.·]\d+|[01]\b)"
)
_NULL = re.compile(
    r"""
    \b(?: (?:did|does|do|was|were|is|are|had|has|have|showed|shows|found)\s+(?:not|no)\b
        (?!\s+only) (?:\s+\w+){0,3}?\s*
        (?:differ|change|alter|affect|improve|reduce|increase|lower|raise|effect|associat
          |benefit|significant|influence|impact|correlat)\w*
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
    r"(?:;|,?\s\b(?:whereas|while|but)\b)\s+(?!(?:this|these|that|which|the\s+(?:difference|effect))\b)"
)
_WORD = re.compile(r"[A-Za-z]+(?:['’]t)?")
_LEAST_P = 0.05
RuledColumn = Literal["n", "design", "effect", "unit", "measure", "interval", "p", "direction"]
RULED: tuple[str, ...] = get_args(RuledColumn)
FINDING = ("effect", "unit", "measure", "interval", "p", "direction")  # told in one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCell:
    """What a sentence says of one comparison.

    Attributes:
        sentence: Its place in the text.
        effect: The size of the effect with its unit; None if it is not told.
        unit: Of the effect, such as ``%``; empty for a ratio.
        measure: What it is called, such as ``hazard ratio``; ``change`` of one told in words.
        is_ratio: Whether 1, and not 0, is no effect.
        interval: ``0.58 to 0.90``.
        p: ``0.004``, or ``<0.001``.
        direction: Which way the outcome goes; empty if that cannot be told.
    """

    sentence: Span
    effect: SentencePart | None
    unit: str
    measure: str
    is_ratio: bool
    interval: SentencePart | None
    p: SentencePart | None
    direction: Way

    @property
    def _rank(self) -> tuple[bool, bool, bool]:
        """Order findings: whole ones first."""
        has_test = self.interval is not None or self.p is not None
        return (self.effect is not None and has_test, self.effect is not None, has_test)


def find_effect(text: str, decides: Span | None = None) -> FoundCell | None:
    """Return the first finding of a text that is told most fully; None if it tells none.

    One in the part of the text that *decides* comes before all others, which may be of another
    outcome.
    """
    found = [one for sentence in split_sentences(text) for one in _read_sentence(text, sentence)]
    start, end = decides or (0, 0)
    deciding = [one for one in found if one.sentence[0] < end and start < one.sentence[1]]
    return max(deciding or found, key=lambda one: one._rank, default=None)


def _read_sentence(text: str, sentence: Sentence) -> Iterator[FoundCell]:
    said, start = sentence.text, sentence.start
    found, is_ratio = _find_named(said)
    named = found or _OF.search(said)
    is_told_apart = bool(_SIDE_BY_SIDE.search(said)) and not _THAN.search(said)
    effect = named if is_told_apart else found or _BY.search(said) or _MORE.search(said) or named
    clause = _cut_clause(said, effect)
    p = _P.search(said, *clause)
    end = effect.end() if effect else 0
    interval = _INTERVAL.search(said, end) or (_BARE_INTERVAL.match(said[end:]) if named else None)
    shift = end if interval is not None and interval.re is _BARE_INTERVAL else 0
    is_null = bool(_NULL.search(said[slice(*clause)]))
    if effect is None and p is None and interval is None and (not is_null or _AIM.search(said)):
        return
    value = None if effect is None else _to_float(effect["value"])
    if interval is not None and value is not None and not _holds(interval, value):
        interval = None  # it is of another effect
    low_high = None if interval is None else _bounds_of(interval)
    yield FoundCell(
        sentence=(start, start + len(said)),
        effect=None if effect is None else _part(effect, start, _write_value(effect)),
        unit="" if effect is None else (effect["unit"] or "").strip(),
        measure="" if effect is None else _name_measure(effect),
        is_ratio=is_ratio,
        interval=None
        if interval is None
        else _part(interval, start + shift, _write_interval(interval)),
        p=None if p is None else _part(p, start, _write_p(p)),
        direction=_find_way(
            said,
            effect,
            value,
            low_high,
            p,
            is_ratio=is_ratio,
            is_null=is_null,
            is_plain=named is not None or not is_told_apart,
        ),
    )


def _cut_clause(said: str, effect: re.Match[str] | None) -> Span:
    """Return where a sentence tells an effect, if its other parts have tests of their own."""
    if effect is None:
        return 0, len(said)
    turns = [one.end() for one in _TURN.finditer(_mask_brackets(said))]
    begin = max((one for one in turns if one <= effect.start()), default=0)
    end = min((one for one in turns if one >= effect.end()), default=len(said))
    rest = said[:begin], said[end:]
    are_tested = all(_P.search(one) for one in rest if one) and _P.search(said[begin:end])
    return (begin, end) if are_tested else (0, len(said))


def _mask_brackets(said: str) -> str:
    return re.sub(r"\([^()]*\)", lambda found: "_" * len(found[0]), said)


def _bounds_of(interval: re.Match[str]) -> tuple[float, float]:
    low, high = _to_float(interval["low"]), _to_float(interval["high"])
    return min(low, high), max(low, high)


def _holds(interval: re.Match[str], value: float) -> bool:
    """Tell whether an interval holds an effect, whose sign may be told in words."""
    low, high = _bounds_of(interval)
    return low <= value <= high or low <= -value <= high


def _find_named(said: str) -> tuple[re.Match[str] | None, bool]:
    found = _NAMED.search(said)
    return found, bool(found and found["ratio"])


def _part(found: re.Match[str], start: int, value: str) -> SentencePart:
    return SentencePart(value=value, span=(start + found.start(), start + found.end()))


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


def _read_way(said: str) -> Way:
    """Return the way of the last word that goes up or down; nothing where none does."""
    signs = [sign for word in _WORD.findall(said.lower()) if (sign := sign_of(word)) in POLAR]
    if not signs:
        return ""
    return "higher" if POLAR[signs[-1]] > 0 else "lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value of a study.

    Attributes:
        value: What is shown.
        words: The words of the study that it is taken from.
        span: Where they stand in the text, [start, end).
    """

    value: str
    words: str
    span: tuple[int, int]


def read_cells(text: str, decides: Span | None = None) -> dict[str, Cell]:
    """Return the cells that a text tells, by the names of their columns.

    The finding is that of the sentence that *decides*, [start, end), if it tells one.
    """
    finding = find_effect(text, decides)
    parts: dict[str, SentencePart | None] = {"n": find_size(text), "design": find_design(text)}
    if finding is not None:
        parts |= {name: take(finding) for name, take in _OF_FINDING.items()}
    return {
        name: Cell(value=part.value, words=text[part.span[0] : part.span[1]], span=part.span)
        for name, part in parts.items()
        if part is not None
    }


def _take_measure(finding: FoundCell) -> SentencePart | None:
    effect = finding.effect
    return None if effect is None else SentencePart(value=finding.measure, span=effect.span)


def _take_unit(finding: FoundCell) -> SentencePart | None:
    if finding.effect is None or not finding.unit:
        return None
    return SentencePart(value=finding.unit, span=finding.effect.span)


def _take_direction(finding: FoundCell) -> SentencePart | None:
    if not finding.direction:
        return None
    return SentencePart(value=finding.direction, span=finding.sentence)


_OF_FINDING: Mapping[str, Callable[[FoundCell], SentencePart | None]] = {
    "effect": lambda finding: finding.effect,
    "unit": _take_unit,
    "measure": _take_measure,
    "interval": lambda finding: finding.interval,
    "p": lambda finding: finding.p,
    "direction": _take_direction,
}
