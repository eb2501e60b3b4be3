"""Records of papers in JSON or tables, with the fields of `Paper` or as services write them.

And what is no JSON: the XML of the ACL Anthology, and BibTeX.

Source:
    arXiv: https://info.arxiv.org/help/bulk_data.html; OpenAlex:
    https://docs.openalex.org/api-entities/works/work-object; Semantic Scholar:
    https://api.semanticscholar.org/api-docs/graph and https://github.com/allenai/s2orc; ACL:
    https://github.com/acl-org/acl-anthology/blob/master/data/xml/schema.rnc
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from deepera_graph.errors import InputError
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.importing import (
    BAD_LINE,
    DAMAGED,
    FIELDS,
    NO_ID,
    ImportProblem,
    alone,
    list_in,
    make_record,
    object_in,
    objects_in,
    text_of,
)
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.passages import ID_FIELDS, field_key, has_value
from deepera_graph.text.bibtex import read_entries, split_authors
from deepera_graph.text.jsonl import open_records

_NAMES: Mapping[str, Sequence[str]] = FIELDS["names"]
_PAPER_IDS = (*_NAMES["arxiv"], "doi", "pmid", "key")
_MOST_NAMED = 12  # fields of a record, in a message
_key_of = lru_cache(maxsize=4096)(field_key)


def from_plain(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of one object or row, with `references`."""
    # Fields are found in any case and under the names that exports of Zotero, Scopus and PubMed
    # have, so that a file that `deepera index` reads makes a base as well.
    known: dict[str, Any] = {}
    for name, value in fields.items():
        if has_value(value):
            known.setdefault(_key_of(str(name)), value)
    cited, own = known.get("references"), _find(known, ID_FIELDS)
    made = make_record(
        place,
        ids=[own, *_list_of(known.get("aliases"))] if own else _paper_ids(known),
        references=_list_of(cited),
        **{name: _find(known, names) or "" for name, names in _NAMES.items()},
    )
    if isinstance(made, ImportProblem) and made.kind == NO_ID:
        return made._replace(detail=_describe_no_id(fields))
    return made


def _find(known: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((known[_key_of(name)] for name in names if _key_of(name) in known), None)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _paper_ids(known: Mapping[str, Any]) -> list[Any]:
    """Return ids that papers have elsewhere; no key that is a number, as other libraries have."""
    pmid, key = known.get("pmid"), str(known.get("key") or "")
    return [
        _find(known, _NAMES["arxiv"]),
        known.get("doi"),
        pmid and f"PMID:{pmid}",
        "" if key.isdecimal() else key,
    ]


def _describe_no_id(fields: Mapping[str, Any]) -> str:
    found = ", ".join(list(map(str, fields))[:_MOST_NAMED]) or "nothing"
    expected = ", ".join((*ID_FIELDS, *_PAPER_IDS))
    return f"the paper has no id; expected one of {expected}, found {found}"


@alone
def from_arxiv(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of one object, dated by its first version."""
    id = fields.get("id")
    journal = fields.get("journal-ref")
    categories = fields.get("categories")
    return make_record(
        place,
        ids=[id, fields.get("doi")],
        title=fields.get("title"),
        abstract=fields.get("abstract"),
        authors=_read_authors(fields),
        date=_read_first_date(fields),
        venue=journal,
        categories=categories.split() if isinstance(categories, str) else categories or (),
        doi=fields.get("doi"),
        arxiv=id,
        url=f"https://arxiv.org/abs/{id}" if id else "",
        source="arxiv",
    )


def _read_authors(fields: Mapping[str, Any]) -> list[str]:
    parsed = fields.get("authors_parsed")
    if isinstance(parsed, list):
        return [" ".join(filter(None, map(text_of, _turn_name(one)))) for one in parsed if one]
    given = fields.get("authors")
    if isinstance(given, list):
        return list(map(str, given))
    return [one.strip() for one in str(given or "").replace(" and ", ", ").split(",")]


def _turn_name(parts: Any) -> list[Any]:
    if not isinstance(parts, list):
        raise InputError(f"authors_parsed must be a list of lists, got {parts!r:.60} in it")
    return [*parts[1:2], *parts[:1], *parts[2:3]]


def _read_first_date(fields: Mapping[str, Any]) -> str:
    """Return the day of version 1, which is a date as in mail; or that of the last change."""
    versions = fields.get("versions")
    first = versions[0] if isinstance(versions, list) and versions else {}
    try:
        return parsedate_to_datetime(str(first.get("created"))).date().isoformat()
    except (ValueError, TypeError, AttributeError, OverflowError):
        return str(fields.get("published") or fields.get("update_date") or "")


@alone
def from_openalex(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of one work; its id is that of OpenAlex, such as W2741809807."""
    where = object_in(fields, "primary_location")
    source = object_in(where, "source") or object_in(fields, "host_venue")
    addresses = [where.get("landing_page_url"), fields.get("doi")]
    addresses += [one.get("landing_page_url") for one in objects_in(fields, "locations")]
    arxiv = next((id for id in map(_find_arxiv, addresses) if id), "")
    doi = normalize_id(str(fields.get("doi") or ""))
    return make_record(
        place,
        ids=[fields.get("id"), doi, arxiv],
        title=fields.get("title") or fields.get("display_name"),
        abstract=_read_abstract(fields),
        authors=[
            object_in(one, "author").get("display_name") or one.get("raw_author_name")
            for one in objects_in(fields, "authorships")
        ],
        year=fields.get("publication_year"),
        date=fields.get("publication_date"),
        venue=source.get("display_name"),
        categories=[one.get("display_name") for one in objects_in(fields, "topics", "concepts")],
        doi=doi if doi.startswith("10.") else "",
        arxiv=arxiv,
        url=where.get("landing_page_url") or fields.get("doi"),
        source="openalex",
        references=list_in(fields, "referenced_works"),
    )


def _read_abstract(fields: Mapping[str, Any]) -> str:
    """Put the words of an inverted index in their places."""
    index = object_in(fields, "abstract_inverted_index")
    if not index:
        return str(fields.get("abstract") or "")
    placed = [(at, word) for word in index for at in list_in(index, word) if isinstance(at, int)]
    return " ".join(word for _, word in sorted(placed))


def _find_arxiv(address: Any) -> str:
    text = str(address or "")
    return normalize_id(text) if "arxiv" in text.lower() else ""


_OTHER_IDS = {"DOI": "doi", "ArXiv": "arxiv", "ACL": "acl", "CorpusId": "corpus"}


@alone
def from_semantic_scholar(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of one object; its id is that of arXiv, or of the ACL, or its own."""
    known = _read_ids(fields)
    corpus = f"CorpusId:{known['corpus']}" if known.get("corpus") else ""
    own = fields.get("paperId") or fields.get("paper_id") or corpus
    abstract = fields.get("abstract")
    return make_record(
        place,
        ids=[known.get("arxiv"), known.get("acl"), own, corpus, known.get("doi")],
        title=fields.get("title"),
        abstract=_join_parts(abstract) if isinstance(abstract, list) else abstract,
        authors=[_name(one) for one in list_in(fields, "authors")],
        year=fields.get("year"),
        date=fields.get("publicationDate") or fields.get("publicationdate"),
        venue=fields.get("venue") or fields.get("journal_name") or fields.get("journalName"),
        categories=_read_fields(fields),
        doi=known.get("doi"),
        arxiv=known.get("arxiv"),
        url=fields.get("url"),
        source="s2",
        references=_read_references(fields),
    )


def _read_ids(fields: Mapping[str, Any]) -> dict[str, str]:
    given = object_in(fields, "externalIds") or object_in(fields, "externalids")
    known = {ours: given.get(theirs) for theirs, ours in _OTHER_IDS.items()}
    known["doi"] = known["doi"] or fields.get("doi")
    known["arxiv"] = known["arxiv"] or fields.get("arxiv_id") or fields.get("arxivId")
    known["acl"] = known["acl"] or fields.get("acl_id")
    known["corpus"] = known["corpus"] or fields.get("corpusid") or fields.get("corpusId")
    return {name: str(value) for name, value in known.items() if value}


def _name(author: Any) -> Any:
    """Return a name; S2ORC has it in parts."""
    if not isinstance(author, Mapping) or author.get("name"):
        return author
    parts = [author.get("first"), *list_in(author, "middle"), author.get("last")]
    return " ".join(str(part) for part in parts if part)


def _join_parts(parts: list[Any]) -> str:
    return " ".join(str(part.get("text") or "") for part in parts if isinstance(part, Mapping))


def _read_fields(fields: Mapping[str, Any]) -> list[str]:
    given = list_in(fields, "fieldsOfStudy", "s2fieldsofstudy", "mag_field")
    names = [
        str(one.get("category") or "") if isinstance(one, Mapping) else str(one) for one in given
    ]
    return list(dict.fromkeys(filter(None, names)))


def _read_references(fields: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what is cited, by whatever ids: which of them the base knows the store finds out."""
    for name in ("references", "outCitations", "outbound_citations"):
        for one in list_in(fields, name):
            if not isinstance(one, Mapping):
                yield one
                continue
            inner = one.get("citedPaper")
            cited: Mapping[str, Any] = inner if isinstance(inner, Mapping) else one
            known = _read_ids(cited)
            yield known.get("arxiv") or known.get("acl") or cited.get("paperId") or known.get("doi")
    entries = fields.get("bib_entries")
    for one in entries.values() if isinstance(entries, Mapping) else ():
        if isinstance(one, Mapping):
            yield one.get("link") or one.get("doi")


_MONTH_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
MONTHS = {name: f"{at:02}" for at, name in enumerate(_MONTH_NAMES.split(), start=1)}
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
    number = MONTHS.get(month[0][:3]) if month else None
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
    year, month = fields.get("year", ""), MONTHS.get(fields.get("month", "")[:3].lower())
    doi = fields.get("doi", "")
    return make_record(
        place,
        ids=[doi, eprint and f"arXiv:{eprint}", key],
        title=fields.get("title", ""),
        abstract=fields.get("abstract", ""),
        authors=[_put_first_name_first(one) for one in split_authors(fields.get("author", ""))],
        year=year or fields.get("date", ""),
        date=fields.get("date") or (f"{year}-{month}" if year and month else year),
        venue=fields.get("journal") or fields.get("booktitle") or fields.get("journaltitle"),
        categories=re.split(r"[;,]\s*", fields.get("keywords", "")),
        doi=doi,
        arxiv=eprint,
        url=fields.get("url", ""),
        source="bibtex",
    )


def _put_first_name_first(name: str) -> str:
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}" if comma else name.strip()
