"""Services of literature that know which papers cite which: OpenAlex and Semantic Scholar."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote

from deepera_graph.chat import sending
from deepera_graph.errors import SettingsError
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.importing import ImportProblem
from deepera_graph.papers.importing.forms import from_openalex, from_semantic_scholar
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.base import SourceAnswer, SourceQuery
from deepera_graph.papers.sources.http import ServiceError, Web
from deepera_graph.papers.sources.service import (
    FIRST_DAY,
    LAST_DAY,
    CitationService,
    CitationWay,
    Pages,
    read_each,
    read_json,
    span_of,
    with_ids,
)

_WORK_FIELDS = (
    "id", "doi", "ids", "display_name", "publication_year", "publication_date", "authorships",
    "primary_location", "locations", "topics", "abstract_inverted_index",
)  # fmt: skip
_WAYS: Mapping[CitationWay, tuple[Mapping[str, str], str]] = {
    "references": ({}, "cited_by"),
    "citations": ({"sort": "publication_date:desc"}, "cites"),
}
_OWN = re.compile(r"[Ww]\d+")
_CONCEPT = re.compile(r"C\d+")
MOST_SAMPLED = 10_000  # works of a sample, as OpenAlex says


class OpenAlex(CitationService):
    """OpenAlex: works of all fields. See `Service`; the key is in ``OPENALEX_API_KEY``.

    A search costs credits of the day: without a key there are few, and 429 means that they are
    spent until midnight, which `X-RateLimit-Reset` and `Retry-After` say.

    Source:
        https://developers.openalex.org/api-reference/works and .../authentication; samples:
        https://docs.openalex.org/how-to-use-the-api/get-lists-of-entities/sample-entity-lists
    """

    name = "openalex"
    address = "https://api.openalex.org"
    key_variable = "OPENALEX_API_KEY"
    interval: ClassVar[float] = 0.1
    page_size = 100
    has_markup = True

    def sample(
        self, concept: str, k: int, scope: Scope | None = None, *, seed: int = 0
    ) -> SourceAnswer:
        """Return *k* works under a concept, drawn at random among those with an abstract."""
        if not _CONCEPT.fullmatch(concept):
            raise SettingsError(f"a concept must be an id such as C86803240, got {concept!r:.40}")
        if k > MOST_SAMPLED:
            raise SettingsError(f"OpenAlex draws at most {MOST_SAMPLED} works, got {k}")
        limits = scope or Scope()
        kept = (f"concepts.id:{concept}", "has_abstract:true")

        def draw(web: Web, n: int) -> Pages:
            how = {"sample": str(min(n, MOST_SAMPLED)), "seed": str(seed)}
            return self._list(web, how, n, limits, *kept)

        return sending.run(self._collect(draw, k, limits))

    def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        return self._list(web, {"search": query.join()}, k, scope)

    async def _neighbours(self, web: Web, way: CitationWay, id: str, k: int, scope: Scope) -> Pages:
        own = await self._find(web, id)
        how, limit = _WAYS[way]
        async for page in self._list(web, how, k, scope, f"{limit}:{own}"):
            yield page

    async def _list(
        self, web: Web, how: Mapping[str, str], k: int, scope: Scope, *filters: str
    ) -> Pages:
        limits = list(filters)
        if (span := span_of(scope)) is not None:
            limits += [f"from_publication_date:{span[0]}", f"to_publication_date:{span[1]}"]
        asked: dict[str, Any] = {**how, **({"filter": ",".join(limits)} if limits else {})}
        size = min(k, self.page_size)
        for number in range(1, -(-k // size) + 1):
            more = {"per_page": size, "page": number, "select": ",".join(_WORK_FIELDS)}
            found = await self._ask(web, "works", {**asked, **more}, _read_works)
            yield found
            if len(found) < size:
                return

    async def _find(self, web: Web, id: str) -> str:
        """Return OpenAlex's own id of a paper; it is looked up by another one at no cost."""
        if _OWN.fullmatch(id):
            return id.upper()
        if id.startswith("10."):
            named = f"doi:{id}"
        elif id.startswith("PMID:"):
            named = f"pmid:{id.removeprefix('PMID:')}"
        elif re.match(r"[a-z-]+/\d{7}|\d{4}\.\d{4,5}", id):
            named = f"doi:10.48550/arxiv.{id}"
        else:
            raise ServiceError(f"it knows no paper by an id such as {id!r:.40}")
        path = f"works/{quote(named, safe=':/')}"
        return await self._ask(web, path, {"select": "id"}, _read_own)

    def _who(self) -> Mapping[str, str]:
        return {"api_key": self._key}


def _read_own(text: str) -> str:
    return normalize_id(str(read_json(text)["id"]))


def _read_works(text: str) -> list[PaperRecord | ImportProblem]:
    return read_each(read_json(text)["results"], _read_work)


def _read_work(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    ids = fields.get("ids") or {}
    return with_ids(from_openalex(place, fields), PMID=ids.get("pmid"), PMC=ids.get("pmcid"))


_PAPER_FIELDS = (
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
    """Semantic Scholar: papers of all fields. See `Service`; the key is in ``S2_API_KEY``.

    Without a key all users of the world share one limit, so that 429 is common; with one it is a
    request a second. A search by relevance ends at 1 000 papers.

    Source:
        https://api.semanticscholar.org/api-docs/graph
    """

    name = "semantic_scholar"
    address = "https://api.semanticscholar.org/graph/v1"
    key_variable = "S2_API_KEY"
    interval: ClassVar[float] = 1.0
    page_size = 100
    has_markup = True

    def _headers(self) -> Mapping[str, str]:
        return {"x-api-key": self._key} if self._key else {}

    def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        asked = {"query": " ".join(query.words)}
        if (span := span_of(scope)) is not None:
            first, last = span[0] * (span[0] != FIRST_DAY), span[1] * (span[1] != LAST_DAY)
            asked["publicationDateOrYear"] = f"{first}:{last}"
        return self._list(web, "paper/search", asked, min(k, _MOST))

    def _neighbours(self, web: Web, way: CitationWay, id: str, k: int, scope: Scope) -> Pages:
        path = f"paper/{quote(_name(id), safe=':')}/{way}"
        is_limited = scope != Scope(hide=scope.hide, undated=scope.undated)
        most = max(k, _MOST) if is_limited else k  # years and venues cannot be asked for here
        return self._list(web, path, {}, most, _INNER[way])

    async def _list(
        self, web: Web, path: str, asked: Mapping[str, str], k: int, inner: str = ""
    ) -> Pages:
        start, fields = 0, ",".join(_PAPER_FIELDS)
        while start < k:
            size = min(k - start, self.page_size)
            more = {"offset": start, "limit": size, "fields": fields}
            read = partial(_read_papers, inner=inner)
            found, following = await self._ask(web, path, {**asked, **more}, read)
            yield found
            if not found or following <= start:
                return
            start = following


def _read_papers(text: str, inner: str) -> tuple[list[PaperRecord | ImportProblem], int]:
    """Return the records of a page, each in a field of its own, and where the next begins."""
    page = read_json(text)
    records = read_each(
        page.get("data") or (),
        lambda place, one: _read_paper(place, (one[inner] if inner else one) or {}),
    )
    return records, int(page.get("next") or 0)


def _name(id: str) -> str:
    """Return an id as this service takes it."""
    for form, prefix in _ID_FORMS:
        if form.fullmatch(id):
            return f"{prefix}{id}"
    raise ServiceError(f"it knows no paper by an id such as {id!r:.40}")


def _read_paper(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    ids = fields.get("externalIds") or {}
    record = from_semantic_scholar(place, fields)
    return with_ids(record, PMID=ids.get("PubMed"), PMC=ids.get("PubMedCentral"))
