"""Which way an outcome goes, as rules read it: by numbers, then by words."""

import re
from typing import Literal

from deepera_graph.evidence.table.effects import (
    FROM_TO,
    SIGNIFICANT,
    is_behind,
    is_level,
    to_float,
    value_of,
)
from deepera_graph.judges.trained.direction.sides import order_sides
from deepera_graph.judges.trained.direction.wording import (
    BAD_OUTCOME,
    POLAR,
    read_question,
    sign_of,
)

Way = Literal["higher", "lower", "no difference", ""]
_COMPARATIVE = (
    r"(?:higher|lower|greater|larger|smaller|longer|shorter|faster|slower|stronger|weaker|better|worse"
    r"|more|less|fewer|different)"
)
NULL = re.compile(
    rf"""
    \b(?: (?:did|does|do|was|were|is|are|had|has|have|showed|shows|found)\s+(?:not|no)\b
        (?!\s+only) (?:\s+\w+){{0,3}}?\s*
        (?:differ|change|alter|affect|improve|reduce|increase|lower|raise|effect|associat
          |benefit|significant|influence|impact|correlat|delay|postpone|prolong|extend|shorten
          |lengthen|prevent|worsen)\w*
      | (?:was|were|is|are)\s+(?:not|no)\s+(?:\w+ly\s+)?{_COMPARATIVE}\b(?!\s+than\s+\d)
      | no\s+(?:\w+\s+){{0,2}}
        (?:effect|differences?|associations?|changes?|benefit|correlations?|different)
      | no\s+evidence\s+(?:of|for|that) | fail(?:ed|s)?\s+to
      | little\s+(?:effect|difference|evidence)
      | (?<!but\s)neither | unrelated | unaffected
      | (?:was|were|is|are|remained)\s+(?:very\s+)?
        (?:similar|equal|unchanged|comparable|the\s+same)
      | not\s+significant\w* | (?-i:NS\b|n\.s\.)
    )""",
    re.VERBOSE | re.IGNORECASE,
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
# What only tells one thing from another: "the high-dose group", "nitrogen-enriched".
_PART_OF_NAME = re.compile(
    r"\b(?!down-?reg|up-?reg|fold)[a-z]+-(?=[a-z])(?!fold|regulat)|(?<=[a-z]-)(?!fold|regulat)[a-z]+"
)
# An exposure, and no outcome: "lower with higher intake", "in people with high intake".
_OF_EXPOSURE = re.compile(
    r"(?<!associated )(?<!linked )(?<!related )(?<!correlated )(?<!, )(?<!along )(?<!result )"
    r"(?<!resulted )"
    r"\b(?:with|in|under|at|among|after|during|for|on|receiving|taking|given|consuming|eating|using"
    r"|having|fed|of)\s+(?:(?:the|an?|those|these)\s+)?"
    rf"(?:{_COMPARATIVE}|higher|high|low|highest|lowest|increased|reduced|elevated|decreased|poor)\b"
)
# ... behind what was measured there: "68.4 g m-2 (SE 7) under reduced tillage".
_VALUE_IN = re.compile(
    r"\d\s?%?(?:\s[^\W\d_][^\s,;()]{0,5}){0,3}(?:\s\([^()]*\))?\s+" + _OF_EXPOSURE.pattern
)
# What is associated with an outcome: "low income was associated with higher mortality".
_ASSOCIATED = re.compile(
    rf"\A\W*(?:the\s+)?(?:{_COMPARATIVE}|higher|high|low|highest|lowest|increased|reduced|elevated|poor)\s"
    r"[^,;()]{1,60}?\b(?=(?:was|were|is|are)\s+(?:\w+ly\s+)?(?:associated|linked|related|correlated)\b)"
)
_GUARDS = re.compile(r"\b(?:protect|effective|efficac)\w*\s+(?:against|from)\b")
_EASED = re.compile(r"\b(?:alleviat|ameliorat|reliev)\w*")
_BETTER = re.compile(
    r"\b(?P<how>improv\w*|better|worse\w*|deteriorat\w*|aggravat\w*|exacerbat\w*)"
    r"(?P<what>(?:\s+(?!(?:in|with|among|by|after|during|for|on|at|from|than|when|and)\b)[a-z-]+){0,5})"
)
# What is measured, though it is named by a word that goes up or down: "reduced grain yield".
_THING = re.compile(
    r"(?!reducti|elevati|prolongati|augmentati|accelerati|attenuati|inhibiti|suppressi|improvem"
    r"|enhancem|diminuti|eliminati|expansi|stimulati)[a-z]+(?:ity|ness|ments?|ions?|cy|cies|ives?)$"
    r"|(?:hyper|hypo|creat|interferon|toxic|advers|harm|damage|recover|benef|support|form|valid|safe"
    r"|efficac|effectiv|success|fail|excess|positives?$|negatives?$|depress|additional|extra|absen|toxi|stress"
    r"|satisf|accura|speed|stabil|product|yields?$|growth|narrow|rare|important|valuable|essential|required"
    r"|necess|appropriat|sufficien|adequa|useful|well$|up$|down$|under$|limits?$|form)"
)
_RARELY = re.compile(r"(?:gain|loss|los[te]|losing)")  # of a change, if no other word is
# An outcome, such as blood loss, unless it tells by how much.
_OF_LOSS = re.compile(r"\b(?:loss(?:es)?|gains?)\b(?!\s+of\s+\D{0,9}\d)")
_FASTER_TIME = re.compile(
    r"(?<=\btime)(s?\b[^.;,]{0,40}?)\b(?:faster|slower|quicker)\b"
)  # lower or higher
_MEASURED = re.compile(
    r"scores?|scales?|index|indices|inventory|handicap|times?|latency|levels?|pressure|glucose"
    r"|cholesterol|hba1c|lipids?|control"
)
_OF_A_WAY = re.compile(
    "test|exam|reading|math|quality|function|memory|perform|surviv|academic|motor|accura"
    f"|{BAD_OUTCOME.pattern}"
)
# Both arms changed one way: "firmness fell by 6% in coated and by 31% in uncoated apples".
_BOTH = re.compile(
    r"(?P<verb>\b(?:fell|fall(?:en|s)?|dropp?ed|declined|decreased|los[te]|lost|rose|risen|increased|gained"
    r"|grew)\b)(?:\s+by|\s+only)*\s+(?P<one>\d+(?:\.\d+)?)(?![\d.]*\s*(?:/|to\b|-|–))"
    r"(?P<first>[^;.]{1,80}?)(?:\band|\bbut|\bwhile|\bwhereas|\bversus|\bvs\.?|\bagainst|\bcompared\s+(?:with|to)|,)\s"
    r"(?P<second>[^;.]{0,60}?)(?<![\d.])(?P<other>\d+(?:\.\d+)?)(?P<rest>\s*(?:%|[a-zµ/]{1,8}\b)[^;.(]{0,40})"
)
_CONTROL = re.compile(
    r"\b(?:controls?|placebo|sham|usual|non-?\w+|un\w+ed|without|no|alone|only)\b"
)
_NEAR = 5  # words before "improved" that may say what did


def find_way(
    said: str,
    effect: re.Match[str] | None,
    bounds: tuple[float, float] | None,
    p: re.Match[str] | None,
    null: re.Match[str] | None,
    *,
    is_ratio: bool,
    question: str = "",
) -> Way:
    """Tell which way an outcome goes: by the interval and p, the ratio, then by words and sign.

    It goes that way in those whom a *question* asks about, also where they are compared with last.
    """
    value = None if effect is None else to_float(value_of(effect))
    is_signed = value is not None and (is_ratio or value < 0)
    if not _is_clear(bounds, p, centre=1.0 if is_ratio else 0.0):
        return "no difference"
    if null and not (is_signed and bounds and "significan" not in null[0].lower()):
        return _weigh(said, null)
    if question and (turned := order_sides(read_question(question), said)) != said:
        return _read_way(turned)
    if value is not None and is_signed:
        return _compare(value, 1.0 if is_ratio else 0.0)
    if effect is None and (found := FROM_TO.search(said)):
        return _compare(to_float(found["high"]), to_float(found["low"]))
    return "" if effect and is_level(effect) else _find_words(said, effect, p)


def _is_clear(
    bounds: tuple[float, float] | None, p: re.Match[str] | None, *, centre: float
) -> bool:
    """Tell whether no number says that there may be no difference."""
    holds_null = bounds is not None and min(bounds) <= centre <= max(bounds)
    return not holds_null and (
        p is None or p["sign"] not in "=>≥" or to_float(p["value"]) < SIGNIFICANT
    )


def _weigh(said: str, null: re.Match[str]) -> Way:
    """Return nothing where words of no difference stand beside others that tell a change."""
    others = _OF_EXPOSURE.sub("", said.replace(null[0], " ").lower())
    is_plain = any(one in null[0].lower() for one in ("significan", "neither"))
    return "no difference" if is_plain or not _list_signs(others) else ""


def _compare(value: float, other: float) -> Way:
    return "higher" if value > other else "lower" if value < other else "no difference"


def _find_words(said: str, effect: re.Match[str] | None, p: re.Match[str] | None) -> Way:
    """Tell which way an outcome goes by the words before its effect, or p, else by all words."""
    is_listed = "respectively" in said.lower()  # "rose by 8%, 15% and 12%, respectively"
    if effect is None and not is_listed and (both := _BOTH.search(said.lower())):
        return _compare_arms(both)
    if effect is None and p is None:
        return _read_way(said)
    if any(map(_is_open, _BETTER.finditer(said.lower()))):
        return ""
    if effect and is_behind(effect) and (way := _read_way(effect[0])):
        return way
    at = min(one.start() for one in (effect or p,) if one)
    return _read_way(said[:at]) or _read_way(said)


def _compare_arms(found: re.Match[str]) -> Way:
    """Tell which way one arm went beside its control, where both fell or both rose."""
    change, other = float(found["one"]), float(found["other"])
    before = found.string[: found.start()].rsplit(",", 1)[-1]
    if _CONTROL.search(f"{before} {found['first']}"):
        if _CONTROL.search(f"{found['second']} {found['rest']}"):
            return ""
        change, other = other, change
    elif not _CONTROL.search(f"{found['second']} {found['rest']}"):
        return ""
    is_rise = found["verb"].startswith(("r", "inc", "g"))
    return _compare(change, other) if is_rise else _compare(other, change)


def _tell_later(found: re.Match[str]) -> str:
    """Return ``higher`` for a verb that makes a time longer, nothing for a noun or adjective."""
    before = found["before"] or ""
    is_named = (
        (not found["before"] and not found["gap"])
        or before in _NAMED_LATER
        or sign_of(before) in POLAR
        or found["other"]
    )
    return f"{before} {'' if is_named else 'higher'} "


def _find_bettered(found: re.Match[str]) -> list[str]:
    """Return the words of what gets better."""
    return found["what"].split() or found.string[: found.start()].split()[-_NEAR:]


def _is_open(found: re.Match[str]) -> bool:
    """Tell whether what gets better may be better the less there is: "scores improved"."""
    what = _find_bettered(found)
    return any(map(_MEASURED.fullmatch, what)) and not any(map(_OF_A_WAY.match, what))


def _tell_better(found: re.Match[str]) -> str:
    """Return what gets better as ``lower`` if it is bad to have: "improved pain"."""
    is_bad = any(map(BAD_OUTCOME.match, _find_bettered(found)))
    is_better = found["how"].startswith(("improv", "better"))
    return f"{'lower' if is_better == is_bad else 'higher'}{found['what']}"


def _read_way(said: str) -> Way:
    """Return the way of the words that go up or down; nothing where none does, or both ways."""
    said = _LATER.sub(_tell_later, _DELAY_OF.sub(" higher", _FALLS.sub(r"\1", said.lower())))
    said = _ASSOCIATED.sub("", _OF_LOSS.sub("", _FASTER_TIME.sub("", said)))
    said = re.sub(r"\b(down|up)-(?=regulat)", r"\1", said)
    said = _EASED.sub("lower", _GUARDS.sub("lower", _PART_OF_NAME.sub("", said)))
    said = _VALUE_IN.sub("", _BETTER.sub(_tell_better, said))
    signs = (
        _list_signs(_OF_EXPOSURE.sub("", said)) or _list_signs(said) or _list_signs(said, rare=True)
    )
    ways = {POLAR[one] > 0 for one in signs}
    return "" if len(ways) != 1 else "higher" if ways.pop() else "lower"


def _list_signs(said: str, *, rare: bool = False) -> list[str]:
    """Return the signs of words that tell a change, or of those that do so rarely."""
    return [
        sign
        for word in _WORD.findall(said)
        if (sign := sign_of(word)) in POLAR
        and (_RARELY.match(word) if rare else not (_THING.match(word) or _RARELY.match(word)))
    ]
