"""Europe PMC: PubMed, PubMed Central, preprints and theses by one search.

Source:
    https://europepmc.org/RestfulWebService
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from deepera_graph.papers.importing.reading import ImportProblem, make_record
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.base import SourceQuery
from deepera_graph.papers.sources.http import Web, read_json
from deepera_graph.papers.sources.service import Pages, Service, read_each, span_of, with_ids

_FIRST = "*"  # the mark of the first page


class EuropePMC(Service):
    """Europe PMC; see `Service`. It needs no key."""

    name = "europe_pmc"
    address = "https://www.ebi.ac.uk/europepmc/webservices/rest"
    interval: ClassVar[float] = 0.2
    page_size = 100
    has_markup = True

    async def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        terms = query.join()
        if (span := span_of(scope)) is not None:
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
            who = {"email": self._contact} if self._contact else {}
            found, following = await web.get(
                f"{self.base_url}/search", asked, _read_page, apart=who
            )
            yield found
            if len(found) < size or not following or following == mark:
                return
            mark, n = following, n + len(found)


def _read_page(text: str) -> tuple[list[PaperRecord | ImportProblem], str]:
    """Return the records of a page, and the mark of the next."""
    page = read_json(text)
    records = read_each(page["resultList"]["result"], _to_record)
    return records, str(page.get("nextCursorMark") or "")


def _to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    pmid, doi = fields.get("pmid"), fields.get("doi")
    pmc = str(fields.get("pmcid") or "").removeprefix("PMC")
    own = f"{fields.get('source')}:{fields.get('id')}" if fields.get("id") else ""
    journal = (fields.get("journalInfo") or {}).get("journal") or {}
    record = make_record(
        place,
        ids=[pmid and f"PMID:{pmid}", doi, own],
        title=str(fields.get("title") or "").rstrip("."),
        abstract=fields.get("abstractText"),
        authors=_read_authors(fields),
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
    return with_ids(record, PMC=pmc)


def _read_authors(fields: Mapping[str, Any]) -> list[Any]:
    listed = (fields.get("authorList") or {}).get("author") or ()
    names = [one.get("fullName") or one.get("collectiveName") for one in listed]
    return names or str(fields.get("authorString") or "").rstrip(".").split(", ")
