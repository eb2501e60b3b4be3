"""The limits of a question: what it leaves out, its years and venues, who has to be better.

Read by rules, without a model. A phrase after "excluding", "not", "without", "other than", "instead
of", "rather than" or "beyond" is no keyword with another sign: it is kept apart from the topic, so
that it is not searched for, and a paper is held against it. Two negations ask for the thing.

Source:
    Rules of ours. That systems of today take "not X" for a keyword is a finding of the ScholarQuest
    study; its later leaderboard has no system above .163 nDCG@50 on questions with limits.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from deepera_graph.errors import SettingsError
from deepera_graph.papers.scope import Scope, list_set_fields

_YEAR = r"((?:19|20)\d\d)"
_DEED = r"(?:published|dated|written|released|appearing|that appeared|from papers|papers)"
_LEAD = rf"(?:,?\s*(?:and\s+|but\s+)?(?:only\s+)?(?:{_DEED}\s+)?)"
_NUMBERS = {
    name: number
    for number, name in enumerate(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"], start=1
    )
}
_COUNT = rf"(\d{{1,2}}|{'|'.join(_NUMBERS)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a question asks for, and what it does not want.

    Attributes:
        question: As it was asked.
        topic: What is searched for: the question without its limits.
        exclude: What a paper must not be about, use or be evaluated on, in the question's words.
        year_from: Earliest year, inclusive.
        year_to: Latest year, inclusive.
        not_years: Years left out.
        venues: Only these.
        not_venues: None of these.
        better: What has to come out ahead, and of what: ``("A", "B")``; empty if nothing has to.
        notes: What could not be read, in words.
    """

    question: str
    topic: str
    exclude: tuple[str, ...] = ()
    year_from: int | None = None
    year_to: int | None = None
    not_years: tuple[int, ...] = ()
    venues: tuple[str, ...] = ()
    not_venues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    not_types: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def narrow(self, scope: Scope, venues: Sequence[str] = ()) -> tuple[Scope, tuple[str, ...]]:
        """Return a scope with the question's years and venues in it, and notes on what was not.

        What the caller limited stays limited: the narrower of two limits holds. Limits that leave
        no year are an error of `Scope`, unless the question alone causes it: then its years are
        left out, with a note. A venue that the base does not know cannot be asked for.

        Args:
            scope: What the caller lets be seen.
            venues: Those of the base.
        """
        notes: list[str] = []
        low = _latest(scope.year_from, self.year_from)
        high = _earliest(scope.year_to, self.year_to)
        if low is not None and high is not None and low > high:
            notes.append(f"no year is from {low} and up to {high}: the question's are left out")
            low, high = scope.year_from, scope.year_to
        known = {one.casefold(): one for one in venues}
        only = tuple(one for one in self.venues if one.casefold() in known)
        barred = tuple(one for one in self.not_venues if one.casefold() in known)
        unknown = [one for one in (*self.venues, *self.not_venues) if one.casefold() not in known]
        notes += [f"no paper of the base is from the venue {one!r}" for one in unknown]
        if scope.venues and only:
            asked = {one.casefold() for one in only}
            only = tuple(one for one in scope.venues if one.casefold() in asked)
            if not only:
                notes.append("the question's venues are not among those searched: left out")
        narrowed = replace(
            scope,
            year_from=low,
            year_to=high,
            venues=only or scope.venues,
            not_venues=tuple(dict.fromkeys((*scope.not_venues, *barred))),
        )
        return narrowed, tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits that are set, with question and topic, as JSON has them."""
        return list_set_fields(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Limits":
        """Return the limits of `to_dict`."""
        lists = {name: tuple(value) for name, value in plain.items() if isinstance(value, list)}
        return cls(**{**plain, **lists})


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
    text = " ".join(question.split())
    asked = int(as_of[:4]) if as_of[:4].isdigit() else year
    reading = _Reading(text, asked, {one.casefold(): one for one in venues})
    reading.read()
    return reading.limits(question)


class _Reading:
    """A question while its limits are taken out of it, one kind after the other."""

    def __init__(self, text: str, asked: int | None, venues: Mapping[str, str]) -> None:
        self._text, self._asked, self._venues = text, asked, venues
        self._from: list[int] = []
        self._to: list[int] = []
        self._not_years: list[int] = []
        self._only: list[str] = []
        self._not_venues: list[str] = []
        self._exclude: list[str] = []
        self._contrasts: list[str] = []  # words of the question that are searched for all the same
        self._notes: list[str] = []
        self._better: tuple[str, ...] = ()

    def read(self) -> None:
        """Take out all limits."""
        self._read_direction()
        self._read_years()
        self._read_venues()
        self._read_exclusions()

    def limits(self, question: str) -> Limits:
        """Return what was read."""
        topic = re.sub(r"\s+([,.?!;])", r"\1", " ".join(self._text.split()))
        topic = " ".join([topic.rstrip(" .?!"), *self._contrasts]) if self._contrasts else topic
        topic = re.sub(r"(?:[,;]\s*)+(?=[,;.?!]|$)", "", topic).strip(" ,;")
        topic = re.sub(r"(?<=[.?!])[.,;]+", "", topic)  # of a sentence that was a limit as a whole
        return Limits(
            question=question,
            topic=topic or " ".join(question.split()),
            exclude=tuple(dict.fromkeys(self._exclude)),
            year_from=max(self._from, default=None),
            year_to=min(self._to, default=None),
            not_years=tuple(dict.fromkeys(self._not_years)),
            venues=tuple(dict.fromkeys(self._only)),
            not_venues=tuple(dict.fromkeys(self._not_venues)),
            better=self._better,
            notes=tuple(self._notes),
        )

    def _take(self, pattern: "re.Pattern[str]") -> Iterator["re.Match[str]"]:
        """Yield the matches of a pattern, and take them out of the text."""
        while found := pattern.search(self._text):
            self._text = f"{self._text[: found.start()]} {self._text[found.end() :]}"
            yield found

    def _read_direction(self) -> None:
        for pattern, first, second in _DIRECTIONS:
            if found := pattern.search(self._text):
                self._better = (_bare(found[first]), _bare(found[second]))
                return

    def _read_years(self) -> None:
        for found in self._take(_NOT_YEAR):
            self._not_years.append(int(found[1]))
        for found in self._take(_BETWEEN):
            low, high = sorted((int(found[1]), int(found[2])))
            self._from.append(low)
            self._to.append(high)
        for pattern, add in _FROM:
            self._from += [int(found[1]) + add for found in self._take(pattern)]
        for pattern, add in _TO:
            self._to += [int(found[1]) + add for found in self._take(pattern)]
        for found in self._take(_LAST):
            if self._asked is None:
                self._notes.append(f"{found[0].strip(' ,')!r} needs a date of asking")
                continue
            n = _NUMBERS.get(found[1].lower()) or int(found[1])
            self._from.append(self._asked - n + 1)

    def _read_venues(self) -> None:
        for found in self._take(_NOT_AT):
            self._not_venues += self._names(found[1])
        for pattern in (_ONLY_AT, _AT):
            for found in list(pattern.finditer(self._text)):
                if pattern is _ONLY_AT or found[1].casefold() in self._venues:
                    self._only += self._names(found[1])
                    self._text = self._text.replace(found[0], " ", 1)

    def _names(self, text: str) -> list[str]:
        whole = text.strip(" .,?")
        if whole.casefold() in self._venues:
            return [self._venues[whole.casefold()]]
        parts = [
            one.strip(" .,?") for one in re.split(r",\s*|\s+(?:or|and|nor)\s+(?:at\s+)?", whole)
        ]
        return [self._venues.get(one.casefold(), one) for one in parts if one]

    def _read_exclusions(self) -> None:
        self._text = _TWICE.sub(lambda found: f" {found['keep']} ", self._text)
        while found := _EXCLUDING.search(self._text):
            rest = self._text[found.end() :]
            end = _END.search(rest)
            said = rest[: end.start()] if end else rest
            self._text = f"{self._text[: found.start()]} {rest[end.start() :] if end else ''}"
            self._exclude += split_phrases(said)
            if found["soft"]:
                self._contrasts.append(said)


def split_phrases(text: str) -> list[str]:
    """Return what a list leaves out, a phrase each: "financial news and microblogs" is one."""
    parts = re.split(r"\s+(?:nor|or)\s+(?!similar)|,\s*(?:and\s+|or\s+)?", text)
    return [bare for one in parts if (bare := _bare(one))]


def _bare(text: str) -> str:
    """Return a phrase without the words that lead to it."""
    text = text.strip(" .,;:?!")
    before = None
    while before != text:
        before, text = text, _LEADING.sub("", text).strip()
    return _TRAILING.sub("", text).strip(" .,;:?!")


def _latest(*years: int | None) -> int | None:
    return max((one for one in years if one is not None), default=None)


def _earliest(*years: int | None) -> int | None:
    return min((one for one in years if one is not None), default=None)


def _years(words: str, tail: str = "") -> "re.Pattern[str]":
    return re.compile(rf"{_LEAD}\b(?:{words})\s+(?:the\s+(?:year|end of)\s+)?{_YEAR}\b{tail}", re.I)


_NOT_YEAR = re.compile(
    rf",?\s*(?:and\s+|but\s+)?\b(?:not|excluding|except|without|leaving out|other than)"
    rf"\s+(?:those\s+|papers\s+|the\s+)?(?:(?:edition|year|ones?)\s+)?(?:published\s+)?"
    rf"(?:(?:from|in|of)\s+)?{_YEAR}\b",
    re.I,
)
_BETWEEN = re.compile(
    rf"{_LEAD}\b(?:between|from|in|over|during)\s+(?:the\s+years\s+)?{_YEAR}"
    rf"\s*(?:and|to|until|till|through|-|–|—)\s*{_YEAR}\b(?:\s+inclusive)?",
    re.I,
)
_LATER = r"\s+(?:or\s+(?:later|after|newer)|on(?:wards?)?|and\s+(?:later|after|newer))\b"
_EARLIER = r"\s+(?:or\s+(?:earlier|before|older)|and\s+(?:earlier|before|older))\b"
_FROM = (
    (_years("from|in|since", _LATER), 0),
    (_years("since|starting (?:in|from)|no earlier than|not before|not older than"), 0),
    (_years("after|(?<!no )later than|newer than|more recent than"), 1),
)
_TO = (
    (_years("in|from|until|by", _EARLIER), 0),
    (_years("up to|until|till|through|no later than|not after|by|at the latest in"), 0),
    (_years("before|prior to|earlier than|older than"), -1),
)
_LAST = re.compile(
    rf"{_LEAD}\b(?:in|of|from|within|over|during)?\s*(?:the\s+)?(?:last|past)\s+{_COUNT}\s+years\b",
    re.I,
)
_VENUE = r"((?:[A-Z][\w&+.-]*)(?:(?:,\s*|\s+(?:or|and|nor)\s+(?:at\s+)?|\s+)[A-Z][\w&+.-]*)*)"
_NOT_AT = re.compile(
    r",?\s*(?:\b(?:and|but)\s+)?\b(?:[Nn]ot|[Ee]xcluding|[Ee]xcept(?:\s+for)?|[Ll]eaving out"
    r"|[Ww]ithout)\s+(?:those\s+|papers\s+|ones\s+|work\s+)?(?:published\s+|presented\s+)?(?:at|from)\s+"
    + _VENUE
)
_ONLY_AT = re.compile(
    r",?\s*(?:\b(?:and|but)\s+)?\b[Oo]nly\s+(?:those\s+|papers\s+)?(?:published\s+)?(?:at|in|from)\s+"
    + _VENUE
)
_AT = re.compile(
    r",?\s*\b(?:published|presented|appeared|appearing)\s+(?:at|in)\s+(?:the\s+)?" + _VENUE
)
_THING = r"(?P<keep>[^,.;?]+)"
_TWICE = re.compile(
    r",?\s*\b(?:but\s+)?(?:(?:do|does|did|is|are|can|could)?\s*not|never)\s+"
    r"(?:(?:do|work|go|operate|function|be\s+done)\s+)?(?:without|exclud(?:e|ing)|lack(?:ing)?|avoid(?:ing)?)\s+"
    + _THING,
    re.I,
)
_USE = (
    r"(?:us(?:e|es|ing)|rel(?:y|ies|ying)\s+on|involv(?:e|es|ing)|requir(?:e|es|ing)|need(?:s|ing)?"
    r"|employ(?:s|ing)?|includ(?:e|es|ing)|depend(?:s|ing)?\s+on|based\s+on)"
)
_EXCLUDING = re.compile(
    r",?\s*(?:\b(?:and|but|yet)\s+)?(?:"
    r"\b(?:excluding|exclud(?:e|es)|leaving\s+out|leave\s+out|except(?:ing)?(?:\s+for)?|other\s+than"
    r"|apart\s+from|aside\s+from|with\s+the\s+exception\s+of)\b"
    rf"|\b(?:whose|that|which|and)\s+(?:own\s+)?(?:\w+\s+){{0,2}}?(?:do|does|did|is|are)\s*n(?:o|')t\s+{_USE}\b"
    rf"|\b(?:do|does|did)\s*n(?:o|')t\s+{_USE}\b"
    rf"|\bnot\s+{_USE}\b"
    r"|\bnor\b"
    r"|,\s*without\b|\bwithout\b(?=\s+(?:those|any|papers|work|studies|using)\b)"
    r"|\b(?P<soft>instead\s+of|rather\s+than|as\s+opposed\s+to|beyond)\b"
    r"|(?:,\s*|\b(?:and|but)\s+|\band\s+are\s+)not\b(?!\s+(?:only|just|yet|merely|necessarily|limited)\b)"
    r"|(?<=\S)\s+not\s+(?=(?:about|on|for|by|under|with|in)\b)"
    r")",
    re.I,
)
_END = re.compile(
    r"[.;?!](?:\s|$)|,|\s+(?:but|and)\s+(?=(?:not|without|excluding|only|published|are|is|that|which)\b)"
    r"|\s+and\s+not\s+|\s+and\s+(?=[a-z]+s\s+(?:on|in|with|over|from|the|a)\b)|\s+(?=(?:published|nor)\b)",
    re.I,
)
_LEADING = re.compile(
    r"^(?:(?:show(?:s|ing)?\s+that|that|the|a|an|any|all|those|ones|that|which|papers?|work|works|studies|approaches|methods|"
    r"systems|techniques|are|is|based\s+on|built\s+on|relying\s+on|rely\s+on|using|use|uses|with|"
    r"evaluated\s+on|trained\s+on|applied\s+to|about|on|of|for|under|by|in|at|from|only|dealing\s+with|"
    r"focused\s+on|focusing\s+on|just|merely)\s+)",
    re.I,
)
_TRAILING = re.compile(r"\s+(?:papers?|ones|works?|approaches|alone|only|at all)$", re.I)
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


def check_limits(limits: Limits) -> Limits:
    """Return limits that were written by a model or a caller, or raise.

    Raises:
        SettingsError: The years leave none, or a comparison has not two sides.
    """
    if limits.year_from and limits.year_to and limits.year_from > limits.year_to:
        raise SettingsError(f"no year is from {limits.year_from} and up to {limits.year_to}")
    if len(limits.better) not in (0, 2):
        raise SettingsError(f"a comparison has two sides, got {list(limits.better)!r}")
    return limits
