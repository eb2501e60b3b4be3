"""Semantic Scholar's Academic Graph: papers of all fields, with citations both ways.

Without a key all users of the world share one limit, so that 429 is common; with one it is a
request a second. A search by relevance ends at 1 000 papers.

Source:
    https://api.semanticscholar.org/api-docs/graph
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from deepera_graph.papers.importing.reading import ImportProblem
from deepera_graph.papers.importing.semantic_scholar import to_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.base import SourceQuery
from deepera_graph.papers.sources.http import ServiceError, Web, read_json
from deepera_graph.papers.sources.service import (
    FIRST_DAY,
    LAST_DAY,
    CitationService,
    CitationWay,
    Pages,
    read_each,
    span_of,
    with_ids,
)

_FIELDS = (
    "title", "abstract", "year", "publicationDate", "venue", "authors", "externalIds", "url",
    "fieldsOfStudy",
)  # fmt: skip
_MOST = 1000  # offset and limit together
_INNER: Mapping[CitationWay, str] = {"references": "citedPaper", "citations": "citingPaper"}
_ID_FORMS = (
    (re.compile(r"10\..*"), "DOI:"),
    (re.compile(r"[a-z-]+/\d{7}|\d{4}\.\d{4,5}"), "ARXIV:"),
    (re.compile(r"[0-9a-f]{40}|(?:PMID|PMC|CorpusId|ACL|MAG):.*"), ""),
)


class SemanticScholar(CitationService):
    """Semantic Scholar; see `Service`. The key is in ``S2_API_KEY``."""

    name = "semantic_scholar"
    address = "https://api.semanticscholar.org/graph/v1"
    key_variable = "S2_API_KEY"
    interval: ClassVar[float] = 1.0
    page_size = 100
    has_markup = True

    def _headers(self) -> Mapping[str, str]:
        return {"x-api-key": self._key} if self._key else {}

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        asked = {"query": " ".join(query.words)}
        if (span := span_of(scope)) is not None:
            first, last = span[0] * (span[0] != FIRST_DAY), span[1] * (span[1] != LAST_DAY)
            asked["publicationDateOrYear"] = f"{first}:{last}"
        async for page in self._list(web, "paper/search", asked, min(k, _MOST)):
            yield page

    async def _neighbours(self, web: Web, way: CitationWay, id: str, k: int, scope: Scope) -> Pages:
        path = f"paper/{quote(_name(id), safe=':')}/{way}"
        is_limited = scope != Scope(hide=scope.hide, undated=scope.undated)
        most = max(k, _MOST) if is_limited else k  # years and venues cannot be asked for here
        async for page in self._list(web, path, {}, most, _INNER[way]):
            yield page

    async def _list(
        self, web: Web, path: str, asked: Mapping[str, str], k: int, inner: str = ""
    ) -> Pages:
        start, fields = 0, ",".join(_FIELDS)
        while start < k:
            size = min(k - start, self.page_size)
            more = {"offset": start, "limit": size, "fields": fields}
            found, following = await web.get(
                f"{self.base_url}/{path}", {**asked, **more}, partial(_read_page, inner=inner)
            )
            yield found
            if not found or following <= start:
                return
            start = following


def _read_page(text: str, inner: str) -> tuple[list[PaperRecord | ImportProblem], int]:
    """Return the records of a page, each in a field of its own, and where the next begins."""
    page = read_json(text)
    records = read_each(
        page.get("data") or (),
        lambda place, one: _to_record(place, (one[inner] if inner else one) or {}),
    )
    return records, int(page.get("next") or 0)


def _name(id: str) -> str:
    """Return an id as this service takes it."""
    for form, prefix in _ID_FORMS:
        if form.fullmatch(id):
            return f"{prefix}{id}"
    raise ServiceError(f"it knows no paper by an id such as {id!r:.40}")


def _to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    ids = fields.get("externalIds") or {}
    pmc = str(ids.get("PubMedCentral") or "").removeprefix("PMC")
    return with_ids(to_record(place, fields), PMID=ids.get("PubMed"), PMC=pmc)
