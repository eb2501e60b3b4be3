"""Files of papers that are no JSON: the XML of the ACL Anthology, and BibTeX.

Source:
    https://github.com/acl-org/acl-anthology/blob/master/data/xml/schema.rnc
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from deepera_graph.errors import InputError
from deepera_graph.papers.importing import BAD_LINE, DAMAGED, ImportProblem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.text.bibtex import read_entries, split_authors
from deepera_graph.text.records import open_records

_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {name: f"{at:02}" for at, name in enumerate(_NAMES.split(), start=1)}
_OLD = re.compile(r"[A-Z]\d\d")
_WORD = re.compile(r"[a-z]+")


def read_acl(path: Path) -> Iterator[PaperRecord | ImportProblem]:
    """Yield the papers of a file in order; front matter is none."""
    place = 0
    with open_records(path) as (stream, _):
        try:
            for place, (element, id, about) in enumerate(_read_papers(stream), start=1):
                yield _paper_of_acl(place, element, id, about)
                element.clear()
        except InputError as error:
            yield ImportProblem(DAMAGED, place + 1, str(error))
        except ElementTree.ParseError as error:
            kind = DAMAGED if place else BAD_LINE
            yield ImportProblem(kind, place + 1, f"not XML: {error}")


def _read_papers(stream: Any) -> Iterator[tuple[Any, str, dict[str, str]]]:
    """Yield each paper with its id, and what its volume says of itself."""
    collection, volume, about = "", "", dict[str, str]()
    for event, element in ElementTree.iterparse(stream, events=("start", "end")):
        match event, element.tag:
            case "start", "collection":
                collection = element.get("id", "")
            case "start", "volume":
                volume, about = element.get("id", ""), {}
            case "end", "meta":
                about = {one.tag: "".join(one.itertext()).strip() for one in element}
            case "end", "paper":
                yield element, _name_paper(collection, volume, element), about


def _name_paper(collection: str, volume: str, element: Any) -> str:
    """Return the id of a paper, in the form of before 2020 or of after it."""
    number = element.get("id", "")
    if not _OLD.fullmatch(collection):
        return f"{collection}-{volume}.{number}"
    is_workshop = collection.startswith("W") or collection == "C69"
    whole = f"{volume:0>2}{number:0>2}" if is_workshop else f"{volume}{number:0>3}"
    return f"{collection}-{whole}"


def _paper_of_acl(
    place: int, element: Any, id: str, about: dict[str, str]
) -> PaperRecord | ImportProblem:
    def text(tag: str) -> str:
        found = element.find(tag)
        return "" if found is None else "".join(found.itertext())

    month = _WORD.search(about.get("month", "").lower())
    number = _MONTHS.get(month[0][:3]) if month else None
    year = about.get("year", "")
    venue = about.get("venue") or about.get("journal-title") or about.get("booktitle", "")
    return make_record(
        place,
        ids=[id],
        title=text("title"),
        abstract=text("abstract"),
        authors=[
            " ".join("".join(one.itertext()).split())
            if one.find("last") is None
            else " ".join(filter(None, [one.findtext("first"), one.findtext("last")]))
            for one in element.findall("author")
        ],
        year=year,
        date=f"{year}-{number}" if year and number else year,
        venue=venue,
        doi=text("doi"),
        url=f"https://aclanthology.org/{id}",
        source="acl",
    )


def read_bibtex(path: Path) -> Iterator[PaperRecord | ImportProblem]:
    """Yield the entries of a file in order; a paper is known by its DOI, its eprint or its key."""
    problem = None
    with open_records(path) as (stream, _):
        chunks: list[bytes] = []
        try:
            while chunk := stream.read(1 << 20):
                chunks.append(chunk)
        except InputError as error:
            problem = str(error)
    text = b"".join(chunks).decode("utf-8", "replace")
    place = 0
    for place, entry in enumerate(read_entries(text), start=1):
        bad = ImportProblem(BAD_LINE, place, entry.error)
        yield bad if entry.error else _paper_of_bibtex(place, entry.key, entry.fields)
    if problem is not None:
        yield ImportProblem(DAMAGED, place + 1, problem)


def _paper_of_bibtex(
    place: int, key: str, fields: Mapping[str, str]
) -> PaperRecord | ImportProblem:
    is_arxiv = "arxiv" in (fields.get("archiveprefix", "") + fields.get("eprinttype", "")).lower()
    eprint = fields.get("eprint", "") if is_arxiv else ""
    year, month = fields.get("year", ""), _MONTHS.get(fields.get("month", "")[:3].lower())
    doi = fields.get("doi", "")
    return make_record(
        place,
        ids=[doi, eprint and f"arXiv:{eprint}", key],
        title=fields.get("title", ""),
        abstract=fields.get("abstract", ""),
        authors=[_turn_name(one) for one in split_authors(fields.get("author", ""))],
        year=year or fields.get("date", ""),
        date=fields.get("date") or (f"{year}-{month}" if year and month else year),
        venue=fields.get("journal") or fields.get("booktitle") or fields.get("journaltitle"),
        categories=re.split(r"[;,]\s*", fields.get("keywords", "")),
        doi=doi,
        arxiv=eprint,
        url=fields.get("url", ""),
        source="bibtex",
    )


def _turn_name(name: str) -> str:
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}" if comma else name.strip()
