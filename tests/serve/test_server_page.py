"""What docs/server.md says is what the server does; and `/docs` needs nothing of other hosts."""

import json
import re
from pathlib import Path

import pytest

from deepera_graph.serve.config import RequestLimits

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")


def block(title):
    """The block of the page with a title."""
    return re.search(rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```', PAGE, re.S | re.M)[1]


def test_the_request_for_evidence_keeps_what_proves_something(server):
    told = server.post("/v1/evidence", content=block("evidence.json").encode()).json()
    assert told["kept"] == ["lee"]
    assert told["ranking"][0]["direction"] == "supports"
    named = re.search(r"Beside these it has (.*?)\n\n", PAGE, re.S)[1]
    assert set(re.findall(r"`(\w+)`", named)) <= set(told)


def test_the_stream_has_the_events_that_are_named(server):
    given = {"Accept": "text/event-stream"}
    told = server.post("/v1/evidence", content=block("evidence.json").encode(), headers=given)
    shown = re.findall(r"^event: (\w+)", block("evidence.events"), re.M)
    assert re.findall(r"^event: (\w+)", told.text, re.M) == shown


def test_the_rerank_request_gets_the_reply_that_is_shown(server):
    told = server.post("/v1/rerank", content=block("rerank.json").encode()).json()
    assert told.pop("id")
    assert told == json.loads(block("rerank.reply.json"))


def test_every_field_of_a_request_is_explained(server):
    schema = server.get("/openapi.json").json()
    paths, forms = schema["paths"], schema["components"]["schemas"]
    page = server.get("/docs").text
    for path in ("/v1/evidence", "/v1/rerank"):
        body = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        for name, field in forms[body["$ref"].rpartition("/")[2]]["properties"].items():
            assert field["description"]
            assert f"<code>{name}</code>" in page
    assert set(paths) <= set(re.findall(r"<code>\w+ (/[\w/]*)</code>", page))


def test_the_page_of_paths_loads_nothing(server):
    page = server.get("/docs").text
    assert re.findall(r"(?:src|href)=['\"]([^'\"]+)", page) == ["openapi.json"]
    assert "<script" not in page


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("120 seconds", RequestLimits().seconds == 120),
        ("10 MB", RequestLimits().body_bytes == 10 * 2**20),
        ("1000 passages", RequestLimits().documents == 1000),
        ("4 million characters", RequestLimits().characters == 4_000_000),
        ("256 may wait", RequestLimits().queue == 256),
    ],
)
def test_the_limits_are_those_of_the_page(name, value):
    assert name in PAGE
    assert value
