"""The ACL Anthology's XML, one file a collection of volumes.

Source:
    https://github.com/acl-org/acl-anthology/blob/master/data/xml/schema.rnc
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from deepera_graph.errors import InputError
from deepera_graph.papers.importing.reading import BAD_LINE, DAMAGED, ImportProblem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.text.files.records import open_records

_MONTHS = "january february march april may june july august september october november december"
_NUMBER = {name: f"{at:02}" for at, name in enumerate(_MONTHS.split(), start=1)}
_OLD = re.compile(r"[A-Z]\d\d")
_WORD = re.compile(r"[a-z]+")


def read_file(path: Path) -> Iterator[PaperRecord | ImportProblem]:
    """Yield the papers of a file in order; front matter is none.

    Raises:
        InputError: The file cannot be opened.
    """
    place = 0
    with open_records(path) as (stream, _):
        try:
            for place, (element, id, about) in enumerate(_read_papers(stream), start=1):
                yield _to_record(place, element, id, about)
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


def _to_record(
    place: int, element: Any, id: str, about: dict[str, str]
) -> PaperRecord | ImportProblem:
    def text(tag: str) -> str:
        found = element.find(tag)
        return "" if found is None else "".join(found.itertext())

    month = _WORD.search(about.get("month", "").lower())
    number = _NUMBER.get(month[0]) if month else None
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
