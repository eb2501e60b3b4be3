"""arXiv's metadata, one JSON object a paper, as in its snapshot.

Source:
    https://info.arxiv.org/help/bulk_data.html
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from deepera_graph.errors import InputError
from deepera_graph.papers.importing.reading import ImportProblem, alone, make_record, text_of
from deepera_graph.papers.paper import PaperRecord


@alone
def to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
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
