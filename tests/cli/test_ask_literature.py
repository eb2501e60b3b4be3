"""`deepera ask --source`: evidence from services of literature."""

import json
import re
from itertools import permutations
from pathlib import Path

import pytest

from deepera_graph import RerankResult
from deepera_graph.cli.opening.sources import find_scope
from deepera_graph.cli.shared.places import LiteratureOptions
from support.literature import QUESTION, TRIAL, Literature

pytestmark = pytest.mark.full

DOCS = Path(__file__).parents[2] / "docs" / "sources.md"
_KEYS = {name: f"kept-apart-{name.lower()}" for name in ("NCBI_API_KEY", "OPENALEX_API_KEY")}


@pytest.fixture
def world(monkeypatch):
    with Literature() as running:
        for name, value in {**running.variables, **_KEYS}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running


@pytest.fixture
def ask(deepera, world):
    def run(*args, source="all"):
        return deepera("ask", QUESTION, "--source", source, *args)

    return run


def test_evidence_of_all_services_is_fused_cited_and_has_directions(ask, world):
    result = ask("--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    best = next(one for one in found["ranking"] if one["citation"]["title"] == TRIAL)
    assert best["kept"]
    assert best["citation"]["doi"] == "10.5555/tea.1"
    assert best["citation"]["venue"] == "Journal of Tea"
    assert best["metadata"]["sources"] == ["pubmed", "europe_pmc", "openalex", "semantic_scholar"]
    assert best["direction"] == "supports"
    told = [(one["band"], one["direction"]) for one in found["ranking"] if one["kept"]]
    assert told == [("evidence", "supports"), *[("possible", "no_difference")] * 2]
    assert found["direction_counts"] == {"supports": 1}
    titles = [one["citation"]["title"] for one in found["ranking"]]
    assert titles.count(TRIAL) == 1
    assert [one["status"] for one in found["sources"]] == ["ok"] * 5
    assert RerankResult.from_json(result.stdout).sources == tuple(found["sources"])


def test_services_that_fail_leave_the_others_results_and_are_named(ask, world, monkeypatch):
    monkeypatch.setenv("DEEPERA_SOURCE_SECONDS", "2")
    world.faults.update(openalex="hours", arxiv="html", europe_pmc="500", semantic_scholar="slow")
    result = ask("--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert TRIAL in [one["citation"]["title"] for one in found["ranking"] if one["kept"]]
    told = {one["source"]: (one["status"], one["reason"]) for one in found["sources"]}
    assert told == {
        "pubmed": ("ok", ""),
        "europe_pmc": ("failed", "HTTP 500: out of order"),
        "openalex": ("rate_limited", "HTTP 429: Rate limit exceeded"),
        "arxiv": ("failed", "it answered an HTML page instead of data"),
        "semantic_scholar": ("failed", "it did not answer within 2 s"),
    }
    for name in told.keys() - {"pubmed"}:
        assert name in result.stderr
    assert "again in 15 h" in result.stderr


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_form_for_readers_says_which_service_failed(ask, world, form):
    world.faults["openalex"] = "html"
    shown = ask("--format", form, "--backend", "rules", source="pubmed,openalex").stdout
    assert "openalex: failed (it answered an HTML page instead of data)" in " ".join(shown.split())
    assert TRIAL in " ".join(shown.split())


def test_the_documentation_shows_what_is_printed(ask, world, monkeypatch):
    monkeypatch.setenv("COLUMNS", "96")
    world.faults.update(openalex="hours", arxiv="html")
    result = ask(source="pubmed,openalex,arxiv")
    [block] = re.findall(r"literature\.py -->\n```text\n(.*?)```", DOCS.read_text(), re.DOTALL)
    command, _, expected = block.partition("\n")
    assert command == f'$ deepera ask "{QUESTION}" --source pubmed,openalex,arxiv'
    assert lines_of(result.stdout) == lines_of(expected)


def lines_of(text):
    """Lines without the seconds that it took, and without the blanks at their ends."""
    return [re.sub(r"in [\d.]+ s", "in S s", line).rstrip() for line in text.splitlines()]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--source", "pubmde"), "did you mean 'pubmed'"),
        (("--source", "all", "--adaptive"), "--adaptive goes with a SOURCE or --library"),
        (("--source", "all", "--multihop"), "--multihop goes with a SOURCE or --library"),
        (("--source", "all", "-l", "papers"), "--library and --source were given"),
        (("--source", "all", "--where", "kind=X"), "papers have no field 'kind'"),
        (("--source", "all", "--where", "year>=soon"), "must be a year such as 2021, got 'soon'"),
    ],
)
def test_a_wrong_source_is_a_usage_error(deepera, world, args, problem):
    result = deepera("ask", QUESTION, *args)
    assert (result.exit_code, problem in result.stderr) == (2, True), result.stderr
    assert world.sent == []


def test_an_address_that_is_none_is_refused(ask, world, monkeypatch):
    monkeypatch.setenv("DEEPERA_CONTACT", "me")
    result = ask()
    assert (result.exit_code, "got 'me'" in result.stderr) == (2, True)
    assert world.sent == []


def test_if_no_service_answers_that_is_said_and_the_code_is_another(ask, world):
    world.faults.update(arxiv="html", pubmed="500")
    result = ask(source="arxiv,pubmed")
    assert result.exit_code == 3
    assert "arxiv: failed" in result.stderr
    assert "pubmed: failed" in result.stderr


def test_nothing_found_where_a_service_failed_is_told_apart_from_nothing_there(ask, world):
    world.faults.update(arxiv="nothing", openalex="html")
    result = ask(source="arxiv,openalex")
    assert (result.exit_code, "Nothing was retrieved." in result.stdout) == (1, True)
    assert "searched arxiv (0), openalex (failed)" in result.stdout
    world.faults["openalex"] = "nothing"
    assert ask(source="arxiv,openalex").exit_code == 0


def test_a_service_that_there_is_no_use_in_asking_is_no_failure(ask, world):
    result = ask("--where", "year<=1980", source="arxiv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "searched arxiv (not asked)" in result.stdout
    assert world.sent == []


def test_years_of_where_go_to_the_service(ask, world):
    ask("--where", "year>2014", "--where", "year<=2018", source="openalex")
    [sent] = world.sent
    assert sent.parameters["filter"] == (
        "from_publication_date:2015-01-01,to_publication_date:2018-12-31"
    )


def test_the_strictest_of_several_years_holds_in_any_order():
    scopes = [
        find_scope(LiteratureOptions(sources="all"), dict(limits))
        for limits in permutations([("date", {"gte": 2018, "lt": 2023}), ("year", {"gt": 2014})])
    ]
    assert {(one.year_from, one.year_to) for one in scopes} == {(2018, 2022)}


def test_the_number_of_candidates_is_asked_of_each_service(ask, world):
    ask("-k", "2", source="openalex,arxiv")
    [openalex], [arxiv] = world.of("openalex"), world.of("arxiv")
    assert (openalex.parameters["per_page"], arxiv.parameters["max_results"]) == ("2", "2")


def test_a_chat_model_judges_what_the_literature_gives(ask, world, server):
    result = ask(
        *("--model", "any", "--base-url", server.base_url, "--format", "json"), source="pubmed"
    )
    found = json.loads(result.stdout)
    assert [one["citation"]["title"] for one in found["ranking"] if one["kept"]] == [TRIAL]
    assert found["manifest"]["model"] == "any"
    assert found["sources"][0]["papers"] == 3


def test_a_question_asked_again_is_answered_from_the_disk(ask, world):
    ask("--backend", "rules", source="arxiv")
    again = ask("--backend", "rules", "--json", source="arxiv")
    assert json.loads(again.stdout)["sources"][0]["cached"]
    assert len(world.sent) == 1
    ask("--backend", "rules", "--cache", "off", source="arxiv")
    assert len(world.sent) == 2


def test_a_contact_may_be_configured_and_a_configured_collection_yields(
    ask, world, monkeypatch, tmp_path
):
    configured = 'contact = "name@example.org"\nsource_seconds = 9\ncollection = "papers"\n'
    (tmp_path / "deepera.toml").write_text(configured)
    monkeypatch.chdir(tmp_path)
    ask("--backend", "rules", source="arxiv")
    assert "name@example.org" in world.sent[0].headers["user-agent"]
