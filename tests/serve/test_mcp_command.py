"""What `deepera mcp` serves: the library that its options name."""

import asyncio
import signal

import pytest
from langchain_core.documents import Document
from mcp import Client
from typer.testing import CliRunner

from deepera_graph import open_store
from deepera_graph.cli.main import app
from deepera_graph.serve.tools.mcp import create_mcp_server

pytestmark = pytest.mark.full

QUESTION = "Does wax coating keep apples firm in storage?"
TRIAL = Document(
    id="trial",
    page_content="Wax coating kept apples firm in storage for 90 days (p < 0.001).",
    metadata={"year": 2019},
)


@pytest.fixture
def serve(monkeypatch):
    """Return the library that a command line serves."""

    def serve(*args):
        kept = []

        async def keep(library):
            kept.append(library)

        monkeypatch.setattr("deepera_graph.serve.tools.mcp.serve_stdio", keep)
        result = CliRunner().invoke(app, ["mcp", *map(str, args)])
        assert result.exit_code == 0, result.stderr
        return kept[0]

    return serve


def call(library, name, **given):
    """Call a tool; return whether that is an error, and what it says."""

    async def ask():
        async with Client(create_mcp_server(library)) as client:
            return await client.call_tool(name, given)

    result = asyncio.run(ask())
    return result.is_error, result.content[0].text


@pytest.mark.parametrize(
    ("name", "given"), [("list_libraries", {}), ("find_evidence", {"question": QUESTION})]
)
def test_a_server_of_collections_that_is_away_is_an_error_and_not_an_empty_shelf(
    serve, name, given
):
    is_error, said = call(serve("--qdrant-url", "http://127.0.0.1:9"), name, **given)
    assert is_error
    assert "127.0.0.1:9" in said


def test_a_condition_that_no_passage_has_is_told_under_the_name_of_the_argument(serve, tmp_path):
    with open_store("apples", path=tmp_path) as store:
        store.add([TRIAL])
    library = serve("--path", tmp_path)
    is_error, said = call(library, "find_evidence", question=QUESTION, where={"yaer": 2019})
    assert is_error
    assert said.startswith("where: no passage has metadata 'yaer'; did you mean 'year'?")


def test_passages_without_a_year_that_a_condition_left_out_are_told(serve, tmp_path):
    undated = TRIAL.model_copy(update={"id": "undated", "metadata": {}})
    with open_store("apples", path=tmp_path) as store:
        store.add([TRIAL.model_copy(update={"metadata": {"year": "2019"}}), undated])
    library = serve("--path", tmp_path, "--backend", "rules")
    is_error, said = call(library, "find_evidence", question=QUESTION, where="year>=2018")
    assert not is_error
    assert said.startswith("No passage of 1 gives direct evidence")
    assert "1 passage has no year and was left out" in said


def test_a_collection_that_another_process_holds_is_named_and_said_to_be_held(
    serve, tmp_path, monkeypatch
):
    monkeypatch.setattr("deepera_graph.serve.backing.stores._WAIT", 0.05)
    library = serve("--path", tmp_path)
    with open_store("apples", path=tmp_path) as store:
        store.add([TRIAL])
        assert call(library, "list_libraries") == (False, "library 'apples' with passages")
        is_error, said = call(library, "find_evidence", question=QUESTION)
    assert is_error
    assert "another process has the passage store" in said
    assert call(library, "list_libraries") == (False, "library 'apples' with 1 passage")


def test_a_password_is_no_part_of_the_name_of_a_base(serve):
    library = serve("--library", "http://me:secret@127.0.0.1:9/papers", "--library", "off")
    assert library.bases == ("127.0.0.1:9",)


def test_a_server_that_breaks_off_leaves_ctrl_c_as_it_was(monkeypatch):
    async def break_off(library):
        raise RuntimeError("lost its host")

    monkeypatch.setattr("deepera_graph.serve.tools.mcp.serve_stdio", break_off)
    before = signal.getsignal(signal.SIGINT)
    result = CliRunner().invoke(app, ["mcp", "--library", "off"])
    assert str(result.exception) == "lost its host"
    assert signal.getsignal(signal.SIGINT) is before
