"""Services of literature that are searched alone: PubMed, Europe PMC and arXiv."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from deepera_graph.chat import sending
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.papers.importing import ImportProblem, make_record
from deepera_graph.papers.importing.forms import MONTHS, from_arxiv
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources import service
from deepera_graph.papers.sources.base import SourceQuery
from deepera_graph.papers.sources.http import UNREADABLE, ServiceError, Web
from deepera_graph.papers.sources.service import Pages, Service

_YEAR = re.compile(r"\d{4}")
_SETS = ("PubmedArticle", "PubmedBookArticle")


class PubMed(Service):
    """PubMed: ESearch names the articles, EFetch brings them. The key is in ``NCBI_API_KEY``.

    Source:
        https://www.ncbi.nlm.nih.gov/books/NBK25499/ (parameters) and NBK25497 (three requests a
        second, ten with a key); the form is that of https://dtd.nlm.nih.gov/ncbi/pubmed/out/
    """

    name = "pubmed"
    address = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    key_variable = "NCBI_API_KEY"
    interval: ClassVar[float] = 0.34
    page_size = 200  # as many as EFetch takes in an address

    def _who(self) -> Mapping[str, str]:
        return {"tool": "deepera-graph", "email": self._contact, "api_key": self._key}

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        asked: dict[str, Any] = {
            "db": "pubmed",
            "term": query.join(),
            "retmode": "json",
            "retmax": k,
            "sort": "relevance",
        }
        if (span := service.span_of(scope)) is not None:
            first, last = (day.replace("-", "/") for day in span)
            asked |= {"datetype": "pdat", "mindate": first, "maxdate": last}
        ids = await self._ask(web, "esearch.fcgi", asked, _read_ids)
        for start in range(0, len(ids), self.page_size):
            lot = ids[start : start + self.page_size]
            fetched = {"db": "pubmed", "id": ",".join(lot), "retmode": "xml"}
            yield _in_order(lot, await self._ask(web, "efetch.fcgi", fetched, _read_articles))


def _read_ids(text: str) -> list[str]:
    result = service.read_json(text)["esearchresult"]
    if said := result.get("ERROR"):
        raise ServiceError(str(said))
    ids: list[str] = [str(one) for one in result["idlist"]]
    return list(dict.fromkeys(ids))


def _read_articles(text: str) -> list[PaperRecord | ImportProblem]:
    root = service.read_xml(text)
    if root.tag != "PubmedArticleSet":
        raise ServiceError(f"its XML is no set of articles, but <{root.tag}>")
    found = (one for one in root if one.tag in _SETS)
    return [_read_article(place, one) for place, one in enumerate(found, start=1)]


def _in_order(
    ids: list[str], records: list[PaperRecord | ImportProblem]
) -> list[PaperRecord | ImportProblem]:
    """Return records in the order of the search; EFetch may have another."""
    places = {f"PMID:{id}": place for place, id in enumerate(ids)}

    def place_of(one: PaperRecord | ImportProblem) -> int:
        return len(ids) if isinstance(one, ImportProblem) else places.get(one.paper.id, len(ids))

    return sorted(records, key=place_of)


def _read_article(place: int, found: Element) -> PaperRecord | ImportProblem:
    main = found.find("MedlineCitation")
    if main is None:
        main = found.find("BookDocument")
    if main is None:
        return ImportProblem("no_id", place, "the article has no citation")
    article = main.find("Article")
    article = main if article is None else article
    ids = {one.get("IdType"): _text(one) for one in found.iterfind(".//ArticleIdList/ArticleId")}
    own = {one.get("EIdType"): _text(one) for one in article.iterfind("ELocationID")}
    pmid, doi = _text(main.find("PMID")), own.get("doi") or ids.get("doi") or ""
    issue = article.find("Journal/JournalIssue/PubDate")
    date = article.find("ArticleDate")
    record = make_record(
        place,
        ids=[pmid and f"PMID:{pmid}", doi],
        title=_text(article.find("ArticleTitle")) or _text(article.find("Book/BookTitle")),
        abstract=" ".join(_read_abstract(article)),
        authors=[*_read_authors(article)],
        year=_read_year(issue) or _read_year(date),
        date=_read_date(date if date is not None else issue),
        venue=_text(article.find("Journal/Title")),
        categories=[_text(one) for one in main.iterfind(".//MeshHeading/DescriptorName")],
        doi=doi,
        url=f"https://pubmed.ncbi.nlm.nih.gov/{pmid}/",
        source="pubmed",
    )
    return service.with_ids(record, PMC=ids.get("pmc"))


def _read_abstract(article: Element) -> Iterator[str]:
    for one in article.iterfind("Abstract/AbstractText"):
        if text := _text(one):
            label = one.get("Label")
            yield f"{label}: {text}" if label else text


def _read_authors(article: Element) -> Iterator[str]:
    for one in article.iterfind("AuthorList/Author"):
        parts = (_text(one.find("ForeName")), _text(one.find("LastName")))
        if name := " ".join(filter(None, parts)) or _text(one.find("CollectiveName")):
            yield name


def _read_year(date: Element | None) -> str:
    if date is None:
        return ""
    found = _YEAR.search(_text(date.find("Year")) or _text(date.find("MedlineDate")))
    return found[0] if found else ""


def _read_date(date: Element | None) -> str:
    """Return a date as ``2015-03-02``, as far as it is given; months may be words."""
    year = _read_year(date)
    if not year or date is None:
        return ""
    month, day = _text(date.find("Month")), _text(date.find("Day"))
    month = MONTHS.get(month[:3].lower(), month)
    parts = [year, *(one.zfill(2) for one in (month, day) if one.isdecimal())]
    return "-".join(parts if month.isdecimal() else parts[:1])


def _text(element: Element | None) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())


_FIRST = "*"  # the mark of the first page


class EuropePMC(Service):
    """Europe PMC: PubMed, PubMed Central, preprints and theses by one search, without a key.

    Source:
        https://europepmc.org/RestfulWebService
    """

    name = "europe_pmc"
    address = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    interval: ClassVar[float] = 0.2
    page_size = 100
    has_markup = True

    def _who(self) -> Mapping[str, str]:
        return {"email": self._contact}

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        terms = query.join()
        if (span := service.span_of(scope)) is not None:
            terms = f"({terms}) AND (FIRST_PDATE:[{span[0]} TO {span[1]}])"
        mark, n, size = _FIRST, 0, min(k, self.page_size)
        while n < k:
            asked = {
                "query": terms,
                "format": "json",
                "resultType": "core",
                "pageSize": size,
                "cursorMark": mark,
            }
            found, following = await self._ask(web, "search", asked, _read_page)
            yield found
            if len(found) < size or not following or following == mark:
                return
            mark, n = following, n + len(found)

    async def afull_text(self, *, doi: str = "", pmid: str = "") -> str:
        """Return an article of the open subset in JATS."""
        # Empty if it is not in the subset, has neither id, or no answer came in time.
        named = f'DOI:"{doi}"' if doi else f"(EXT_ID:{pmid} AND SRC:MED)"
        if not doi and not pmid:
            return ""
        return await sending.arun(self._full_text(f"{named} AND OPEN_ACCESS:y"))

    async def _full_text(self, terms: str) -> str:
        web = self._open_web()
        asked = {"query": terms, "format": "json", "resultType": "lite", "pageSize": 1}
        try:
            async with asyncio.timeout(self.seconds):
                id = await self._ask(web, "search", asked, _read_pmcid)
                return await self._ask(web, f"{id}/fullTextXML", {}, _read_whole) if id else ""
        except (TimeoutError, ServiceError, *UNREADABLE):
            return ""
        finally:
            await web.close()


def _read_pmcid(text: str) -> str:
    found = service.read_json(text)["resultList"]["result"]
    return str(found[0].get("pmcid") or "") if found else ""


def _read_whole(text: str) -> str:
    service.read_xml(text)
    return text


def _read_page(text: str) -> tuple[list[PaperRecord | ImportProblem], str]:
    """Return the records of a page, and the mark of the next."""
    page = service.read_json(text)
    records = service.read_each(page["resultList"]["result"], _read_result)
    return records, str(page.get("nextCursorMark") or "")


def _read_result(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    pmid, doi = fields.get("pmid"), fields.get("doi")
    own = f"{fields.get('source')}:{fields.get('id')}" if fields.get("id") else ""
    journal = (fields.get("journalInfo") or {}).get("journal") or {}
    record = make_record(
        place,
        ids=[pmid and f"PMID:{pmid}", doi, own],
        title=str(fields.get("title") or "").rstrip("."),
        abstract=fields.get("abstractText"),
        authors=_read_people(fields),
        year=fields.get("pubYear"),
        date=fields.get("firstPublicationDate"),
        venue=journal.get("title") or (fields.get("bookOrReportDetails") or {}).get("publisher"),
        categories=[
            one.get("descriptorName")
            for one in (fields.get("meshHeadingList") or {}).get("meshHeading") or ()
        ],
        doi=doi,
        url=f"https://europepmc.org/article/{fields.get('source')}/{fields.get('id')}",
        source="europe_pmc",
    )
    return service.with_ids(record, PMC=fields.get("pmcid"))


def _read_people(fields: Mapping[str, Any]) -> list[Any]:
    listed = (fields.get("authorList") or {}).get("author") or ()
    names = [one.get("fullName") or one.get("collectiveName") for one in listed]
    return names or str(fields.get("authorString") or "").rstrip(".").split(", ")


_ATOM, _ARXIV = "{http://www.w3.org/2005/Atom}", "{http://arxiv.org/schemas/atom}"
_ERRORS = "/api/errors"
_SINCE = 1991


class ArXiv(Service):
    """arXiv: Atom feeds of preprints since 1991, without a key.

    It asks for all words of a search, so a query is written as groups joined by OR; dates are those
    of first versions, and there may be one request every three seconds.

    Source:
        https://info.arxiv.org/help/api/user-manual.html and .../tou.html
    """

    name = "arxiv"
    address = "https://export.arxiv.org/api"
    interval: ClassVar[float] = 3.0
    page_size = 100

    def _refuse(self, scope: Scope) -> str:
        last = (service.span_of(scope) or ("", "9999"))[1]
        return f"arXiv begins in {_SINCE}" if int(last[:4]) < _SINCE else ""

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        terms = query.join(word="all:{}")
        if (span := service.span_of(scope)) is not None:
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
            found = await self._ask(web, "query", asked, _read_feed)
            yield found
            if len(found) < size:
                return


def _read_feed(text: str) -> list[PaperRecord | ImportProblem]:
    feed = service.read_xml(text)
    if feed.tag != f"{_ATOM}feed":
        raise ServiceError(f"its XML is no feed, but <{feed.tag.rpartition('}')[2]}>")
    entries = feed.findall(f"{_ATOM}entry")
    if entries and _ERRORS in _text_in(entries[0], "id"):
        raise ServiceError(_text_in(entries[0], "summary") or "it reports an error")
    return [_read_entry(place, one) for place, one in enumerate(entries, start=1)]


def _read_entry(place: int, entry: Element) -> PaperRecord | ImportProblem:
    return from_arxiv(
        place,
        {
            "id": normalize_id(_text_in(entry, "id")),
            "title": _text_in(entry, "title"),
            "abstract": _text_in(entry, "summary"),
            "authors": [_text_in(one, "name") for one in entry.iterfind(f"{_ATOM}author")],
            "categories": [one.get("term") or "" for one in entry.iterfind(f"{_ATOM}category")],
            "doi": _text_in(entry, "doi", _ARXIV),
            "journal-ref": _text_in(entry, "journal_ref", _ARXIV),
            "published": _text_in(entry, "published"),
        },
    )


def _text_in(element: Element, name: str, space: str = _ATOM) -> str:
    return _text(element.find(f"{space}{name}"))
