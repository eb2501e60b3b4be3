"""What a server searches: collections of a folder, and a base of papers."""

import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from fastapi.testclient import TestClient
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker
from deepera_graph.cli.opening.sources import open_literature
from deepera_graph.cli.shared.places import LiteratureOptions
from deepera_graph.errors import StoreError
from deepera_graph.papers import PaperBase
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.serve.app import create_app
from deepera_graph.serve.backing.stores import Collections, StoredCollections
from deepera_graph.serve.config import ServeConfig
from papers.world import invent_papers, write_lines
from support.literature import QUESTION as TEA
from support.literature import TRIAL
from support.serving import PASSAGES, QUESTION, running

pytestmark = pytest.mark.full

EARLY, LATE = 2001, 2020
DOI = "10.1000/wax.1/a"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with two collections, and a base of papers."""
    place = tmp_path_factory.mktemp("served")
    years = (EARLY, LATE, LATE)
    with open_store("wax", path=place / "library") as store:
        store.add(
            Document(id=f"p{n}", page_content=text, metadata={"year": year, "title": "Wax"})
            for n, (text, year) in enumerate(zip(PASSAGES, years, strict=True))
        )
    with open_store("empty", path=place / "library"):
        pass
    world = invent_papers(20)
    world[3] |= {"id": DOI, "abstract": PASSAGES[1], "title": "Wax and apples"}
    source = write_lines(place / "world.jsonl.gz", world)
    PaperBase.build(place / "world.papers", source).close()
    return place


@pytest.fixture(scope="module")
def library(folder):
    """A server of that folder."""
    config = ServeConfig(
        backend="rules",
        collections=Collections(path=folder / "library", keep={}),
        papers=str(folder / "world.papers"),
    )
    with running(config) as client:
        yield client


@pytest.fixture(scope="module")
def literature(world):
    """A server that may ask two of them."""
    chosen = LiteratureOptions(sources="pubmed,openalex", source_seconds=3)
    config = ServeConfig(backend="rules", literature=partial(open_literature, chosen, "off"))
    with running(config) as client:
        yield client


def ask(client, **given):
    return client.post("/v1/evidence", json={"question": QUESTION, **given})


@pytest.mark.parametrize("path", ["/papers/v1/health", "/papers/v1/search?query=wax", "/papers/"])
def test_with_keys_the_base_of_papers_needs_one(folder, path):
    key = "a-long-key-1"
    config = ServeConfig(backend="rules", papers=str(folder / "world.papers"), keys=(key,))
    client = TestClient(create_app(config))
    assert client.get(path).status_code == 401
    assert client.get(path, headers={"Authorization": f"Bearer {key}"}).status_code != 401


def test_the_collections_are_listed(library):
    listed = library.get("/v1/libraries").json()["libraries"]
    told = [(one["name"], one["n_passages"], one["mode"]) for one in listed]
    assert told == [("empty", 0, "sparse"), ("wax", 3, "sparse")]


def test_a_collection_is_searched_and_judged_as_in_process(library, folder):
    told = ask(library, library="wax", k=2).json()
    assert sorted(one["retrieval_rank"] for one in told["ranking"]) == [1, 2]
    documents = [
        Document(id=one["id"], page_content=one["text"], metadata=one["metadata"])
        for one in sorted(told["ranking"], key=lambda one: one["retrieval_rank"])
    ]
    own = EvidenceReranker("rules").rerank(QUESTION, documents)
    assert [(one.id, one.score) for one in own.passages] == [
        (one["id"], one["score"]) for one in told["ranking"]
    ]
    assert told["ranking"][0]["citation"]["title"] == "Wax"


def test_the_local_judge_keeps_what_it_read_of_a_collection_and_scores_the_same(library, folder):
    kept = folder / "library" / "collection" / "wax" / "vectors.sqlite3"
    assert not kept.exists()
    asked = {"library": "wax", "judge": "local", "k": 3}
    told = ask(library, **asked).json()["ranking"]
    assert kept.stat().st_size > 0
    own = EvidenceReranker("local").rerank(
        QUESTION, [{"text": one, "title": "Wax"} for one in PASSAGES]
    )
    scores = {one.text: one.score for one in own.passages}
    assert {one["text"]: one["score"] for one in told} == scores
    assert ask(library, **asked).json()["ranking"] == told


def test_conditions_limit_what_is_searched(library):
    told = ask(library, library="wax", where={"year": {"gte": LATE}}).json()
    assert {one["id"] for one in told["ranking"]} == {"p1", "p2"}


def test_a_year_that_is_a_text_meets_a_condition_and_passages_without_one_are_told(tmp_path):
    rows = {"text": {"year": "2021"}, "date": {"date": "2021-05-01"}, "none": {}}
    with open_store("dated", path=tmp_path) as store:
        store.add(
            Document(id=id, page_content=PASSAGES[0], metadata=one) for id, one in rows.items()
        )
    config = ServeConfig(backend="rules", collections=Collections(path=tmp_path))
    with running(config) as client:
        told = ask(client, library="dated", where="year>=2018").json()
    assert {one["id"] for one in told["ranking"]} == {"text", "date"}
    assert told["warnings"][0] == "1 passage has no year and was left out"


def test_an_empty_collection_gives_no_passages(library):
    assert ask(library, library="empty").json()["outcome"] == "nothing_retrieved"


@pytest.mark.parametrize(
    ("given", "status", "word"),
    [
        ({"library": "wacks"}, 404, "'wacks'"),
        ({"library": "wax", "where": {"year": {"near": 3}}}, 422, "near"),
        ({"library": "wax", "where": {"yaer": LATE}}, 422, "did you mean 'year'"),
        ({"library": "wax", "k": 0}, 422, "k must be "),
        ({"source": "papers", "where": {"yaer": 3}}, 422, "'yaer'"),
        ({"passages": ["a"], "where": {"year": 3}}, 422, "where"),
        ({"source": "paper"}, 404, "'papers'"),
        ({"source": "papers,pubmed"}, 422, "'papers' is no service of literature"),
    ],
)
def test_what_cannot_be_searched_is_named(library, given, status, word):
    told = ask(library, **given)
    assert told.status_code == status
    assert word in told.json()["error"]["message"]


def test_a_request_that_names_no_place_is_told_of_the_libraries(library, folder):
    told = "give passages, library or source, got none"
    said = ask(library)
    assert said.status_code == 422
    assert said.json()["error"]["message"] == f"{told}; the libraries here are 'empty', 'wax'"
    both = ask(library, library="wax", source="papers")
    assert both.json()["error"]["message"].endswith("got library and source")
    chosen = Collections(path=folder / "library", keep={}, names=("wax",))
    for collections, more in ((chosen, "; the libraries here are 'wax'"), (None, "")):
        with running(ServeConfig(backend="rules", collections=collections)) as client:
            assert ask(client).json()["error"]["message"] == told + more


def test_the_base_of_papers_is_a_source(library):
    assert library.get("/v1/sources").json() == {"sources": [{"name": "papers"}]}
    best = ask(library, source="papers", k=5).json()["ranking"][0]
    assert (best["id"], best["text"]) == (DOI, PASSAGES[1])
    assert best["citation"]["title"] == "Wax and apples"


def test_the_base_of_papers_is_served_as_by_its_own_command(library, folder):
    with (
        PaperBase.connect(f"{library.base_url}/papers") as remote,
        PaperBase.open(folder / "world.papers") as own,
    ):
        found = own.search("bridge inspection", k=5)
        assert remote.search("bridge inspection", k=5).to_dict() == found.to_dict()
        assert remote.get(DOI) == own.get(DOI)
        assert remote.describe() == own.describe()
    told = library.get(f"/papers/v1/papers/{DOI}").json()
    assert told["paper"]["title"] == "Wax and apples"


def test_the_paths_of_the_base_are_on_the_page_of_paths_and_load_no_other(library):
    assert "GET /papers/v1/search" in library.get("/docs").text
    assert library.get("/papers/docs").status_code == 404


def test_limits_hold_for_the_base_of_papers(library, folder):
    with PaperBase.open(folder / "world.papers") as own:
        late = {one.paper.id for one in own.search("wax apples", k=20) if one.paper.year == 2020}
    where = {"year_from": 2020, "year_to": 2020}
    told = ask(library, source="papers", where=where).json()
    assert {one["metadata"]["year"] for one in told["ranking"]} <= {2020}
    assert {one["id"] for one in told["ranking"]} >= late


def test_services_of_literature_are_searched_if_they_are_on(literature):
    names = [one["name"] for one in literature.get("/v1/sources").json()["sources"]]
    assert names == ["pubmed", "openalex"]
    for source in ("all", "pubmed,openalex"):
        told = ask(literature, question=TEA, source=source).json()
        assert [one["status"] for one in told["sources"]] == ["ok", "ok"]
        best = next(one for one in told["ranking"] if one["citation"]["title"] == TRIAL)
        assert best["kept"]
        assert best["metadata"]["sources"] == ["pubmed", "openalex"]
    assert [one["source"] for one in ask(literature, source="openalex").json()["sources"]] == [
        "openalex"
    ]


def test_a_check_does_not_call_the_papers_an_unknown_source(library):
    asked = {"manuscript": "Wax works [1].\n\n# References\n\n1. Lund A. Wax.", "source": "papers"}
    told = library.post("/v1/check", json=asked)
    message = "'papers' is no service of literature, and is searched by itself alone"
    assert (told.status_code, told.json()["error"]["message"]) == (422, message)


def test_a_service_that_is_not_on_is_not_asked(literature):
    told = ask(literature, source="pubmed,arxiv")
    assert (told.status_code, told.json()["error"]["kind"]) == (404, "missing")
    assert "'arxiv'" in told.json()["error"]["message"]


def test_a_service_that_fails_is_told_also_in_a_stream(literature, world):
    world.faults["openalex"] = "html"
    try:
        given = {"Accept": "text/event-stream"}
        asked = {"question": TEA, "source": "all"}
        events = literature.post("/v1/evidence", json=asked, headers=given).text
        last = json.loads(events.split("data: ")[-1])
        assert [one["status"] for one in last["sources"]] == ["ok", "failed"]
        assert any("openalex" in one for one in last["warnings"])
        world.faults["pubmed"] = "500"
        told = literature.post("/v1/evidence", json=asked)
        assert (told.status_code, told.json()["error"]["kind"]) == (502, "backend")
    finally:
        world.faults.clear()


def test_a_server_without_collections_has_none(server):
    assert server.get("/v1/libraries").json() == {"libraries": []}
    told = ask(server, library="wax")
    assert (told.status_code, told.json()["error"]["kind"]) == (404, "missing")


def test_a_folder_is_let_go_after_each_search_so_that_others_may_index(library, folder):
    where = {"year": LATE + 1}
    assert ask(library, library="wax").status_code == 200
    with open_store("wax", path=folder / "library") as store:
        new = Document(id="new", page_content="Wax on apples.", metadata={"year": LATE + 1})
        store.add([new])
    told = ask(library, library="wax", where=where).json()
    assert [one["id"] for one in told["ranking"]] == ["new"]
    with open_store("wax", path=folder / "library") as store:
        store.remove(["new"])


def test_searches_at_once_get_what_each_gets_alone(library):
    alone = ask(library, library="wax").json()["ranking"]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda _: ask(library, library="wax").json(), range(16)))
    assert all(one["ranking"] == alone for one in told)


def test_a_search_that_stood_in_line_does_not_wait_anew(folder, monkeypatch):
    clock = iter([0.0, 5.0])
    monkeypatch.setattr("deepera_graph.serve.backing.stores.monotonic", lambda: next(clock))
    monkeypatch.setattr("deepera_graph.retrieval.collections.connection.sleep", pytest.fail)
    with (
        open_store("wax", path=folder / "library4"),
        pytest.raises(StoreError, match="another process"),
    ):
        StoredCollections(Collections(path=folder / "library4")).search("wax", QUESTION, 3, None)


def test_a_folder_that_another_process_has_open_is_told(folder, monkeypatch):
    monkeypatch.setattr("deepera_graph.serve.backing.stores._WAIT", 0)
    with open_store("wax", path=folder / "library2") as held:
        held.add([Document(id="a", page_content="Text.")])
        collections = StoredCollections(Collections(path=folder / "library2"))
        assert collections.sizes() == {"wax": None}
        with pytest.raises(StoreError, match="another process"):
            collections.search("wax", QUESTION, 3, None)


def test_a_folder_that_another_process_lets_go_is_waited_for(folder, monkeypatch):
    held = open_store("wax", path=folder / "library3")
    held.add([Document(id="a", page_content="Wax on apples.")])
    monkeypatch.setattr(
        "deepera_graph.retrieval.collections.connection.sleep", lambda _: held.close()
    )
    found = StoredCollections(Collections(path=folder / "library3")).search("wax", "wax?", 3, None)
    assert [one.id for one in found.passages] == ["a"]


def test_old_names_are_answered_until_0_11_and_a_header_says_so(library):
    new, old = ask(library, library="wax"), ask(library, collection="wax")
    ids = [[one["id"] for one in told.json()["ranking"]] for told in (new, old)]
    assert ids[0] == ids[1]
    said = "collection is now library; the old name ends with 0.11"
    assert ("x-deepera-note" in new.headers, old.headers["x-deepera-note"]) == (False, said)
    listed = library.get("/v1/collections")
    assert listed.json()["collections"] == library.get("/v1/libraries").json()["libraries"]
    assert "/v1/libraries" in listed.headers["x-deepera-note"]
    both = ask(library, collection="wax", library="wax").json()["error"]["message"]
    assert "unknown field 'collection'" in both


def test_the_most_that_is_kept_has_the_name_of_rerank_clients_too(library):
    kept = [ask(library, library="wax", **{one: 1}).json()["kept"] for one in ("n", "top_n")]
    assert (kept[0] == kept[1], len(kept[0])) == (True, 1)


def test_papers_are_limited_by_the_conditions_that_hold_everywhere(library):
    def ids(**given):
        told = library.get("/papers/v1/search", params={"query": "wax apples", "k": 50, **given})
        assert told.status_code == 200, told.text
        return [one["paper"]["id"] for one in told.json()["hits"]]

    assert ids(where=["year>=2012", "year<2016"]) == ids(year_from=2012, year_to=2015)
    told = library.post("/papers/v1/search", json={"query": "wax", "where": ["venue"]})
    assert (told.status_code, "a condition is" in told.text) == (400, True)
    told = library.get("/papers/v1/search?query=wax&where=year>=2012&year_from=2011")
    assert told.json()["error"]["message"] == "give year_from or where, not both"
