"""JSON lines with the fields of `Paper`, and `references`: the form that this package writes.

References of RIS, PubMed's `.nbib` and CSL-JSON are read into the same fields.
"""

from collections.abc import Mapping
from typing import Any

from deepera_graph.papers.importing.reading import Problem, make_record
from deepera_graph.papers.paper import PaperRecord

_ABSTRACTS = ("abstract", "text", "summary")


def to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | Problem:
    """Return the paper of one object; names of fields are those of `Paper`."""
    aliases = fields.get("aliases")
    cited = fields.get("references")
    named = [fields.get("id"), *(aliases if isinstance(aliases, list) else ())]
    pmid, key = fields.get("pmid"), str(fields.get("key") or "")
    return make_record(
        place,
        ids=named
        if fields.get("id")
        else [fields.get("arxiv"), fields.get("doi"), pmid and f"PMID:{pmid}", _own_key(key)],
        title=fields.get("title"),
        abstract=next((fields[name] for name in _ABSTRACTS if fields.get(name)), ""),
        authors=fields.get("authors", ()),
        year=fields.get("year"),
        date=fields.get("date"),
        venue=fields.get("venue") or fields.get("journal"),
        categories=fields.get("categories", ()),
        doi=fields.get("doi"),
        arxiv=fields.get("arxiv") or fields.get("arxiv_id"),
        url=fields.get("url"),
        source=fields.get("source"),
        references=cited if isinstance(cited, list) else (),
    )


def _own_key(key: str) -> str:
    """Return the key of a reference; nothing of a number, which other libraries have as well."""
    return "" if key.isdecimal() else key
