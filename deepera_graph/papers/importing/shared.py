"""Records with the fields of `Paper`, and `references`: the form that this package writes.

Fields are found in any case and under the names that exports of Zotero, Scopus and PubMed and data
sets have, so that a table or file that `deepera index` reads makes a base as well. References of
RIS, PubMed's `.nbib` and CSL-JSON are read into the same fields.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from deepera_graph.papers.importing.reading import NO_ID, ImportProblem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.passages import ID_FIELDS, field_key, has_value

_ARXIV = ("arxiv", "arxiv_id")
_PAPER_IDS = (*_ARXIV, "doi", "pmid", "key")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "title": ("title", "article_title"),
    "abstract": ("abstract", "abstract_note", "text", "summary"),
    "authors": ("authors", "author"),
    "year": ("year", "publication_year"),
    "date": ("date",),
    "venue": ("venue", "journal", "publication_title", "source_title", "journal_book"),
    "categories": ("categories",),
    "doi": ("doi",),
    "arxiv": _ARXIV,
    "url": ("url", "link"),
    "source": ("source",),
}
_MOST_NAMED = 12  # fields of a record, in a message
_key_of = lru_cache(maxsize=4096)(field_key)


def to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of one object or row."""
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


def _find(known: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((known[_key_of(name)] for name in names if _key_of(name) in known), None)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _paper_ids(known: Mapping[str, Any]) -> list[Any]:
    """Return ids that papers have elsewhere; no key that is a number, as other libraries have."""
    pmid, key = known.get("pmid"), str(known.get("key") or "")
    return [
        _find(known, _ARXIV),
        known.get("doi"),
        pmid and f"PMID:{pmid}",
        "" if key.isdecimal() else key,
    ]


def _describe_no_id(fields: Mapping[str, Any]) -> str:
    found = ", ".join(list(map(str, fields))[:_MOST_NAMED]) or "nothing"
    expected = ", ".join((*ID_FIELDS, *_PAPER_IDS))
    return f"the paper has no id; expected one of {expected}, found {found}"
