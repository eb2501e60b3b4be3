"""What docs/server.md says is what the server does; and `/docs` needs nothing of other hosts."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from deepera_graph.serve.config import RequestLimits
from support.serving import PASSAGES, QUESTION

pytestmark = pytest.mark.full

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")


def block(title):
    """The block of the page with a title."""
    return re.search(rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```', PAGE, re.S | re.M)[1]


def test_the_request_for_evidence_keeps_what_proves_something(server):
    told = server.post("/v1/evidence", content=block("evidence.json").encode()).json()
    assert told["kept"] == ["lee"]
    assert told["ranking"][0]["direction"] == "supports"
    named = re.search(r"It also has (.*?)\n\n", PAGE, re.S)[1]
    assert set(re.findall(r"`(\w+)`", named)) <= set(told)


def test_the_stream_has_the_events_that_are_named(server):
    given = {"Accept": "text/event-stream"}
    told = server.post("/v1/evidence", content=block("evidence.json").encode(), headers=given)
    shown = re.findall(r"^event: (\w+)", block("evidence.events"), re.M)
    assert re.findall(r"^event: (\w+)", told.text, re.M) == shown


def test_the_rerank_request_gets_the_reply_that_is_shown(server):
    told = server.post("/v1/rerank", content=block("rerank.json").encode()).json()
    shown = json.loads(block("rerank.reply.json"))
    assert told.pop("id")
    scores = [one.pop("relevance_score") for one in told["results"]]
    # the third digit differs between processors
    assert scores == pytest.approx(
        [one.pop("relevance_score") for one in shown["results"]], abs=0.005
    )
    assert told == shown


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


def form_of(server, path, method):
    """What replies of a path are read as, by the schema that is published."""
    schema = server.get("/openapi.json").json()
    said = schema["paths"][path][method]["responses"]["200"]["content"]["application/json"]
    text = json.dumps({**said["schema"], "$defs": schema["components"]["schemas"]})
    return json.loads(text.replace("#/components/schemas/", "#/$defs/"))


@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/v1/evidence", {"question": QUESTION, "passages": PASSAGES, "answer": True}),
        ("/v1/rerank", {"query": QUESTION, "documents": PASSAGES}),
        ("/v2/rerank", {"query": QUESTION, "documents": PASSAGES}),
        ("/rerank", {"query": QUESTION, "documents": PASSAGES}),
        ("/rerank", {"query": QUESTION, "texts": PASSAGES, "return_text": True}),
        ("/v1/judges", None),
        ("/v1/collections", None),
        ("/v1/sources", None),
        ("/info", None),
        ("/health", None),
    ],
)
def test_a_reply_is_of_the_form_that_is_published(server, path, given):
    told = server.get(path) if given is None else server.post(path, json=given)
    assert told.status_code == 200
    form = form_of(server, path, "get" if given is None else "post")
    jsonschema.validate(told.json(), form)


@pytest.mark.parametrize(("path", "status"), [("/v1/evidence", 422), ("/nowhere", 404)])
def test_an_error_is_of_the_form_that_is_published(server, path, status):
    told = server.post(path, json={"qestion": "x"})
    forms = server.get("/openapi.json").json()["components"]["schemas"]
    text = json.dumps({**forms["ErrorReply"], "$defs": forms})
    assert told.status_code == status
    jsonschema.validate(told.json(), json.loads(text.replace("#/components/schemas/", "#/$defs/")))
