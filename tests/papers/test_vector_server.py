"""Vectors of a base on a Qdrant server: the answers of the file, and clear errors without it."""

from functools import partial

import pytest
from typer.testing import CliRunner

from deepera_graph.cli.main import app
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.papers import PaperBase, Scope
from papers.test_building import CountingEmbeddings
from papers.world import invent_papers, write_lines
from support.qdrant_vectors import QdrantVectors

pytestmark = pytest.mark.full

SCOPES = [
    Scope(),
    Scope(year_from=2010, undated="drop"),
    Scope(as_of="2015-06"),
    Scope(venues=("NORDAI",), hide=("w0003", "10.5555/world.9")),
    Scope(not_venues=("ICRS", "DAIC"), year_to=2012),
]


@pytest.fixture(scope="module")
def server():
    with QdrantVectors() as running:
        yield running


@pytest.fixture(scope="module")
def source(world, tmp_path_factory):
    # twenty papers more whose vectors are equal, so that there are ties
    same = [{"id": f"t{place:02}", "title": "Twin tide tables"} for place in range(20)]
    return write_lines(tmp_path_factory.mktemp("served") / "p.jsonl", [*world, *same])


@pytest.fixture(scope="module")
def here(source):
    path = source.with_name("here.papers")
    with PaperBase.build(path, source, embeddings=CountingEmbeddings()) as base:
        yield base


@pytest.fixture(scope="module")
def served(source, server):
    path = source.with_name("served.papers")
    with PaperBase.build(
        path, source, embeddings=CountingEmbeddings(), vectors_url=server.url
    ) as base:
        yield base


def search_with(path, embeddings):
    with PaperBase.open(path, embeddings=embeddings) as base:
        return base.search("zinc", mode="dense")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_server_gives_the_answers_of_the_file(here, served, scope):
    for query in ("zinc jewels", "twin tide tables"):
        expected = here.search(query, mode="dense", k=1000, scope=scope)
        found = served.search(query, mode="dense", k=1000, scope=scope)
        scores, wanted = ({one.paper.id: one.score for one in hits} for hits in (found, expected))
        assert scores == pytest.approx(wanted, abs=2e-6)  # of single precision, summed elsewhere
        assert sorted(scores, key=lambda id: (-scores[id], id)) == list(scores)
        assert all(scope.allows(one.paper) for one in found)
        for mode in ("dense", "hybrid"):
            whole = served.search(query, mode=mode, k=1000, scope=scope)
            assert {one.paper.id for one in whole} >= scores.keys()
            for k, offset in ((7, 0), (11, 9)):
                page = served.search(query, mode=mode, k=k, scope=scope, offset=offset)
                assert [*page] == [*whole][offset : offset + k]


def test_no_vectors_lie_beside_a_base_that_has_them_on_a_server(served, source, server):
    assert not source.with_name("served.papers.vectors").exists()
    assert served.describe()["vectors"] == 260
    assert served.describe()["vectors_url"] == server.url


def test_all_vectors_are_compared_and_a_narrow_scope_is_told_to_the_server(served, server):
    served.search("zinc", mode="dense", scope=Scope(year_to=2006, undated="drop"))
    assert server.found[-1]["params"]["exact"]
    assert 0 < len(server.found[-1]["filter"]["must"][0]["has_id"]) < 60


def test_a_wide_scope_holds_without_naming_its_papers(served, server, monkeypatch):
    asked = {"mode": "dense", "k": 60, "scope": Scope(year_from=2010)}  # twins have no year
    named = served.search("twin tide tables", **asked)
    assert server.found[-1]["filter"]
    monkeypatch.setattr("deepera_graph.papers.search.MOST_NAMED", 3)
    monkeypatch.setattr("deepera_graph.papers.library.vectors_kept._FIRST", 4)
    assert served.search("twin tide tables", **asked) == named
    assert not server.found[-1].get("filter")
    assert server.found[-1]["limit"] > 60


def test_papers_that_are_added_get_vectors_on_the_same_server(tmp_path, server):
    first, more = (
        write_lines(tmp_path / f"{seed}.jsonl", invent_papers(30, seed=0)[at : at + 20])
        for seed, at in enumerate((0, 10))
    )
    path = tmp_path / "b.papers"
    PaperBase.build(path, first, embeddings=CountingEmbeddings(), vectors_url=server.url).close()
    counting = CountingEmbeddings()
    with PaperBase.build(path, more, embeddings=counting) as base:
        assert (base.report.embedded, counting.embedded) == (10, 10)
        assert len(base.search("tide", mode="dense", k=99)) == 30
    with PaperBase.build(
        path, first, embeddings=CountingEmbeddings(), vectors_url=server.url, overwrite=True
    ) as base:
        assert len(base.search("tide", mode="dense", k=99)) == 20
    kept = [one.name for one in server.client.get_collections().collections]
    about = {server.client.count(name).count for name in kept}
    assert 30 not in about  # those of the base that was replaced are gone


def test_vectors_beside_a_base_are_moved_to_a_server(tmp_path, here, source, server):
    path, counting = tmp_path / "b.papers", CountingEmbeddings()
    PaperBase.build(path, source, embeddings=counting).close()
    n_embedded = counting.embedded
    with PaperBase.build(path, embeddings=counting, vectors_url=server.url) as base:
        assert counting.embedded == n_embedded
        assert not path.with_name("b.papers.vectors").exists()
        assert base.search("zinc", k=99).to_dict() == here.search("zinc", k=99).to_dict()


def test_vectors_of_another_server_or_embeddings_are_refused_naming_both(tmp_path, served, source):
    path = source.with_name("served.papers")
    with QdrantVectors() as other, pytest.raises(StoreError, match=r"are on http\S+, not on http"):
        PaperBase.build(path, embeddings=CountingEmbeddings(), vectors_url=other.url)
    for embeddings, message in (
        (CountingEmbeddings(n=20), r"have 26 dimensions, those of .* now have 20"),
        ("local", "'CountingEmbeddings:letters', not by 'local'"),
    ):
        with pytest.raises(StoreError, match=message):
            search_with(path, embeddings)


def test_a_server_that_lost_vectors_or_is_gone_says_so_and_words_are_still_searched(
    tmp_path, source
):
    path = tmp_path / "b.papers"
    with QdrantVectors() as server:
        PaperBase.build(
            path, source, embeddings=CountingEmbeddings(), vectors_url=server.url
        ).close()
        name = server.client.get_collections().collections[0].name
        server.client.delete(name, points_selector=[1, 2])
        with pytest.raises(StoreError, match="has 258 vectors, and the base says 260"):
            search_with(path, CountingEmbeddings())
        server.client.delete_collection(name)
        with pytest.raises(StoreError, match="is missing; build the base again"):
            search_with(path, CountingEmbeddings())
    with pytest.raises(StoreError, match=r"Qdrant server at http.* search with mode='sparse'"):
        search_with(path, CountingEmbeddings())
    with PaperBase.open(path) as base:
        assert base.search("glacier", mode="sparse").status == "ok"


def test_the_key_of_the_server_comes_from_the_environment(tmp_path, source, monkeypatch):
    path = tmp_path / "b.papers"
    with QdrantVectors() as server:
        server.key = "opensesame"
        with pytest.raises(StoreError, match="refuses the API key"):
            PaperBase.build(path, source, embeddings=CountingEmbeddings(), vectors_url=server.url)
        monkeypatch.setenv("QDRANT_API_KEY", "opensesame")
        with PaperBase.build(
            path, source, embeddings=CountingEmbeddings(), vectors_url=server.url
        ) as base:
            assert base.search("zinc", mode="dense").status == "ok"
    assert b"opensesame" not in path.read_bytes()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("qdrant:6333", "must be an http:// or https:// address: 'qdrant:6333'"),
        ("http://", "must be an http"),
        ("http://me:word@host:6333", "must hold no login; its key is read from QDRANT_API_KEY"),
    ],
)
def test_a_bad_address_is_told_before_anything_is_read(tmp_path, url, message):
    with pytest.raises(SettingsError, match=message):
        PaperBase.build(tmp_path / "b.papers", embeddings=CountingEmbeddings(), vectors_url=url)
    assert not (tmp_path / "b.papers").exists()
    with pytest.raises(SettingsError, match="vectors_url goes with the embeddings"):
        PaperBase.build(tmp_path / "b.papers", vectors_url="http://localhost:6333")


def test_the_command_line_builds_a_base_with_vectors_on_a_server(tmp_path, server):
    source = write_lines(tmp_path / "p.jsonl", invent_papers(2))
    base = ["--library", str(tmp_path / "b.papers")]
    where = [*base, "--embeddings", "local", "--vectors-url", server.url]
    run = partial(CliRunner().invoke, app)
    assert "2 embedded" in run(["papers", "build", str(source), *where]).stdout
    assert f"vectors of local on {server.url}" in run(["papers", "show", *base]).stdout
