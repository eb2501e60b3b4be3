"""The rules by which the limits of a question are read; their words are in `limits.toml`.

A phrase after "excluding", "not", "without", "other than" and the like is no keyword with another
sign: it is kept apart from the topic, so that it is not searched for, and a paper is held against
it. Two negations ask for the thing. A limit that is taken out leaves a gap, which ends a phrase.

Source:
    Rules of ours. That systems of today take "not X" for a keyword is a finding of the ScholarQuest
    study; its later leaderboard has no system above .163 nDCG@50 on questions with limits.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any

from deepera_graph.papers.agent.constraints import Limits
from deepera_graph.text.words import stems

WORDS: Mapping[str, Any] = tomllib.loads(
    files(__package__).joinpath("limits.toml").read_text(encoding="utf-8")
)


def read_limits(
    question: str, *, as_of: str = "", venues: Sequence[str] = (), year: int | None = None
) -> Limits:
    """Read the limits of a question by rules.

    Args:
        question: What is asked.
        as_of: Date of asking, which "the last five years" are counted from: ``2025`` or longer.
        venues: Those of the base: "only at X" is a venue only if it is one of them, or if it is
            written like one.
        year: The year of asking, if *as_of* is empty.
    """
    text = " ".join(question.translate(_PLAIN_MARKS).split())
    asked = int(as_of[:4]) if as_of[:4].isdigit() else year
    reading = _Reading(text, asked, venues)
    reading.read()
    return reading.limits(question)


_GAP = "\x1f"  # stands where a limit was taken out, as a phrase does not go on over it
_PLAIN_MARKS = str.maketrans(
    {"’": "'", "‘": "'", "–": "-", "—": "-", "≥": ">=", "≤": "<=", _GAP: " "}
)
_BOUNDARY = rf"(?:^|[,;:(]|(?<=[.?!)])|(?<=\s)--?(?=\s)|{_GAP})"
_CLOSES = rf"(?=\s*(?:$|[,;:.?!()]|--?\s|{_GAP}))"


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of these, the longest first."""
    return "|".join(map(_one_of, sorted(words, key=lambda one: (-len(one), one))))


def _one_of(phrase: str) -> str:
    body = r"\s+".join(map(re.escape, phrase.split()))
    first, last = (r"\b" if end.isalnum() else "" for end in (phrase[0], phrase[-1]))
    return f"{first}{body}{last}"


class _Reading:
    """A question while its limits are taken out of it, one kind after the other."""

    def __init__(self, text: str, asked: int | None, venues: Sequence[str]) -> None:
        self._text, self._asked = text, asked
        self._venues = {one.casefold(): one for one in venues}
        self._from: list[int] = []
        self._to: list[int] = []
        self._not_years: list[int] = []
        self._only: list[str] = []
        self._not_venues: list[str] = []
        self._types: list[str] = []
        self._not_types: list[str] = []
        self._exclude: list[str] = []
        self._contrasts: list[str] = []  # words of the question that are searched for all the same
        self._notes: list[str] = []
        self._better: tuple[str, ...] = ()

    def read(self) -> None:
        """Take out all limits."""
        self._text = _TWICE.sub(lambda found: f" {found['keep']} ", self._text)
        self._read_direction()
        self._read_years()
        self._read_types()
        self._read_venues()
        self._read_exclusions()

    def limits(self, question: str) -> Limits:
        """Return what was read."""
        topic = _tidy(self._text)
        is_topic = {one for one in self._exclude if set(stems(one)) <= set(stems(topic))}
        self._notes += [
            f"{one!r} is what is asked for, and is not left out" for one in sorted(is_topic)
        ]
        contrasts = [one for one in self._contrasts if _bare(one) not in is_topic]
        topic = " ".join([topic.rstrip(" .?!"), *contrasts]) if contrasts else topic
        return Limits(
            question=question,
            topic=topic or " ".join(question.split()),
            exclude=tuple(dict.fromkeys(one for one in self._exclude if one not in is_topic)),
            year_from=max(self._from, default=None),
            year_to=min(self._to, default=None),
            not_years=tuple(dict.fromkeys(self._not_years)),
            venues=tuple(dict.fromkeys(self._only)),
            not_venues=tuple(dict.fromkeys(self._not_venues)),
            types=tuple(dict.fromkeys(self._types)),
            not_types=tuple(dict.fromkeys(self._not_types)),
            better=self._better,
            notes=tuple(self._notes),
        )

    def _take(self, pattern: "re.Pattern[str]") -> Iterator["re.Match[str]"]:
        """Yield the matches of a pattern, and take them out of the text."""
        while found := pattern.search(self._text):
            self._text = f"{self._text[: found.start()]} {_GAP} {self._text[found.end() :]}"
            yield found

    def _read_direction(self) -> None:
        for pattern, first, second in _DIRECTIONS:
            if found := pattern.search(self._text):
                self._better = (_bare(found[first]), _bare(found[second]))
                return

    def _read_years(self) -> None:
        for pattern, add in _AGES:
            for found in self._take(pattern):
                self._count_back(found, add)
        for pattern, low, high in _YEARS:
            for found in self._take(pattern):
                spans = [_span(one) for one in found.groups() if one]
                if low is not None:
                    self._from.append(low(spans))
                if high is not None:
                    self._to.append(high(spans))
                if low is None and high is None:
                    self._not_years += range(spans[0][0], spans[0][1] + 1)

    def _count_back(self, found: "re.Match[str]", add: int) -> None:
        """Read "the last five years" and the like."""
        if self._asked is None:
            self._notes.append(f"{found[0].strip(' ,')!r} needs a date of asking")
            return
        n = _number(found["n"]) * (10 if found["unit"].lower().startswith("decade") else 1)
        self._from.append(self._asked - n + add)
        if found["unit"].lower() == "year":  # the last year is a year, this year is another
            is_last = not found[0].lower().strip(" ,").endswith("this year")
            self._from[-1] = self._asked - is_last
            self._to.append(self._asked - is_last)

    def _read_types(self) -> None:
        for pattern in _ONLY_TYPES:
            for found in self._take(pattern):
                self._types += [_TYPES[tuple(stems(one))] for one in split_phrases(found["types"])]

    def _read_venues(self) -> None:
        for found in self._take(_NOT_AT):
            self._not_venues += self._names(found[1])
        for pattern in (_ONLY_AT, *_venue_patterns(self._venues.values())):
            for found in self._take(pattern):
                self._only += self._names(found[1])

    def _names(self, text: str) -> list[str]:
        whole = text.strip(" .,?")
        if whole.casefold() in self._venues:
            return [self._venues[whole.casefold()]]
        parts = [
            one.strip(" .,?")
            for one in re.split(
                r",\s*(?:(?:or|and)\s+)?|\s+(?:or|and|nor)\s+(?:at\s+|in\s+)?", whole
            )
        ]
        return [self._venues.get(one.casefold(), one) for one in parts if one]

    def _read_exclusions(self) -> None:
        for pattern in (_AFTER, _EXCLUDING):
            at = 0
            while found := pattern.search(self._text, at):
                said, end = _said(found, self._text)
                at = found.end()
                if _is_limit(said, found[0]):
                    self._leave_out(said)
                    at = found.start()
                    self._text = f"{self._text[:at]} {_GAP} {self._text[end:]}"
                    if found.groupdict().get("soft"):
                        self._contrasts.append(" ".join(said.split()))

    def _leave_out(self, said: str) -> None:
        """Tell kinds of documents and venues from what a paper is about."""
        for one in split_phrases(said):
            if (kind := _TYPES.get(tuple(stems(one)))) is not None:
                self._not_types.append(kind)
            elif one.casefold() in self._venues:
                self._not_venues.append(self._venues[one.casefold()])
            else:
                self._exclude.append(one)


def split_phrases(text: str) -> list[str]:
    """Return what a list leaves out, a phrase each.

    "Search and rescue" is one, and so is what hangs on a preposition: "speech against A and B".
    """
    kept = _JOINED.sub(lambda found: found[0].replace(" ", _GAP), _bare(text))
    parts = re.split(r"\s*,\s*(?:(?:and|or|nor)\s+)?|\s+(?:nor|or)\s+(?!similar)", kept)
    parts = [each for one in parts for each in _split_and(one)]
    return [bare for one in parts if (bare := _bare(one.replace(_GAP, " ")))]


def _split_and(text: str) -> list[str]:
    parts = re.split(r"\s+and\s+", text)
    return [text] if _HANGS.search(_bare(parts[0])) else parts


def _bare(text: str) -> str:
    """Return a phrase without the words that lead to it."""
    text = text.strip(" .,;:?!()")
    before = None
    while before != text:
        before, text = text, _LEADING.sub("", text).strip()
        text = _TRAILING.sub("", text).strip(" .,;:?!()") or text
    return text


def _tidy(text: str) -> str:
    """Return what is left of a question without the holes and marks of what was taken out."""
    text = re.sub(rf"\(\s*(?:[{_GAP},;\s]*)\)", " ", text)
    text = re.sub(rf"{_GAP}|\s+please\b|^please\s", " ", text, flags=re.I)
    text = " ".join(text.split())
    text = re.sub(r"\(\s*[,;]*\s*|\s*[,;]*\s*\)", lambda found: found[0].strip(" ,;"), text)
    text = re.sub(r"\s+([,.?!;:)])", r"\1", text)
    text = re.sub(r"(?:[,;:]\s*)+(?=[,;:.?!]|$)", "", text)
    text = re.sub(r"(?<=[.?!])[.,;]+", "", text)  # of a sentence that was a limit as a whole
    text = re.sub(r"(?:\s+(?:and|but|--?|\())+(?=\s*(?:$|[.?!]))|^(?:and|but)\s+", "", text)
    return re.sub(r"^[\s,;:.?!)-]+|[\s,;:-]+$", "", text)


def _said(found: "re.Match[str]", text: str) -> tuple[str, int]:
    """Return what is left out, and where it ends: at the next mark, or after a list with commas."""
    if found.re is _AFTER:
        return found["said"] or found["first"], found.end()
    listed = _LIST.match(text, found.end())
    end = _END.search(text, listed.end() if listed else found.end())
    at = end.start() if end else len(text)
    return text[found.end() : at], at


def _is_limit(said: str, cue: str) -> bool:
    """Whether this is a thing, and not a clause of the question: "without lowering the rate"."""
    phrases = split_phrases(said)
    if cue.lower().endswith("without") and re.match(r"\s*\w+ing\s+\w", said):
        return bool(phrases) and _bare(said) != said.strip() and not _CLAUSE.search(said)
    return bool(phrases) and not any(
        len(one.split()) > _PHRASES["most"] or _CLAUSE.search(one) for one in phrases
    )


Span = tuple[int, int]


def _span(word: str) -> Span:
    """Return the first and last year of ``2015``, ``2010s``, ``'90s`` or ``nineties``."""
    low = word.lower().strip("'")
    if low in _YEAR_WORDS:
        return _YEAR_WORDS[low], _YEAR_WORDS[low] + 9
    digits = re.sub(r"\D", "", low)
    year = int(digits) if len(digits) == 4 else 1900 + int(digits)
    return (year, year + 9) if low.endswith("s") else (year, year)


def _number(text: str | None) -> int:
    if not text:
        return 1
    return int(text) if text.isdigit() else _NUMBERS.index(text.lower()) + 1


_LISTS = WORDS["years"]
_NUMBERS: Sequence[str] = _LISTS["numbers"]
_YEAR_WORDS: Mapping[str, int] = _LISTS["words"]
_YEAR = (
    rf"((?:19|20)\d0'?s|(?:19|20)\d\d(?!s)|'[5-9]0s|(?:{'|'.join(_YEAR_WORDS)}))(?!\w|-[A-Za-z])"
)
_THE = r"(?:the\s+)?(?:(?:years?|end of)\s+)?(?:the\s+)?"
_LEAD = (
    rf"(?:,?\s*(?:\b(?:and|but)\s+)?(?:(?:{any_of(WORDS['limits']['only'])})\s+)?"
    rf"(?:(?:{any_of(_LISTS['deeds'])})\s+)?)"
)
_TO_YEAR = rf"\s*(?:-|\bto\b|\bthrough\b|\band\b|\buntil\b|\btill\b|\bor\b)\s*{_THE}"


def _years(names: str, tail: str = "") -> "re.Pattern[str]":
    words = any_of(_LISTS[names])
    return re.compile(rf"{_LEAD}(?:{words})\s*{_THE}{_YEAR}{tail}", re.I)


Pick = Callable[[Sequence[Span]], int]
_RANGE = (
    (lambda spans: min(one[0] for one in spans)),
    (lambda spans: max(one[1] for one in spans)),
)
_YEARS: tuple[tuple["re.Pattern[str]", Pick | None, Pick | None], ...] = (
    (
        re.compile(
            rf",?\s*(?:(?:and|but)\s+)?(?:{any_of(_LISTS['without'])})\s+"
            rf"(?:(?:those|papers|ones?|the|edition|year|published|from|in|of)\s+)*{_YEAR}",
            re.I,
        ),
        None,
        None,
    ),
    (
        re.compile(
            rf"{_LEAD}(?:{any_of(_LISTS['within'])})\s+{_THE}{_YEAR}{_TO_YEAR}{_YEAR}"
            r"(?:\s+inclusive)?",
            re.I,
        ),
        *_RANGE,
    ),
    (
        re.compile(
            rf"(?:(?:{any_of(_LISTS['deeds'])})\s+|{_BOUNDARY}\s*|(?-i:(?<=[A-Z]{{3}}))\s+)"
            rf"(?:(?:{any_of(WORDS['limits']['only'])})\s+)?{_YEAR}{_TO_YEAR}{_YEAR}{_CLOSES}",
            re.I,
        ),
        *_RANGE,
    ),
    (_years("from", rf"(?:\s+(?:{any_of(_LISTS['or_later'])}))?"), lambda one: one[0][0], None),
    (_years("to"), None, lambda one: one[0][1]),
    (_years("after"), lambda one: one[0][1] + 1, None),
    (_years("before"), None, lambda one: one[0][0] - 1),
    (
        re.compile(
            rf"{_LEAD}(?:(?:from|in)\s+)?{_THE}{_YEAR}(?:\+|\s*(?:{any_of(_LISTS['or_later'])}))",
            re.I,
        ),
        lambda one: one[0][0],
        None,
    ),
    (
        re.compile(
            rf"{_LEAD}(?:(?:from|in|until|by)\s+)?{_THE}{_YEAR}\s+(?:{any_of(_LISTS['or_earlier'])})",
            re.I,
        ),
        None,
        lambda one: one[0][1],
    ),
    (  # a decade, or a year in which it was published: "deaths in 2020" is a topic
        re.compile(
            rf"(?:{_LEAD}(?:in|from|during|of)\s+{_THE}(?=\S+s\b)|{_BOUNDARY}\s*(?:the\s+)?(?=\S+s\b)"
            rf"|(?:,?\s*(?:{any_of(_LISTS['deeds'])})\s+(?:in\s+|from\s+)?))"
            rf"{_YEAR}(?:\s+(?:or|and)\s+{_THE}{_YEAR})?{_CLOSES}",
            re.I,
        ),
        *_RANGE,
    ),
)
_COUNT = rf"(?P<n>\d{{1,2}}|{'|'.join(_NUMBERS)})"
_AGES = (
    (
        re.compile(
            rf"{_LEAD}\b(?:no|not)\s+(?:more|older)\s+than\s+{_COUNT}\s+(?P<unit>years|decades)(?:\s+old)?\b",
            re.I,
        ),
        0,
    ),
    (
        re.compile(
            rf"{_LEAD}\b(?:(?:in|of|from|within|over|during)\s+)?(?:the\s+)?(?:{any_of(_LISTS['last'])})"
            rf"\s+(?:{_COUNT}\s+)?(?P<unit>years?|decades?)(?:\s+of\s+(?:literature|research|work))?\b"
            r"(?:\s+only)?",
            re.I,
        ),
        1,
    ),
    (re.compile(rf"{_LEAD}(?:\b(?:in|from)\s+)?\bthis\s+(?P<n>)(?P<unit>year)\b", re.I), 0),
)
_NAME = r"((?:[A-Z][\w&+.-]*)(?:(?:,\s*|\s+(?:or|and|nor)\s+(?:at\s+)?|\s+)[A-Z][\w&+.-]*)*)"
_NOT_AT = re.compile(
    r",?\s*(?:\b(?:and|but)\s+)?\b(?:[Nn]ot|[Ee]xcluding|[Ee]xcept(?:\s+for)?|[Ll]eaving out"
    r"|[Ww]ithout)\s+(?:those\s+|papers\s+|ones\s+|work\s+)?(?:(?:published|presented)\s+)?(?:at|from)\s+"
    + _NAME
)
_ONLY_AT = re.compile(
    r",?\s*(?:\b(?:and|but)\s+)?\b[Oo]nly\s+(?:those\s+|papers\s+)?(?:published\s+)?(?:at|in|from)\s+"
    + _NAME
)


def _venue_patterns(venues: Iterable[str]) -> Iterator["re.Pattern[str]"]:
    """Yield how known venues are asked for: "at A or B", "published in A", "A papers", ", A only"."""
    if not (known := any_of(venues)):
        return
    some = rf"((?:{known})(?:(?:\s*,\s*|\s*,?\s+(?:or|and)\s+)(?:(?:at|in)\s+)?(?:{known}))*)"
    deed = r"(?:published|presented|appeared|appearing)"
    yield re.compile(rf",?\s*(?:\b{deed}\s+)?\bat\s+(?:the\s+)?(?i:{some})")
    yield re.compile(rf",?\s*\b(?:{deed}|papers|articles)\s+(?:in|from)\s+(?:the\s+)?{some}")
    yield re.compile(rf"{some}\s+(?:only|alone|papers|articles)\b")
    yield re.compile(rf"{_BOUNDARY}\s*(?:(?:only|in|from)\s+)*{some}{_CLOSES}")


_CUES = WORDS["cues"]
_TYPE_NAMES = {name: kind for kind, said in WORDS["types"].items() for name in said["names"]}
_TYPES = {tuple(stems(name)): kind for name, kind in _TYPE_NAMES.items()}
_SOME_TYPES = rf"(?P<types>(?:{any_of(_TYPE_NAMES)})(?:(?:\s*,\s*|\s+)(?:(?:and|or)\s+)?(?:{any_of(_TYPE_NAMES)}))*)"
_ONLY_TYPES = (
    re.compile(rf"\b(?:{any_of(WORDS['limits']['only'])})\s+{_SOME_TYPES}(?![\w-])", re.I),
    re.compile(rf"{_SOME_TYPES}\s+(?:only|alone)\b", re.I),
)
_THING = r"(?P<keep>[^,.;?]+)"
_TWICE = re.compile(
    r",?\s*\b(?:but\s+)?(?:(?:do|does|did|is|are|can|could)?\s*not|never)\s+"
    r"(?:(?:do|work|go|operate|function|be\s+done)\s+)?(?:without|exclud(?:e|ing)|lack(?:ing)?|avoid(?:ing)?)\s+"
    + _THING,
    re.I,
)
_USE = any_of(_CUES["use"])
_NEVER = rf"(?!\s*(?:{any_of(_CUES['never'])}))"
_LEAD_IN = rf"(?:,?\s*(?:\b(?:{any_of(_CUES['lead'])})\s+)*)"
_EXCLUDING = re.compile(
    rf"{_LEAD_IN}(?:\b(?:whose|that|which|and)\s+(?:own\s+)?(?:\w+\s+){{0,2}}?)?"
    rf"\b(?:do|does|did)\s*n(?:o|')t\s+(?:{_USE})"
    rf"|{_LEAD_IN}(?<!with and )(?<!with or )(?:{any_of(_CUES['anywhere'])}){_NEVER}"
    rf"|{_LEAD_IN}(?P<soft>{any_of(_CUES['soft'])})"
    rf"|(?:{_BOUNDARY}|\b(?:but|and|yet|that|which|please)\b)\s*{_LEAD_IN}"
    rf"(?:{any_of(_CUES['clause'])})(?=\s){_NEVER}"
    rf"|(?:{any_of(_CUES['place'])})\s+(?-i:(?=[A-Z]))",
    re.I,
)
_AFTER = re.compile(
    rf"(?:[,;:(]|(?<=[.?!])|{_GAP})\s*(?P<said>[^,;:.?!(){_GAP}]+?)\s+(?:{any_of(_CUES['after'])}){_CLOSES}"
    rf"|^(?P<first>[^,;:.?!(){_GAP}]+?)\s+(?:{any_of(_CUES['after'])})(?=\s*[,;:])",
    re.I,
)
_BREAKS = rf"{any_of(_CUES['anywhere'] + _CUES['clause'] + _LISTS['deeds'])}|only\b|at\b|in\b|that\b|which\b|with\b"
_ITEM = (
    rf"(?!{_BREAKS})(?:(?!(?:and|or|nor)\b)[\w'/+.-]+)(?:\s+(?!(?:and|or|nor)\b)[\w'/+.-]+){{0,4}}"
)
_LIST = re.compile(rf"\s*{_ITEM}(?:\s*,\s*{_ITEM})+\s*,?\s+(?:and|or|nor)\s+", re.I)
_END = re.compile(
    rf"[.;?!:)](?:\s|$)|\)|,|\s--?\s|{_GAP}"
    r"|\s+(?:but|and)\s+(?=(?:not|no|without|excluding|only|published|are|is|that|which)\b)"
    r"|\s+and\s+(?=[a-z]+s\s+(?:on|in|with|over|from|the|a)\b)|\s+(?=(?:published|nor)\b)",
    re.I,
)
_PHRASES = WORDS["phrases"]
_CLAUSE = re.compile(any_of(_PHRASES["verbs"]), re.I)
_JOINED = re.compile(any_of(_PHRASES["joined"]), re.I)
_LEADING = re.compile(
    rf"^(?!{any_of(_PHRASES['kept'])})(?:(?:{any_of(_PHRASES['nouns'])})\s+"
    rf"(?=(?:{any_of(_PHRASES['leading'])})\s)|(?:{any_of(_PHRASES['leading'])})\s+)",
    re.I,
)
_HANGS = re.compile(any_of(_PHRASES["hanging"]), re.I)
_TRAILING = re.compile(rf"(?:\s+(?:{any_of(_PHRASES['trailing'])})|-based)$", re.I)
_END_OF_B = r"(?=\s+(?:in|for|on|at|when|under)\b|[?.,;]|$)"
_AHEAD = (
    r"(?:outperform(?:s|ed|ing)?|beat(?:s|ing)?|surpass(?:es|ed|ing)?|exceed(?:s|ed|ing)?"
    r"|(?:is|are|was|were|works?|performs?|does|do)\s+better\s+than|superior\s+to)"
)
_DIRECTIONS = (
    (
        re.compile(
            rf"\b(?:better|higher|stronger)\s+(?:results?|scores?|performance|accuracy)\s+(?:for|with|of|by)"
            rf"\s+(.+?)\s+than\s+(?:for\s+|with\s+|of\s+|by\s+)?(.+?){_END_OF_B}",
            re.I,
        ),
        1,
        2,
    ),
    (
        re.compile(
            r"\b(?:that|where|which|show|showing|whether)\s+(?:that\s+)?([\w -]+?)"
            rf"\s+{_AHEAD}\s+(.+?){_END_OF_B}",
            re.I,
        ),
        1,
        2,
    ),
)
