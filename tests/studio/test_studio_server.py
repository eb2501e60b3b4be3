"""The in-memory server of `langgraph dev` serves the graph over HTTP."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
STARTUP_SECONDS = 90
pytest.importorskip("langgraph_api", reason="needs the extra 'studio'")


def post(url: str, body: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json", "accept": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server on a copy of the configuration, so that it leaves no files here."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("studio")
    config = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    served = config["graphs"]["deepera"]
    served["path"] = str(ROOT / served["path"])
    config["dependencies"] = [str(ROOT)]
    (folder / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    command = shutil.which("langgraph", path=Path(sys.executable).parent) or "langgraph"
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [command, "dev", "--no-browser", "--no-reload", "--port", str(port)],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
        )
        try:
            wait_until_up(f"http://127.0.0.1:{port}/ok", process, folder / "log.txt")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(20)


def wait_until_up(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise AssertionError(f"langgraph dev did not start:\n{log.read_text(errors='replace')[-3000:]}")


def test_a_thread_runs_through_the_served_graph(server: str) -> None:
    thread = post(f"{server}/threads", {})
    texts = [
        "Whether wax coating keeps apples firm in storage has long been debated.",
        "Wax coating kept apples firm: after 90 days in storage firmness fell by 6% in coated and "
        "by 31% in uncoated apples (p < 0.001).",
    ]
    state = post(
        f"{server}/threads/{thread['thread_id']}/runs/wait",
        {
            "assistant_id": "deepera",
            "input": {
                "question": "Does wax coating keep apples firm in storage?",
                "passages": [{"id": str(n), "text": text} for n, text in enumerate(texts)],
            },
        },
    )
    assert [record["id"] for record in state["ranking"]] == ["1", "0"]
    assert state["outcome"] in {"ok", "no_evidence"}


def test_the_schemas_of_input_and_output_are_served(server: str) -> None:
    [assistant] = post(f"{server}/assistants/search", {"graph_id": "deepera"})
    assert assistant["name"] == "DeepEra"
    address = f"{server}/assistants/{assistant['assistant_id']}/schemas"
    with urllib.request.urlopen(address, timeout=60) as answer:
        schemas = json.load(answer)
    assert list(schemas["input_schema"]["properties"]) == ["question", "passages"]
    assert {"ranking", "documents", "outcome", "answer"} <= set(
        schemas["output_schema"]["properties"]
    )


def ask_mcp(server: str, method: str, **params: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return post(f"{server}/mcp", message)["result"]


def test_it_is_an_mcp_tool_with_a_description(server: str) -> None:
    [tool] = ask_mcp(server, "tools/list")["tools"]
    assert tool["name"] == "DeepEra"
    assert tool["description"].startswith("Judges candidate passages as evidence")
    assert tool["inputSchema"]["required"] == ["question", "passages"]
    assert tool["inputSchema"]["properties"]["passages"]["description"]
    passages = ["Wax was bought.", {"id": "wax", "text": "Wax kept apples firm (6% against 31%)."}]
    arguments = {"question": "Does wax coating keep apples firm?", "passages": passages}
    called = ask_mcp(server, "tools/call", name=tool["name"], arguments=arguments)
    assert "isError" not in called
    assert "'id': 'wax'" in called["content"][0]["text"]
