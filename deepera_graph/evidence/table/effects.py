"""What a sentence reports: effects, their intervals and p values, as rules find and write them."""

import re
from collections.abc import Iterator

# A comma is that of decimals ("0,71") or of thousands ("1,204").
_WHOLE = r"(?:\d++(?:[.·]\d++)?+|[.·]\d++)"
_DIGITS = rf"(?:[1-9]\d{{0,2}}(?:,\d{{3}})++(?:\.\d++)?+(?!\d)|\d++,\d{{1,3}}(?!\d|,\d)|{_WHOLE})"
_NUMBER = rf"[-−–+]?\s?{_DIGITS}"
_TIME = r"minutes|min|hours?|days?|weeks?|months?|years?|seconds?|s|h"
# What a unit is divided by: "m-2", "ha−1", "mL-1"; "PD-1" and "GLP-1" are none.
_EACH = r"(?:\s(?-i:[a-z]{1,3}|[a-zµμ]?[A-Z]|[kMG]?Pa|[kMG]?Hz)\s?[-−–⁻]\s?[1-3¹²³]\b)"
_NO_UNIT = (
    r"(?:and|or|to|of|in|on|at|by|per|for|with|from|than|vs|versus|under|after|before|during)\b"
)
_UNIT = (
    # Of what is measured by area, mass or time, too: "µmol CO2 m-2 s-1", "t ha−1".
    rf"(?:\s(?!{_NO_UNIT})[a-zA-Zµμ]{{1,11}}(?:\s[A-Z][A-Za-z]{{0,4}}\d?)?{_EACH}{{1,3}}"
    r"|\s?%|\s?°C|[-\s]?fold\b|\s?(?:[a-zA-Zµμ]{1,6}/(?:[a-zA-Zµμ]{1,6}\d?|min|day))|\sper\s?cent\b"
    r"|(?:\sper\s?cent(?:age)?|[-\s]percentage)[-\s]points?\b"
    r"|\s(?:mm\s?Hg|kcal|kJ|kg|mg|µg|μg|g|mm|cm|km|µm|μm|nm|m|[GMk]?Pa|[kM]?N|mL|L|bpm|beats|dB|Hz|mV|V|mW|kW|W|k?Wh|m?Ah|[mkM]?Ω|[mµ]S|[mµn]M|[mµ]?mol|t|ha|cycles"
    rf"|pp|ppm|ppb|K|points?|units?|{_TIME}|times|SDs?|standard\s+deviations?)\b"
    rf"{_EACH}?)"
)
_SPREAD = rf"(?:\s?(?:±|\+/[-−–])\s?{_DIGITS})?"
_TOLD = rf"(?P<value>{_NUMBER}){_SPREAD}(?P<unit>{_UNIT})"
_RATIO = (
    r"(?:hazards?|odds|risks?|rate|prevalence|incidence(?:\s+rate)?|response|likelihood)\s+ratio"
)
_ABBREVIATED = r"a?HR|a?OR|a?RR|a?I?RR|a?PR|SHR"
_RATIOS = (
    rf"{_RATIO}|relative\s+risk|(?-i:{_ABBREVIATED})|ratio\s+of\s+(?:geometric\s+)?means"
    r"|(?:adjusted|crude|summary|pooled|common|mean)\s+ratio|(?<=[(\[])ratio"
)
_OTHERS = r"""
    (?:weighted\s+|standardi[sz]ed\s+)?mean\s+difference | W?MD | SMD | risk\s+difference
  | Cohen['’]?s?\s+d | Hedges['’]?\s+g | effect\s+size | beta | β | rho | ρ
  | (?-i:\br?[drgb]s?\b(?=\s*(?:\(\d+\)\s*)?=))
  | (?:between[-\s]groups?|absolute|adjusted|estimated|treatment|(?<=[(\[]))\s*difference
"""
_HEART = r"(?!\s?(?:bpm|beats|breaths|per\s+min|/\s?min|ms\b))"  # HR, RR and PR of a heart or lung
NAMED = re.compile(
    rf"""
    (?<![\w-]) (?: (?P<ratio>{_RATIOS}) | (?P<other>{_OTHERS}) ) (?![\w-])
    (?: \s*[(\[]\s*(?:{_ABBREVIATED}|MD|SMD|WMD|d|g)\s*[)\]] )?
    (?: \s*\(\d+\)(?=\s*=) )?
    (?: \s+(?:for|of|in|between)\s+(?!\d)(?:[\w-]+\s+){{0,8}}?[\w-]+
        (?=,|\s+(?:was|of|is)\b|\s*[=:]) )?
    (?: \s+per\s+\d[^;:,.=]{{1,20}}?(?=\s*[=:,]|\s+\d) )?
    (?: \s*(?:was|of|is|=|:|,)\s* | \s+(?=\d|[-−–]\d) )
    (?P<value>{_NUMBER}) {_HEART} {_SPREAD} (?P<unit>{_UNIT})? (?![\d.]*\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_STEP_WAY = (
    r"(?:increases?|increments?|rise|gain|decreases?|decrement|reduction|decline|drop|fall|higher|lower"
    r"|greater|more|fewer|less|longer|shorter|older|larger|smaller|heavier)\b"
)
_STEP_UNIT = r"(?:[-\s]?[A-Za-zµμ%°·][\w/%·^²−-]*)?(?:\s+[\w/-]+){0,2}?[-\s]+"
_DEVIATION = r"(?:SDs?|s\.d\.|standard[-\s]deviations?|units?|points?)\b"
_CAUSE = "rais|increas|lower|reduc|decreas|cut|improv|boost|extend|prolong|warm|cool|shorten"
_CAUSED = rf"(?:{_CAUSE})(?:e?s|e?d)\b[^.;,]*\bby\b"
# By how much an exposure differs, which is no effect: "each 10 nmol/l higher level".
STEP = re.compile(
    rf"""
    \b(?:per|each|every|(?:an?|one)(?=[-\s](?:[^.;,]|\d[.,]\d){{1,90}}?\b{_CAUSED}
      |[-\s][^.;]{{1,90}}\b(?:associated|linked|related|predict\w*
      |correspond\w*|correlated)\s[^.;]*(?:\b(?:lower|higher|more|less|fewer|longer|shorter|greater
      |smaller|increase|decrease|reduction|odds|risk|hazard|rate|ratio)|\d)))
    \s+(?:additional\s+|extra\s+|further\s+|one[-\s])*
    (?: (?!\d+(?:[,\s]?000)+\b|100[-,\s]+(?:person|patient|people|women|men|child|birth|live))
        \d+(?:[.,·]\d+)?(?:{_STEP_UNIT}|[-\s]+){_STEP_WAY}
      | (?:\d+(?:[.·]\d+)?[-\s]?)?{_DEVIATION}(?:(?:\s+[\w/-]+){{0,2}}?[-\s]+{_STEP_WAY})?
      | [a-z]+[-\s](?:[a-z]+[-\s])?(?:increases?|increments?|decreases?|decrement|rise)\b
    )
    | (?:\A\s*(?:if|as|where)|\bwhen)\b(?:[^.;,]|\d[.,]\d)*?\bby\s+{_NUMBER}{_UNIT}
    | \A\s*(?:by\s+)?(?:{_CAUSE})t?ing\b
      (?:(?!\b(?:{_CAUSE})(?:e?s|e?d)\b)(?:[^.;,]|\d[.,]\d))*?\bby\s+{_NUMBER}{_UNIT}
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Of what is counted, too: "by 1.3 species per year (95% CI".
_BY = re.compile(
    rf"\bby\s+(?:about\s+|approximately\s+|an?\s+(?:average|mean|median)\s+of\s+)?"
    rf"(?:{_TOLD}|a\s+factor\s+of\s+(?P<factor>{_DIGITS})(?![.\d])"
    rf"|(?P<bare>(?!(?:19|20)\d\d\b){_DIGITS})(?=\s*[(\[]\s*(?:9\d\s?%|CI|[pP]\s?[<=>])"
    r"|\s+[a-z-]+\s+(?:per|a|each)\s+(?:[a-z]+\s+){1,4}[(\[]\s*(?:9\d\s?%|CI)))"
)
# What goes before a time that is when, and no effect: "at 3 months more had".
_WHEN = "".join(
    rf"(?<!\b{one}\s)"
    for one in "at|At|after|After|for|For|over|within|in|In|during|until|than|of|by|By".split("|")  # noqa: SIM905
)
_COMPARED = (
    r"(?:lower|higher|more|less|fewer|longer|shorter|greater|smaller|larger|cooler|warmer|faster"
    r"|slower|heavier|lighter|increase|decrease|reduction|rise|fall|drop|gain|loss)\b"
)
_MORE = re.compile(
    rf"(?<![\w.,±])(?<!±\s)(?:(?!{_NUMBER}\s(?:{_TIME})\b)|{_WHEN}){_TOLD}\s+(?:[(\[][^()\[\]]*[)\]]\s+)?(?:(?:per\s+)?(?!(?:and|or|but|with|to)\b)\w+\s+)?{_COMPARED}"
)
_OF = re.compile(
    r"\b(?:increase|decrease|reduction|rise|fall|drop|gain|loss|decline|difference)"
    r"(?:\s+(?:in|between)\s+[^.;,:()\d]{1,60}?)?\s+(?:of|was)\s+"
    rf"(?:about\s+|only\s+)?{_TOLD}"
)
_LEVEL_OF = re.compile(  # how well a test does, or how frequent a thing is, with its interval
    rf"""
    \b(?P<level>sensitivity|specificity|accuracy|kappa|prevalence|incidence|AU(?:RO)?C|c[-\s]statistic
      |[LEI][CD]50)
    (?:\s*\([A-Z]+\))?(?:\s+(?:of|for)\s+(?!\d)(?:[\w-]+\s+){{0,5}}?[\w-]+(?=\s+was|\s*[=:]))?
    \s*(?:was|of|=|:|,)\s*(?P<value>{_DIGITS})(?P<unit>{_UNIT})?(?=\s*[(\[,;]\s*9\d\s?%)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LEVEL = (
    r"(?:9\d(?:\.\d)?\s?%?\s?-?\s*)?(?:CI|CrI|UI|HDI|HPD|(?:confidence|credib(?:le|ility)|uncertainty)"
    r"\s+(?:interval|limit))s?(?:\s*[(\[]\s*(?:CI|CrI|UI)s?\s*[)\]])?(?:\s*9\d(?:\.\d)?\s?%)?"
)
_END = rf"(?:\d+,\d+(?![,\d])|{_WHOLE})"
_BOUNDS = (
    rf"(?P<low>[-−–+]?{_END})(?:{_UNIT})?\s*(?:\bto\b|\band\b|,|;|-|–|−|—)\s*"
    rf"(?P<high>[-−–+]?{_END})(?P<unit>{_UNIT})?"
)
INTERVAL = re.compile(
    rf"\b{_LEVEL}\s*(?:\bwas\b|\bof\b|\bfrom\b|\bbetween\b|[,:;=(\[]|\s)*+{_BOUNDS}", re.IGNORECASE
)
# A comma stands in one of decimals: "[2, 5]" are citations.
BARE_INTERVAL = re.compile(
    rf"\s*+(?:[(\[]\s*(?:(?=-?\d*[.·]\d+[,;]\s?-?\d*[.·]\d)|(?![^)\]]*[,;]))|[,;]\s*(?=[-−\d.·]+(?:\s+to\s|[-–—])))"
    rf"{_BOUNDS}\s*[;,)\]]"
)
SIGNIFICANT = 0.05  # p values below it tell a difference, by convention
_POWER = r"10\s?\^?\s?[-−–⁻]\s?[\d⁰¹²³⁴-⁹]+"
P = re.compile(
    r"(?<![\w])[pP](?:\s?-?\s?value)?\s*(?P<sign>[=<>≤≥])\s*"
    rf"(?P<value>(?:\d(?:[.·,]\d+)?\s?[×x·*]\s?)?{_POWER}|\d(?:[.·]\d+)?[eE][-−–]?\d+|[01]?[.·,]\d+|[01]\b(?![.,·]\d))"
    r"(?!\d|\s+for\s+(?:the\s+)?(?:interaction|heterogeneity|trend))"
)
# What two groups came to, side by side: neither is the difference between them.
_SIDE_BY_SIDE = re.compile(
    rf"\d(?P<unit>{_UNIT})(?:[^.;]|\.\d){{0,80}}?\b(?:and|against|versus|vs|compared\s+(?:with|to))\b"
    r"(?:[^.;]|\.\d){0,60}?\d(?:\.\d+)?(?P=unit)"
)
_THAN = re.compile(r"\bthan\b")
# "by 12 weeks" is when, unless of what lasts or comes later.
_LASTS = re.compile(
    r"shorten|prolong|delay|exten|postpon|length|advanc|surviv|stay|duration|time|li[fv]e|latency|onset|longer"
    r"|sleep|earlier|later",
    re.IGNORECASE,
)
_IS_TIME = re.compile(rf"\s?(?:{_TIME})\Z")
CURRENCY = re.compile(r"[$€£](?=\d)")
_OF_SEVERAL = re.compile(
    r"\s+(?:for|in)\s+[^.;,()\d]{1,60}?,?\s+(?:and\s+)?\d"
)  # "1.3 for A, 1.2 for B"
_IN_TURN = re.compile(r"\brespectively\b", re.IGNORECASE)
FROM_TO = re.compile(
    r"\b(?:increas|decreas|reduc|r[io]se|f[ae]ll|improv|drop|declin|rais|lower|grew|grow|went|chang)\w*\s+"
    rf"(?:\w[\w-]*,?\s+){{0,6}}?from\s+(?P<low>{_NUMBER}){_SPREAD}(?:{_UNIT})?\s+to\s+(?P<high>{_NUMBER})",
    re.IGNORECASE,
)


def find_effect(said: str) -> re.Match[str] | None:
    """Return the effect of a sentence: one that has a name, else a change that has a unit."""
    if named := NAMED.search(said):
        return None if _OF_SEVERAL.match(said, named.end()) else named
    if _IN_TURN.search(said):
        return None
    if are_apart(said):
        return next(_find_of(said), None) or _LEVEL_OF.search(said)
    by = next((one for one in _BY.finditer(said) if not _is_when(said, one)), None)
    return by or _MORE.search(said) or _OF.search(said) or _LEVEL_OF.search(said)


def list_effects(said: str) -> list[re.Match[str]]:
    """Return all effects of a sentence in order, without those that overlap another one."""
    whole = (NAMED, _LEVEL_OF) if are_apart(said) else (NAMED, _BY, _MORE, _LEVEL_OF)
    found = [*_find_of(said), *(one for of in whole for one in of.finditer(said))]
    found.sort(key=lambda one: one.start())
    apart: list[re.Match[str]] = []
    for one in found:
        if not (one.re is _BY and _is_when(said, one)) and (
            not apart
            or one.start("value" if "value" in one.re.groupindex else 0) >= apart[-1].end()
        ):
            apart.append(one)
    return apart


def _find_of(said: str) -> Iterator[re.Match[str]]:
    """Yield changes such as "a loss of 5%", but not "the loss was 9% in A and 8% in B"."""
    pair = _find_sides(said)
    for one in _OF.finditer(said):
        if not (pair and pair.start() < one.end() and one.start("value") < pair.end()):
            yield one


def _is_when(said: str, by: re.Match[str]) -> bool:
    return bool(_IS_TIME.match(by["unit"] or "")) and not _LASTS.search(said[: by.start()])


def are_apart(said: str) -> bool:
    """Tell whether a sentence has what two groups came to, each by itself."""
    return _find_sides(said) is not None


def _find_sides(said: str) -> re.Match[str] | None:
    return None if _THAN.search(said) else _SIDE_BY_SIDE.search(mask_brackets(said))


def mask_brackets(said: str) -> str:
    """Return a text of the same length without what stands in brackets."""
    masked = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", lambda found: "_" * len(found[0]), said)
    return masked if masked == said else mask_brackets(masked)


def is_named(effect: re.Match[str]) -> bool:
    """Tell whether an effect is one that a bare interval may follow."""
    return effect.re in (NAMED, _OF)


def is_level(effect: re.Match[str]) -> bool:
    """Tell whether an effect is no comparison."""
    return effect.re is _LEVEL_OF


def is_behind(effect: re.Match[str]) -> bool:
    """Tell whether the words that say which way an effect goes end it: "5% lower"."""
    return effect.re in (_MORE, _OF)


def bounds_of(interval: re.Match[str]) -> tuple[float, float]:
    """Return the bounds of an interval, the lower first."""
    low, high = to_float(interval["low"]), to_float(interval["high"])
    return min(low, high), max(low, high)


def has_inside(bounds: tuple[float, float], value: float) -> bool:
    """Tell whether an interval holds an effect, whose sign may be told in words."""
    low, high = bounds
    return low <= value <= high or low <= -value <= high


def value_of(effect: re.Match[str]) -> str:
    """Return the number of an effect, as it is written."""
    groups = effect.groupdict()
    return groups.get("value") or groups.get("factor") or groups.get("bare") or ""


def end_of_value(effect: re.Match[str]) -> int:
    """Return where the number of an effect ends."""
    return max(
        effect.end(name) for name in ("value", "factor", "bare") if name in effect.re.groupindex
    )


def name_measure(effect: re.Match[str]) -> str:
    """Return what an effect is called in its sentence."""
    groups = effect.groupdict()
    named = groups.get("ratio") or groups.get("other") or groups.get("level") or "change"
    return " ".join(named.split())


def to_float(number: str) -> float:
    """Return a number as it is written, of any style, as a float."""
    return float(_tidy(number))


def unit_of(effect: re.Match[str]) -> str:
    """Return the unit of an effect."""
    return "fold" if effect.groupdict().get("factor") else " ".join((effect["unit"] or "").split())


def write_value(effect: re.Match[str]) -> str:
    """Write an effect with its unit."""
    unit = effect["unit"] or ("-fold" if unit_of(effect) else "")
    return f"{_tidy(value_of(effect))}{' '.join(unit.split(' '))}"


def write_interval(found: re.Match[str]) -> str:
    """Write an interval as ``low to high``."""
    return f"{_tidy(found['low'])} to {_tidy(found['high'])}{found['unit'] or ''}"


def write_p(found: re.Match[str]) -> str:
    """Write a p value, with its sign unless that is ``=``."""
    sign = "" if found["sign"] == "=" else found["sign"]
    return f"{sign}{_tidy(found['value'])}"


_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def _tidy(number: str) -> str:
    plain = re.sub(r"[−–⁻]", "-", number.translate(_RAISED)).replace(" ", "").removeprefix("+")
    plain = re.sub(r"[×x·*]?10\^?-(?=\d+\Z)", "e-", plain)
    is_large = re.fullmatch(r"-?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?", plain)
    plain = plain.replace(",", "" if is_large else ".")
    plain = re.sub(r"\A(-?)\.", r"\g<1>0.", plain.replace("·", "."))
    return f"1{plain}" if plain.startswith("e") else plain
