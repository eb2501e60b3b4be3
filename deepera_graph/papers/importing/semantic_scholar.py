"""Papers of Semantic Scholar: its API, its data sets, and S2ORC in both of its forms.

Source:
    https://api.semanticscholar.org/api-docs/graph and https://github.com/allenai/s2orc
"""

from collections.abc import Iterator, Mapping
from typing import Any

from deepera_graph.papers.importing.reading import (
    ImportProblem,
    alone,
    list_in,
    make_record,
    object_in,
)
from deepera_graph.papers.paper import PaperRecord

_OTHER_IDS = {"DOI": "doi", "ArXiv": "arxiv", "ACL": "acl", "CorpusId": "corpus"}


@alone
def to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
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
