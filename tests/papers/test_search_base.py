"""Searching a base by words, looking papers up, and following citations."""

import pytest

from deepera_graph.errors import MissingStoreError, SettingsError
from deepera_graph.papers import Hits, PaperBase, Scope
from papers.world import write_lines


def test_a_search_finds_the_papers_that_have_the_words(base):
    hits = base.search("glacier mapping", k=5)
    assert hits.status == "ok"
    assert len(hits) == 5
    assert all("glacier" in one.paper.text.lower() for one in hits)
    assert [one.rank for one in hits] == [1, 2, 3, 4, 5]
    assert hits[0].by == {"sparse": 1}


def test_pages_continue_without_gap_or_repeat(base):
    whole = base.search("random forests", k=60)
    pages = [base.search("random forests", k=7, offset=offset) for offset in range(0, 60, 7)]
    assert [one for page in pages for one in page][:60] == list(whole)


@pytest.mark.parametrize("text", ["", "   ", "?!", "the of and", "\0", "\ud800"])
def test_a_query_without_a_word_says_so(base, text):
    assert base.search(text) == Hits("no_words", "sparse")


def test_words_that_only_ask_find_nothing_where_there_are_others(tmp_path):
    titles = {"a": "Kelp counted by swarms", "b": "A tool that is used", "c": "A study of papers"}
    source = write_lines(
        tmp_path / "p.jsonl", [{"id": id, "title": title} for id, title in titles.items()]
    )
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        query = "Find papers on kelp whose own approach uses swarms"
        assert [one.paper.id for one in base.search(query)] == ["a"]
        assert [one.paper.id for one in base.search("find studies")] == ["c"]


def test_a_query_that_nothing_matches_is_empty(base):
    assert base.search("zyzzyva").status == "empty"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k must be a whole number >= 1, got 0"),
        ({"offset": -1}, "offset must be a whole number >= 0, got -1"),
        ({"mode": "spares"}, "got 'spares'; did you mean 'sparse'"),
        ({"scope": Scope(venues=("Nordia",))}, "from the venue 'Nordia'; near it: NORDAI"),
    ],
)
def test_a_bad_setting_is_named(base, settings, message):
    with pytest.raises(SettingsError, match="(?i)" + message.replace("?", r"\?")):
        base.search("glacier", **settings)


def test_k_may_be_larger_than_the_base(base, world):
    assert len(base.search("study", k=10**12)) == len(world)


@pytest.mark.full
def test_references_and_citations_equal_brute_force(base, world):
    known = {one["id"]: one for one in world}
    for id, paper in known.items():
        assert [one.id for one in base.references(id)] == paper["references"]
        citing = {one["id"] for one in world if id in one["references"]}
        assert {one.id for one in base.citations(id)} == citing


def test_a_missing_base_is_named(tmp_path):
    with pytest.raises(MissingStoreError, match=r"no\.papers"):
        PaperBase.open(tmp_path / "no.papers")


def test_papers_with_none_but_frequent_words_come_after_the_others(base, monkeypatch):
    query = "study of glacier mapping by random forests at Lintel-7"
    plain = {one.paper.id for one in base.search(query, k=1000)}
    monkeypatch.setattr("deepera_graph.papers.search.LARGE", 100)
    monkeypatch.setattr("deepera_graph.papers.search.MOST_CANDIDATES", 40)
    whole = base.search(query, k=1000)
    assert {one.paper.id for one in whole} == plain
    assert [one.rank for one in whole] == [one.by["sparse"] for one in whole]
    has_rare = ["Lintel-7." in one.paper.text or "Lintel-7 " in one.paper.text for one in whole]
    assert has_rare == sorted(has_rare, reverse=True)
    pages = [base.search(query, k=11, offset=offset) for offset in range(0, 242, 11)]
    assert [one for page in pages for one in page] == list(whole)
