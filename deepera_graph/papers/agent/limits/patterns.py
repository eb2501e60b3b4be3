"""The patterns by which the limits of a question are found; their words are in `words.toml`."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from deepera_graph.text.plain import read_lists
from deepera_graph.text.words import stems

WORDS: Mapping[str, Any] = read_lists(__file__, "words.toml")


GAP = "\x1f"  # stands where a limit was taken out, as a phrase does not go on over it
PLAIN_MARKS = str.maketrans(
    {"’": "'", "‘": "'", "–": "-", "—": "-", "≥": ">=", "≤": "<=", GAP: " "}
)
BOUNDARY = rf"(?:^|[,;:(]|(?<=[.?!)])|(?<=\s)--?(?=\s)|{GAP})"
ONSET = r"(?<!\s)(?!\B\w)"  # not within a word, nor after the space from which a match would begin
CLOSES = rf"(?=\s*(?:$|[,;:.?!()]|--?\s|{GAP}))"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of these, the longest first; nothing, of none."""
    # It looks at the first letter before it tries those that begin with it, as most words of a text
    # begin none.
    ordered = sorted(words, key=lambda one: (-len(one), one))
    by_letter: dict[str, list[str]] = {}
    for one in ordered:
        by_letter.setdefault(one[0], []).append(_behind_first(one))
    tried = (f"{_first(letter)}(?:{'|'.join(by_letter[letter])})" for letter in by_letter)
    letters = "".join(sorted(map(re.escape, by_letter)))
    return f"(?=[{letters}])(?:{'|'.join(tried)})" if ordered else ""


def _first(letter: str) -> str:
    return rf"\b{letter}" if letter.isalnum() else re.escape(letter)


def _behind_first(phrase: str) -> str:
    body = r"\s+".join(map(re.escape, f"x{phrase[1:]}".split()))[1:]
    return rf"{body}\b" if phrase[-1].isalnum() else body


Span = tuple[int, int]


class NearWords(NamedTuple):
    """What stands in all that a pattern finds: it is looked for around that alone."""

    signs: "Sequence[str | re.Pattern[str]]"  # one of them is in every find; in lower case
    before: int  # characters from the beginning of a find to the sign, as many as any limit has
    after: int  # characters behind the sign from which it is plain that something is found

    def spans(self, text: str) -> list[Span]:
        """Return where in a text in lower case finds may begin and end; those that meet as one."""
        found = sorted(place for one in self.signs for place in _find_all(text, one))
        return join_spans((max(start - self.before, 0), end + self.after) for start, end in found)


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Return spans, which are in order, with those that meet as one."""
    joined: list[Span] = []
    for span in spans:
        if joined and span[0] <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(span[1], joined[-1][1]))
        else:
            joined.append(span)
    return joined


def _find_all(text: str, sign: "str | re.Pattern[str]") -> Iterator[Span]:
    if isinstance(sign, re.Pattern):
        yield from (one.span() for one in sign.finditer(text))
        return
    at = text.find(sign)
    while at >= 0:
        yield at, at + len(sign)
        at = text.find(sign, at + 1)


_WHOLE = 1 << 30  # a find may go from one end of a text to the other
LISTS = WORDS["years"]
NUMBERS: Sequence[str] = LISTS["numbers"]
YEAR_WORDS: Mapping[str, int] = LISTS["words"]
YEAR = (
    rf"(?=[12'{''.join(one[0] for one in YEAR_WORDS)}])"
    rf"((?:19|20)\d0'?s|(?:19|20)\d\d(?!s)|'[5-9]0s|(?:{'|'.join(YEAR_WORDS)}))(?!\w|-[A-Za-z])"
)
THE = r"(?:the\s+)?(?:(?:years?|end of)\s+)?(?:the\s+)?"
LEAD = (
    rf"(?:{ONSET},?\s*(?:\b(?:and|but)\s+)?(?:(?:{any_of(WORDS['limits']['only'])})\s+)?"
    rf"(?:(?:{any_of(LISTS['deeds'])})\s+)?)"
)
# "2012 on" is a range at the end of what is said; "2012 on wax" goes on with the topic.
OR_LATER = rf"{any_of(LISTS['or_later'])}|on(?=\s*(?:[.,;:!?)]|$))"
TO_YEAR = rf"\s*(?:-|\bto\b|\bthrough\b|\band\b|\buntil\b|\btill\b|\bor\b)\s*{THE}"


def years(names: str, tail: str = "") -> "re.Pattern[str]":
    """Return the pattern of a year behind words of a list."""
    words = any_of(LISTS[names])
    return re.compile(rf"{LEAD}(?:{words})\s*{THE}{YEAR}{tail}", re.I)


Pick = Callable[[Sequence[Span]], int]
RANGE = ((lambda spans: min(one[0] for one in spans)), (lambda spans: max(one[1] for one in spans)))
YEARS: tuple[tuple["re.Pattern[str]", Pick | None, Pick | None], ...] = (
    (
        re.compile(
            rf"{ONSET},?\s*(?:(?:and|but)\s+)?(?:{any_of(LISTS['without'])})\s+"
            rf"(?:(?:those|papers|ones?|the|edition|year|published|from|in|of)\s+)*{YEAR}",
            re.I,
        ),
        None,
        None,
    ),
    (
        re.compile(
            rf"{LEAD}(?:{any_of(LISTS['within'])})\s+{THE}{YEAR}{TO_YEAR}{YEAR}"
            r"(?:\s+inclusive)?",
            re.I,
        ),
        *RANGE,
    ),
    (
        re.compile(
            rf"(?:(?:{any_of(LISTS['deeds'])})\s+|{BOUNDARY}\s*|(?-i:(?<=[A-Z]{{3}}))\s+)"
            rf"(?:(?:{any_of(WORDS['limits']['only'])})\s+)?{YEAR}{TO_YEAR}{YEAR}{CLOSES}",
            re.I,
        ),
        *RANGE,
    ),
    (years("from", rf"(?:\s+(?:{OR_LATER}))?"), lambda one: one[0][0], None),
    (years("to"), None, lambda one: one[0][1]),
    (years("after"), lambda one: one[0][1] + 1, None),
    (years("before"), None, lambda one: one[0][0] - 1),
    (
        re.compile(rf"{LEAD}(?:(?:from|in)\s+)?{THE}{YEAR}(?:\+|\s*(?:{OR_LATER}))", re.I),
        lambda one: one[0][0],
        None,
    ),
    (
        re.compile(
            rf"{LEAD}(?:(?:from|in|until|by)\s+)?{THE}{YEAR}\s+(?:{any_of(LISTS['or_earlier'])})",
            re.I,
        ),
        None,
        lambda one: one[0][1],
    ),
    (  # set apart at the end: "..., in 2012?", "..., 2012 only"
        re.compile(
            rf"[,;]\s*(?:only\s+)?(?:(?:in|of)\s+{YEAR}(?:\s+only)?|{YEAR}\s+only)"
            rf"(?=[\s,;.?!{GAP}]*(?:$|(?:no|not|excluding|except|without)\b))",
            re.I,
        ),
        *RANGE,
    ),
    (  # "published in 2012 on wax"
        re.compile(
            rf"{ONSET},?\s*(?:{any_of(LISTS['deeds'])})\s+(?:(?:in|from)\s+)?{THE}{YEAR}"
            r"(?=\s+(?:on|about|that|which|concerning|regarding)\s)",
            re.I,
        ),
        *RANGE,
    ),
    (  # a decade, or a year in which it was published: "deaths in 2020" is a topic
        re.compile(
            rf"(?:{LEAD}(?:in|from|during|of)\s+{THE}(?=\S+s\b)|{BOUNDARY}\s*(?:the\s+)?(?=\S+s\b)"
            rf"|(?:{ONSET},?\s*(?:{any_of(LISTS['deeds'])})\s+(?:in\s+|from\s+)?))"
            rf"{YEAR}(?:\s+(?:or|and)\s+{THE}{YEAR})?{CLOSES}",
            re.I,
        ),
        *RANGE,
    ),
)
NEAR_YEARS = NearWords(
    [re.compile(r"(?:19|20)\d\d"), re.compile(r"'[5-9]0s"), *YEAR_WORDS], 100, 40
)
COUNT = rf"(?P<n>\d{{1,2}}|{'|'.join(NUMBERS)})"
AGES = (
    (
        re.compile(
            rf"{LEAD}\b(?:no|not)\s+(?:more|older)\s+than\s+{COUNT}\s+(?P<unit>years|decades)(?:\s+old)?\b",
            re.I,
        ),
        0,
    ),
    (
        re.compile(
            rf"{LEAD}\b(?:(?:in|of|from|within|over|during)\s+)?(?:the\s+)?(?:{any_of(LISTS['last'])})"
            rf"\s+(?:{COUNT}\s+)?(?P<unit>years?|decades?)(?:\s+of\s+(?:literature|research|work))?\b"
            r"(?:\s+only)?",
            re.I,
        ),
        1,
    ),
    (re.compile(rf"{LEAD}(?:\b(?:in|from)\s+)?\bthis\s+(?P<n>)(?P<unit>year)\b", re.I), 0),
)
NEAR_AGES = NearWords(["year", "decade"], 80, 40)
NAME = r"((?:[A-Z][\w&+.-]*)(?:(?:,\s*|\s+(?:or|and|nor)\s+(?:at\s+)?|\s+)[A-Z][\w&+.-]*)*)"
NOT_AT = re.compile(
    ONSET
    + r",?\s*(?:\b(?:and|but)\s+)?\b(?:[Nn]ot|[Ee]xcluding|[Ee]xcept(?:\s+for)?|[Ll]eaving out"
    r"|[Ww]ithout)\s+(?:those\s+|papers\s+|ones\s+|work\s+)?(?:(?:published|presented)\s+)?(?:at|from)\s+"
    + NAME
)
ONLY_AT = re.compile(
    ONSET
    + r",?\s*(?:\b(?:and|but)\s+)?\b[Oo]nly\s+(?:those\s+|papers\s+)?(?:published\s+)?"
    + r"(?:at|in|from)\s+"
    + NAME
)
NEAR_NOT_AT = NearWords(["not", "excluding", "except", "leaving out", "without"], 30, 60)
NEAR_ONLY = NearWords([one.split()[0] for one in WORDS["limits"]["only"]] + ["alone"], 200, 80)


def venue_patterns(venues: Iterable[str]) -> Iterator["re.Pattern[str]"]:
    """Yield how known venues are asked for: "at A or B", "published in A", "A papers", "A only"."""
    if not (known := any_of(venues)):
        return
    some = rf"((?:{known})(?:(?:\s*,\s*|\s*,?\s+(?:or|and)\s+)(?:(?:at|in)\s+)?(?:{known}))*)"
    deed = r"(?:published|presented|appeared|appearing)"
    yield re.compile(rf"{ONSET},?\s*(?:\b{deed}\s+)?\bat\s+(?:the\s+)?(?i:{some})")
    yield re.compile(rf"{ONSET},?\s*\b(?:{deed}|papers|articles)\s+(?:in|from)\s+(?:the\s+)?{some}")
    yield re.compile(rf"{some}\s+(?:only|alone|papers|articles)\b")
    yield re.compile(rf"{BOUNDARY}\s*(?:(?:only|in|from)\s+)*{some}{CLOSES}")


_SIZES = WORDS["sizes"]
_N = r"\d[\d,]*"
_BOUND = rf"(?:(?:{any_of(_SIZES['bounds'])})\s*{_N}|{_N}\s*(?:{any_of(_SIZES['or_more'])}))"
SIZE = re.compile(
    rf"(?<![\w.,])(?:{_BOUND}\s+(?:[a-z-]+\s+)?(?:{any_of(_SIZES['members'])})"
    rf"|(?:{any_of(_SIZES['studies'])})\s+(?:{any_of(_SIZES['links'])})\s+{_BOUND}"
    rf"\s+(?:[a-z-]+\s+)?(?:{any_of(_SIZES['others'])})"
    rf"|(?:{any_of(_SIZES['names'])})\s*(?:(?:of|is)\s+)?{_BOUND}(?![\w%.]))",
    re.I,
)


CUES = WORDS["cues"]
MANY = {kind: said["names"][1] for kind, said in WORDS["types"].items()}  # "reviews" of "review"
TYPE_NAMES = {name: kind for kind, said in WORDS["types"].items() for name in said["names"]}
TYPES = {tuple(stems(name)): kind for name, kind in TYPE_NAMES.items()}
_TYPE = rf"(?:{any_of(TYPE_NAMES)})"
SOME_TYPES = rf"(?P<types>{_TYPE}(?:(?:\s*,\s*|\s+)(?:(?:and|or)\s+)?{_TYPE})*)"
ONLY_TYPES = (
    re.compile(rf"\b(?:{any_of(WORDS['limits']['only'])})\s+{SOME_TYPES}(?![\w-])", re.I),
    re.compile(rf"(?<![\w-]){SOME_TYPES}\s+(?:only|alone)\b", re.I),
)
_STUDIES = (
    rf"(?:{any_of(WORDS['limits']['studies'])})(?:\s+(?:in|of|on|with|from)(?:\s+[\w-]+){{1,3}})?"
)
ONLY_OTHERS = re.compile(
    rf"{BOUNDARY}\s*(?:(?:and|but|in|from|with)\s+)*(?P<said>(?:{any_of(WORDS['limits']['only'])})\s+"
    rf"(?:[\w'-]+,?\s+){{0,5}}?{_STUDIES}|(?:[\w'-]+\s+){{0,4}}{_STUDIES}\s+(?:only|alone)){CLOSES}",
    re.I,
)
THING = r"(?P<keep>[^,.;?]+)"
TWICE = re.compile(
    ONSET + r",?\s*\b(?:but\s+)?(?:(?:do|does|did|is|are|can|could)?\s*not|never)\s+"
    r"(?:(?:do|work|go|operate|function|be\s+done)\s+)?(?:without|exclud(?:e|ing)|lack(?:ing)?|avoid(?:ing)?)\s+"
    + THING,
    re.I,
)
# The words of "not without", which each text that has it must have so.
IS_TWICE = re.compile(
    r"(?:not|never)\s+(?:(?:do|work|go|operate|function|be\s+done)\s+)?"
    r"(?:without|exclud(?:e|ing)|lack(?:ing)?|avoid(?:ing)?)\s"
)
USE = any_of(CUES["use"])
NEVER = rf"(?!\s*(?:{any_of(CUES['never'])}))"
LEAD_IN = rf"(?:,?\s*(?:\b(?:{any_of(CUES['lead'])})\s+){{0,5}})"  # more would be quadratic
EXCLUDING = re.compile(
    rf"{ONSET}{LEAD_IN}(?:(?:\b(?:whose|that|which|and)\s+(?:own\s+)?"
    rf"(?:(?!(?:but|yet)\b)\w+\s+){{0,2}}?)?"
    rf"\b(?:do|does|did)\s*n(?:o|')t\s+(?:{USE})"
    rf"|(?<!with and )(?<!with or )(?:{any_of(CUES['anywhere'])}){NEVER}"
    rf"|(?P<soft>{any_of(CUES['soft'])}))"
    rf"|(?:{BOUNDARY}|\b(?:but|and|yet|that|which|please)\b)\s*{LEAD_IN}"
    rf"(?:{any_of(CUES['clause'])})(?=\s){NEVER}"
    rf"|(?:{any_of(CUES['place'])})\s+(?-i:(?=[A-Z]))",
    re.I,
)
AFTER = re.compile(
    rf"(?:[,;:(]|(?<=[.?!])|{GAP})\s*(?P<said>[^,;:.?!(){GAP}]+?)\s+(?:{any_of(CUES['after'])}){CLOSES}"
    rf"|^(?P<first>[^,;:.?!(){GAP}]+?)\s+(?:{any_of(CUES['after'])})(?=\s*[,;:])",
    re.I,
)


def _sign_of(cue: str) -> str:
    """Return the word of a cue that the fewest texts have: "not" or "no", else the longest."""
    words = cue.lower().split()
    negation = (one for one in words if one in ("not", "no") or "n't" in one)
    return next(negation, max(words, key=len))


_SIGNS = {_sign_of(one) for name in ("anywhere", "soft", "clause", "place") for one in CUES[name]}
_NO = re.compile(r"no[rt]?\b(?:(?<=\bno)|(?<=\bno[rt]))")
NEAR_EXCLUDING = NearWords([_NO, "n't", *sorted(_SIGNS - {"no", "nor", "not"})], 120, 60)
NEAR_AFTER = NearWords(sorted({max(one.split(), key=len) for one in CUES["after"]}), 400, 60)
# Before and behind a limit that stands apart from what is asked: "..., since 2015, no reviews?"
APART_BEFORE = re.compile(rf"(?:[,;:(.?!]|{GAP}|\s--?)\s*$")
_LEADS = [*LISTS["deeds"], "excluding", "excl.", "except", "leaving out"]
APART = re.compile(rf"\s*[,;:({GAP}]|,?\s*(?:{any_of(_LEADS)})", re.I)
BARE_YEARS = re.compile(
    r"\W*[12]\d{3}\W*(?:(?:to|through|and|until|till|or)\W*)?[12]\d{3}\W*", re.I
)
ENDS_APART = re.compile(
    rf"[\s,;:.?!()&{GAP}-]*(?:$|(?:(?:and|but)\s+)?(?:"
    + any_of(
        [
            *(one for name in ("anywhere", "clause") for one in CUES[name]),
            *(one for name in ("deeds", "from", "after", "to", "before") for one in LISTS[name]),
            *WORDS["limits"]["only"],
            *TYPE_NAMES,
            "please",
        ]
    )
    + "))",
    re.I,
)
BREAKS = any_of(
    [
        *CUES["anywhere"],
        *CUES["clause"],
        *LISTS["deeds"],
        "only",
        "at",
        "in",
        "that",
        "which",
        "with",
    ]
)
ITEM = (
    rf"(?!{BREAKS})(?:(?!(?:and|or|nor)\b)[\w'/+.-]+)(?:\s+(?!(?:and|or|nor)\b)[\w'/+.-]+){{0,4}}"
)
LIST = re.compile(rf"\s*{ITEM}(?:\s*,\s*{ITEM})+\s*,?\s+(?:and|or|nor)\s+", re.I)
END = re.compile(
    rf"[.;?!:)](?:\s|$)|\)|,|\s--?\s|{GAP}"
    r"|\s+(?:but|and)\s+(?=(?:not|no|without|excluding|only|published|are|is|that|which)\b)"
    r"|\s+and\s+(?=[a-z]+s\s+(?:on|in|with|over|from|the|a)\b)|\s+(?=(?:published|nor)\b)",
    re.I,
)
PHRASES = WORDS["phrases"]
CLAUSE = re.compile(any_of(PHRASES["verbs"]), re.I)
JOINED = re.compile(any_of(PHRASES["joined"]), re.I)
LEADING = re.compile(
    rf"^(?!{any_of(PHRASES['kept'])})(?:(?:{any_of(PHRASES['nouns'])})\s+"
    rf"(?=(?:{any_of(PHRASES['leading'])})\s)|(?:{any_of(PHRASES['leading'])})\s+)",
    re.I,
)
HANGS = re.compile(any_of(PHRASES["hanging"]), re.I)
TRAILING = re.compile(rf"(?:\s+(?:{any_of(PHRASES['trailing'])})|-based)$", re.I)
END_OF_B = r"(?=\s+(?:in|for|on|at|when|under)\b|[?.,;]|$)"
AHEAD = (
    r"(?:outperform(?:s|ed|ing)?|beat(?:s|ing)?|surpass(?:es|ed|ing)?|exceed(?:s|ed|ing)?"
    r"|(?:is|are|was|were|works?|performs?|does|do)\s+better\s+than|superior\s+to)"
)
DIRECTIONS = (
    (
        NearWords(
            [re.compile(r"(?:better|higher|stronger)\s+(?:result|score|perf|accu)")], _WHOLE, _WHOLE
        ),
        re.compile(
            rf"\b(?:better|higher|stronger)\s+(?:results?|scores?|performance|accuracy)\s+(?:for|with|of|by)"
            rf"\s+(.+?)\s+than\s+(?:for\s+|with\s+|of\s+|by\s+)?(.+?){END_OF_B}",
            re.I,
        ),
        1,
        2,
    ),
    (
        NearWords(
            [re.compile(r"outperf|beat|surpass|exceed|better\s+than|superior\s+to")], _WHOLE, _WHOLE
        ),
        re.compile(
            r"\b(?:that|where|which|show|showing|whether)\s+(?:that\s+)?([\w -]+?)"
            rf"\s+{AHEAD}\s+(.+?){END_OF_B}",
            re.I,
        ),
        1,
        2,
    ),
)
