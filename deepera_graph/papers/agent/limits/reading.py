"""The rules by which the limits of a question are read; their words are in `words.toml`.

A phrase after "excluding", "not", "without", "other than" and the like is no keyword with another
sign: it is kept apart from the topic, so that it is not searched for, and a paper is held against
it. Two negations ask for the thing. A limit that is taken out leaves a gap, which ends a phrase.

Source:
    Rules of ours. That systems of today take "not X" for a keyword is a finding of the ScholarQuest
    study; its later leaderboard has no system above .163 nDCG@50 on questions with limits.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from deepera_graph.papers.agent.limits import Limits, patterns
from deepera_graph.papers.agent.limits.patterns import NearWords, Pick, Span
from deepera_graph.text.words import stems

_LONGEST_SAID = 300  # characters of what is left out, behind the last comma of a list
_REACH = 200  # characters before what was taken out in which another limit may begin
_WITH_REPEATS = ("better", "notes")


def read_limits(
    question: str,  # what is asked
    *,
    # date of asking, which "the last five years" are counted from: ``2025`` or longer
    as_of: str = "",
    # those of the base: "only at X" is a venue only if it is one of them, or if it is written like
    # one
    venues: Sequence[str] = (),
    year: int | None = None,  # the year of asking, if *as_of* is empty
    # only years and kinds of papers that stand apart at the end of what is asked, as in "..., since
    # 2015, excluding reviews?"; "deaths since 2015" may well be the topic
    apart: bool = False,
) -> Limits:
    """Read the limits of a question by rules."""
    text = " ".join(question.translate(patterns.PLAIN_MARKS).split())
    asked = int(as_of[:4]) if as_of[:4].isdigit() else year
    reading = _Reading(text, asked, venues, apart=apart)
    reading.read()
    return reading.limits(question)


def find_sizes(question: str) -> list[str]:
    """Find limits on how many took part, as they are asked for; nothing applies them."""
    plain = " ".join(question.translate(patterns.PLAIN_MARKS).split())
    return [found[0] for found in patterns.SIZE.finditer(plain)]


def find_other_kinds(topic: str) -> list[str]:
    """Find what is asked for alone and no kind that is applied, in what is left of a question."""
    return [found["said"] for found in patterns.ONLY_OTHERS.finditer(topic) if found.start()]


def note_sizes(question: str) -> tuple[str, ...]:
    """Say which limits on how many took part are not applied."""
    return tuple(f"a limit on size is not applied: {one!r}" for one in find_sizes(question))


class _Reading:
    """A question while its limits are taken out of it, one kind after the other."""

    def __init__(self, text: str, asked: int | None, venues: Sequence[str], *, apart: bool) -> None:
        self._text, self._asked, self._apart = text, asked, apart
        self._venues = {one.casefold(): one for one in venues}
        self._found: dict[str, list[Any]] = defaultdict(list)  # by the fields of `Limits`
        self._contrasts: list[str] = []  # words of the question that are searched for all the same
        self._near: NearWords | None = None  # for which the spans are known
        self._spans: list[Span] = []

    def read(self) -> None:
        if self._apart:
            for _ in range(2):  # what stands before a limit that is read is at the end then
                self._read_types()
                self._read_exclusions()
                self._read_years()
            return
        if patterns.IS_TWICE.search(self._text.lower()):
            self._text = patterns.TWICE.sub(lambda found: f" {found['keep']} ", self._text)
        self._read_direction()
        self._read_years()
        self._read_types()
        self._read_venues()
        self._read_exclusions()
        self._found["notes"] += note_sizes(self._text)

    def limits(self, question: str) -> Limits:
        found, topic = self._found, _tidy(self._text)
        in_topic = set(stems(topic)) if found["exclude"] else set()
        is_topic = {one for one in found["exclude"] if in_topic.issuperset(stems(one))}
        found["notes"] += [
            f"{one!r} is what is asked for, and is not left out" for one in sorted(is_topic)
        ]
        contrasts = [one for one in self._contrasts if _bare(one) not in is_topic]
        topic = " ".join([topic.rstrip(" .?!"), *contrasts]) if contrasts else topic
        found["exclude"] = [one for one in found["exclude"] if one not in is_topic]
        low, high = found.pop("year_from", ()), found.pop("year_to", ())
        lists = {
            name: tuple(values if name in _WITH_REPEATS else dict.fromkeys(values))
            for name, values in found.items()
        }
        return Limits(
            question=question,
            topic=topic or " ".join(question.split()),
            year_from=max(low, default=None),
            year_to=min(high, default=None),
            **lists,
        )

    def _take(
        self, pattern: "re.Pattern[str]", near: NearWords | None
    ) -> Iterator["re.Match[str]"]:
        """Yield the matches of a pattern, and take them out of the text."""
        at = 0
        while found := self._search(pattern, at, near):
            if not self._is_counted(found, found.end()):
                at = found.end()
                continue
            self._cut(found.start(), found.end())
            at = max(found.start() - _REACH, 0)
            yield found

    def _is_counted(self, found: "re.Match[str]", end: int) -> bool:
        """Whether this is read: where limits have to, it stands apart from what is asked."""
        if not self._apart:
            return True
        begins = patterns.APART.match(found[0]) or patterns.APART_BEFORE.search(
            self._text[: found.start()]
        )
        is_bare = patterns.BARE_YEARS.fullmatch(found[0])  # "rents, 2008 to 2012"
        return bool(
            begins and not is_bare and found.start() and patterns.ENDS_APART.match(self._text, end)
        )

    def _search(
        self, pattern: "re.Pattern[str]", at: int, near: NearWords | None
    ) -> "re.Match[str] | None":
        """Return the first match, which is looked for only near what stands in all."""
        if near is None:
            return pattern.search(self._text, at)
        if self._near is not near:
            self._near, self._spans = near, near.spans(self._text.lower())
        for start, end in self._spans:
            while end > at and (found := pattern.search(self._text, max(start, at), end)):
                if whole := pattern.match(self._text, found.start()):
                    return whole
                at = found.start() + 1  # what seemed to end goes on
        return None

    def _cut(self, start: int, end: int) -> None:
        """Take out a part of the text; what signs are left stay known, with what is before them."""
        self._text = f"{self._text[:start]} {patterns.GAP} {self._text[end:]}"
        more = start + len(f" {patterns.GAP} ") - end
        self._spans = patterns.join_spans(
            (first, last)
            if last <= start
            else (max(first + min(more, 0), 0), max(last + more, start))
            for first, last in self._spans
        )

    def _read_direction(self) -> None:
        for near, pattern, first, second in patterns.DIRECTIONS:
            if found := self._search(pattern, 0, near):
                self._found["better"] = [_bare(found[first]), _bare(found[second])]
                return

    def _read_years(self) -> None:
        for pattern, add in patterns.AGES:
            for found in self._take(pattern, patterns.NEAR_AGES):
                self._count_back(found, add)
        for pattern, low, high in patterns.YEARS:
            for found in self._take(pattern, patterns.NEAR_YEARS):
                self._keep_years([_span(one) for one in found.groups() if one], low, high)

    def _keep_years(self, spans: Sequence[Span], low: Pick | None, high: Pick | None) -> None:
        if low is not None:
            self._found["year_from"].append(low(spans))
        if high is not None:
            self._found["year_to"].append(high(spans))
        if low is None and high is None:
            self._found["not_years"] += range(spans[0][0], spans[0][1] + 1)

    def _count_back(self, found: "re.Match[str]", add: int) -> None:
        """Read "the last five years" and the like."""
        if self._asked is None:
            self._found["notes"].append(f"{found[0].strip(' ,')!r} needs a date of asking (as_of)")
            return
        n = _number(found["n"]) * (10 if found["unit"].lower().startswith("decade") else 1)
        self._found["year_from"].append(self._asked - n + add)
        said = found[0].lower()
        if "last year" in said or "this year" in said:  # "the past year" goes on until today
            self._found["year_from"][-1] = self._asked - ("last" in said)
            self._found["year_to"].append(self._found["year_from"][-1])

    def _read_types(self) -> None:
        for pattern in patterns.ONLY_TYPES:
            for found in self._take(pattern, patterns.NEAR_ONLY):
                self._found["types"] += [
                    patterns.TYPES[tuple(stems(one))] for one in split_phrases(found["types"])
                ]

    def _read_venues(self) -> None:
        for found in self._take(patterns.NOT_AT, patterns.NEAR_NOT_AT):
            self._found["not_venues"] += self._names(found[1])
        low = self._text.casefold()
        named = [name for key, name in self._venues.items() if " ".join(key.split()) in low]
        for found in self._take(patterns.ONLY_AT, patterns.NEAR_ONLY):
            self._found["venues"] += self._names(found[1])
        for pattern in patterns.venue_patterns(named):
            for found in self._take(pattern, None):
                self._found["venues"] += self._names(found[1])

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
        for pattern, near in (
            (patterns.AFTER, patterns.NEAR_AFTER),
            (patterns.EXCLUDING, patterns.NEAR_EXCLUDING),
        ):
            at = 0
            while found := self._search(pattern, at, near):
                said, end = _said(found, self._text)
                at = found.end()
                is_limit = _is_limit(said, found[0]) and self._is_counted(found, end)
                if self._apart and (others := _list_others(said)):
                    kinds = [one for one in split_phrases(said) if one not in others]
                    if is_limit and kinds:  # the others are judged as words
                        self._leave_out(", ".join(kinds))
                        rest = f"{self._text[: found.end()].rstrip()} {' and '.join(others)}"
                        self._text, self._near = f"{rest}{self._text[end:]}", None
                    continue
                if is_limit:
                    self._leave_out(said)
                    at = found.start()
                    self._cut(at, end)
                    if found.groupdict().get("soft"):
                        self._contrasts.append(" ".join(said.split()))

    def _leave_out(self, said: str) -> None:
        """Tell kinds of documents and venues from what a paper is about."""
        for one in split_phrases(said):
            if (kind := patterns.TYPES.get(tuple(stems(one)))) is not None:
                self._found["not_types"].append(kind)
            elif one.casefold() in self._venues:
                self._found["not_venues"].append(self._venues[one.casefold()])
            else:
                self._found["exclude"].append(one)


def split_phrases(text: str) -> list[str]:
    """Return what a list leaves out, a phrase each."""
    # "Search and rescue" is one, and so is what hangs on a preposition: "speech against A and B".
    kept = patterns.JOINED.sub(lambda found: found[0].replace(" ", patterns.GAP), _bare(text))
    parts = re.split(r"\s*,\s*(?:(?:and|or|nor)\s+)?|\s+(?:nor|or)\s+(?!similar)", kept)
    parts = [each for one in parts for each in _split_and(one)]
    return [bare for one in parts if (bare := _bare(one.replace(patterns.GAP, " ")))]


def _split_and(text: str) -> list[str]:
    parts = re.split(r"\s+and\s+", text)
    return [text] if patterns.HANGS.search(_bare(parts[0])) else parts


def _bare(text: str) -> str:
    """Return a phrase without the words that lead to it."""
    text = text.strip(" .,;:?!()")
    before = None
    while before != text:
        before, text = text, patterns.LEADING.sub("", text).strip()
        text = patterns.TRAILING.sub("", text).strip(" .,;:?!()") or text
    return text


def _tidy(text: str) -> str:
    """Return what is left of a question without the holes and marks of what was taken out."""
    text = re.sub(rf"\(\s*(?:[{patterns.GAP},;\s]*)\)", " ", text)
    if "please" in text.lower():
        text = re.sub(r"\s+please\b|^please\s", " ", text, flags=re.I)
    text = " ".join(text.replace(patterns.GAP, " ").split())
    text = re.sub(r"\([ ,;]+", "(", text)
    if any(end in text for end in (" )", ",)", ";)")):
        text = re.sub(r"(?<![ ,;])[ ,;]+\)", ")", text)
    for mark in ",.?!;:)":
        text = text.replace(f" {mark}", mark)
    text = re.sub(r"(?:[,;:] ?)+(?=[,;:.?!]|$)", "", text)
    text = re.sub(r"([.?!])[.,;]+", r"\1", text)  # of a sentence that was a limit as a whole
    text = re.sub(r" (?:and|but|--?|\()(?: (?:and|but|--?|\())*(?= ?(?:$|[.?!]))", "", text)
    return re.sub(r"\A(?:and|but) ", "", text, count=1).lstrip(" ,;:.?!)-").rstrip(" ,;:-")


def _said(found: "re.Match[str]", text: str) -> tuple[str, int]:
    """Return what is left out, and where it ends: at the next mark, or after a list with commas."""
    if found.re is patterns.AFTER:
        return found["said"] or found["first"], found.end()
    listed = patterns.LIST.match(text, found.end())
    begin = listed.end() if listed else found.end()
    end = patterns.END.search(text, begin, begin + _LONGEST_SAID)
    if end is None and len(text) > begin + _LONGEST_SAID:
        return "", begin
    at = end.start() if end else len(text)
    return text[found.end() : at], at


def _is_limit(said: str, cue: str) -> bool:
    """Whether this is a thing, and not a clause of the question: "without lowering the rate"."""
    phrases = split_phrases(said)
    if cue.lower().endswith("without") and re.match(r"\s*\w+ing\s+\w", said):
        return bool(phrases) and _bare(said) != said.strip() and not patterns.CLAUSE.search(said)
    return bool(phrases) and not any(
        len(one.split()) > patterns.PHRASES["most"] or patterns.CLAUSE.search(one)
        for one in phrases
    )


def _list_others(said: str) -> list[str]:
    """Return what is left out that is no kind of documents."""
    return [one for one in split_phrases(said) if tuple(stems(one)) not in patterns.TYPES]


def _span(word: str) -> Span:
    """Return the first and last year of ``2015``, ``2010s``, ``'90s`` or ``nineties``."""
    low = word.lower().strip("'")
    if low in patterns.YEAR_WORDS:
        return patterns.YEAR_WORDS[low], patterns.YEAR_WORDS[low] + 9
    digits = re.sub(r"\D", "", low)
    year = int(digits) if len(digits) == 4 else 1900 + int(digits)
    return (year, year + 9) if low.endswith("s") else (year, year)


def _number(text: str | None) -> int:
    if not text:
        return 1
    return int(text) if text.isdigit() else patterns.NUMBERS.index(text.lower()) + 1
