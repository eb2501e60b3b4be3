"""BibTeX as reference managers and publishers export it."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from deepera_graph.errors import InputError
from deepera_graph.papers.importing.reading import BAD_LINE, DAMAGED, ImportProblem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.text.files.bibtex import read_entries, split_authors
from deepera_graph.text.files.records import open_records

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_NUMBER = {name: f"{at:02}" for at, name in enumerate(_MONTHS.split(), start=1)}


def read_file(path: Path) -> Iterator[PaperRecord | ImportProblem]:
    """Yield the entries of a file in order; a paper is known by its DOI, its eprint or its key.

    Raises:
        InputError: The file cannot be opened.
    """
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
        yield bad if entry.error else _to_record(place, entry.key, entry.fields)
    if problem is not None:
        yield ImportProblem(DAMAGED, place + 1, problem)


def _to_record(place: int, key: str, fields: Mapping[str, str]) -> PaperRecord | ImportProblem:
    is_arxiv = "arxiv" in (fields.get("archiveprefix", "") + fields.get("eprinttype", "")).lower()
    eprint = fields.get("eprint", "") if is_arxiv else ""
    year, month = fields.get("year", ""), _NUMBER.get(fields.get("month", "")[:3].lower())
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
