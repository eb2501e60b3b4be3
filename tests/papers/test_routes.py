"""One answer by every route: in process, over HTTP, by the tools of LangChain and over MCP."""

import json
import random
import re
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from time import sleep
from urllib.parse import quote, urlencode

import pytest
from fastapi.testclient import TestClient
from langchain_core.messages import ToolMessage
from mcp import Client

from deepera_graph import EvidenceReranker
from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.papers import PaperBase, Scope
from deepera_graph.papers.calls import answer_call
from deepera_graph.papers.library import describe_file
from deepera_graph.papers.rest import create_app, read_filter, serve
from deepera_graph.passages import MOST_QUESTION
from deepera_graph.serve.backing.library import Library
from deepera_graph.serve.tools.mcp import create_mcp_server
from langchain_deepera import PaperRetriever, paper_tools
from papers.hostile import hostile_texts
from papers.world import METHODS, TOPICS, VENUES, invent_papers, write_lines

pytestmark = pytest.mark.full

TOOLS = {
    "search": "search_papers",
    "title": "match_title",
    "get": "get_paper",
    "references": "references",
    "citations": "citations",
}


@pytest.fixture(scope="module")
def server(base):
    import uvicorn

    config = uvicorn.Config(create_app(base), port=0, log_level="error", ws="none")
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        sleep(0.01)
    port = running.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def remote(server):
    with PaperBase.connect(server) as connected:
        yield connected


@pytest.fixture(scope="module")
def tools(base):
    return {one.name: one for one in paper_tools(base)}


def random_call(chance, world):
    """Return a call with arguments, some of them wrong."""
    name = chance.choice(["search", "search", "title", "get", "references", "citations"])
    paper = chance.choice(world)
    texts = [chance.choice(TOPICS), f"{chance.choice(METHODS)} of {paper['title']}", "", "C++?"]
    ids = [paper["id"], paper["doi"].upper() or "10.1/none", "no/such:id", "https://doi.org/10.1/x"]
    given = {
        "search": {"query": chance.choice(texts)},
        "title": {"title": chance.choice([paper["title"].upper(), paper["title"][:-2], "None"])},
    }.get(name, {"id": chance.choice(ids)})
    if name in ("search", "references", "citations"):
        given |= {"k": chance.choice([1, 3, 50, 0, "x", 10**9]), "offset": chance.choice([0, 2, 7])}
    if name == "search":
        given |= {"mode": chance.choice(["sparse", "sparse", "sparse", "dense", "speed"])}
    limits = {
        "year_from": chance.choice([2008, 2012, "soon"]),
        "year_to": chance.choice([2009, 2020]),
        "venues": [chance.choice([*VENUES[:4], "Nowhere"])],
        "not_venues": [chance.choice(VENUES[:4])],
        "hide": [paper["id"], chance.choice(world)["doi"] or "w0001"],
        "as_of": chance.choice(["2015", "2018-06", "never"]),
        "undated": chance.choice(["keep", "drop"]),
    }
    chosen = chance.sample(sorted(limits), chance.choice([0, 0, 1, 2]))
    return name, given | {one: limits[one] for one in chosen}


def ask_over_http(connection, name, given):
    """Ask as anybody does, with GET."""
    rest = {
        one: ",".join(value) if isinstance(value, list) else value for one, value in given.items()
    }
    path = f"/v1/{name}"
    if name in ("get", "references", "citations"):
        path = f"/v1/papers/{quote(rest.pop('id'), safe='')}"
        path += "" if name == "get" else f"/{name}"
    connection.request("GET", f"{path}?{urlencode(rest)}")
    response = connection.getresponse()
    return response.status, response.read().decode()


def ask_tool(tool, given):
    """Call a tool as an agent does."""
    call = {"name": tool.name, "args": given, "id": "1", "type": "tool_call"}
    message = tool.invoke(call)
    assert isinstance(message, ToolMessage)
    return message.content


async def test_random_requests_have_the_same_bytes_by_every_route(base, world, server, tools):
    chance = random.Random(5)
    connection = HTTPConnection(server.removeprefix("http://"))
    codes = set()
    library = Library(EvidenceReranker("rules"), bases={"world": base})
    async with Client(create_mcp_server(library)) as client:
        listed = {one.name: one.input_schema for one in (await client.list_tools()).tools}
        for name, tool in tools.items():
            del listed[name]["properties"]["library"]
            assert listed[name] == tool.args_schema
        for place in range(300):
            name, given = random_call(chance, world)
            here = answer_call(base, name, given)
            assert (here.code, here.text) == answer_call(base, name, given)
            assert ask_over_http(connection, name, given) == (here.code, here.text), (name, given)
            assert ask_tool(tools[TOOLS[name]], given) == here.text
            if place % 3 == 0:  # its client also checks the schema of what comes back
                there = await client.call_tool(TOOLS[name], given)
                assert (there.content[0].text, there.is_error) == (here.text, here.code == 400)
            codes.add(here.code)
    connection.close()
    assert codes == {200, 400, 404}


def test_a_connected_base_gives_equal_objects(base, remote, world):
    scope = Scope(year_to=2018, hide=("w0003",))
    assert remote.search("glacier", k=7, scope=scope) == base.search("glacier", k=7, scope=scope)
    for paper in world[:30]:
        for way in ("get", "references", "citations"):
            assert getattr(remote, way)(paper["id"]) == getattr(base, way)(paper["id"])
        assert remote.title(paper["title"]) == base.title(paper["title"])
    assert remote.venues() == base.venues()
    assert remote.describe() == base.describe()


def test_an_error_is_the_same_behind_an_address(base, remote):
    scope = Scope(venues=("Nowhere",))
    with pytest.raises(SettingsError) as here:
        base.search("glacier", scope=scope)
    with pytest.raises(SettingsError) as there:
        remote.search("glacier", scope=scope)
    assert str(here.value) == str(there.value)


def test_nobody_at_an_address_is_told():
    with pytest.raises(StoreError, match=r"127\.0\.0\.1:9 gave no answer"):
        PaperBase.connect("http://127.0.0.1:9").search("glacier")


def test_hostile_texts_break_no_route(base, remote, tools):
    for text in hostile_texts():
        if len(text) > MOST_QUESTION:
            for one in (base, remote):
                with pytest.raises(InputError, match=f"got {len(text)}"):
                    one.search(text, k=3)
            continue
        here = base.search(text, k=3)
        assert here == remote.search(text, k=3)
        assert base.title(text) == remote.title(text)
        assert base.get(text) == remote.get(text)
        assert '"error"' not in ask_tool(tools["search_papers"], {"query": text})[:9]


def test_eight_clients_at_once_get_what_one_gets(remote):
    alone = remote.search("bridge inspection", k=10)
    with ThreadPoolExecutor(8) as threads:
        found = threads.map(lambda _: remote.search("bridge inspection", k=10), range(80))
    assert all(one == alone for one in found)


def test_what_a_base_holds_is_counted_once_until_it_changes(tmp_path, monkeypatch):
    first, more = (write_lines(tmp_path / f"{n}.jsonl", invent_papers(n)) for n in (5, 9))
    PaperBase.build(tmp_path / "b.papers", first).close()
    counted = []
    monkeypatch.setattr(
        "deepera_graph.papers.library.describe_file",
        lambda db: counted.append(1) or describe_file(db),
    )
    with PaperBase.open(tmp_path / "b.papers") as base:
        told = [base.describe() for _ in range(3)]
        told[0]["sources"].append("of the caller")
        assert (told[1], told[2]["papers"], len(counted)) == (base.describe(), 5, 1)
        PaperBase.build(tmp_path / "b.papers", more).close()
        assert (base.describe()["papers"], len(counted)) == (9, 2)


def test_a_retracted_paper_is_marked_by_every_route(tmp_path):
    title = "Wax coating and the firmness of stored apples"
    papers = [
        {"id": "lee", "title": title, "year": 2019},
        {"id": "note", "title": f"Retraction notice: {title}", "year": 2021},
        {"id": "own", "title": "Dates of ripening", "year": 2020, "references": ["lee"]},
    ]
    calls = {
        "search": {"query": "wax coating of apples"},
        "title": {"title": title},
        "get": {"id": "lee"},
        "references": {"id": "own"},
    }
    source = write_lines(tmp_path / "p.jsonl", papers)
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        for name, given in calls.items():
            plain = json.loads(answer_call(base, name, {**given, "year_to": 2020}).text)
            [found] = plain.get("papers") or [plain.get("paper") or plain["hits"][0]["paper"]]
            assert (found["id"], found.get("paper_status")) == ("lee", "retracted"), name
        with TestClient(create_app(base)) as client:
            hits = client.get("/v1/search", params=calls["search"]).json()["hits"]
            assert {one["paper"].get("paper_status") for one in hits} == {"retracted"}
        before = json.loads(answer_call(base, "get", {"id": "lee", "as_of": "2020"}).text)
        assert "paper_status" not in before["paper"]


def test_a_related_client_is_answered(base):
    with TestClient(create_app(base)) as client:
        found = client.get("/search", params={"q": "tide", "top_k": 2, "filter": 'id <= "1604"'})
        scope = Scope(as_of="2016-03-31", undated="drop")
        assert found.json() == base.search("tide", k=2, scope=scope).to_dict()
        assert client.get("/paper/w0001").json()["paper"]["id"] == "w0001"
        assert client.get("/lookup", params={"title": "nothing"}).json()["status"] == "none"
        assert client.get("/health").json()["status"] == "ok"
        assert "/v1/search" in client.get("/openapi.json").json()["paths"]


def test_no_later_paper_passes_the_filter_of_a_related_client(tmp_path):
    papers = [
        {"id": "2403.99998", "title": "Tides of March", "year": 2024},
        {"id": "2404.00001", "title": "Tides of April", "year": 2024},
        {"id": "a", "title": "Tides of May", "arxiv": "2405.00002v1", "year": 2024},
        {"id": "b", "title": "Tides of some month", "year": 2024},
        {"id": "c", "title": "Tides of nobody knows when"},
        {"id": "math/0301001", "title": "Tides of old", "year": 2003},
    ]
    source = write_lines(tmp_path / "p.jsonl", papers)
    with (
        PaperBase.build(tmp_path / "b.papers", source) as base,
        TestClient(create_app(base)) as client,
    ):

        def ids(path, **asked):
            found = client.get(path, params={"q": "tides", "query": "tides", **asked}).json()
            return {one["paper"]["id"] for one in found["hits"]}

        assert ids("/search", filter='id <= "2404"') == {"2403.99998", "math/0301001"}
        assert "2404.00001" in ids("/search", filter="id <= '2404.99999'")
        assert ids("/search", filter='id <= "2404"', undated="keep") >= {"b", "c"}
        assert "2404.00001" not in ids("/search", filter='id <= "2404"', undated="keep")


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ('id <= "2404"', {"as_of": "2024-03-31"}),
        ("id < 2404", {"as_of": "2024-03-31"}),
        ('id <= "2404.99999"', {"as_of": "2024-04-30"}),
        ('id <= "9912.99999"', {"as_of": "1999-12-31"}),
        ('date < "2024-04-15"', {"as_of": "2024-04-14"}),
        ("date<='2024-02'", {"as_of": "2024-02-29"}),
        ("year >= 2019 and year < 2022", {"as_of": "2021-12-31", "year_from": 2019}),
        ("year > 2018 && id <= '2001'", {"as_of": "2019-12-31", "year_from": 2019}),
        ("year == 2020", {"as_of": "2020-12-31", "year_from": 2020}),
        ('id >= "1901"', {"year_from": 2019}),
    ],
)
def test_a_filter_on_id_date_or_year_is_a_scope(text, limits):
    assert read_filter(text) == {"undated": "drop", **limits}
    assert Scope(**read_filter(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "filter must be like"),
        ('venue == "ACL"', "filter must be like"),
        ('id <= "2404" or year > 2020', "filter must be like"),
        ('id <= "2413"', "months of arXiv"),
        ('id <= "2404.05000"', "months of arXiv"),
        ("year <= 2024-05", "year must be like"),
        ("date <= 2024-13-01", "date must be like"),
        ('date >= "2019-06-01"', "begins with a whole year"),
    ],
)
def test_a_filter_that_no_scope_can_keep_is_refused(base, text, message):
    with TestClient(create_app(base)) as client:
        found = client.get("/search", params={"q": "tide", "filter": text})
        assert (found.status_code, found.json()["error"]["kind"]) == (400, "settings")
        assert message in found.json()["error"]["message"]
        both = client.get("/search", params={"q": "t", "filter": "id < 2404", "as_of": "2020"})
        assert "give filter or as_of, not both" in both.json()["error"]["message"]


@pytest.mark.parametrize("body", [b"{", b"[1]", b"\xff", b'{"query": 5}', b'{"qery": "x"}'])
def test_a_bad_body_is_a_bad_request(base, body):
    with TestClient(create_app(base)) as client:
        found = client.post("/v1/search", content=body)
    assert found.status_code == 400
    assert found.json()["error"]["kind"] == "settings"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1"}, 200),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "localhost:8080"}, 200),
        ({"Host": "elsewhere.example"}, 403),
        ({"Host": "elsewhere.example", "Origin": "http://elsewhere.example"}, 403),
    ],
)
def test_pages_of_other_hosts_may_not_ask_a_base(base, headers, status):
    with TestClient(create_app(base), base_url="http://127.0.0.1") as client:
        found = [client.get("/v1/health", headers=headers)]
        found.append(client.post("/v1/search", json={"query": "tide"}, headers=headers))
    assert [one.status_code for one in found] == [status] * 2
    if status == 403:
        assert found[0].json()["error"]["kind"] == "forbidden"


@pytest.mark.parametrize("in_parts", [False, True])
def test_a_base_reads_no_body_over_a_mebibyte(base, in_parts):
    body = b'{"query": "' + b"tide " * 300_000 + b'"}'
    parts = (body[at : at + 65_536] for at in range(0, len(body), 65_536))
    with TestClient(create_app(base), base_url="http://127.0.0.1") as client:
        found = client.post("/v1/search", content=parts if in_parts else body)
    assert found.status_code == 413
    assert found.json()["error"]["message"] == "a body may have 1048576 bytes"


def test_the_page_of_paths_loads_nothing(base):
    with TestClient(create_app(base)) as client:
        page = client.get("/docs").text
    assert "GET /v1/search" in page
    assert "<code>year_from</code>" in page
    assert re.findall(r"(?:src|href)=['\"]([^'\"]+)", page) == ["openapi.json"]
    assert "<script" not in page


def test_a_port_that_is_taken_is_told_before_it_is_said_to_answer(base):
    said = []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"cannot listen at 127.0.0.1:{port}: "):
            serve(base, port=port, on_start=said.append)
    assert said == []


async def test_a_retriever_gives_documents(base):
    retriever = PaperRetriever(base=base, k=3)
    found = retriever.invoke("crop disease")
    assert [one.id for one in found] == [one.paper.id for one in base.search("crop disease", k=3)]
    assert found[0].metadata["retrieval_rank"] == 1
    assert await retriever.ainvoke("crop disease") == found
    assert len(retriever.invoke("crop disease", k=1)) == 1


def test_an_agent_cannot_lift_the_scope_of_its_tools(base, world):
    shown = {one["id"] for one in world if one["year"] and one["year"] <= 2012}
    scope = Scope(year_to=2012, undated="drop")
    searching = {one.name: one for one in paper_tools(base, scope=scope)}["search_papers"]
    for given in ({}, {"year_to": 2030}, {"year_to": 2010}, {"undated": "keep"}):
        plain = json.loads(ask_tool(searching, {"query": "study", "k": 400, **given}))
        assert {one["paper"]["id"] for one in plain["hits"]} <= shown
        assert plain["hits"]
