"""Which sentences of a manuscript cite which references, and what for."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from deepera_graph.evidence.check.marks import (
    NAMED,
    Cited,
    ManuscriptParagraph,
    MarkReader,
    hide_marks,
    write_raised,
)
from deepera_graph.evidence.check.references import FIELD, ReferenceIndex
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.literature.paper_keys import family_key
from deepera_graph.retrieval.documents.article import CELLS
from deepera_graph.text.references import UPPER
from deepera_graph.text.words import split_sentences, stems

Purpose = Literal["finding", "method", "review"]
_BRACED = re.compile(r"@\{([^{}]+)\}")
_NOTED = re.compile(r"\[@(\^[^\[\]]+)\]")
_BEHIND_STOP = re.compile(
    rf"([.!?])\s?((?:(?:{FIELD.pattern.replace('(', '(?:')})|\[[\d@][^\[\]]*\])+)"
    rf"(?=\s+[{UPPER}]|\s*\Z)"
)
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
# Words that lead to a citation: with no others a mark is of what is before, "See [3], but [4]".
_POINTING = re.compile(
    r"\b(?:see|but|also|and|compare|with|cf|e\.g|refs?|references?|therein|reviewed|in|by|for|an?"
    r"|recent|reviews?|more|further|details?|discussion|overview|examples?)\b\.?",
    re.IGNORECASE,
)
_LEAST_STEMS = 4  # of a clause that says something by itself
_LEAST_OF_CLAUSE = 2  # of one that is told from the others by its form
_MOST_LEADING = 2  # stems of "as shown by", before names with a comma behind them
_HANGING = re.compile(
    r"^[\s,;:.)(|]*(?:(?:and|but|while|whereas|or|although|though|yet)\b)?[\s,]*", re.IGNORECASE
)
_HANGS = re.compile(  # "firm [1], with an odds ratio of 2 [2]": no clause by itself
    r"(?:with|by|at|from|of|to|including|compared|ranging|corresponding|mainly|especially)\b",
    re.IGNORECASE,
)
# Where a clause begins: here at least; or else at a comma; or else at "and".
_PARTED = re.compile(
    r"[,;]\s*(?:and|or|yet)\b|(?:[,;]\s*)?\b(?:but|whereas|while|although|though)\b|;"
    r"|\A\s*(?:and|or)\b",
    re.IGNORECASE,
)
_MAY_PART = re.compile(r",|\band\b", re.IGNORECASE)
_ENDS_THERE = re.compile(r"\s*(?:\Z|[.;:!?)]|(?:and|or|but|than|whereas|while|as well)\b)")


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


def find_claims(paragraphs: Sequence[ManuscriptParagraph], index: ReferenceIndex) -> list[Claim]:
    """Return the claims of a manuscript in order; what has no citation is none."""
    reader, claims = MarkReader.of(paragraphs, index), list[Claim]()
    if "numbers" not in reader.styles:
        is_alone = not any(reader.find(one.text) for one in paragraphs)
        paragraphs = write_raised(paragraphs, index, is_alone=is_alone)
        reader = MarkReader.of(paragraphs, index)
    for one in (part for paragraph in paragraphs for part in _cut_row(paragraph, reader)):
        before = ""
        whole = _BEHIND_STOP.sub(r" \2\1", one.text)
        for sentence in split_sentences(_hide_stops(whole, reader.find(whole))):
            shown = whole[sentence.start : sentence.end]
            text = _Sentence(shown, reader.find(shown))
            for said, keys, purpose in _say_once([*_read_sentence(text, one, index)]):
                statement = said if stems(_POINTING.sub(" ", said)) else before
                if not statement:
                    continue
                claims.append(
                    Claim(
                        number=len(claims) + 1,
                        sentence=index.show(_NOTED.sub(r"[\1]", _BRACED.sub(r"@\1", text.text))),
                        statement=statement,
                        keys=keys,
                        purpose=purpose,
                        section=index.show(one.section),
                        page=one.page,
                    )
                )
            before = text.bare(0)
    return claims


def _cut_row(row: ManuscriptParagraph, reader: MarkReader) -> list[ManuscriptParagraph]:
    """Return a row of a table as its cells with citations, where each is a sentence by itself.

    Else it is the row without cells of numbers; a paragraph that is no row stays as it is.
    """
    cells = _BETWEEN_CELLS.split(row.text)
    if len(cells) < 2 or any(one.count("(") != one.count(")") for one in cells):
        return [row]
    read = [_Sentence(one, reader.find(one)) for one in cells]
    marked = [one for one in read if one.marks]
    if all(
        one.text[:1].isupper() and len(set(stems(one.bare(0)))) >= _LEAST_STEMS for one in marked
    ):
        return [row._replace(text=one.text) for one in marked]
    kept = [one.text for one in read if one.marks or _TOLD_IN_WORDS.search(one.text)]
    return [row._replace(text=CELLS.join(kept))]


_BETWEEN_CELLS = re.compile(r"(?:\A|\s)\|(?:\s|\Z)")  # also before and behind empty ones
_TOLD_IN_WORDS = re.compile(r"[^\W\d_]{3}")


def _hide_stops(text: str, marks: Sequence[Cited]) -> str:
    """Return a text of the same length in which no stop of a mark ends a sentence: ``pp. 3``."""
    for one in marks:
        inside = re.sub(r"[.!?]", "_", text[one.start : one.end])
        text = text[: one.start] + inside + text[one.end :]
    return text


class _Sentence(NamedTuple):
    text: str
    marks: Sequence[Cited]  # in order

    def bare(self, start: int, end: int | None = None) -> str:
        """Return a part without the marks in it."""
        end = len(self.text) if end is None else end
        text = self.text[:end]
        for mark in reversed(self.marks):
            if start <= mark.start and mark.end <= end:
                text = text[: mark.start] + text[mark.end :]
        bare = re.sub(r"\(\s*(?:see|e\.g\.|reviewed in|cf\.)?[\s,;]*\)", " ", text[start:])
        tidy = re.sub(r"[\s,;]+(?=[.;:)])|\s+(?=,)", "", " ".join(bare.split()))
        return _HANGING.sub("", tidy, count=1)


_Said = tuple[str, tuple[str, ...], Purpose]  # a statement, its keys and what they are cited for


def _say_once(found: Sequence[_Said]) -> list[_Said]:
    """Leave out what is said again with the same keys: "Lee [1] found that wax works [1]"."""
    return [
        one
        for place, one in enumerate(found)
        if not any(
            keys == one[1] and said and said.rstrip(" .") in one[0]
            for said, keys, _ in found[place + 1 :]
        )
    ]


def _read_sentence(
    sentence: _Sentence, place: ManuscriptParagraph, index: ReferenceIndex
) -> Iterator[_Said]:
    """Yield what is said with each group of citations; what stands side by side is one group."""
    groups = _join_marks(sentence)
    parts = _list_parts(sentence, groups, index)
    for place_of, (group, part) in enumerate(zip(groups, parts, strict=True)):
        is_last = place_of == len(groups) - 1
        up_to = len(sentence.text) if is_last else groups[place_of + 1][0].start
        said = _say(sentence, part, up_to)
        keys = tuple(dict.fromkeys(key for mark in group for key in mark.keys))
        before = sentence.bare(part.start, group[0].start)
        yield said, keys, _find_purpose(before, sentence.text, place.section, is_last=is_last)


class _Part(NamedTuple):
    """What of a sentence is said with a group of citations."""

    start: int
    end: int
    is_behind: bool  # "Lee (2020) found that wax works", where others have it before the mark
    is_clause: bool  # whether it is a clause by itself, also a short one


def _list_parts(
    sentence: _Sentence, groups: Sequence[Sequence[Cited]], index: ReferenceIndex
) -> list[_Part]:
    """Return what of a sentence is said with each group: from where to where."""
    text, parts = sentence.text, list[_Part]()
    for group in groups:
        before = parts[-1] if parts else _Part(0, 0, is_behind=False, is_clause=False)
        name = _find_subject(text, group[0], index)
        gap = text[before.end : name]
        is_behind = name >= 0 and _is_told_behind(sentence, before.end, name, group[-1].end)
        cut, bounds = before.end, list[re.Match[str]]()
        if is_behind and parts:
            cut += _cut_clause(gap)
            parts[-1] = before._replace(end=cut)
        elif before.is_behind:
            if bounds := [*_PARTED.finditer(text[before.end : group[0].start])]:
                cut += bounds[-1].start()
            parts[-1] = before._replace(end=cut if bounds else group[0].start)
        begins = text[before.end : group[0].start].lstrip(") ]").startswith(";")
        is_clause = is_behind or bool(bounds) or bool(parts and begins)
        parts.append(_Part(cut, group[-1].end, is_behind, is_clause))
    if parts:
        parts[-1] = parts[-1]._replace(end=len(text))
    return parts


def _find_subject(sentence: str, mark: Cited, index: ReferenceIndex) -> int:
    """Return where the names that a mark belongs to begin; -1 if it stands without any."""
    if sentence[mark.start] not in "[(\ue000":
        return mark.start
    known, found = index.by_key(mark.keys[0]), NAMED.search(sentence[: mark.start])
    is_first = known and found and family_key((found["name"],)) == known.name[0]
    return found.start() if found and is_first else -1


def _is_told_behind(sentence: _Sentence, start: int, name: int, end: int) -> bool:
    """Tell whether what is said with names, and what follows them up to *end*, stands behind."""
    after = sentence.text[end:]
    if _ENDS_THERE.match(after):
        return False
    if after.startswith(","):
        return len(set(stems(sentence.bare(start, name)))) <= _MOST_LEADING
    before = sentence.text[start:name]
    breaks = [*_PARTED.finditer(before), *_MAY_PART.finditer(before)]
    return not stems(before[max((one.end() for one in breaks), default=0) :])


def _cut_clause(gap: str) -> int:
    """Return where the clause begins that goes on behind a text; 0 if that is all of it."""
    for sign in (_PARTED, _MAY_PART):
        if found := [*sign.finditer(gap)]:
            return found[-1].start()
    return 0


def _join_marks(sentence: _Sentence) -> list[list[Cited]]:
    groups: list[list[Cited]] = []
    for mark in sentence.marks:
        gap = sentence.text[groups[-1][-1].end : mark.start] if groups else "none"
        if gap.strip(" ,;") in ("", "and", "&", "or", "as well as"):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def _say(sentence: _Sentence, part: _Part, up_to: int) -> str:
    """Return a clause without marks; one that says too little goes with what is around it."""
    least = _LEAST_OF_CLAUSE if part.is_clause else _LEAST_STEMS
    # What is before a semicolon is said by itself, but not in "(Lee, 2019; see Roy, 2020, p. 3)".
    begin = hide_marks(sentence.text, sentence.marks).rfind("; ", 0, part.start) + 1
    for start, end in (
        (part.start, part.end),
        (begin, part.end),
        (part.start, up_to),
        (begin, None),
        (0, None),
    ):
        said = sentence.bare(start, end)
        hangs = start == part.start and start > begin and _HANGS.match(said)
        if len(set(stems(said))) >= least and not hangs:
            break
    return said


def _find_purpose(before: str, sentence: str, section: str, *, is_last: bool) -> Purpose:
    if _REVIEW.search(sentence):
        return "review"
    if _METHOD.search(before.rstrip(" ([,;")):
        return "method"
    in_methods = bool(_METHODS_SECTION.search(section))
    return "method" if in_methods and _DOING.search(sentence) else "finding"
