"""Where papers are found: several sources, failures, citations in hops, and pruned branches."""

from types import SimpleNamespace

import pytest

from bench.quest.conftest import read
from bench.quest.scripted import Scripted
from deepera_graph.errors import SettingsError
from deepera_graph.lab.quest.construct import QuestCandidates
from deepera_graph.lab.quest.records import QuestQuestion
from deepera_graph.lab.quest.sources import (
    FAILED,
    BaseSource,
    Citing,
    Merged,
    SourceCall,
    call_source,
)
from deepera_graph.lab.settings import QuestPlan
from deepera_graph.papers.paper import Paper
from deepera_graph.papers.results import Scope
from deepera_graph.papers.sources import open_source
from support.literature import QUESTION, Literature

pytestmark = pytest.mark.full


class Service:
    """A source that can be searched alone, and answers with a status."""

    def __init__(self, name, status="ok", papers=(), reason=""):
        self.name, self._answer = name, SimpleNamespace(
            status=status, papers=papers, reason=reason
        )  # fmt: skip

    def search(self, query, k, scope):
        return self._answer


def test_a_source_that_fails_is_named_and_another_run_asks_again(build, base, tmp_path):
    limited = Service("limited", "rate_limited", reason="again in 15 h")
    result = build(sources=[base, limited], max_hops=0, max_scored=20)
    for one in read(result.folder, "records.jsonl"):
        assert one["sources"]["limited"] == {"rate_limited": 11}
        assert {call.get("reason") for call in one["calls"] if call["source"] == "limited"} == {
            "again in 15 h"
        }
        assert one["answers"]
    assert set(result.failed.values()) == {"calls failed: 11 of limited"}
    mended = build(sources=[base, Service("limited", "empty")], overwrite=True,
                   max_hops=0, max_scored=20)  # fmt: skip
    assert (mended.failed, mended.n_sent) == ({}, 0)


def test_a_source_that_raises_does_not_end_the_run(build, base):
    class Broken(Service):
        def search(self, query, k, scope):
            raise OSError("no route")

    result = build(sources=[base, Broken("broken")], max_hops=0, max_scored=20)
    reasons = {call.get("reason") for one in read(result.folder, "records.jsonl")
               for call in one["calls"]}  # fmt: skip
    assert "OSError: no route" in reasons


def test_two_sources_of_one_name_are_refused(build, base):
    with pytest.raises(SettingsError, match="different names"):
        build(sources=[base, base])
    with pytest.raises(SettingsError, match="one or more"):
        build(sources=[])


def test_a_paper_of_several_sources_is_judged_once():
    merged = Merged()
    first = Paper(id="10.1/a", doi="10.1/a", title="Kites over kelp", year=2012)
    assert merged.add("one", first) == "10.1/a"
    by_doi = Paper(
        id="W1", doi="10.1/a", title="Kites over kelp: a study", abstract="Now with abstract."
    )
    assert merged.add("two", by_doi) == "10.1/a"
    assert merged.add("three", Paper(id="x", title="Kites over Kelp.")) == "10.1/a"
    assert merged.add("one", Paper(id="y", title="Kites over kelp", year=2013)) == "y"
    assert merged.add("five", Paper(id="z", title="Kites over kelp", year=1950)) == "z"
    assert merged.add("two", Paper(id="W2", doi="10.1/a", title="Bells")) == "W2"
    assert merged.papers["10.1/a"].abstract == "Now with abstract."
    assert merged.own_id("two", "10.1/a") == "W1"
    assert merged.own_id("four", "10.1/a") == "10.1/a"


def followed(result):
    """The records of questions that had a seed."""
    found = [one for one in read(result.folder, "records.jsonl") if one["hops"]]
    assert found
    return found


def test_references_are_followed_whole_and_at_most_so_many_citing_papers(build, base):
    asked = []

    class Listening(BaseSource):
        def references(self, id, k, scope):
            asked.append(("references", k))
            return super().references(id, k, scope)

        def citations(self, id, k, scope):
            asked.append(("citations", k))
            return super().citations(id, k, scope)

    result = build(sources=Listening(base), max_citing=3, per_search=2)
    assert {k for tool, k in asked if tool == "citations"} == {3}
    assert min(k for tool, k in asked if tool == "references") >= 1000
    for one in followed(result):
        assert len(one["hops"]) <= 2
        assert {call["tool"] for call in one["calls"]} == {"search", "references", "citations"}


def test_no_hop_is_no_citation(build):
    result = build(max_hops=0)
    assert all(one["hops"] == [] for one in read(result.folder, "records.jsonl"))


def test_the_second_hop_starts_at_what_all_judges_took_for_an_answer(build, planted):
    """One judge doubts each neighbour, so that none is certain, though it is settled as one."""
    searched = {}

    def bend(text, reply):
        shown, query = planted.shown(text), Scripted.question_of(text)
        found = searched.setdefault(query, {one["id"] for one in shown.values()})
        return {
            "papers": [
                one
                if shown[one["paper"]]["id"] in found
                else {**one, "grade": min(one["grade"], 1)}
                for one in reply["papers"]
            ]
        }

    doubting = Scripted(model_name="a", planted=planted, bend={"grade": bend})
    judges = [doubting, Scripted(model_name="b", planted=planted)]
    result = build(judges=judges, per_search=2, group=100)
    hops = [one["hops"] for one in followed(result)]
    assert {len(one) for one in hops} == {1}
    assert sum(one[0]["answers"] for one in hops) > 0
    sure = build(result.folder.parent / "sure", per_search=2)
    assert 2 in {len(one["hops"]) for one in followed(sure)}


def test_a_noisy_branch_is_left_after_a_wave(build, planted, base):
    far = [one for one in planted.papers if one["field"] != "kelp counting"]
    strangers = [base.get(one["id"]) for one in far]

    class Noisy(BaseSource):
        def references(self, id, k, scope):
            return SimpleNamespace(status="ok", papers=strangers)

    result = build(sources=Noisy(base), prefilter="none", wave=5, per_search=2, max_citing=0,
                   max_hops=1)  # fmt: skip
    for one in followed(result):
        [hop] = one["hops"]
        assert hop["judged"] + hop["pruned"] == hop["neighbours"]
        assert hop["judged"] <= 5 * hop["seeds"] + 5
        assert len(one["left_out"]["pruned"]) == hop["pruned"] > 0


def test_the_prefilter_leaves_out_what_no_judge_has_to_see_and_says_what():
    question = QuestQuestion(
        id="q", query="Counting kelp from kites", constraints={"year_from": 2010}
    )
    pool = QuestCandidates(question, QuestPlan(prefilter="words"), None)
    whole = {"abstract": "Words about something."}
    papers = (
        Paper(id="near", title="Counting kelp", year=2012, abstract="From kites."),
        Paper(id="far", title="Bells", year=2012, **whole),
        Paper(id="far-but-found-twice", title="Ropes", **whole),
        Paper(id="bare", title="Kites over kelp"),
        Paper(id="old", title="Kelp and kites", year=2001, **whole),
    )
    for n in (5, 3):
        found = papers if n == 5 else papers[2:3]
        pool.add(SourceCall("s", "search", "kelp", "ok", found))
    assert sorted(pool.keep_likely(pool.order())) == ["far-but-found-twice", "near"]
    assert pool.left_out == {"far": ["far"], "no_abstract": ["bare"], "out_of_years": ["old"]}


def test_papers_that_no_source_matched_to_arxiv_are_left_out_where_that_is_asked():
    question = QuestQuestion(id="q", query="Counting kelp from kites")
    pool = QuestCandidates(question, QuestPlan(prefilter="none", only_arxiv=True), None)
    text = {"abstract": "Words about something.", "year": 2012}
    first = (
        Paper(id="s2-1", title="Counting kelp from kites at sea", **text),
        Paper(id="s2-2", title="Ropes for kites", **text),
        Paper(id="s2-3", title="Knots", arxiv="1201.00003", **text),
    )
    second = (
        Paper(id="1201.00001", title="Counting Kelp from Kites at Sea", **text),
        Paper(id="hep-th/9901001", title="Strings", **text),
    )
    pool.add(SourceCall("s2", "search", "kelp", "ok", first))
    pool.add(SourceCall("arxiv", "search", "kelp", "ok", second))
    assert sorted(pool.keep_likely(pool.order())) == ["hep-th/9901001", "s2-1", "s2-3"]
    assert pool.left_out == {"not_on_arxiv": ["s2-2"]}


def test_a_service_of_literature_is_a_source_and_expanded_if_it_knows_citations():
    with Literature() as services:
        openalex = open_source("openalex", base_url=services.url("openalex"))
        pubmed = open_source("pubmed", base_url=services.url("pubmed"))
        found = call_source(openalex, "search", QUESTION, 10, Scope())
        near = call_source(openalex, "references", found.papers[0].id, 10, Scope())
        services.faults["openalex"] = "hours"
        down = call_source(openalex, "search", "Kelp", 10, Scope())
    assert (found.status, found.source) == ("ok", "openalex")
    assert found.papers
    assert near.status in ("ok", "empty")
    assert (down.status in FAILED, bool(down.reason)) == (True, True)
    assert isinstance(openalex, Citing)
    assert not isinstance(pubmed, Citing)
