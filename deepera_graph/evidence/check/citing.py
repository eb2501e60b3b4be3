"""Which sentences of a manuscript cite which references, and what for."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from deepera_graph.evidence.check.references import FIELD, ReferenceIndex
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.literature.paper_keys import family_key
from deepera_graph.text.references import PARTICLES
from deepera_graph.text.words import split_sentences, stems

Purpose = Literal["finding", "method", "review"]
Style = Literal["keys", "numbers", "names"]
_KEY = r"[\w][\w:.#$%&+?<>~/-]*"
_KEYED = re.compile(
    rf"\[(?P<group>[^\[\]]*@[^\[\]]+)\]|(?<![\w.@])@(?:\{{(?P<braced>[^{{}}]+)\}}|(?P<bare>{_KEY}))"
)
_BRACED = re.compile(r"@\{([^{}]+)\}")
_IN_GROUP = re.compile(rf"@(?:\{{([^{{}}]+)\}}|({_KEY}))")
_NUMBERED = re.compile(r"\[\s*(\d{1,4}(?:\s*[-–—,;]\s*\d{1,4})*)\s*\]")
_NO_CITATION = re.compile(r"(?:\bCI|\brange|\bIQR|\binterval|[=:≈~])\s*$", re.IGNORECASE)
_NAME = rf"{PARTICLES}[A-ZÀ-Þ][\w'’-]*\w(?<!['’]s)"
_COLLEAGUES = r"(?:colleagues|co-?workers|collaborators|others)"
_OTHERS = rf"(?:,?\s+(?P<more>(?:and|&)\s(?:{_NAME}|{_COLLEAGUES})|et\sal\.?))?(?:['’]s)?"
_NARRATIVE = re.compile(
    rf"(?P<name>{_NAME}){_OTHERS}\s+\((?P<years>(?:19|20)\d\d[a-z]?"
    r"(?:\s*[,;]\s*(?:19|20)\d\d[a-z]?)*)(?:[,:]\s*(?:pp?\.|chap\w*\.?|table|fig\w*\.?)?\s?[\d–-]+)?\)"
)
_NAMED = re.compile(rf"(?P<name>{_NAME}){_OTHERS}\s*\Z")
_BRACKETED = re.compile(r"\(([^()]*\b(?:19|20)\d\d[a-z]?[^()]*)\)")
_PART = re.compile(
    rf"(?P<name>{_NAME}){_OTHERS}(?P<comma>,?)\s+(?P<years>(?:19|20)\d\d[a-z]?"
    r"(?:\s*,\s*(?:(?:19|20)\d\d[a-z]?|[a-z]\b))*)"
)
_YEARS = re.compile(r"(?:19|20)\d\d[a-z]?")
_MONTHS = frozenset(
    """
    January February March April May June July August September October November December In
    Since Until Before After By From During Between
    """.split()  # noqa: SIM905
)
_BEHIND_STOP = re.compile(
    rf"([.!?])\s?((?:(?:{FIELD.pattern.replace('(', '(?:')})|\[[\d@][^\[\]]*\])+)(?=\s+[A-Z]|\s*\Z)"
)
# A raised number whose place is lost, as in the text of a PDF: ``firm1,2.`` or ``firm.1-3 Then``.
_RAISED = re.compile(
    r"(?P<word>[a-zà-ÿ]{2}[)\]”’]?|\)|%)(?P<stop>[.,;:]?)"
    r"(?P<numbers>\d{1,3}(?:\s?[-–,]\s?\d{1,3})*)(?=[.,;:)]?(?:\s|\Z))"
)
_NAMED_NUMBER = re.compile(
    r"\b(?:figs?|figures?|tables?|eqs?|nos?|vols?|refs?|sects?|pp?|steps?|days?|weeks?|version"
    r"|types?|grades?|phases?|groups?|chapters?)\.?\Z",
    re.IGNORECASE,
)
_LEAST_RAISED = 2  # marks that are no chance
_MOST_IN_RANGE = 100
_METHOD = re.compile(
    r"""
    \b(?:using|used|via|with\s+the\s+(?:aid|help)\s+of|by\s+means\s+of|employing|applying)\b
        (?:\s+(?!to\b|showed|found|reduc|increas|lower)[\w./-]+){1,5}\s*(?:\([^()]*\)\s*)?$
  | \b(?:according\s+to|following|as\s+in|adapted\s+from|based\s+on)\s+
        (?:the\s+)?(?:\w+\s+){0,4}(?:methods?|protocols?|procedures?|guidelines?|criteria|manual)
        (?:\s+of)?(?:\s+[\w.]+){0,4}\s*$
  | \b(?:as\s+)?(?:previously\s+|elsewhere\s+)?described(?:\s+(?:previously|before|elsewhere|in
        |by(?:\s+[\w.]+){1,4}))*\s*$
  | \b(?:software|package|library|toolbox|pipeline|algorithm|protocol|assay|kit|questionnaire|scale
        |instrument|database|test|statement|guidelines?)(?:,?\s+v(?:ersion)?\.?\s*[\d.]+)?
        \s*(?:\([^()]*\)\s*)?$
    """,
    re.VERBOSE | re.IGNORECASE,
)
_DOING = re.compile(
    r"\b(?:we|were|was|is|are)\s+(?:\w+ly\s+)?(?:used|performed|measured|calculated|computed|"
    r"assessed|analy[sz]ed|aligned|mapped|recorded|scored|extracted|estimated|fitted|carried|"
    r"implemented|obtained|determined|sequenced|trimmed|quantified|classified)\b",
    re.IGNORECASE,
)
_METHODS_SECTION = re.compile(r"method|material|statistic|protocol|procedure", re.IGNORECASE)
_REVIEW = re.compile(
    r"\b(?:reviewed\s+(?:in|by|elsewhere)|for\s+(?:a\s+)?(?:recent\s+)?reviews?|see\s+(?:also\s+)?"
    r"(?:the\s+)?reviews?|review(?:s|ed)?\s*,?\s*see)\b",
    re.IGNORECASE,
)
_LEAST_STEMS = 4  # of a clause that says something by itself
_LEAST_OF_CLAUSE = 2  # of one that is told from the others by its form
_MOST_LEADING = 2  # stems of "as shown by", before names with a comma behind them
_HANGING = re.compile(
    r"^[\s,;:.)(]*(?:(?:and|but|while|whereas|or|although|though|yet)\b)?[\s,]*", re.IGNORECASE
)
# Where a clause begins: here at least; or else at a comma; or else at "and".
_PARTED = re.compile(
    r"[,;]\s*(?:and|or|yet)\b|(?:[,;]\s*)?\b(?:but|whereas|while|although|though)\b|;"
    r"|\A\s*(?:and|or)\b",
    re.IGNORECASE,
)
_MAY_PART = re.compile(r",|\band\b", re.IGNORECASE)
_ENDS_THERE = re.compile(r"\s*(?:\Z|[.;:!?)]|(?:and|or|but|than|whereas|while|as well)\b)")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(PlainRecord):
    """A sentence, or a part of one, and what it cites."""

    number: int  # in the order of the manuscript, from 1
    sentence: str  # as it stands in the manuscript
    statement: str  # what is said with these citations, without their marks
    keys: tuple[str, ...]  # what it cites, each once
    # ``finding``; ``method``: a tool or procedure is named, which proves nothing; ``review``: it is
    # cited as an overview
    purpose: Purpose = "finding"
    section: str = ""  # the heading that it stands under, if any
    page: str = ""  # of the manuscript, if it has pages


def find_style(paragraphs: Sequence[ManuscriptParagraph], index: ReferenceIndex) -> Style:
    """Return how a manuscript cites: by keys, by numbers, or by names and years."""
    texts = [FIELD.sub("", one.text) for one in paragraphs]
    if any(any(_find_keys(text, index)) for text in texts):
        return "keys"
    if any(any(_find_numbers(text, index)) for text in texts):
        return "numbers"
    return "names"


def find_claims(paragraphs: Sequence[ManuscriptParagraph], index: ReferenceIndex) -> list[Claim]:
    """Return the claims of a manuscript in order; what has no citation is none."""
    style, claims = find_style(paragraphs, index), list[Claim]()
    if style == "names" and not any(find_marks(one.text, style, index) for one in paragraphs):
        style, paragraphs = "numbers", write_raised(paragraphs, index)
    for one in paragraphs:
        before = ""
        for sentence in split_sentences(_BEHIND_STOP.sub(r" \2\1", one.text)):
            for said, keys, purpose in _read_sentence(sentence.text, one, style, index):
                statement = said if stems(said) else before  # marks alone are of what is before
                if not statement:
                    continue
                claims.append(
                    Claim(
                        number=len(claims) + 1,
                        sentence=index.show(_BRACED.sub(r"@\1", sentence.text)),
                        statement=statement,
                        keys=keys,
                        purpose=purpose,
                        section=index.show(one.section),
                        page=one.page,
                    )
                )
            before = _strip_marks(sentence.text, style, index)
    return claims


def write_raised(
    paragraphs: Sequence[ManuscriptParagraph], index: ReferenceIndex
) -> Sequence[ManuscriptParagraph]:
    """Write raised numbers that follow a word as ``[1,2]``, if all that do are of the list."""
    n_marks = 0

    def mark(found: re.Match[str]) -> str:
        nonlocal n_marks
        head = f"{found.string[max(0, found.start() - 12) : found.start()]}{found['word']}"
        keys = _expand(found["numbers"])
        if _NAMED_NUMBER.search(f"{head}{found['stop']}") or not all(map(index.by_key, keys)):
            return found[0]
        n_marks += 1
        numbers = "".join(found["numbers"].split())
        return f"{found['word']} [{numbers}]{found['stop']}"

    written = [one._replace(text=_RAISED.sub(mark, one.text)) for one in paragraphs]
    return written if n_marks >= _LEAST_RAISED else paragraphs


def find_marks(text: str, style: Style, index: ReferenceIndex) -> list[Cited]:
    """Return the citations of a text in order."""
    # Manuscripts mix their styles: a text without a key or number may cite by name and year.
    find = {"keys": _find_keys, "numbers": _find_numbers, "names": _find_names}[style]
    fields = [
        Cited(*one.span(), index.fields[int(one[1])].keys)
        for one in (FIELD.finditer(text) if index.fields else ())
    ]
    if not fields:
        return list(find(text, index)) or list(_find_names(text, index, is_sure=True))
    others = FIELD.sub(lambda mark: "\ue000" * len(mark[0]), text)
    return sorted([*fields, *find(others, index)])


def _find_keys(text: str, index: ReferenceIndex) -> Iterator[Cited]:
    for found in _KEYED.finditer(text):
        parts = _IN_GROUP.findall(found["group"]) if found["group"] else []
        keys = [braced or bare for braced, bare in parts] or [found["braced"] or found["bare"]]
        if found["bare"] and not index.by_key(keys[0].rstrip(".:,")):
            continue  # part of a mail address, or a name on a social network
        yield Cited(*found.span(), tuple(key.rstrip(".:,") for key in keys if key))


def _find_numbers(text: str, index: ReferenceIndex) -> Iterator[Cited]:
    for found in _NUMBERED.finditer(text):
        if not _NO_CITATION.search(text[: found.start()]):
            yield Cited(*found.span(), tuple(_expand(found[1])))


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
    marks = [
        Cited(
            *one.span(),
            tuple(_name_key(one["name"], year, index) for year in _YEARS.findall(one["years"])),
        )
        for one in _NARRATIVE.finditer(text)
        if not is_sure or one["more"] or index.by_name(one["name"], _YEARS.findall(one["years"])[0])
    ]
    for found in _BRACKETED.finditer(text):
        parts = [
            one
            for one in _PART.finditer(found[1])
            if not is_sure or one["more"] or index.by_name(one["name"], _YEARS.findall(one[0])[0])
        ]
        keys = [key for one in parts for key in _keys_of_part(one, index)]
        if keys:
            marks.append(Cited(*found.span(), tuple(keys)))
    yield from sorted(marks)


def _keys_of_part(found: re.Match[str], index: ReferenceIndex) -> Iterator[str]:
    """Yield the keys of ``Lee et al., 2019, 2020``; none of a date."""
    if found["name"] in _MONTHS:
        return
    for year in _YEARS.findall(found["years"]):
        if found["more"] or found["comma"] or index.by_name(found["name"], year):
            yield _name_key(found["name"], year, index)


def _name_key(name: str, year: str, index: ReferenceIndex) -> str:
    known = index.by_name(name, year)
    return known.key if known else f"{name} {year}"


def _read_sentence(
    sentence: str, place: ManuscriptParagraph, style: Style, index: ReferenceIndex
) -> Iterator[tuple[str, tuple[str, ...], Purpose]]:
    """Yield what is said with each group of citations; what stands side by side is one group."""
    groups = _join_marks(sentence, find_marks(sentence, style, index))
    parts = _list_parts(sentence, groups, style, index)
    for place_of, (group, part) in enumerate(zip(groups, parts, strict=True)):
        is_last = place_of == len(groups) - 1
        up_to = len(sentence) if is_last else groups[place_of + 1][0].start
        said = _say(sentence, part, up_to, style, index)
        keys = tuple(dict.fromkeys(key for mark in group for key in mark.keys))
        before = _strip_marks(sentence[part.start : group[0].start], style, index)
        yield said, keys, _find_purpose(before, sentence, place.section, is_last=is_last)


class _Part(NamedTuple):
    """What of a sentence is said with a group of citations."""

    start: int
    end: int
    is_behind: bool  # "Lee (2020) found that wax works", where others have it before the mark
    is_clause: bool  # whether it is a clause by itself, also a short one


def _list_parts(
    sentence: str, groups: Sequence[Sequence[Cited]], style: Style, index: ReferenceIndex
) -> list[_Part]:
    """Return what of a sentence is said with each group: from where to where."""
    parts: list[_Part] = []
    for group in groups:
        before = parts[-1] if parts else _Part(0, 0, is_behind=False, is_clause=False)
        name = _find_subject(sentence, group[0], index)
        gap = sentence[before.end : name]
        is_behind = name >= 0 and _is_told_behind(gap, sentence[group[-1].end :], style, index)
        cut, bounds = before.end, list[re.Match[str]]()
        if is_behind and parts:
            cut += _cut_clause(gap)
            parts[-1] = before._replace(end=cut)
        elif before.is_behind:
            if bounds := [*_PARTED.finditer(sentence[before.end : group[0].start])]:
                cut += bounds[-1].start()
            parts[-1] = before._replace(end=cut if bounds else group[0].start)
        parts.append(_Part(cut, group[-1].end, is_behind, is_behind or bool(bounds)))
    if parts:
        parts[-1] = parts[-1]._replace(end=len(sentence))
    return parts


def _find_subject(sentence: str, mark: Cited, index: ReferenceIndex) -> int:
    """Return where the names that a mark belongs to begin; -1 if it stands without any."""
    if sentence[mark.start] not in "[(\ue000":
        return mark.start
    known, found = index.by_key(mark.keys[0]), _NAMED.search(sentence[: mark.start])
    is_first = known and found and family_key((found["name"],)) == known.name[0]
    return found.start() if found and is_first else -1


def _is_told_behind(before: str, after: str, style: Style, index: ReferenceIndex) -> bool:
    """Tell whether what is said with names stands behind them."""
    if _ENDS_THERE.match(after):
        return False
    if after.startswith(","):
        return len(set(stems(_strip_marks(before, style, index)))) <= _MOST_LEADING
    breaks = [*_PARTED.finditer(before), *_MAY_PART.finditer(before)]
    return not stems(before[max((one.end() for one in breaks), default=0) :])


def _cut_clause(gap: str) -> int:
    """Return where the clause begins that goes on behind a text; 0 if that is all of it."""
    for sign in (_PARTED, _MAY_PART):
        if found := [*sign.finditer(gap)]:
            return found[-1].start()
    return 0


def _join_marks(sentence: str, marks: Sequence[Cited]) -> list[list[Cited]]:
    groups: list[list[Cited]] = []
    for mark in marks:
        gap = sentence[groups[-1][-1].end : mark.start] if groups else "none"
        if gap.strip(" ,;") in ("", "and", "&", "or", "as well as"):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def _say(sentence: str, part: _Part, up_to: int, style: Style, index: ReferenceIndex) -> str:
    """Return a clause without marks; one that says too little goes with what is around it."""
    least = _LEAST_OF_CLAUSE if part.is_clause else _LEAST_STEMS
    for start, end in ((part.start, part.end), (0, part.end), (part.start, up_to), (0, None)):
        said = _strip_marks(sentence[start:end], style, index)
        if len(set(stems(said))) >= least:
            break
    return said


def _strip_marks(text: str, style: Style, index: ReferenceIndex) -> str:
    for mark in reversed(find_marks(text, style, index)):
        text = text[: mark.start] + text[mark.end :]
    bare = re.sub(r"\(\s*(?:see|e\.g\.|reviewed in|cf\.)?[\s,;]*\)", " ", text)
    tidy = re.sub(r"[\s,;]+(?=[.;:)])|\s+(?=,)", "", " ".join(bare.split()))
    return _HANGING.sub("", tidy, count=1)


def _find_purpose(before: str, sentence: str, section: str, *, is_last: bool) -> Purpose:
    if _REVIEW.search(sentence):
        return "review"
    if _METHOD.search(before.rstrip(" ([,;")):
        return "method"
    in_methods = bool(_METHODS_SECTION.search(section))
    return "method" if in_methods and _DOING.search(sentence) else "finding"
