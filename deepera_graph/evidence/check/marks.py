"""Where a text cites references: by keys, numbers, or names and years, also side by side."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

from deepera_graph.evidence.check.references import FIELD, Reference, ReferenceIndex
from deepera_graph.text.references import LOWER, PARTICLES, UPPER, WITHIN_NAME

Style = Literal["keys", "numbers", "names"]
_KEY = r"[\w][\w:.#$%&+?<>~/-]*"
# Where in a work: "p. 12", "pp. 3-4", "Table S2", "Fig. 3b", "Section 4.1".
_PLACE = (
    r"(?i:(?:supplementary\s+)?(?:pp?\.|pages?|ch(?:ap\w*)?\.?|tab(?:le)?s?\.?|fig(?:ure)?s?\.?"
    r"|sec(?:t(?:ion)?)?s?\.?|eqs?\.|th(?:eore)?m\.?|§+)\s?[a-z]?\d[\w.]*(?:\s*[-–]\s*\d[\w.]*)?)"
)
_KEYED = re.compile(
    rf"\[(?P<group>[^\[\]]*(?<![\w.])@[^\[\]]+)\]"
    rf"|(?<![\w.@])@(?:\{{(?P<braced>[^{{}}]+)\}}|(?P<bare>{_KEY}))(?:\s\[{_PLACE}\])?"
)
_HANDLE = re.compile(
    r"\s*(?!(?:see|also|cf|e\.g|but|compare|reviewed)\b)\w[^@]*@[^\W\d]+\s*\Z", re.IGNORECASE
)
_IN_GROUP = re.compile(rf"(?<![\w.])@(?:\{{([^{{}}]+)\}}|({_KEY}))")
_NUMBERED = re.compile(r"\[\s*(\d{1,4}(?:\s*[-–—,;]\s*\d{1,4})*)\s*\]")
_BESIDE = re.compile(  # "[see 3, p. 12; 4]"
    rf"(?<=\[)(?i:see(?:\s+also)?|cf\.|e\.g\.,?)\s+(?=\d)|(?<=\d),\s*{_PLACE}(?=\s*[\],;])"
)
_REFS = re.compile(r"\(?\b[Rr]ef(?:erence)?s?\.?\s+(\d{1,4}(?:\s*[-–—,]\s*\d{1,4})*)\b\)?")
_NO_CITATION = re.compile(r"(?:\bCI|\brange|\bIQR|\binterval|[=:≈~∈])\s*$", re.IGNORECASE)
# "12 [10-14] years", "a median age of 45 [38-52]": the range of what is measured.
_UNIT = (
    r"\s*(?:%|(?:years?|months?|weeks?|days?|hours?|minutes?|min|percent|per cent|kg|mg|µg|ml|mm|cm"
    r"|km|kcal|mmol|mmHg|points?)\b)"
)
_BEHIND = re.compile(_UNIT)
_AMOUNT = re.compile(rf"(?<![\w.,])(\d+(?:\.\d+)?)(?:{_UNIT}(?:\s+old\b|\s+of\s+age\b)?)?\s*\Z")
_PAIR = re.compile(r"(\d+)\s*([-–—,;])\s*(\d+)")
_OF_MEASURES = re.compile(
    r"\b(?:ages?|aged|median|mean|IQR|inter-?quartile)\b(?:[^.!?]|\.(?=\d))*\Z", re.IGNORECASE
)
_NAME = rf"{PARTICLES}[{UPPER}][{WITHIN_NAME}]*[\w\u0300-\u036f](?<!['’]s)"
_COLLEAGUES = r"(?:colleagues|co-?workers|collaborators|others)"
# "Okoro, Lee, and Santos", "Okoro et al.,", "World Health Organization [WHO]".
_OTHERS = (
    rf"(?:\s*[\[(][{UPPER}]{{2,}}[\])])?"
    rf"(?:(?P<between>(?:,\s+{_NAME}){{0,6}}),?\s+(?P<more>(?:and|&)\s(?:{_NAME}|{_COLLEAGUES})"
    r"|et\.?\sal\b\.?(?:,(?=\s+[(\[]))?))?(?:['’]s)?"
)
_YEAR = r"(?:19|20)\d\d[a-z]?"
_MORE_YEARS = (  # ``2019a,b``, ``2019 and 2020``
    rf"(?:\s*(?:[,;&]|\band\b)\s*{_YEAR}\b|\s*[,&]\s*[a-z]\b(?!['’-]))*"
)
_NARRATIVE = re.compile(
    rf"(?P<name>{_NAME}){_OTHERS}\s+[(\[](?P<years>{_YEAR}\b{_MORE_YEARS})"
    rf"(?:[,;:]\s*(?:{_PLACE}|[\d–-]+)|(?P<beside>[,;:][^()\[\]]{{1,80}}))?[)\]]"
)
NAMED = re.compile(rf"(?P<name>{_NAME}){_OTHERS}\s*\Z")
_BRACKETED = re.compile(rf"\(([^()]*\b{_YEAR}[^()]*)\)|\[([^\[\]]*\b{_YEAR}[^\[\]]*)\]")
_PART = re.compile(rf"(?P<name>{_NAME}){_OTHERS}(?P<comma>,?)\s+(?P<years>{_YEAR}\b{_MORE_YEARS})")
_YEARS = re.compile(_YEAR)
_BODY = re.compile(  # what stands before the last word of "World Health Organization"
    rf"(?:[{UPPER}][\w'’-]*\s+(?:(?:of|for|on|the|and|de|du|des)\s+)*)+\Z"
)
_LONGEST_BODY = 120  # characters
_MONTHS = frozenset(
    """
    January February March April May June July August September October November December In
    Since Until Before After By From During Between
    """.split()  # noqa: SIM905
)
# A raised number whose place is lost, as in the text of a PDF: ``firm1,2.`` or ``firm.1-3 Then``.
_RAISED = re.compile(
    rf"(?P<word>[{LOWER}]{{2}}[)\]”’]?|\)|%)(?P<stop>[.,;:]?)"
    r"(?P<numbers>\d{1,3}(?:\s?[-–,]\s?\d{1,3})*)(?=[.,;:)]?(?:\s|\Z))"
)
# ``firm (1, 2).``, and no "(1) wax, (2) cold".
_ROUND = re.compile(
    rf"(?P<word>[{LOWER}%\d]|[)\]”’])(?P<stop>)\s\((?P<numbers>\d{{1,3}}(?:\s?[-–,;]\s?\d{{1,3}})*)\)"
    r"(?=[.,;:)]|\s*\Z|\s(?:and|but|or|while|whereas|although|though|as well)\b)"
)
_NAMED_NUMBER = re.compile(
    r"\b(?:figs?|figures?|tables?|eqs?|nos?|vols?|refs?|sects?|pp?|steps?|days?|weeks?|version"
    r"|types?|grades?|phases?|groups?|chapters?)\.?\Z",
    re.IGNORECASE,
)
_LEAST_RAISED = 2  # marks that are no chance
_LEAST_SHARE = 0.25  # of the list
_MOST_IN_RANGE = 100
_TAKEN = "\ue000"  # stands for what is read already


class Cited(NamedTuple):
    """A mark in a text: where it stands, and the keys that it names."""

    start: int
    end: int
    keys: tuple[str, ...]


class ManuscriptParagraph(NamedTuple):
    """A part of a manuscript."""

    text: str
    section: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True)
class MarkReader:
    """Finds the citations of a manuscript, in each of the styles that it has."""

    index: ReferenceIndex
    styles: frozenset[Style]
    is_sure: bool  # whether of names only those count that are of the list, or of several authors

    @classmethod
    def of(cls, paragraphs: Iterable[ManuscriptParagraph], index: ReferenceIndex) -> Self:
        """Tell the styles of a manuscript."""
        # Numbers cite a list that prints them. Of any other list they may count places, where the
        # text has no more citations by keys or names than by numbers; and if it has none at all,
        # they cite a list that was not found.
        every = cls(index, frozenset(("keys", "numbers", "names")), is_sure=True)
        n: Counter[Style] = Counter()
        has_numbers = False
        for one in paragraphs:
            for style, found in every._find_each(FIELD.sub(_hide, one.text)):
                n[style] += style == "keys" or any(map(index.by_key, found.keys))
                has_numbers |= style == "numbers"
        n_others = n["keys"] + n["names"]
        counts = index.is_numbered or n["numbers"] >= max(n_others, 1) or not n_others
        styles: list[Style] = ["names"]
        styles += ["keys"] if n["keys"] else []
        styles += ["numbers"] if has_numbers and counts else []
        is_sure = len(styles) > 1 and n["names"] <= n["keys"] + n["numbers"]
        return cls(index, frozenset(styles), is_sure=is_sure)

    def find(self, text: str) -> list[Cited]:
        """Return the citations of a text in order."""
        index = self.index
        marks = [
            Cited(*one.span(), index.fields[int(one[1])].keys)
            for one in (FIELD.finditer(text) if index.fields else ())
        ]
        rest = FIELD.sub(_hide, text) if marks else text
        found = list[Cited]()
        for one in sorted([*marks, *(one for _, one in self._find_each(rest))]):
            if found and one.start < found[-1].end:  # "(Lee 2019 [3])"
                keys = dict.fromkeys((*found[-1].keys, *one.keys))
                found[-1] = found[-1]._replace(keys=tuple(keys))
            else:
                found.append(one)
        return found

    def _find_each(self, text: str) -> Iterator[tuple[Style, Cited]]:
        """Yield each citation with its style; what one style reads, the next does not."""
        marks: list[Cited] = []
        for style, find in (("keys", _find_keys), ("numbers", _find_numbers)):
            if style in self.styles:
                found = list(find(text, self.index))
                marks += found
                text = hide_marks(text, found)
                yield from ((style, one) for one in found)
        for one in _find_names(text, self.index, is_sure=self.is_sure):
            if not _is_told_twice(one, marks, text, self.index):
                yield "names", one


def choose_cited(
    paragraphs: Iterable[ManuscriptParagraph], works: Iterable[Reference]
) -> list[Reference]:
    """Return the works that a text without a list of references cites by their keys."""
    known = {one.key: one for one in reversed([*works])}
    index = ReferenceIndex([*known.values()])
    marks = (found for one in paragraphs for found in _find_keys(one.text, index))
    keys = dict.fromkeys(key for one in marks for key in one.keys)
    return [known[key] for key in keys if key in known]


def _hide(mark: re.Match[str]) -> str:
    return _TAKEN * len(mark[0])


def hide_marks(text: str, marks: Iterable[Cited]) -> str:
    """Return a text of the same length in which no mark can be read."""
    for one in marks:
        text = text[: one.start] + _TAKEN * (one.end - one.start) + text[one.end :]
    return text


def _is_told_twice(name: Cited, marks: Sequence[Cited], text: str, index: ReferenceIndex) -> bool:
    """Tell whether unknown names stand beside a mark that says which work they are of."""
    # "Lee et al. (2017) found [3]", where the list has 2018.
    if not marks or any(map(index.by_key, name.keys)):
        return False
    is_beside = text[name.end :].lstrip(" ,;").startswith(_TAKEN)
    return is_beside or text[name.start] not in "(["


def write_raised(
    paragraphs: Sequence[ManuscriptParagraph], index: ReferenceIndex, *, is_alone: bool
) -> Sequence[ManuscriptParagraph]:
    """Write raised numbers that follow a word as ``[1,2]``, if those that do are of the list."""
    # Without any, those in round brackets are. Beside other citations (not *alone*) they have to
    # cite a good share of a list with numbers.
    n_marks, cited = 0, set[str]()

    def mark(found: re.Match[str]) -> str:
        nonlocal n_marks
        head = f"{found.string[max(0, found.start() - 12) : found.start()]}{found['word']}"
        keys = list(_expand(found["numbers"]))
        are_known = (any if found.re is _ROUND else all)(map(index.by_key, keys))
        if _NAMED_NUMBER.search(f"{head}{found['stop']}") or not are_known:
            return found[0]
        n_marks += 1
        cited.update(keys)
        numbers = "".join(found["numbers"].split())
        return f"{found['word']} [{numbers}]{found['stop']}"

    written = [one._replace(text=_RAISED.sub(mark, one.text)) for one in paragraphs]
    if not n_marks and index.is_numbered:
        written = [one._replace(text=_ROUND.sub(mark, one.text)) for one in paragraphs]
    is_share = index.is_numbered and len(cited) >= _LEAST_SHARE * len(index.references)
    return written if n_marks >= _LEAST_RAISED and (is_alone or is_share) else paragraphs


def _find_keys(text: str, index: ReferenceIndex) -> Iterator[Cited]:
    for found in _KEYED.finditer(text):
        parts = _IN_GROUP.findall(found["group"]) if found["group"] else []
        keys = [braced or bare for braced, bare in parts] or [found["braced"] or found["bare"]]
        keys = [key.rstrip(".:,") for key in keys if key]
        is_handle = found["bare"] or _HANDLE.match(found["group"] or "")
        if is_handle and not any(map(index.by_key, keys)):
            continue  # part of a mail address, or a name on a social network
        yield Cited(*found.span(), tuple(keys))


def _find_numbers(text: str, index: ReferenceIndex) -> Iterator[Cited]:
    for found in _NUMBERED.finditer(_BESIDE.sub(lambda one: " " * len(one[0]), text)):
        keys = tuple(_expand(found[1]))
        is_interval = "0" in keys and not index.by_key("0")
        is_year = all(map(_YEARS.fullmatch, keys)) and not any(map(index.by_key, keys))
        is_other = is_interval or is_year or _is_measured(found)
        if not is_other and not _NO_CITATION.search(text[: found.start()]):
            yield Cited(*found.span(), keys)
    for found in _REFS.finditer(text):  # "(ref. 3)"
        if all(map(index.by_key, keys := tuple(_expand(found[1])))):
            yield Cited(*found.span(), keys)


def _is_measured(found: re.Match[str]) -> bool:
    """Tell whether numbers in brackets are the range of the amount before, or of a unit behind."""
    pair, before = _PAIR.fullmatch(found[1]), found.string[: found.start()]
    amount = _AMOUNT.search(before)
    if amount and _YEARS.fullmatch(amount[1]):
        amount = None
    if unit := _BEHIND.match(found.string, found.end()):  # recent work "[3-5] points to" much
        return bool(amount or (pair and pair[2] not in ",;" and "point" not in unit[0]))
    if not (pair and amount and _OF_MEASURES.search(before)):
        return False
    return int(pair[1]) <= float(amount[1]) <= int(pair[3])


def _expand(numbers: str) -> Iterator[str]:
    """Yield ``3, 4, 5, 9`` for ``3-5,9``."""
    for part in re.split(r"\s*[,;]\s*", numbers):
        first, *last = re.split(r"\s*[-–—]\s*", part)
        end = int(last[-1]) if last else int(first)
        if not 0 <= end - int(first) < _MOST_IN_RANGE:
            end = int(first)
        yield from map(str, range(int(first), end + 1))


def _find_names(text: str, index: ReferenceIndex, *, is_sure: bool = False) -> Iterator[Cited]:
    """Yield names with years; if it must be *sure*, of one author only those of the list."""
    marks = list[Cited]()
    for found in _NARRATIVE.finditer(text):
        names = _Names.of(found, index)
        is_citation = not found["beside"] and (found["more"] or not is_sure)
        if is_citation or names.are_known:
            marks.append(Cited(names.start, found.end(), names.keys))
    for found in _BRACKETED.finditer(text):
        inside = (_Names.of(one, index) for one in _PART.finditer(found[1] or found[2]))
        keys = [key for one in inside if one.are_sure or not is_sure for key in one.keys]
        if keys:
            marks.append(Cited(*found.span(), tuple(keys)))
    outside = _BRACKETED.sub(_hide, text)
    for found in _PART.finditer(outside):  # "O'Neil 2017 found", of the list alone
        names = _Names.of(found, index)
        if names.are_known:
            marks.append(Cited(names.start, found.end(), names.keys))
    yield from sorted(marks)


@dataclass(frozen=True, slots=True)
class _Names:
    """What names with years cite: ``Lee et al., 2019, 2020``."""

    start: int  # of the first name
    keys: tuple[str, ...]
    are_known: bool  # whether the list has the first of them
    are_sure: bool  # whether they are of the list, or of several authors

    @classmethod
    def of(cls, found: re.Match[str], index: ReferenceIndex) -> Self:
        years, start = list(_list_years(found["years"])), found.start("name")
        others = re.findall(_NAME, found["between"] or "")
        named = [(start, one) for one in (found["name"], *others)]
        if body := _BODY.search(found.string, max(0, start - _LONGEST_BODY), start):
            words = found.string[body.start() : found.end("name")]
            heads = (one.start() for one in re.finditer(r"\S+\s+", words))
            named = [*((body.start() + head, words[head:]) for head in heads), *named]
        known = ((at, name, index.by_name(name, years[0])) for at, name in named)
        at, name, first = next((one for one in known if one[2]), (start, found["name"], None))
        has_comma = bool(found.groupdict().get("comma"))
        keys = [] if found["name"] in _MONTHS else [_name_key(name, one, index) for one in years]
        is_sure = bool(found["more"] or first)
        keys = [one for one in keys if is_sure or has_comma or "comma" not in found.groupdict()]
        return cls(at, tuple(keys), bool(first and keys), is_sure)


def _list_years(text: str) -> Iterator[str]:
    """Yield ``2019a, 2019b, 2020`` for ``2019a,b, 2020``."""
    year = ""
    for one in re.findall(rf"{_YEAR}\b|\b[a-z]\b", text):
        year = one if len(one) > 1 else f"{year[:4]}{one}"
        yield year


def _name_key(name: str, year: str, index: ReferenceIndex) -> str:
    known = index.by_name(name, year)
    return known.key if known else f"{name} {year}"
