"""Over MCP: real clients of the official SDK, on stdin and stdout and over HTTP, and an agent."""

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import uvicorn
from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import StructuredTool, ToolException
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from typer.testing import CliRunner

from cli.conftest import environment  # noqa: F401  # a fixture
from cli.test_start import HEAVY
from deepera_graph import EvidenceReranker, open_store
from deepera_graph.cli.main import app, load_command
from deepera_graph.papers import PaperBase
from deepera_graph.papers.calls import answer_call
from deepera_graph.serve.backing.library import Library
from deepera_graph.serve.tools.forms import MOST_CHARACTERS, MOST_PASSAGES
from deepera_graph.serve.tools.mcp import create_mcp_server
from deepera_graph.testing import answer_in_json, scripted_backend
from papers.world import invent_papers, write_lines
from support.openai_server import ChatServer
from support.scripted import TEA_SCORES, Script, ScriptedAgentModel

pytestmark = pytest.mark.full

RUN = (  # and tell what was imported
    "import atexit, json, sys\n"
    "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    "from deepera_graph.cli.main import run\n"
    "run()\n"
)
QUESTION = "Does wax coating keep apples firm in storage?"
APPLES = [
    Document(
        id="debate",
        page_content="Whether wax coating keeps apples firm in storage has been debated for years.",
    ),
    Document(
        id="trial",
        page_content="Wax coating kept apples firm: after 90 days in storage, firmness had fallen "
        "by 6% in coated apples and by 31% in uncoated apples (p < 0.001).",
        metadata={"title": "Wax on apples", "year": 2019, "doi": "10.1000/wax", "page": 4},
    ),
    Document(id="plan", page_content="Firmness of waxed apples will be measured every week."),
]
DRAFT = (
    "Wax coating kept apples firm after 90 days in storage [1].\n\n# References\n\n"
    "1. Lund A. Wax on apples. 2019. doi:10.1000/wax\n"
)
OWN = ["find_evidence", "ask", "tabulate_studies", "check_citations", "list_libraries"]
OF_PAPERS = ["search_papers", "match_title", "get_paper", "references", "citations"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A file of a base of papers."""
    folder = tmp_path_factory.mktemp("mcp")
    source = write_lines(folder / "world.jsonl.gz", invent_papers(30))
    PaperBase.build(folder / "world.papers", source).close()
    return folder / "world.papers"


@pytest.fixture(scope="module")
def library(world):
    with PaperBase.open(world) as base:
        yield Library(
            EvidenceReranker("local"),
            collections={"apples": lambda _: APPLES, "pears": lambda _: []},
            bases={"world": base},
        )


class Running(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, config):
        super().__init__(config)
        self.listens = threading.Event()

    async def startup(self, sockets=None):
        await super().startup(sockets=sockets)
        self.listens.set()


@contextlib.contextmanager
def answering(library):
    """A server that answers over HTTP, in a thread; its address."""
    app = create_mcp_server(library).streamable_http_app()
    running = Running(uvicorn.Config(app, port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    assert running.listens.wait(60)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}/mcp"
    running.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def address(library):
    """Where the server answers over HTTP."""
    with answering(library) as found:
        yield found


def inside(given):
    """A client of a server in this process; *given* is a library, or what one is made of."""
    library = given if isinstance(given, Library) else Library(**given)
    return Client(create_mcp_server(library))


def text_of(result):
    [block] = result.content
    return block.text


async def call_all(client, collection):
    """Call every tool; return what each says, and its structured content."""
    asked = {"question": QUESTION, "library": collection}
    given = {
        "find_evidence": asked,
        "ask": asked,
        "tabulate_studies": {**asked, "with_map": True},
        "check_citations": {"manuscript": DRAFT, "library": collection},
        "list_libraries": {},
        "search_papers": {"query": "glacier", "k": 2},
        "match_title": {"title": "nothing of the kind"},
        "get_paper": {"id": "w0001"},
        "references": {"id": "w0020"},
        "citations": {"id": "w0001"},
    }
    assert [one.name for one in (await client.list_tools()).tools] == list(given)
    said = {}
    for name, arguments in given.items():
        result = await client.call_tool(name, arguments)  # the client checks the output schema
        assert not result.is_error, text_of(result)
        said[name] = (text_of(result), result.structured_content)
    return said


def check_all(said, world):
    text, plain = said["find_evidence"]
    assert text.splitlines()[0].startswith("1 of 3 passages gives direct evidence (threshold 0.30")
    assert text.splitlines()[1].startswith(
        "[1] (Wax on apples. 2019. doi:10.1000/wax, p. 4; score "
    )
    [piece] = plain["evidence"]
    assert (plain["outcome"], piece["number"], piece["id"]) == ("ok", 1, "trial")
    assert (piece["direction"], piece["source"]["doi"]) == ("supports", "10.1000/wax")
    assert piece["quote"] in APPLES[1].page_content
    text, plain = said["ask"]
    assert "6%" in plain["answer"]["text"]
    assert (plain["answer"]["status"], plain["answer"]["cites"]) == ("answered", [1])
    assert text.startswith(plain["answer"]["text"])
    text, plain = said["tabulate_studies"]
    assert plain["rows"][0]["cells"]["p"]["words"] == "p < 0.001"
    assert (text.startswith(f"# {QUESTION}"), plain["map"].startswith("<svg")) == (True, True)
    text, plain = said["check_citations"]
    assert plain["counts"] == {"supported": 1}
    assert plain["pairs"][0]["claim"].startswith("Wax coating kept apples firm")
    with PaperBase.open(world) as base:
        found = answer_call(base, "search", {"query": "glacier", "k": 2}).text
    assert said["search_papers"] == (found, json.loads(found))
    assert said["get_paper"][1]["paper"]["id"] == "w0001"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_lists_and_calls_every_tool_over_http(mode, address, world):
    async with Client(address, mode=mode) as client:
        said = await call_all(client, "apples")
    check_all(said, world)
    passages = {"n_passages": None, "has_passages": True, "has_papers": False}
    assert said["list_libraries"][1] == {
        "libraries": [
            {"name": "apples", **passages},
            {"name": "pears", **passages},
            {"name": "world", "n_passages": None, "has_passages": False, "has_papers": True},
        ]
    }
    assert said["list_libraries"][0].splitlines()[1:] == [
        "library 'pears' with passages",
        "library 'world' with papers",
    ]


@pytest.fixture
def start(environment, tmp_path):  # noqa: F811
    """How a host starts the command; what it says on stderr goes to a file."""

    def run(*args, code=RUN):
        given = ["-c", code, "mcp", *map(str, args)]
        environment["PYTHONWARNINGS"] = "ignore"
        return StdioServerParameters(
            command=sys.executable, args=given, env=environment, cwd=tmp_path
        )

    return run


@pytest.mark.slow
async def test_a_client_lists_and_calls_every_tool_on_stdin_and_stdout(start, tmp_path, world):
    with open_store("apples", path=tmp_path / "data") as store:
        store.add(APPLES)
    loud = RUN.replace("run()", "from deepera_graph.export import tables as export\n"
        "export.describe_evidence = lambda one, real=export.describe_evidence: "
        "(print('not the protocol'), real(one))[1]\nrun()")  # fmt: skip
    strange = []

    async def note(message):
        strange.extend([message] if isinstance(message, Exception) else [])

    with (tmp_path / "stderr").open("w+") as errors:
        named = ("--library", "apples", "--library", world)
        server = start("--path", tmp_path / "data", *named, code=loud)
        transport = stdio_client(server, errlog=errors)
        async with Client(transport, message_handler=note) as client:
            said = await call_all(client, "apples")
        errors.seek(0)
        assert "not the protocol" in errors.read()
    assert strange == []
    check_all(said, world)
    assert said["list_libraries"][1] == {
        "libraries": [
            {"name": "apples", "n_passages": 3, "has_passages": True, "has_papers": False},
            {"name": "world", "n_passages": None, "has_passages": False, "has_papers": True},
        ]
    }


async def test_a_host_that_lists_the_tools_waits_for_nothing_heavy(start, tmp_path, world):
    with (tmp_path / "stderr").open("w+") as errors:
        server = start("--library", world, "--threshold", "0.5", "--library", "plums")
        async with Client(stdio_client(server, errlog=errors), mode="legacy") as client:
            assert len((await client.list_tools()).tools) == len(OWN + OF_PAPERS)
        errors.seek(0)
        *said, modules = errors.read().splitlines()
    place = tmp_path / "data" / "deepera"
    assert said == [f"deepera: note: no library 'plums' in {place} yet; `deepera index` makes it"]
    assert HEAVY & set(json.loads(modules)) == set()


async def test_the_tools_say_that_they_only_read_and_what_they_take_and_give(library):
    async with inside(library) as client:
        tools = {one.name: one for one in (await client.list_tools()).tools}
    for one in tools.values():
        assert one.annotations.read_only_hint
        assert not one.annotations.destructive_hint
        assert one.output_schema["type"] == "object"
        assert one.input_schema["additionalProperties"] is False
        assert all("description" in each for each in one.input_schema["properties"].values())
    assert tools["find_evidence"].input_schema["required"] == ["question"]
    assert tools["search_papers"].input_schema["properties"]["library"]["enum"] == ["world"]
    async with inside({"reranker": EvidenceReranker("rules")}) as client:
        assert [one.name for one in (await client.list_tools()).tools] == OWN


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        (
            "find_evidence",
            {"question": QUESTION},
            "name the library: there are 'apples', 'pears'",
        ),
        (
            "ask",
            {"question": QUESTION, "library": "aples"},
            "unknown library 'aples'; give one of 'apples', 'pears'",
        ),
        ("find_evidence", {}, "find_evidence: question is missing"),
        (
            "find_evidence",
            {"question": "x", "libary": "a"},
            "find_evidence: unknown argument 'libary'; did you mean 'library'?",
        ),
        (
            "find_evidence",
            {"question": "x", "passages": ["a"], "threshold": 80},
            "find_evidence: threshold must be less than or equal to 1, got 80",
        ),
        (
            "find_evidence",
            {"question": "x", "passages": ["a"], "library": "apples"},
            "find_evidence: give passages or library, not both",
        ),
        (
            "find_evidence",
            {"question": "x", "passages": ["a"] * (MOST_PASSAGES + 1)},
            "find_evidence: passages must have at most 200 items",
        ),
        (
            "find_evidence",
            {"question": "x", "passages": ["a" * (MOST_CHARACTERS + 1)]},
            "all passages together may have 1000000 characters, not 1000001",
        ),
        ("find_evidence", {"question": " ", "passages": ["a"]}, "question must not be empty"),
        (
            "find_evidence",
            {"question": "x", "library": "apples", "where": {"year": 2019}},
            "library 'apples' cannot be searched by metadata; leave out where",
        ),
        (
            "find_evidence",
            {"question": "x", "passages": "[" * 100_000},
            "find_evidence: passages must be a valid list, got '[[[[",
        ),
        ("list_libraries", {"all": True}, "unknown argument 'all'"),
        (
            "search_papers",
            {"query": "x", "library": ["world"]},
            "unknown library of papers ['world']; give",
        ),
        (
            "search_papers",
            {"query": "x", "library": "wrld"},
            "unknown library of papers 'wrld'; give one of 'world'",
        ),
        ("search_papers", {"query": "x", "venues": ["NORDA"]}, "near it: NORDAI"),
    ],
)
async def test_what_goes_wrong_is_told_so_that_a_model_can_mend_it(library, name, given, said):
    async with inside(library) as client:
        result = await client.call_tool(name, given)
    assert result.is_error
    assert said in text_of(result)


async def test_old_names_are_answered_until_0_11_and_the_log_says_so(library, caplog):
    asked = {"question": QUESTION, "top_n": 1}
    async with inside(library) as client:
        new = await client.call_tool("find_evidence", {**asked, "library": "apples"})
        old = await client.call_tool("find_evidence", {**asked, "collection": "apples"})
        listed = await client.call_tool("list_collections", {})
        papers = await client.call_tool("search_papers", {"query": "glacier", "base": "world"})
    assert old.structured_content == new.structured_content
    assert (text_of(listed).count("library"), papers.is_error) == (3, False)
    noted = [one for one in caplog.records if one.name.startswith("deepera_graph")]
    assert [one.getMessage() for one in noted] == [
        "find_evidence: collection is now library; the old name ends with 0.11",
        "list_collections is now list_libraries; the old name ends with 0.11",
        "search: base is now library; the old name ends with 0.11",
    ]


async def test_a_tool_that_is_not_there_is_an_error_of_the_protocol(library):
    async with inside(library) as client:
        with pytest.raises(MCPError, match="unknown tool 'find'; available: find_evidence, ask"):
            await client.call_tool("find", {})


async def test_passages_may_be_given_as_texts_as_objects_and_as_json(library):
    texts = [one.page_content for one in APPLES]
    given = [{"id": "w", "text": texts[1], "title": "Wax", "metadata": {"year": 2019}}, *texts[::2]]
    async with inside(library) as client:
        found = []
        for passages in (texts, given, json.dumps(given)):
            asked = {"question": QUESTION, "passages": passages, "with_dropped": True}
            found.append((await client.call_tool("find_evidence", asked)).structured_content)
    assert [one["evidence"][0]["id"] for one in found] == ["2", "w", "w"]
    assert found[1] == found[2]
    assert found[1]["evidence"][0]["source"]["text"] == "Wax. 2019"
    assert [one["id"] for one in found[0]["dropped"]] == ["1", "3"]
    assert all(one["reason"] for one in found[0]["dropped"])


async def test_a_text_is_returned_if_asked_for_and_says_where_it_is_cut():
    long = f"{APPLES[1].page_content} {'Nothing else was measured in that year. ' * 200}"
    asked = {"question": QUESTION, "passages": [long], "threshold": 0, "with_text": True}
    async with inside({"reranker": EvidenceReranker(Script(TEA_SCORES).backend())}) as client:
        [piece] = (await client.call_tool("find_evidence", asked)).structured_content["evidence"]
        asked["with_text"] = False
        [short] = (await client.call_tool("find_evidence", asked)).structured_content["evidence"]
    assert (len(piece["text"]), piece["is_cut"]) == (4000, True)
    assert (short["text"], short["is_cut"]) == (None, False)


@pytest.mark.parametrize(
    ("metadata", "page"),
    [
        ({"page": 3, "last_page": 4, "page_starts": [[3, 0], [4, 17]]}, "4"),
        ({"page": 0, "total_pages": 9}, "1"),
        ({"page": "far"}, None),
    ],
)
async def test_the_page_is_that_of_the_quote(library, metadata, page):
    text = f"We waxed apples. {APPLES[1].page_content}"
    passage = {"text": text, "metadata": metadata}
    async with inside(library) as client:
        asked = {"question": QUESTION, "passages": [passage]}
        [piece] = (await client.call_tool("find_evidence", asked)).structured_content["evidence"]
    assert piece["quote"] == APPLES[1].page_content
    assert piece["source"].get("page") == page


async def test_no_evidence_is_an_answer_and_a_failed_passage_is_no_score(library):
    async with inside(library) as client:
        asked = {"question": "Do otters eat urchins?", "library": "apples"}
        result = await client.call_tool("ask", asked)
    assert not result.is_error
    assert text_of(result).startswith("No answer: ")
    assert result.structured_content["answer"]["status"] == "insufficient_evidence"
    script = Script({**TEA_SCORES, "broken": RuntimeError("out of tea")})
    texts = ["Green tea lowered fasting glucose.", "A broken cup."]
    async with inside({"reranker": EvidenceReranker(script.backend())}) as client:
        result = await client.call_tool("find_evidence", {"question": "Tea?", "passages": texts})
        [failed] = result.structured_content["failed"]
        assert (failed["id"], failed["score"]) == ("2", None)
        assert "out of tea" in failed["reason"]
        assert "1 of 2 passages could not be judged" in text_of(result)
        broken = await client.call_tool("ask", {"question": "Tea?", "passages": texts})
    assert broken.is_error
    assert "has no answerer" in text_of(broken)


@pytest.mark.parametrize("tool", ["find_evidence", "ask", "tabulate_studies"])
async def test_passages_that_could_not_be_judged_are_an_error_and_not_no_evidence(tool):
    broken = RuntimeError("out of tea")
    backend = scripted_backend({"A cup.": broken, "A pot.": broken})
    asked = {"question": "Tea?", "passages": ["A cup.", "A pot."]}
    async with inside({"reranker": EvidenceReranker(backend)}) as client:
        result = await client.call_tool(tool, asked)
    assert result.is_error
    assert text_of(result) == "Nothing could be judged: RuntimeError: out of tea."


async def test_what_is_kept_below_the_threshold_is_called_weak():
    library = Library(EvidenceReranker("rules", threshold=1, on_empty="top1"))
    asked = {"question": QUESTION, "passages": [APPLES[2].page_content]}
    async with inside(library) as client:
        result = await client.call_tool("find_evidence", asked)
    assert result.structured_content["is_weak"]
    assert "weak evidence" in text_of(result)


async def test_many_clients_at_once_get_what_one_gets(address):
    asked = {"question": QUESTION, "library": "apples"}

    async def ask(_):
        async with Client(address) as client:
            return (await client.call_tool("find_evidence", asked)).structured_content

    first, *others = await asyncio.gather(*map(ask, range(6)))
    assert first["outcome"] == "ok"
    assert others == [first] * 5


def test_the_snippets_for_hosts_are_json_with_options_that_there_are():
    text = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text(encoding="utf-8")
    known = {name for one in load_command("mcp").params for name in one.opts}
    blocks = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        [servers] = json.loads(block).values()
        command, *args = servers["deepera"]["args"]
        assert command == "mcp"
        assert {one for one in args if one.startswith("-")} <= known


async def test_a_crash_is_told_without_what_is_inside(caplog):
    def fail(_):
        raise KeyError("/secret/place")

    async with inside({"reranker": fail, "collections": {"a": fail}}) as client:
        result = await client.call_tool("find_evidence", {"question": QUESTION})
    assert result.is_error
    assert text_of(result) == "find_evidence failed (TypeError); the log of the server says more"
    assert "find_evidence failed" in caplog.text


@pytest.mark.parametrize("transport", ["http", "inside"])
async def test_progress_only_grows_and_ends(transport, library, address):
    reports = []

    async def note(done, of, message):
        reports.append((done, of, message))

    asked = {"question": QUESTION, "library": "apples"}
    async with Client(address) if transport == "http" else inside(library) as client:
        await client.call_tool("find_evidence", asked, progress_callback=note)
    done = [one[0] for one in reports]
    assert done == sorted(set(done))
    assert reports[-1] == (4, 4, "done")
    assert (3, 4, "judged 3 of 3 passages") in reports


@pytest.mark.parametrize("how", ["inside", "auto", "legacy"])
async def test_a_call_that_is_cancelled_stops_and_the_server_goes_on(how):
    asked, ended = threading.Event(), threading.Event()

    async def hang(task):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    judge = RunnableLambda(lambda task: None, afunc=hang)
    slow = replace(Script(TEA_SCORES).backend(), judge=judge)
    library = Library(EvidenceReranker(slow))
    with contextlib.ExitStack() as stack:
        if how == "inside":
            client = inside(library)
        else:
            client = Client(stack.enter_context(answering(library)), mode=how)
        async with client:
            given = {"question": "Tea?", "passages": ["Green tea."]}
            call = asyncio.create_task(client.call_tool("find_evidence", given))
            assert await asyncio.to_thread(asked.wait, 20)
            call.cancel()
            assert await asyncio.to_thread(ended.wait, 20)
            assert not (await client.call_tool("list_libraries", {})).is_error
            with pytest.raises(asyncio.CancelledError):
                await call


def test_a_body_that_is_too_large_is_refused(address):
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    assert httpx.post(address, content=b" " * 5 * 2**20, headers=headers).status_code == 413


def test_a_page_of_another_host_may_not_ask(address):
    headers = {"origin": "http://elsewhere.example", "accept": "application/json"}
    assert httpx.post(address, json={}, headers=headers).status_code == 403


def as_tool(client, tool):
    """A tool of LangChain that calls one over MCP."""

    async def call(**given):
        result = await client.call_tool(tool.name, given)
        if result.is_error:
            raise ToolException(text_of(result))
        return text_of(result), result.structured_content

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def wish(number, name, **given):
    call = {"name": name, "args": given, "id": str(number), "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


async def test_an_agent_uses_the_tools_and_mends_a_call(address):
    model = ScriptedAgentModel(
        replies=[
            wish(1, "find_evidence", question=QUESTION),
            wish(2, "find_evidence", question=QUESTION, collection="apples"),
            wish(3, "search_papers", query="glacier", k=1),
            AIMessage("Wax keeps apples firm [1]."),
        ]
    )
    async with Client(address) as client:
        tools = [as_tool(client, one) for one in (await client.list_tools()).tools]
        agent = create_agent(model, tools)
        state = await agent.ainvoke({"messages": [HumanMessage(QUESTION)]})
    first, second, third = (one for one in state["messages"] if isinstance(one, ToolMessage))
    assert first.status == "error"
    assert "there are 'apples', 'pears'" in first.content
    assert second.artifact["evidence"][0]["id"] == "trial"
    assert len(third.artifact["hits"]) == 1
    assert state["messages"][-1].content == "Wax keeps apples firm [1]."


async def test_langchains_own_adapter_gives_an_agent_the_tools(address):
    pytest.importorskip("fastmcp")
    with pytest.warns(Warning, match="beta"):
        from langchain.mcp import MCPAdapter
    async with MCPAdapter(address) as adapter:
        tools = {one.name: one for one in await adapter.list_tools()}
        call = {"question": QUESTION, "library": "apples"}
        message = await tools["find_evidence"].ainvoke(
            {"name": "find_evidence", "args": call, "id": "1", "type": "tool_call"}
        )
    assert list(tools) == OWN + OF_PAPERS
    assert message.artifact["structured_content"]["evidence"][0]["id"] == "trial"


async def test_what_cannot_be_tabulated_or_checked_is_told(library):
    texts = [one.page_content for one in APPLES]
    wrong = (
        ("tabulate_studies", {"question": QUESTION, "passages": texts, "columns": ["n", "N"]},
         "columns must be different names"),
        ("check_citations", {"manuscript": "Tea is good.", "passages": texts},
         "file; end the manuscript with its list of references"),
        ("check_citations", {"manuscript": DRAFT, "passages": texts, "library": "apples"},
         "give passages or library, not both"),
    )  # fmt: skip
    async with inside(library) as client:
        for name, arguments, said in wrong:
            result = await client.call_tool(name, arguments)
            assert (result.is_error, said in text_of(result)) == (True, True)
        result = await client.call_tool("check_citations", {"manuscript": DRAFT, "passages": texts})
        assert result.structured_content["pairs"][0]["verdict"] == "unavailable"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--port", "8000"], "--port goes with --http"),
        (["--library", "none.papers"], "no such file of papers: 'none.papers'"),
        (["--threshold", "80"], "threshold must be"),
        (["--library", "a,,b"], "--library must be names with commas between them"),
    ],
)
def test_a_usage_error_of_the_command_is_one_line(args, said):
    result = CliRunner().invoke(app, ["mcp", *args])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr


@pytest.mark.slow
async def test_the_command_answers_over_http_until_interrupted(start, tmp_path):
    with open_store("apples", path=tmp_path / "data") as store:
        store.add(APPLES)
    with open_store("secret", path=tmp_path / "data") as store:
        store.add(APPLES)
    started = start("--http", "--port", "0", "--path", tmp_path / "data", "--library", "apples")
    process = subprocess.Popen(  # noqa: ASYNC220  # it is stopped below
        [started.command, *started.args], env=started.env, stderr=subprocess.PIPE, text=True
    )
    try:
        address = process.stderr.readline().split()[-1]
        async with Client(address) as client:
            found = await client.call_tool("find_evidence", {"question": QUESTION})
            assert found.structured_content["evidence"][0]["id"] == "trial"
            hidden = {"question": QUESTION, "library": "secret"}
            assert (await client.call_tool("find_evidence", hidden)).is_error
    finally:
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert (process.returncode, "deepera: stopped" in said) == (0, True)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_ctrl_c_ends_a_server_that_waits_for_its_host(start):
    started = start("--library", "off")
    process = subprocess.Popen(
        [started.command, *started.args],
        env=started.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 1
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.communicate()


@pytest.mark.slow
async def test_a_chat_model_judges_and_nothing_is_paid_for_twice(start):
    def reply(request):
        return answer_in_json({"": 0.9}, request.system, request.user)

    with ChatServer(reply) as server:
        started = start("--library", "off", "--model", "m", "--base-url", server.base_url)
        asked = {"question": QUESTION, "passages": [one.page_content for one in APPLES]}
        async with Client(started) as client:
            first = await client.call_tool("find_evidence", asked)
            n_asked = len(server.requests)
            again = await client.call_tool("find_evidence", asked)
        assert len(server.requests) == n_asked == 7
    assert len(first.structured_content["evidence"]) == 3
    assert again.structured_content == first.structured_content
