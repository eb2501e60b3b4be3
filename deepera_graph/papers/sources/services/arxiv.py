"""arXiv's API: Atom feeds of preprints.

arXiv asks for all words of a search, so a query is written as groups joined by OR. Its dates are
those of the first version; it asks for one request every three seconds, and begins in 1991.

Source:
    https://info.arxiv.org/help/api/user-manual.html and .../tou.html
"""

from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.importing.arxiv import to_record
from deepera_graph.papers.importing.reading import ImportProblem
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.base import SourceQuery
from deepera_graph.papers.sources.http import ServiceError, Web, read_xml
from deepera_graph.papers.sources.service import Pages, Service, span_of

_ATOM, _ARXIV = "{http://www.w3.org/2005/Atom}", "{http://arxiv.org/schemas/atom}"
_ERRORS = "/api/errors"
_SINCE = 1991


class ArXiv(Service):
    """arXiv; see `Service`. It needs no key."""

    name = "arxiv"
    address = "https://export.arxiv.org/api"
    interval: ClassVar[float] = 3.0
    page_size = 100

    def _refuse(self, scope: Scope) -> str:
        last = (span_of(scope) or ("", "9999"))[1]
        return f"arXiv begins in {_SINCE}" if int(last[:4]) < _SINCE else ""

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        terms = query.join(word="all:{}")
        if (span := span_of(scope)) is not None:
            first, last = (day.replace("-", "") for day in span)
            terms = f"({terms}) AND submittedDate:[{first}0000 TO {last}2359]"
        size = min(k, self.page_size)
        for start in range(0, k, size):
            asked: dict[str, Any] = {
                "search_query": terms,
                "start": start,
                "max_results": size,
                "sortBy": "relevance",
                "sortOrder": "descending",
            }
            found = await web.get(f"{self.base_url}/query", asked, _read_feed)
            yield found
            if len(found) < size:
                return


def _read_feed(text: str) -> list[PaperRecord | ImportProblem]:
    feed = read_xml(text)
    if feed.tag != f"{_ATOM}feed":
        raise ServiceError(f"its XML is no feed, but <{feed.tag.rpartition('}')[2]}>")
    entries = feed.findall(f"{_ATOM}entry")
    if entries and _ERRORS in _text(entries[0], "id"):
        raise ServiceError(_text(entries[0], "summary") or "it reports an error")
    return [_to_record(place, one) for place, one in enumerate(entries, start=1)]


def _to_record(place: int, entry: Element) -> PaperRecord | ImportProblem:
    return to_record(
        place,
        {
            "id": normalize_id(_text(entry, "id")),
            "title": _text(entry, "title"),
            "abstract": _text(entry, "summary"),
            "authors": [_text(one, "name") for one in entry.iterfind(f"{_ATOM}author")],
            "categories": [one.get("term") or "" for one in entry.iterfind(f"{_ATOM}category")],
            "doi": _text(entry, "doi", _ARXIV),
            "journal-ref": _text(entry, "journal_ref", _ARXIV),
            "published": _text(entry, "published"),
        },
    )


def _text(element: Element, name: str, space: str = _ATOM) -> str:
    found = element.find(f"{space}{name}")
    return "" if found is None else " ".join("".join(found.itertext()).split())
