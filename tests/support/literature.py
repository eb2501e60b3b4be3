"""Five services of literature on a port of this machine, which answer as they document.

All texts are invented. `faults` says what a service does instead: see `_FAULTS`.
"""

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

QUESTION = "Does green tea lower fasting glucose?"
TRIAL = "Green tea and fasting glucose: a randomised trial"
MODEL = "A model of glucose after green tea"
SHARED_TITLE = "Green tea and glucose revisited"
ABSTRACTS = {
    TRIAL: "Sixty adults drank green tea or water for twelve weeks. Green tea lowered fasting "
    "glucose by 4% (p < 0.05).",
    MODEL: "We model glucose in blood after a cup of green tea. The model agrees with two trials.",
    SHARED_TITLE: "Fasting glucose did not differ between drinkers of green tea and of water.",
    "Kelp forests under warming": "Kelp grew less in warm water.",
}


class Sent(NamedTuple):
    """A request as it came."""

    service: str
    path: str  # with its parameters, as they were written
    headers: dict[str, str]

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters, read."""
        return {name: one[0] for name, one in parse_qs(urlsplit(self.path).query).items()}


class Literature:
    """The services, while a `with` block lasts; `url(name)` is the address of one."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.faults: dict[str, str] = {}
        self.echo = ""  # what a service that fails says beside
        self._open = threading.Event()

    def __enter__(self) -> "Literature":
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                world.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def variables(self) -> dict[str, str]:
        """What the environment says, so that the package finds these services."""
        return {f"DEEPERA_{name.upper()}_URL": self.url(name) for name in _SERVICES}

    def url(self, name: str) -> str:
        """Return the address of a service."""
        return f"http://127.0.0.1:{self._server.server_port}/{name}"

    def forget(self) -> None:
        """Answer well again, and forget what was sent; other services stay closed to nobody."""
        self.sent.clear()
        self.faults.clear()
        self.echo = ""

    def of(self, service: str) -> list[Sent]:
        """Return the requests to one service."""
        return [one for one in self.sent if one.service == service]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        _, service, path = handler.path.split("/", 2)
        sent = Sent(service, path, {name.lower(): one for name, one in handler.headers.items()})
        self.sent.append(sent)
        code, headers, body = 200, {}, b""
        fault = self.faults.get(service, "")
        if fault == "soon":
            del self.faults[service]
        if fault == "slow":
            self._open.wait(5)
        if fault in _FAULTS:
            code, headers, text = _FAULTS[fault]
            body = text.replace("ECHO", self.echo).encode()
        else:
            body = _SERVICES[service](sent, fault).encode()
            if fault == "one odd record":
                body = re.sub(rb'("(?:results?|data)": \[)', rb"\1 7, ", body)
            if fault == "truncated":
                body = body[: len(body) // 2]
        handler.send_response(code)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)


_FAULTS: dict[str, tuple[int, dict[str, str], str]] = {
    "hours": (429, {"Retry-After": "54000"}, '{"error": "Rate limit exceeded ECHO"}'),
    "soon": (429, {"Retry-After": "0"}, "{}"),
    "date": (429, {"Retry-After": "Fri, 31 Dec 2999 23:59:59 GMT"}, "{}"),
    "reset": (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "7200"}, "{}"),
    "spent": (
        429,
        {
            "X-RateLimit-Remaining-USD": "0.0005",
            "X-RateLimit-Cost-Required-USD": "0.001",
            "X-RateLimit-Reset": "9000",
        },
        "{}",
    ),
    "burst": (429, {"X-RateLimit-Remaining": "900", "X-RateLimit-Reset": "9000"}, "{}"),
    "500": (500, {}, '{"message": "out of order ECHO"}'),
    "html": (200, {"Content-Type": "text/html"}, "<!DOCTYPE html><html>Sign in ECHO</html>"),
    "empty body": (200, {}, ""),
    "refused": (403, {}, '{"message": "Invalid key ECHO"}'),
    "said": (200, {}, '{"error": "ECHO"}'),
    "text": (200, {}, '"ECHO"'),
    "moved": (302, {"Location": "http://127.0.0.1:9/"}, ""),
    "nested 200": (200, {}, '{"a":' * 100_000),
    "nested 500": (500, {}, "[" * 100_000),
    "infinite": (200, {}, '{"data": [], "next": 1e999}'),
    "forever": (429, {"Retry-After": "inf", "X-RateLimit-Reset": "inf"}, "{}"),
    "other": (200, {}, '{"results": 3, "data": 3, "esearchresult": 3, "resultList": 3}'),
}


def _pubmed(sent: Sent, fault: str) -> str:
    if sent.path.startswith("esearch"):
        ids = [] if fault == "nothing" else ["101", "103", "104"]
        return json.dumps({"header": {"type": "esearch"}, "esearchresult": {"idlist": ids}})
    articles = {
        "101": _article("101", TRIAL, ABSTRACTS[TRIAL], doi="10.5555/tea.1", year=2015, name="Lee"),
        "103": _article("103", "A letter on tea", "", year=2016, name="Roy"),
        "104": _article("104", SHARED_TITLE, ABSTRACTS[SHARED_TITLE], year=2019, name="Jones"),
    }
    wanted = sent.parameters["id"].split(",")
    found = (articles[id] for id in reversed(wanted))  # not in the order of the search
    return (
        f'<?xml version="1.0"?><!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, '
        f'1st January 2025//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">'
        f"<PubmedArticleSet>{''.join(found)}</PubmedArticleSet>"
    )


def _article(pmid: str, title: str, abstract: str, *, year: int, name: str, doi: str = "") -> str:
    parts = "".join(
        f'<AbstractText Label="{label}">{escape(text)}.</AbstractText>'
        for label, text in zip(
            ("METHODS", "RESULTS"), abstract.rstrip(".").split(". "), strict=False
        )
        if text
    )
    return (
        f'<PubmedArticle><MedlineCitation><PMID Version="1">{pmid}</PMID><Article>'
        f"<Journal><JournalIssue><PubDate><Year>{year}</Year><Month>Mar</Month></PubDate>"
        f"</JournalIssue><Title>Journal of Tea</Title></Journal>"
        f"<ArticleTitle>{title.replace('green', '<i>green</i>')}</ArticleTitle>"
        f"<ELocationID EIdType='doi'>{doi}</ELocationID>"
        f"{f'<Abstract>{parts}</Abstract>' if parts else ''}"
        f"<AuthorList><Author><LastName>{name}</LastName><ForeName>Kim</ForeName></Author>"
        f"</AuthorList></Article></MedlineCitation><PubmedData><ArticleIdList>"
        f'<ArticleId IdType="pubmed">{pmid}</ArticleId></ArticleIdList></PubmedData>'
        f"</PubmedArticle>"
    )


FULL_TEXT = (
    "<!DOCTYPE article><article><front><article-meta><title-group><article-title>"
    f"{TRIAL}</article-title></title-group><abstract><p>{escape(ABSTRACTS[TRIAL])}</p></abstract>"
    "</article-meta></front><body><sec><title>Results</title><p>Nobody who drank green tea slept "
    "less than before.</p></sec></body></article>"
)


def _europe_pmc(sent: Sent, fault: str) -> str:
    if sent.path.endswith("/fullTextXML"):
        return FULL_TEXT
    if "OPEN_ACCESS:y" in sent.parameters["query"]:
        is_open = '"10.5555/tea.1"' in sent.parameters["query"] and fault != "nothing"
        found = [{"id": "101", "source": "MED", "pmcid": "PMC9"}] if is_open else []
        return json.dumps({"hitCount": len(found), "resultList": {"result": found}})
    abstract = f"<h4>Methods</h4>{ABSTRACTS[TRIAL]}".replace("p < 0.05", "<i>p</i> &lt; 0.05")
    found = [
        {
            "id": "101", "source": "MED", "pmid": "101", "pmcid": "PMC9", "doi": "10.5555/TEA.1",
            "title": f"{TRIAL}.", "authorString": "Lee K.", "pubYear": "2015",
            "firstPublicationDate": "2015-03-02", "abstractText": abstract,
            "journalInfo": {"journal": {"title": "Journal of Tea"}},
        },
        {
            "id": "PPR7", "source": "PPR", "title": "Kelp forests under warming",
            "authorString": "Moss A.", "pubYear": "2021", "doi": "10.5555/kelp.7",
            "abstractText": ABSTRACTS["Kelp forests under warming"],
        },
    ]  # fmt: skip
    later = sent.parameters["cursorMark"] != "*"
    if fault == "nothing" or (later and fault != "repeated"):
        found = []
    return json.dumps(
        {"hitCount": len(found), "nextCursorMark": f"{sent.parameters['cursorMark']}x",
         "resultList": {"result": found}}
    )  # fmt: skip


def _inverted(text: str) -> dict[str, list[int]]:
    index: dict[str, list[int]] = {}
    for place, word in enumerate(text.split()):
        index.setdefault(word, []).append(place)
    return index


def _work(
    number: int, title: str, *, year: int, name: str, doi: str = "", pmid: str = ""
) -> dict[str, Any]:
    ids = {"openalex": f"https://openalex.org/W{number}"}
    if pmid:
        ids["pmid"] = f"https://pubmed.ncbi.nlm.nih.gov/{pmid}"
    return {
        "id": f"https://openalex.org/W{number}", "ids": ids, "display_name": title,
        "doi": f"https://doi.org/{doi}" if doi else None, "publication_year": year,
        "publication_date": f"{year}-03-02",
        "authorships": [{"author": {"display_name": name}}],
        "primary_location": {"source": {"display_name": "Journal of Tea"}},
        "abstract_inverted_index": _inverted(ABSTRACTS[title]) if title in ABSTRACTS else None,
    }  # fmt: skip


WORKS = (
    _work(1, TRIAL, year=2015, name="Kim Lee", doi="10.5555/tea.1", pmid="101"),
    _work(2, MODEL, year=2021, name="Ada Poe", doi="10.48550/arxiv.2101.00001"),
    _work(3, SHARED_TITLE, year=2001, name="Eve Smith", doi="10.5555/other"),
    {"id": "https://openalex.org/W9", "display_name": None},
)


def _openalex(sent: Sent, fault: str) -> str:
    path = urlsplit(sent.path).path
    if path != "works":
        return json.dumps({"id": "https://openalex.org/W1"})
    size, number = int(sent.parameters["per_page"]), int(sent.parameters["page"])
    start = 0 if fault == "repeated" else size * (number - 1)
    found = [] if fault == "nothing" else WORKS[start : start + size]
    if "cites" in sent.parameters.get("filter", ""):
        found = WORKS[1:2]
    return json.dumps({"meta": {"count": len(WORKS)}, "results": found})


def _arxiv(sent: Sent, fault: str) -> str:
    entry = (
        "<entry><id>http://arxiv.org/abs/2101.00001v2</id><updated>2022-05-05T00:00:00Z</updated>"
        f"<published>2021-01-04T10:00:00Z</published><title>{MODEL}</title>"
        f"<summary>\n  {ABSTRACTS[MODEL]}\n</summary><author><name>Ada Poe</name></author>"
        '<category term="q-bio.TO"/></entry>'
    )
    if fault == "error":
        entry = (
            "<entry><id>http://arxiv.org/api/errors#bad</id><title>Error</title>"
            "<summary>incorrect id format</summary></entry>"
        )
    return (
        '<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom" '
        'xmlns:arxiv="http://arxiv.org/schemas/atom"><title>ArXiv Query</title>'
        f"{'' if fault == 'nothing' else entry}</feed>"
    )


def _semantic_scholar(sent: Sent, fault: str) -> str:
    found: list[dict[str, Any]] = [
        {
            "paperId": "a" * 40, "externalIds": {"ArXiv": "2101.00001", "CorpusId": 5},
            "title": MODEL, "abstract": None, "year": 2021, "venue": "arXiv.org",
            "publicationDate": "2021-01-04", "authors": [{"name": "Ada Poe"}],
            "url": "https://www.semanticscholar.org/paper/" + "a" * 40,
        },
        {
            "paperId": "b" * 40, "externalIds": {"DOI": "10.5555/tea.1", "PubMed": "101"},
            "title": TRIAL, "abstract": ABSTRACTS[TRIAL], "year": 2015,
            "authors": [{"name": "Kim Lee"}],
        },
    ]  # fmt: skip
    if fault == "nothing":
        return json.dumps({"total": 0, "offset": 0})
    for way, inner in (("references", "citedPaper"), ("citations", "citingPaper")):
        if urlsplit(sent.path).path.endswith(way):
            return json.dumps({"offset": 0, "data": [{inner: found[0]}]})
    size, start = int(sent.parameters["limit"]), int(sent.parameters["offset"])
    start = 0 if fault == "repeated" else start
    page = {"total": len(found), "offset": start, "data": found[start : start + size]}
    more = int(sent.parameters["offset"]) + size
    return json.dumps({**page, **({"next": more} if start + size < len(found) else {})})


_SERVICES: dict[str, Callable[[Sent, str], str]] = {
    "pubmed": _pubmed,
    "europe_pmc": _europe_pmc,
    "openalex": _openalex,
    "arxiv": _arxiv,
    "semantic_scholar": _semantic_scholar,
}
