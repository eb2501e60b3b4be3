"""Each service: the exact address it is asked, and what becomes of its answer."""

import asyncio
import json

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.papers import Scope
from deepera_graph.papers.sources import NAMES, PaperSource, open_source, open_sources, read_names
from deepera_graph.papers.sources.base import CitationSource
from deepera_graph.text.plain import clean_markup
from support import literature
from support.literature import ABSTRACTS, MODEL, QUESTION, TRIAL

pytestmark = pytest.mark.full

TERMS = "%28green+AND+tea%29+OR+%28fasting+AND+glucose%29"
OPENALEX_FIELDS = (
    "id%2Cdoi%2Cids%2Cdisplay_name%2Cpublication_year%2Cpublication_date%2Cauthorships"
    "%2Cprimary_location%2Clocations%2Ctopics%2Cabstract_inverted_index"
)
S2_FIELDS = (
    "title%2Cabstract%2Cyear%2CpublicationDate%2Cvenue%2Cauthors%2CexternalIds%2Curl"
    "%2CfieldsOfStudy"
)
ADDRESSES = {
    "pubmed": [
        f"esearch.fcgi?db=pubmed&term={TERMS}&retmode=json&retmax=7&sort=relevance"
        "&datetype=pdat&mindate=2015%2F01%2F01&maxdate=2021%2F08%2F31&tool=deepera-graph",
        "efetch.fcgi?db=pubmed&id=101%2C103%2C104&retmode=xml&tool=deepera-graph",
    ],
    "europe_pmc": [
        f"search?query=%28{TERMS}%29+AND+%28FIRST_PDATE%3A%5B2015-01-01+TO+2021-08-31%5D%29"
        "&format=json&resultType=core&pageSize=7&cursorMark=%2A"
    ],
    "openalex": [
        f"works?search={TERMS}&filter=from_publication_date%3A2015-01-01"
        f"%2Cto_publication_date%3A2021-08-31&per_page=7&page=1&select={OPENALEX_FIELDS}"
    ],
    "arxiv": [
        "query?search_query=%28%28all%3Agreen+AND+all%3Atea%29+OR+"
        "%28all%3Afasting+AND+all%3Aglucose%29%29+AND+submittedDate%3A%5B201501010000+TO+"
        "202108312359%5D&start=0&max_results=7&sortBy=relevance&sortOrder=descending"
    ],
    "semantic_scholar": [
        "paper/search?query=green+tea+fasting+glucose&publicationDateOrYear=2015-01-01%3A2021-08-31"
        f"&offset=0&limit=7&fields={S2_FIELDS}"
    ],
}


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_the_address_that_is_sent_says_groups_years_and_limits(world, name):
    scope = Scope(year_from=2015, year_to=2030, as_of="2021-08")
    open_source(name).search(QUESTION, 7, scope)
    assert [one.path for one in world.of(name)] == ADDRESSES[name]
    assert world.sent[0].headers["user-agent"].startswith("deepera-graph/")


def test_a_contact_address_goes_along_where_the_service_wants_it(world, name, monkeypatch):
    monkeypatch.setenv("DEEPERA_CONTACT", "name@example.org")
    answer = open_source(name).search(QUESTION)
    for one in world.of(name):
        assert "(mailto:name@example.org)" in one.headers["user-agent"]
        by_mail = one.parameters.get("email")
        assert by_mail == ("name@example.org" if name in ("pubmed", "europe_pmc") else None)
    assert "example.org" not in answer.asked


FOUND = {
    "pubmed": ["PMID:101", "PMID:103", "PMID:104"],
    "europe_pmc": ["PMID:101", "10.5555/kelp.7"],
    "openalex": ["W1", "W2", "W3"],
    "arxiv": ["2101.00001"],
    "semantic_scholar": ["2101.00001", "b" * 40],
}


def test_papers_come_in_the_order_of_the_service(world, name):
    source = open_source(name)
    assert isinstance(source, PaperSource)
    answer = source.search(QUESTION)
    assert (answer.status, [one.id for one in answer]) == ("ok", FOUND[name])
    assert asyncio.run(source.asearch(QUESTION)).records == answer.records


@pytest.mark.parametrize("name", ["pubmed", "europe_pmc", "openalex", "semantic_scholar"])
def test_a_paper_has_what_it_is_cited_by_whatever_service_gives_it(world, name):
    answer = open_source(name).search(QUESTION)
    [record] = [one for one in answer.records if one.paper.title == TRIAL]
    assert record.paper.year == 2015
    assert record.paper.authors
    assert {"10.5555/tea.1", "PMID:101"} <= set(record.ids)
    for sentence in ABSTRACTS[TRIAL].split(". "):
        assert sentence.rstrip(".") in record.paper.abstract


def test_labels_of_a_structured_abstract_stay(world):
    labelled = open_source("pubmed").search(QUESTION)[0].abstract
    assert labelled.startswith("METHODS: Sixty")
    headed = open_source("europe_pmc").search(QUESTION)[0].abstract
    assert headed.startswith("Methods: Sixty")
    assert headed.endswith("(p < 0.05).")


def test_an_arxiv_id_loses_its_version_and_the_date_is_that_of_the_first(world):
    [paper] = open_source("arxiv").search(QUESTION)
    assert (paper.id, paper.arxiv, paper.date) == ("2101.00001", "2101.00001", "2021-01-04")
    assert paper.url == "https://arxiv.org/abs/2101.00001"


@pytest.mark.parametrize(
    ("marked", "plain"),
    [
        ("<h4>Background</h4>Tea <b>is</b> <i>good</i>.", "Background: Tea is good."),
        (
            "<jats:title>Abstract</jats:title><jats:p>One.</jats:p><jats:p>Two.</jats:p>",
            "One. Two.",
        ),
        ("H<sub>2</sub>O, p &lt; 0.05 &amp; n<3 or n>5", "H2O, p < 0.05 & n<3 or n>5"),
        ('<a href="x">Tea</a> &#946;-carotene', "Tea β-carotene"),
        ("&lt;i&gt;Kelp&lt;/i&gt; grows", "Kelp grows"),
        ("plain  text\n of a<b and c>d", "plain text of a<b and c>d"),
    ],
)
def test_markup_becomes_text_and_comparisons_stay(marked, plain):
    assert clean_markup(marked) == plain


def test_what_is_hidden_or_later_than_the_date_of_asking_never_comes(world, name):
    scope = Scope(hide=("10.5555/TEA.1",), as_of="2018")
    answer = open_source(name).search(QUESTION, 9, scope)
    assert all(one.title != TRIAL and (one.year or 0) <= 2018 for one in answer)
    assert answer.left_out["out_of_scope"] >= 1


def test_a_record_that_cannot_be_used_is_counted(world):
    assert open_source("openalex").search(QUESTION).left_out == {"no_title": 1}


def test_nothing_found_is_empty_and_no_failure(world, name):
    world.faults[name] = "nothing"
    answer = open_source(name).search(QUESTION)
    assert (answer.status, answer.reason, len(answer)) == ("empty", "", 0)


PAGES = {"openalex": "page", "semantic_scholar": "offset"}


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_turned_until_there_are_enough(world, name):
    source = open_source(name)
    source.page_size = 1
    assert [one.id for one in source.search(QUESTION, 2)] == FOUND[name][:2]
    assert len({one.parameters[PAGES[name]] for one in world.sent}) == 2


@pytest.mark.parametrize("name", ["europe_pmc", *PAGES])
def test_a_page_that_comes_again_ends_the_search(world, name):
    world.faults[name] = "repeated"
    source = open_source(name)
    source.page_size = 2 if name == "europe_pmc" else 1
    answer = source.search(QUESTION, 50)
    assert len(answer) == source.page_size
    assert answer.left_out["repeated"] == source.page_size
    assert len(world.sent) == 2


@pytest.mark.parametrize("name", ["openalex", "semantic_scholar"])
def test_citations_are_followed_both_ways(world, name):
    source = open_source(name)
    assert isinstance(source, CitationSource)
    assert MODEL in [one.title for one in source.citations("10.5555/tea.1")]
    assert source.references("https://arxiv.org/abs/2101.00001v2").status == "ok"
    assert asyncio.run(source.acitations("PMID:101")).records == source.citations("10.1/a").records
    assert source.citations("no id").reason == "it knows no paper by an id such as 'no id'"


@pytest.mark.parametrize(
    ("doi", "path"),
    [
        ("10.5555/tea.1", "works/doi:10.5555/tea.1?select=id"),
        (
            "10.1002/(sici)1097(1999)55:1<1::aid-x>3.0.co;2-#",
            "works/doi:10.1002/%28sici%291097%281999%2955:1%3C1::aid-x%3E3.0.co%3B2-%23?select=id",
        ),
        ("10.5555/a?b", "works/doi:10.5555/a%3Fb?select=id"),
    ],
)
def test_openalex_is_asked_for_the_whole_of_a_doi(world, doi, path):
    open_source("openalex").citations(doi)
    assert world.sent[0].path == path


def test_citations_in_scope_are_found_behind_those_that_are_not(world, monkeypatch):
    citing = [
        {"citingPaper": {"paperId": f"{n:040x}", "title": f"Tea {n}", "year": 2025 - (n >= 120)}}
        for n in range(150)
    ]

    def answer(sent, fault):
        start, size = (int(sent.parameters[name]) for name in ("offset", "limit"))
        following = {"next": start + size} if start + size < len(citing) else {}
        return json.dumps({"offset": start, "data": citing[start : start + size], **following})

    monkeypatch.setitem(literature._SERVICES, "semantic_scholar", answer)
    found = open_source("s2").citations("10.5555/tea.1", 5, Scope(year_to=2024))
    assert [one.title for one in found] == [f"Tea {n}" for n in range(120, 125)]
    assert len(world.sent) == 2
    world.sent.clear()
    hidden = Scope(hide=(found[0].id,))
    assert len(open_source("s2").citations("10.5555/tea.1", 5, hidden)) == 5
    assert [one.parameters["limit"] for one in world.sent] == ["6"]


def test_arxiv_is_not_asked_for_years_before_it_began(world):
    answer = open_source("arxiv").search(QUESTION, scope=Scope(year_to=1980))
    assert (answer.status, answer.reason) == ("not_asked", "arXiv begins in 1991")
    assert world.sent == []


@pytest.mark.parametrize(
    ("names", "hint"),
    [("pubmde", "pubmed"), ("pubmed,open alexx", "openalex"), ("", "pubmed"), ("al", "all")],
)
def test_an_unknown_service_is_an_error_with_near_names(names, hint):
    with pytest.raises(SettingsError, match="source") as error:
        read_names(names)
    assert hint in str(error.value)


def test_services_have_short_names_and_come_once():
    assert read_names("S2, europe-pmc,semantic_scholar") == ("semantic_scholar", "europe_pmc")
    assert read_names("all") == NAMES


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"seconds": 0}, "seconds must be > 0, got 0"),
        ({"contact": "me"}, "got 'me'"),
        ({"base_url": "ftp://x"}, "got 'ftp://x'"),
    ],
)
def test_a_setting_that_is_wrong_is_named(how, problem):
    with pytest.raises(SettingsError, match="must") as error:
        open_source("pubmed", **how)
    assert problem in str(error.value)


def test_a_blank_query_and_no_papers_are_errors_of_the_caller(world):
    with pytest.raises(InputError, match="no word"):
        open_sources("pubmed").search("?!")
    with pytest.raises(SettingsError, match="k must be"):
        open_source("pubmed").search(QUESTION, 0)
    assert world.sent == []
