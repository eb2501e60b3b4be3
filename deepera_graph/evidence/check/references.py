"""The list of references of a manuscript: from files of citation managers, or as it is printed."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from deepera_graph.errors import InputError
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.paper_keys import family_key, family_name, title_key
from deepera_graph.literature.same_study import group_sources
from deepera_graph.text.jsonl import open_records, suffix_of
from deepera_graph.text.records import read_records
from deepera_graph.text.references import SURNAME, UPPER, find_year

BIBLIOGRAPHIES = (".bib", ".ris", ".nbib", ".json", ".csv")
FIELD = re.compile("\ue000(\\d+)\ue001")  # stands for a citation of a citation manager
_NUMBER = re.compile(r"\A\s*(?:\[(\d{1,4})\]|(\d{1,4})[.)])\s+")
_INSIDE = re.compile(r"(?:\A|\s)\[(\d{1,4})\]\s+(?=\S)")
_DOI = re.compile(r"10\.\d{4,9}/[^\s\"<>,;]+")
_PMID = re.compile(r"\bPMID:?\s*(\d{4,9})")
_ARXIV = re.compile(r"\barXiv:\s*(\S+?)[.,;]?(?=\s|$)", re.IGNORECASE)
_SERVER = re.compile(
    r"\b(?:(?:ar|bior|medr|chemr|psyar|techr|socar)xiv|research square|ssrn|authorea"
    r"|preprints\.org)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[“\"]([^”\"]{10,})[”\"]")
_YEAR_FIRST = re.compile(r"\(?\b(?:1[89]|20)\d\d[a-z]?\)?[.:,]?\s+(.{10,}?[.?!])(?=\s|$)")
_AFTER_INITIALS = re.compile(
    rf"""
    \A[^.:]{{3,200}}? (?: \b[{UPPER}]{{1,3}} | \bet\ al | (?:[{UPPER}]\.[ -]?){{1,3}} ) [.:]? \s+
    (?=[{UPPER}][\w-]+\ ) (.{{10,}}?[.?!]) (?=\s|\Z)
    """,
    re.VERBOSE,
)
_STOPS = re.compile(r"(?<=[^\s.]{2}[.?!])\s+")
_FAMILY = re.compile(  # also ``García Márquez``, where initials stand behind it
    rf"\A({SURNAME}(?:\s{SURNAME}(?=,?\s[{UPPER}]{{1,3}}[,.\s]))?)"
)
_NEW_ENTRY = re.compile(rf"\A{SURNAME},? [{UPPER}](?:[.{UPPER}]|, | \()")
_NOTE = re.compile(r" {0,3}\[\^([^\]\s]+)\]:[ \t]*")
_NOTED = re.compile(r"([.!?,;:]?)\[\^([^\]\s]+)\]")
_INLINE_NOTE = re.compile(r"\^\[((?:[^\[\]]|\[[^\[\]]*\])+)\]")
_MARK = re.compile(r"\[[^\[\]]*(?<!\w)@[^\[\]]+\]|\[\d[\d ,;–-]*\]|(?<![\w.])@\w[\w:-]*")
_IBID = re.compile(r"\W*(?:ibid|ibidem|loc\.\s?cit)\b", re.IGNORECASE)
_MOST_BESIDE, _MOST_OF_SHORT = 4, 8  # words of a note beside its citation; of "Lee 2019, p. 3"
_NO_BRACKETS = str.maketrans("", "", "()")
_CITED_NAME = re.compile(
    r"[\[(]?\s*(?P<names>[^\d()\[\]]{2,150}?)[\s,.:]*[\[(]?\s*(?P<year>(?:1[89]|20)\d\d)[a-z]?"
    r"(?:,\s*(?:pp?\.)?\s*[\d–-]+)?\s*[\])]*[.,;]?"
)
_ET_AL = re.compile(
    r"[\s,]*(?:\bet\.?\s+al(?:ii)?\b\.?|\band\s+(?:colleagues|co-?workers|others)\b)", re.IGNORECASE
)
_BETWEEN_NAMES = re.compile(r"\s*(?:[;,&]|\b(?:and|und|et|y)\b(?!['’-]))\s*")
_INITIALS = re.compile(rf"(?:[{UPPER}]\.?[\s-]?){{1,3}}")
_MOST_OF_NAME = 4  # words, and letters of a particle
_LEAST_LETTERS = 12  # of a line that may be a reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(PlainRecord):
    """An entry of the list of references."""

    key: str  # what the text cites it by: a key, or its number
    text: str  # as it is printed, or made up of its fields
    source: Citation  # what is known of the work
    abstract: str = ""  # of the work, if the file of references has it
    is_numbered: bool = False  # whether the list prints its number

    @classmethod
    def of_fields(cls, key: str, fields: Mapping[str, Any]) -> Self:
        """Make one of the fields of a file of references."""
        source = Citation.of(fields, key)
        return cls(key=key, text=str(source), source=source, abstract=fields.get("abstract", ""))

    @classmethod
    def of_text(cls, key: str, text: str, *, is_numbered: bool = False) -> Self:
        """Make one of a printed entry."""
        doi, pmid, arxiv = _DOI.search(text), _PMID.search(text), _ARXIV.search(text)
        title = _find_title(text)
        server = None if doi else _SERVER.search(text, text.find(title) + len(title))
        fields = {
            "title": title,
            "journal": server[0] if server else None,
            "authors": _find_authors(text),
            "year": find_year([text]),
            "doi": doi[0].rstrip(".)") if doi else None,
            "pmid": pmid[1] if pmid else None,
            "arxiv": arxiv[1] if arxiv else None,
        }
        known = {name: value for name, value in fields.items() if value}
        source, text = Citation.of(known, key), " ".join(text.split())
        return cls(key=key, text=text, source=source, is_numbered=is_numbered)

    @property
    def name(self) -> tuple[str, str]:
        """Family name of the first author, in the form that names are compared in, and year."""
        return family_key(self.source.authors), self.source.year


def read_bibliography(path: Path) -> list[Reference]:
    """Read a file of references: BibTeX, RIS, CSL-JSON, PubMed's form, or CSV as of Zotero."""
    if suffix_of(path) not in BIBLIOGRAPHIES:
        raise InputError(f"{path}: references must be {', '.join(BIBLIOGRAPHIES)}")
    if not path.is_file():
        raise InputError(f"no such file of references: {str(path)!r}")
    with open_records(path) as (source, _):
        records = [one.fields for one in read_records(source, suffix_of(path)) if one.fields]
    found = [
        Reference.of_fields(str(one.get("key") or one.get("id") or number), one)
        for number, one in enumerate(records, start=1)
    ]
    if not found:
        raise InputError(f"{path}: holds no reference")
    return found


def read_printed(lines: Iterable[str], *, wrapped: bool = False) -> list[Reference]:
    """Read the entries of a printed list; one without a number is cited by its place."""
    # *wrapped* lines are those of a page: one that begins with no number, and with no author below
    # a finished entry, goes on with the entry before it.
    entries: list[tuple[str, str]] = []
    is_numbered = False
    for number, text in (part for line in lines for part in _split_line(line)):
        is_numbered = is_numbered or bool(number)
        goes_on = wrapped and entries and not number and (is_numbered or _goes_on(entries, text))
        if goes_on:
            key, before = entries[-1]
            entries[-1] = key, f"{before} {text}"
        elif number or len(text) >= _LEAST_LETTERS:
            entries.append((number or str(len(entries) + 1), text))
    return [Reference.of_text(key, text, is_numbered=is_numbered) for key, text in entries]


def split_entries(text: str, number: str = "") -> list[str]:
    """Cut a paragraph that has an entry a line; a line that begins none goes on with the last."""
    # The *number* is that of a list that its form counts.
    if number and not _NUMBER.match(text):
        return [f"{number}. {' '.join(text.split())}"]
    entries: list[str] = []
    for line in text.splitlines():
        if entries and not _NUMBER.match(line) and _goes_on([("", entries[-1])], line.strip()):
            entries[-1] += f" {line.strip()}"
        else:
            entries.append(line.strip())
    return entries


def _split_line(line: str) -> list[tuple[str, str]]:
    """Return the entries of a line with their numbers: in Markdown several may share a line."""
    marks = list(_INSIDE.finditer(line))
    if marks and marks[0].start() == 0:
        ends = [one.start() for one in marks[1:]] + [len(line)]
        return [
            (one[1], line[one.end() : end].strip()) for one, end in zip(marks, ends, strict=True)
        ]
    number = _NUMBER.match(line)
    text = line[number.end() :] if number else line
    return [((number[1] or number[2]) if number else "", text.strip())] if text.strip() else []


def _goes_on(entries: Sequence[tuple[str, str]], text: str) -> bool:
    """Tell whether a line is the rest of the entry before it, or else begins with an author."""
    return find_year([entries[-1][1]]) is None or not _NEW_ENTRY.match(text)


def _find_title(text: str) -> str:
    if quoted := _QUOTED.search(text):
        return quoted[1].strip(" .,")
    if (dated := _YEAR_FIRST.search(text)) and len(dated[1].split()) > 2:
        return dated[1].strip(" .")
    if after := _AFTER_INITIALS.match(text):
        return after[1].strip(" .")
    parts = _STOPS.split(text)
    return parts[1].strip(" .") if len(parts) > 2 else ""


def _find_authors(text: str) -> str:
    """Return the first author, and that there are others."""
    family = _FAMILY.match(text)
    if not family:
        return ""
    head = re.split(r"\(?\b(?:1[89]|20)\d\d", text, maxsplit=1)[0]
    several = re.search(rf"\bet al|,? (?:and|&) |[{UPPER}]\.?, [{UPPER}]\w+", head)
    return f"{family[1]}; others" if several else family[1]


def write_notes(text: str) -> tuple[str, list[Reference]]:
    """Return Markdown with what its footnotes cite in the places of their marks, and references."""
    # A note that is a whole entry is a reference by itself, with ``^1`` as its key; one that cites,
    # and says no more, stands in the sentence; any other is a paragraph behind its own.
    body, notes = _cut_notes(text)
    references, marks, last = list[Reference](), dict[str, str](), ""
    for label, note in notes.items():
        rest = _MARK.sub(" ", note)
        if again := last if _IBID.match(note) else _find_noted(note, references):
            marks[label] = last = again
            continue
        has_doi = bool(_DOI.search(note))
        if rest != note and len(rest.split()) <= _MOST_BESIDE:
            bare = note.rstrip(" .")
            marks[label] = f" {bare}" if "[" in bare else f" [{bare}]"
        elif rest != note or not (has_doi or find_year([note])):
            marks[label] = ""
            end = body.find("\n\n", max(body.find(f"[^{label}]"), 0))
            end = len(body) if end < 0 else end
            body = f"{body[:end]}\n\n{note}{body[end:]}"
        elif len(note.split()) <= _MOST_OF_SHORT and not has_doi:
            marks[label] = f" ({note.translate(_NO_BRACKETS).rstrip(' .')})"
        else:
            marks[label] = last = f" [@{{^{label}}}]"
            references.append(Reference.of_text(f"^{label}", note))

    def write(found: re.Match[str]) -> str:  # before the stop: ``firm.[^1]``
        mark = marks.get(found[2])
        return found[0] if mark is None else f"{mark}{found[1]}"

    return _NOTED.sub(write, body), references


def _find_noted(note: str, references: Sequence[Reference]) -> str:
    """Return the mark of an earlier note that a short one names: ``Lund, "Wax on apples," 7``."""
    quoted = _QUOTED.search(note)
    title = title_key(quoted[1]) if quoted and find_year([note]) is None else ""
    found = (one for one in references if title and title in title_key(one.source.title))
    return next((f" [@{{{one.key}}}]" for one in found if one.source.title), "")


def _cut_notes(text: str) -> tuple[str, dict[str, str]]:
    """Return Markdown without its footnotes, and these by their labels; each is one paragraph."""
    notes, lines, label = dict[str, str](), list[str](), ""

    def label_inline(found: re.Match[str]) -> str:
        notes[f"note-{len(notes) + 1}"] = found[1]
        return f"[^note-{len(notes)}]"

    for line in _INLINE_NOTE.sub(label_inline, text).splitlines(keepends=True):
        begun = _NOTE.match(line)
        if begun:
            label = begun[1]
        elif not line.strip():
            label = ""
        if label:
            said = line[begun.end() if begun else 0 :].strip()
            notes[label] = said if begun else f"{notes[label]} {said}"
        else:
            lines.append(line)
    return "".join(lines), notes


class CitedName(NamedTuple):
    """Authors and year as they stand for a work: ``Okoro & Lind (2020)``."""

    names: tuple[frozenset[str], ...]  # words of the family names, in the form they are compared in
    year: str
    has_others: bool  # "et al."

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read a text that is names and a year, and nothing else."""
        found = _CITED_NAME.fullmatch(text.strip())
        if not found:
            return None
        bare = _ET_AL.sub("", found["names"])
        parts = [part.strip(" .") for part in _BETWEEN_NAMES.split(bare) if part.strip(" .")]
        names = [part for n, part in enumerate(parts) if not n or not _INITIALS.fullmatch(part)]
        if not names or not all(map(_is_surname, names)):
            return None
        keys = tuple(map(_words_of_name, names))
        return cls(keys, found["year"], bare != found["names"]) if all(keys) else None

    def choose(self, sources: Sequence[Citation]) -> list[int]:
        """Return the places of the sources that it may be; of several those of as many authors."""
        fitting = [place for place, one in enumerate(sources) if self._fits(one)]
        is_short = len(self.names) == 1 and not self.has_others  # which may leave others out
        as_many = [place for place in fitting if self._has_as_many(sources[place])]
        return fitting if is_short else as_many or fitting

    def _fits(self, source: Citation) -> bool:
        pairs = zip(self.names[:2], source.authors, strict=False)
        is_theirs = all(name <= _words_of_name(author) for name, author in pairs)
        return bool(source.authors) and source.year == self.year and is_theirs

    def _has_as_many(self, source: Citation) -> bool:
        n_authors = len(source.authors)
        return n_authors > len(self.names) if self.has_others else n_authors == len(self.names)


def _words_of_name(name: str) -> frozenset[str]:
    return frozenset(title_key(family_name(name)).split())


def _is_surname(name: str) -> bool:
    """Tell whether words are a name, and no title: all but particles begin with a capital."""
    *others, last = name.split()
    is_name = any(letter.isupper() for letter in last) or not last[0].isascii()
    return (
        is_name
        and len(others) < _MOST_OF_NAME
        and all(one[0].isupper() or len(one) < _MOST_OF_NAME for one in others)
    )


def _initials_of(reference: Reference) -> str:
    """Return ``WHO`` of an entry that begins with "World Health Organization"."""
    head = re.split(r"[.,(:\d]", reference.text, maxsplit=1)[0]
    return "".join(word[0] for word in head.split() if word[0].isupper())


class FieldCitation(NamedTuple):
    """A citation that a citation manager wrote: as the text shows it, and what it cites."""

    shown: str
    keys: tuple[str, ...]


class ReferenceIndex:
    """Finds the references that a text names, by name, key or the marks of *fields*, by number."""

    def __init__(
        self,
        references: Sequence[Reference],
        fields: Sequence[FieldCitation] = (),
        others: Sequence[Reference] = (),
    ) -> None:
        # *others* are looked at for what the references do not have.
        known, names = {one.key for one in references}, {one.name for one in references}
        self.fields = fields
        self._others = [one for one in others if one.key not in known]
        self.references = [*references, *self._others]
        self._by_key = {one.key: one for one in reversed(self.references)}
        self._by_name: dict[tuple[str, str], list[Reference]] = defaultdict(list)
        for one in (*references, *(one for one in self._others if one.name not in names)):
            self._by_name[one.name].append(one)
        for one in self.references:  # "Smith John A" is no double name: either word may be cited
            if words := title_key(one.source.authors[0]).split() if one.source.authors else []:
                self._by_name.setdefault((words[0], one.name[1]), [one])

    def list_used(self, keys: Iterable[str]) -> list[Reference]:
        """Return those of the others that keys name."""
        named = {*keys}
        return [one for one in self._others if one.key in named]

    @property
    def is_numbered(self) -> bool:
        """Whether a list prints the numbers of its references."""
        return any(one.is_numbered for one in self.references)

    def show(self, text: str) -> str:
        """Return a text with its citations as the manuscript shows them."""
        return FIELD.sub(lambda mark: self.fields[int(mark[1])].shown, text)

    def by_key(self, key: str) -> Reference | None:
        """Return the reference of a key or number."""
        return self._by_key.get(key)

    def by_name(self, family: str, year: str) -> Reference | None:
        """Return the reference of a first author and a year, ``2019b`` the second of that year."""
        found = self._by_name.get((family_key((family,)), year[:4]), [])
        found = found if " " not in family else self._list_of_body(title_key(family), year[:4])
        if not found and family.isupper() and len(family) > 1:
            found = self._list_of_body(family, year[:4])
        place = ord(year[4]) - ord("a") if len(year) > 4 else 0
        return found[min(place, len(found) - 1)] if found else None

    def _list_of_body(self, name: str, year: str) -> list[Reference]:
        """Return the references of a body by all words of its name, or by their first letters."""
        return [
            one
            for one in self.references
            if one.source.year == year
            and (f"{title_key(one.text)} ".startswith(f"{name} ") or _initials_of(one) == name)
        ]

    def duplicates(self) -> list[list[Reference]]:
        """Return the references that are of one work, in groups of two or more."""
        numbers = group_sources([one.source for one in self.references])
        groups: dict[object, list[Reference]] = defaultdict(list)
        for number, one in zip(numbers, self.references, strict=True):
            groups[number].append(one)
        by_text: dict[str, list[Reference]] = defaultdict(list)
        for one in self.references:
            by_text[title_key(one.text)].append(one)
        known = [group for group in groups.values() if len(group) > 1]
        said = {one.key for group in known for one in group}
        same = [g for g in by_text.values() if len(g) > 1 and not {one.key for one in g} & said]
        return known + same
