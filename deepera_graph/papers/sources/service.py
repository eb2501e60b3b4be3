"""What the five services share: pages into an answer, what a scope leaves out, and the status."""

import asyncio
import json
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit
from xml.etree import ElementTree

from deepera_graph.chat import sending
from deepera_graph.errors import SettingsError
from deepera_graph.literature.paper_keys import normalize_id
from deepera_graph.packages import describe_error
from deepera_graph.papers.importing import ImportProblem
from deepera_graph.papers.paper import PaperRecord, days_of
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources.base import K, SourceAnswer, SourceQuery, SourceStatus
from deepera_graph.papers.sources.http import (
    SHOWN,
    UNREADABLE,
    ServiceError,
    Web,
    hide,
    is_html,
    read_contact,
)
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.text.plain import clean_markup

SECONDS = 20.0  # for a search, all its pages and waits together
FIRST_DAY, LAST_DAY = "1500-01-01", "2999-12-31"
REPEATED, OUT_OF_SCOPE, ODD = "repeated", "out_of_scope", "unreadable"
T = TypeVar("T")
CitationWay = Literal["references", "citations"]
Page = Sequence[PaperRecord | ImportProblem]
Pages = AsyncIterator[Page]


class Service(ABC):
    """A service over HTTP as a `PaperSource`; a subclass knows its addresses and its form."""

    name: ClassVar[str]
    address: ClassVar[str]
    key_variable: ClassVar[str] = ""
    interval: ClassVar[float]  # seconds between two requests, as the service asks
    page_size: ClassVar[int]
    has_markup: ClassVar[bool] = False  # in its titles and abstracts

    def __init__(
        self,
        *,
        # another address of the service, e.g. of a mirror; else that in the variable
        # ``DEEPERA_NAME_URL``, else the service's own
        base_url: str | None = None,
        # else that in the variable of the service. It is in no log, cache or answer.
        api_key: str | None = None,
        # address of mail that the service may write to; else that in ``DEEPERA_CONTACT``
        contact: str | None = None,
        # longest time for a search, with all its pages, waits and attempts
        seconds: float = SECONDS,
        cache: JudgementCache | None = None,  # keeps answers for a week; of `open_cache`
    ) -> None:
        variable = self.url_variable()
        found = base_url or os.environ.get(variable, "").strip() or self.address
        if urlsplit(found).scheme not in ("http", "https") or not urlsplit(found).hostname:
            raise SettingsError(f"{variable} must start with http:// or https://, got {found!r}")
        check_seconds(seconds)
        self.base_url, self.seconds, self.cache = found.rstrip("/"), float(seconds), cache
        self._key = api_key or os.environ.get(self.key_variable, "").strip()
        self._contact = read_contact(contact)

    @classmethod
    def url_variable(cls) -> str:
        """Return the name of the variable with another address."""
        return f"DEEPERA_{cls.name.upper()}_URL"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({hide(self.base_url, [self._key])!r})"

    def describe(self) -> dict[str, Any]:
        """Return what a manifest says of it."""
        return {"name": self.name, "address": hide(self.base_url, [self._key])}

    def search(
        self, query: str | SourceQuery, k: int = K, scope: Scope | None = None
    ) -> SourceAnswer:
        """Return at most *k* papers in *scope* that fit a query, best first."""
        return sending.run(self._search(query, k, scope))

    async def asearch(
        self, query: str | SourceQuery, k: int = K, scope: Scope | None = None
    ) -> SourceAnswer:
        """Return what `search` returns, in the running loop."""
        return await sending.arun(self._search(query, k, scope))

    async def _search(self, query: str | SourceQuery, k: int, scope: Scope | None) -> SourceAnswer:
        wanted, limits = SourceQuery.of(query), scope or Scope()
        if why := self._refuse(limits):
            return SourceAnswer(source=self.name, status="not_asked", reason=why)
        return await self._collect(lambda web, n: self._pages(web, wanted, n, limits), k, limits)

    def _refuse(self, scope: Scope) -> str:
        """Return why there is no use in asking; empty if there is."""
        return ""

    @abstractmethod
    def _pages(self, web: Web, query: SourceQuery, k: int, scope: Scope) -> Pages:
        """Yield pages of records until *k* were yielded or there are no more."""

    def _headers(self) -> Mapping[str, str]:
        return {}

    def _who(self) -> Mapping[str, str]:
        """Return what tells the service who asks; empty values are left out."""
        return {}

    async def _ask(
        self, web: Web, path: str, asked: Mapping[str, Any], read: Callable[[str], T]
    ) -> T:
        """Ask for a path of the service; answers are kept whoever asks."""
        who = {name: value for name, value in self._who().items() if value}
        return await web.get(f"{self.base_url}/{path}", asked, read, apart=who)

    def _open_web(self) -> Web:
        """Open what asks for this service; the caller closes it."""
        return Web(
            self.name,
            deadline=time.monotonic() + self.seconds,
            interval=self.interval,
            contact=self._contact,
            secrets=[self._key],
            headers=self._headers(),
            kept=self.cache,
        )

    async def _collect(
        self, open_pages: Callable[[Web, int], Pages], k: int, scope: Scope
    ) -> SourceAnswer:
        """Read pages in time, and say how it went; what is hidden comes, too, and is left out."""
        check_at_least("k", k, least=1)
        begun, web = time.monotonic(), self._open_web()
        found, status, reason, wait = _Found(k, scope, clean=self.has_markup), "", "", None
        try:
            async with asyncio.timeout(self.seconds):
                async for page in open_pages(web, k + len(scope.hide)):
                    if found.is_full or not found.take(page):
                        break
        except TimeoutError:
            status, reason = "failed", f"it did not answer within {self.seconds:g} s"
        except ServiceError as error:
            status, reason, wait = error.status, hide(error.reason, [self._key]), error.retry_after
        except UNREADABLE as error:
            status = "failed"
            reason = f"its answer is not in the form it documents ({type(error).__name__})"
        finally:
            await web.close()
        told: SourceStatus = status or ("ok" if found.records else "empty")  # type: ignore[assignment]  # of `ServiceError`
        return SourceAnswer(
            source=self.name,
            status=told,
            records=tuple(found.records),
            reason=reason,
            retry_after=wait,
            left_out=dict(found.left_out),
            asked=hide(web.asked, [self._key]),
            cached=bool(web.n_kept and not web.n_fetched),
            seconds=time.monotonic() - begun,
        )


class CitationService(Service):
    """A service that also knows which papers cite which, as a `CitationSource`."""

    def references(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return at most *k* papers that a paper cites; it is named by DOI, arXiv id or own id."""
        return sending.run(self._follow("references", id, k, scope))

    def citations(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return at most *k* papers that cite a paper; OpenAlex gives the newest first."""
        return sending.run(self._follow("citations", id, k, scope))

    async def areferences(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return what `references` returns, in the running loop."""
        return await sending.arun(self._follow("references", id, k, scope))

    async def acitations(self, id: str, k: int = K, scope: Scope | None = None) -> SourceAnswer:
        """Return what `citations` returns, in the running loop."""
        return await sending.arun(self._follow("citations", id, k, scope))

    async def _follow(self, way: CitationWay, id: str, k: int, scope: Scope | None) -> SourceAnswer:
        limits = scope or Scope()
        return await self._collect(
            lambda web, n: self._neighbours(web, way, normalize_id(id), n, limits), k, limits
        )

    @abstractmethod
    def _neighbours(self, web: Web, way: CitationWay, id: str, k: int, scope: Scope) -> Pages:
        """Yield pages of what a paper cites, or of what cites it, as `_pages` does."""


def check_seconds(seconds: float) -> None:
    """Raise `SettingsError` unless a time limit is above 0, and ends."""
    if not (isfinite(seconds) and seconds > 0):
        raise SettingsError(f"seconds must be > 0, got {seconds!r}")


class _Found:
    """The records of all pages, each paper once."""

    def __init__(self, k: int, scope: Scope, *, clean: bool) -> None:
        self._k, self._scope, self._clean = k, scope, clean
        self._seen: set[str] = set()
        self.records: list[PaperRecord] = []
        self.left_out: Counter[str] = Counter()

    @property
    def is_full(self) -> bool:
        return len(self.records) >= self._k

    def take(self, page: Page) -> bool:
        """Take what is new on a page; False if nothing is, as on a page that is repeated."""
        n_new = 0
        for one in page:
            if isinstance(one, ImportProblem):
                self.left_out[one.kind] += 1
                n_new += 1
            elif one.paper.id in self._seen:
                self.left_out[REPEATED] += 1
            else:
                self._seen.add(one.paper.id)
                n_new += 1
                if not self._scope.allows(one.paper, ids=one.ids):
                    self.left_out[OUT_OF_SCOPE] += 1
                elif not self.is_full:
                    self.records.append(_without_markup(one) if self._clean else one)
        return n_new > 0


def _without_markup(record: PaperRecord) -> PaperRecord:
    paper = record.paper
    title = clean_markup(paper.title) or paper.title
    return replace(record, paper=replace(paper, title=title, abstract=clean_markup(paper.abstract)))


def read_each(
    found: Iterable[T], read: Callable[[int, T], PaperRecord | ImportProblem]
) -> list[PaperRecord | ImportProblem]:
    """Read the records of a page; one of another form than is documented is counted."""
    records: list[PaperRecord | ImportProblem] = []
    errors: list[Exception] = []
    for place, one in enumerate(found, start=1):
        try:
            records.append(read(place, one))
        except UNREADABLE as error:
            errors.append(error)
            records.append(ImportProblem(ODD, place, describe_error(error)))
    if errors and len(errors) == len(records):
        raise errors[0]
    return records


def with_ids(record: PaperRecord | ImportProblem, **more: object) -> PaperRecord | ImportProblem:
    """Return a record that is known by further ids: ``with_ids(record, PMID="123")``."""
    # An id of PubMed Central may begin with ``PMC``, and each may be the end of an address.
    if isinstance(record, ImportProblem):
        return record
    bare = {name: str(value or "").rstrip("/").rpartition("/")[2] for name, value in more.items()}
    ids = [normalize_id(f"{name}:{one.removeprefix('PMC')}") for name, one in bare.items() if one]
    return replace(record, aliases=tuple(dict.fromkeys((*record.aliases, *ids))))


def span_of(scope: Scope) -> tuple[str, str] | None:
    """Return the first and the last day of a scope, ``2015-01-01``; None if it has no limit."""
    first = f"{scope.year_from}-01-01" if scope.year_from else FIRST_DAY
    last = f"{scope.year_to}-12-31" if scope.year_to else LAST_DAY
    if scope.as_of:
        day = str(days_of(scope.as_of)[1])
        last = min(last, f"{day[:4]}-{day[4:6]}-{day[6:]}")
    return None if (first, last) == (FIRST_DAY, LAST_DAY) else (first, last)


def read_json(text: str) -> dict[str, Any]:
    """Return the object of a body."""
    _check_body(text)
    try:
        plain = json.loads(text, strict=False)  # NCBI leaves tabs in texts
    except (ValueError, RecursionError) as error:
        raise ServiceError(f"its JSON is broken: {error}") from None
    if not isinstance(plain, dict):
        raise ServiceError(f"its JSON is no object: {text[:40]!r}")
    if said := next((plain[one] for one in ("error", "errMsg", "ERROR") if plain.get(one)), None):
        status: SourceStatus = "rate_limited" if "rate limit" in str(said).lower() else "failed"
        raise ServiceError(str(said)[:SHOWN], status)
    return plain


def read_xml(text: str) -> ElementTree.Element:
    """Return the root of a body."""
    _check_body(text)
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise ServiceError(f"its XML is broken: {error}") from None


def _check_body(text: str) -> None:
    if not text.strip():
        raise ServiceError("it answered nothing, an empty body")
    if is_html(text):
        raise ServiceError("it answered an HTML page instead of data")
