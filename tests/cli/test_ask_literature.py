"""`deepera ask --source`: evidence from services of literature."""

import json

import pytest

from deepera_graph import RerankResult
from support.literature import QUESTION, TRIAL, Literature

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
        return deepera("ask", QUESTION, "--source", source, "--source-seconds", "1", *args)

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
    assert found["direction_counts"] == {"supports": 1, "no_difference": 2}
    titles = [one["citation"]["title"] for one in found["ranking"]]
    assert titles.count(TRIAL) == 1
    assert [one["status"] for one in found["sources"]] == ["ok"] * 5
    assert RerankResult.from_json(result.stdout).sources == tuple(found["sources"])


def test_services_that_fail_leave_the_others_results_and_are_named(ask, world):
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
        "semantic_scholar": ("failed", "it did not answer within 1 s"),
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
