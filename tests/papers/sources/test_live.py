"""Services as a base of papers, as a retriever, and on the command line of papers."""

import json

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from deepera_graph import PaperSearch
from deepera_graph.cli.main import app
from deepera_graph.cli.opening.sources import check_sources
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.papers import Scope
from deepera_graph.papers.sources import live_base, open_source
from langchain_deepera import DeepEraRetriever, LiteratureRetriever
from support.literature import MODEL, QUESTION, TRIAL

pytestmark = pytest.mark.full


@pytest.fixture
def deepera(world, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return lambda *args: CliRunner().invoke(app, args)


def test_services_answer_as_a_base_does(world):
    base = live_base("all")
    hits = base.search("green tea", k=2)
    assert [one.paper.title for one in hits] == [TRIAL, MODEL]
    assert base.search("green tea", k=1, offset=1)[0].paper.title == MODEL
    assert base.get("https://doi.org/10.5555/TEA.1") == hits[0].paper
    assert base.get("10.5555/tea.1", scope=Scope(year_to=2000)) is None
    assert base.title(TRIAL.upper()).paper == hits[0].paper
    assert base.title("Another title").status == "none"
    assert base.search("?!").status == "no_words"
    with pytest.raises(SettingsError, match="by words"):
        base.search("green tea", mode="dense")


def test_citations_are_followed_where_a_service_has_them(world):
    assert [one.title for one in live_base("all").citations("10.5555/tea.1")] == [MODEL]
    with pytest.raises(SettingsError, match="openalex and semantic_scholar can"):
        live_base("pubmed").references("10.5555/tea.1")


def test_a_base_of_services_tells_what_is_missing_and_fails_if_all_do(world):
    told = []
    world.faults["arxiv"] = "html"
    base = live_base("arxiv,openalex", on_trouble=told.append)
    assert base.search("green tea").status == "ok"
    assert [one.source for one in told] == ["arxiv"]
    world.faults["openalex"] = "html"
    with pytest.raises(StoreError, match="arxiv: failed"):
        base.search("green tea")


def test_an_agent_searches_services_and_meets_each_paper_under_one_id(world):
    search = PaperSearch(live_base("arxiv,openalex"), max_steps=2, max_actions=4)
    found = search.search(QUESTION)
    titles = [one.paper.title for one in found.papers]
    assert TRIAL in titles
    assert titles.count(MODEL) == 1
    assert "2101.00001" in found.ids
    assert not found.has_failed


def test_a_paper_keeps_the_id_that_it_was_found_by_first(world):
    base = live_base("arxiv,openalex")
    [first, *_] = [one.paper.id for one in base.search("green tea") if one.paper.title == MODEL]
    [cited] = [one.id for one in base.citations("10.5555/tea.1") if one.title == MODEL]
    assert (first, cited) == ("2101.00001", "2101.00001")
    assert base.get("W2").id == first


def test_papers_are_searched_and_asked_for_on_the_command_line(deepera, world):
    world.faults["arxiv"] = "html"
    found = deepera("papers", "search", "green tea", "--source", "pubmed,arxiv", "--json")
    assert json.loads(found.stdout)["hits"][0]["paper"]["title"] == TRIAL
    assert "arxiv: failed (it answered an HTML page instead of data)" in found.stderr
    assert found.exit_code == 1
    asked = deepera("papers", "ask", QUESTION, "--source", "openalex", "--max-steps", "1")
    assert (asked.exit_code, TRIAL in asked.stdout) == (0, True)
    asked = deepera("papers", "ask", QUESTION, "--source", "pubmed")
    assert (asked.exit_code, asked.stderr.count("openalex and semantic_scholar can")) == (0, 1)


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((), "give --library or --source: neither was given"),
        (("--library", "x", "--source", "all"), "both were given"),
        (("--source", "pubmde"), "did you mean 'pubmed'"),
        (("--library", "x", "--contact", "a@b.org"), "--contact goes with --source"),
    ],
)
def test_a_wrong_source_of_papers_is_a_usage_error(deepera, args, problem):
    result = deepera("papers", "search", "tea", *args)
    assert (result.exit_code, problem in result.stderr) == (2, True), result.stderr


def test_doctor_tries_each_service_and_says_what_would_help(world):
    world.faults.update(openalex="hours", arxiv="html")
    told = {one.name: one for one in check_sources("all", 2.0)}
    assert told["source pubmed"].status == "ok"
    assert told["source openalex"].status == "warn"
    assert "OPENALEX_API_KEY" in told["source openalex"].advice
    assert told["source arxiv"].status == "fail"
    assert "DEEPERA_CONTACT" in told["contact of sources"].advice


@pytest.mark.slow
def test_doctor_asks_services_only_if_it_is_told_to(deepera, world):
    assert deepera("doctor").exit_code == 0
    assert world.sent == []
    world.faults["arxiv"] = "html"
    assert deepera("doctor", "--source", "all").exit_code == 3


async def test_a_retriever_gives_passages_and_says_how_it_went(world):
    world.faults["arxiv"] = "html"
    retriever = LiteratureRetriever(sources="pubmed,arxiv", k=5)
    documents = retriever.invoke(QUESTION)
    assert documents[0].metadata["title"] == TRIAL
    assert await retriever.ainvoke(QUESTION) == documents
    assert [one.status for one in retriever.find(QUESTION).answers] == ["ok", "failed"]
    kept = DeepEraRetriever.from_backend(retriever, "rules").invoke(QUESTION)
    assert TRIAL in [one.metadata["title"] for one in kept]


async def test_a_retriever_warns_of_what_is_missing(world, caplog):
    world.faults["arxiv"] = "html"
    retriever = LiteratureRetriever(sources="pubmed,arxiv")
    retriever.invoke(QUESTION)
    told = [one.getMessage() for one in caplog.records if one.name == "langchain_deepera.papers"]
    assert any("arxiv: failed" in one for one in told)
    assert any("1 paper has no abstract" in one for one in told)
    caplog.clear()
    await retriever.ainvoke(QUESTION)
    assert [
        one.getMessage() for one in caplog.records if one.name == "langchain_deepera.papers"
    ] == told


@pytest.mark.parametrize("wrong", [{"source": "pubmed"}, {"k": 0}, {"sources": "pubmde"}])
def test_a_retriever_refuses_a_wrong_setting_when_it_is_made(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        LiteratureRetriever(**wrong)


def test_a_copy_of_a_retriever_asks_its_own_services(world):
    other = LiteratureRetriever(sources="pubmed").model_copy(update={"sources": "arxiv"})
    assert [one.metadata["title"] for one in other.invoke(QUESTION)] == [MODEL]


def test_a_retriever_takes_a_source_of_ones_own(world):
    own = open_source("arxiv")
    [document] = LiteratureRetriever(sources=[own, "arxiv"], k=5).invoke(QUESTION)
    assert document.metadata["title"] == MODEL


def test_a_retriever_whose_services_all_fail_raises(world):
    world.faults["arxiv"] = "html"
    with pytest.raises(StoreError, match="an HTML page"):
        LiteratureRetriever(sources="arxiv").invoke(QUESTION)
