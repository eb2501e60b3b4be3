"""PubMed by the E-utilities: ESearch names the articles, EFetch brings them.

Source:
    https://www.ncbi.nlm.nih.gov/books/NBK25499/ (parameters) and NBK25497 (three requests a
    second, ten with a key); the form is that of https://dtd.nlm.nih.gov/ncbi/pubmed/out/
"""

import re
from collections.abc import Iterator
from typing import Any, ClassVar
from xml.etree.ElementTree import Element

from deepera_graph.papers.importing.reading import ImportProblem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.base import SourceQuery
from deepera_graph.papers.sources.http import ServiceError, Web, read_json, read_xml
from deepera_graph.papers.sources.service import Pages, Service, span_of, with_ids

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR = re.compile(r"\d{4}")
_SETS = ("PubmedArticle", "PubmedBookArticle")


class PubMed(Service):
    """PubMed; see `Service`. The key is in ``NCBI_API_KEY``."""

    name = "pubmed"
    address = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    key_variable = "NCBI_API_KEY"
    interval: ClassVar[float] = 0.34
    page_size = 200  # as many as EFetch takes in an address

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        who = {"tool": "deepera-graph", "email": self._contact, "api_key": self._key}
        who = {name: value for name, value in who.items() if value}
        asked: dict[str, Any] = {
            "db": "pubmed",
            "term": query.join(),
            "retmode": "json",
            "retmax": k,
            "sort": "relevance",
        }
        if (span := span_of(scope)) is not None:
            first, last = (day.replace("-", "/") for day in span)
            asked |= {"datetype": "pdat", "mindate": first, "maxdate": last}
        ids = await web.get(f"{self.base_url}/esearch.fcgi", asked, _read_ids, apart=who)
        for start in range(0, len(ids), self.page_size):
            lot = ids[start : start + self.page_size]
            fetched = {"db": "pubmed", "id": ",".join(lot), "retmode": "xml"}
            records = await web.get(
                f"{self.base_url}/efetch.fcgi", fetched, _read_articles, apart=who
            )
            yield _in_order(lot, records)


def _read_ids(text: str) -> list[str]:
    result = read_json(text)["esearchresult"]
    if said := result.get("ERROR"):
        raise ServiceError(str(said))
    ids: list[str] = [str(one) for one in result["idlist"]]
    return list(dict.fromkeys(ids))


def _read_articles(text: str) -> list[PaperRecord | ImportProblem]:
    root = read_xml(text)
    if root.tag != "PubmedArticleSet":
        raise ServiceError(f"its XML is no set of articles, but <{root.tag}>")
    found = (one for one in root if one.tag in _SETS)
    return [_to_record(place, one) for place, one in enumerate(found, start=1)]


def _in_order(
    ids: list[str], records: list[PaperRecord | ImportProblem]
) -> list[PaperRecord | ImportProblem]:
    """Return records in the order of the search; EFetch may have another."""
    places = {f"PMID:{id}": place for place, id in enumerate(ids)}

    def place_of(one: PaperRecord | ImportProblem) -> int:
        return len(ids) if isinstance(one, ImportProblem) else places.get(one.paper.id, len(ids))

    return sorted(records, key=place_of)


def _to_record(place: int, found: Element) -> PaperRecord | ImportProblem:
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
    return with_ids(record, PMC=ids.get("pmc", "").removeprefix("PMC"))


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
    if month[:3].lower() in _MONTHS:
        month = str(_MONTHS.index(month[:3].lower()) + 1)
    parts = [year, *(one.zfill(2) for one in (month, day) if one.isdecimal())]
    return "-".join(parts if month.isdecimal() else parts[:1])


def _text(element: Element | None) -> str:
    return "" if element is None else " ".join("".join(element.itertext()).split())
