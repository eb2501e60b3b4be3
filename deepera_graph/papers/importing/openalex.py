"""Works of OpenAlex, as its API and its snapshot give them.

Source:
    https://docs.openalex.org/api-entities/works/work-object
"""

from collections.abc import Mapping
from typing import Any

from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.importing.reading import (
    ImportProblem,
    alone,
    list_in,
    make_record,
    object_in,
    objects_in,
)
from deepera_graph.papers.paper import PaperRecord


@alone
def to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of one work; its id is that of OpenAlex, such as W2741809807."""
    where = object_in(fields, "primary_location")
    source = object_in(where, "source") or object_in(fields, "host_venue")
    addresses = [where.get("landing_page_url"), fields.get("doi")]
    addresses += [one.get("landing_page_url") for one in objects_in(fields, "locations")]
    arxiv = next((id for id in map(_read_arxiv, addresses) if id), "")
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


def _read_arxiv(address: Any) -> str:
    text = str(address or "")
    return normalize_id(text) if "arxiv" in text.lower() else ""
