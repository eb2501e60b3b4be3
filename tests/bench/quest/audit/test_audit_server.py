"""The page of an audit over HTTP: who is answered, what is kept, what is never told."""

import json
from contextlib import contextmanager
from http.client import HTTPConnection
from threading import Thread
from time import sleep

import pytest

from deepera_graph.lab.quest.audit.drawing import draw_audit
from deepera_graph.lab.quest.audit.labels import LabelBook, read_labels
from deepera_graph.lab.quest.audit.server import AuditDesk, create_app

pytestmark = pytest.mark.full

TOKEN = "a-secret"
API = f"/{TOKEN}/v1"
ANNA = "?rater=anna"


class Page:
    """Asks a server as a browser does."""

    def __init__(self, port):
        self.port = port

    def ask(self, method, path, body=None, **headers):
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers = {"content-type": "application/json", **headers}
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, data, answer.headers

    def json(self, *args, **headers):
        status, data, _ = self.ask(*args, **headers)
        return status, json.loads(data)


@contextmanager
def serve(audit, **how):
    import uvicorn

    desk = AuditDesk(audit, **how)
    config = uvicorn.Config(create_app(desk, token=TOKEN), port=0, log_level="error", ws="none")
    running = uvicorn.Server(config)
    thread = Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        sleep(0.01)
    try:
        yield Page(running.servers[0].sockets[0].getsockname()[1])
    finally:
        running.should_exit = True
        thread.join()
        desk.close()


@pytest.fixture
def page(small):
    with serve(small) as found:
        yield found


@pytest.fixture(scope="module")
def shared(build, tmp_path_factory):
    """A page for tests after which no label is kept."""
    audit = draw_audit(build, tmp_path_factory.mktemp("shared") / "audit", per_grade=2)
    with serve(audit) as found:
        yield found
        assert read_sizes(audit) == {}


def read_sizes(audit):
    """Return how many lines of labels each rater has, besides the first."""
    sizes = {
        one.stem: one.read_bytes().count(b"\n") - 1 for one in audit.folder.glob("labels/*.jsonl")
    }
    return {name: n for name, n in sizes.items() if n}


@pytest.mark.full
def test_a_label_is_kept_before_it_is_answered(page, small):
    status, kept = page.json("PUT", f"{API}/labels/p001{ANNA}", {"label": 2, "note": "clear"})
    assert (status, kept["label"], kept["note"]) == (200, 2, "clear")
    assert read_labels(small, {})["anna"]["p001"].label == 2
    page.json("PUT", f"{API}/labels/p001{ANNA}", {"label": 1})
    assert page.json("GET", f"{API}/labels{ANNA}")[1]["labels"]["p001"]["label"] == 1
    assert page.json("GET", f"{API}/audit")[1]["raters"] == {"anna": 1}


def test_the_judges_grade_is_told_after_the_label_alone(page, small):
    _, audit = page.json("GET", f"{API}/audit")
    assert {"grade", "evidence", "judge"} & {*audit["pairs"][0]} == set()
    status, problem = page.json("POST", f"{API}/labels/p002/judge{ANNA}")
    assert (status, problem["error"]["kind"]) == (422, "input")
    assert "judge" not in page.json("PUT", f"{API}/labels/p002{ANNA}", {"label": 0})[1]
    status, shown = page.json("POST", f"{API}/labels/p002/judge{ANNA}")
    assert shown["judge"]["grade"] == small.key["p002"].grade
    status, problem = page.json("PUT", f"{API}/labels/p002{ANNA}", {"label": 2})
    assert status == 422
    assert "the label 0 stands" in problem["error"]["message"]
    assert page.json("GET", f"{API}/labels{ANNA}")[1]["labels"]["p002"]["judge"] == shown["judge"]


def test_all_grades_are_told_when_all_pairs_have_a_label(page, small):
    assert page.json("POST", f"{API}/judge{ANNA}")[0] == 422
    for pair in small.pairs:
        page.json("PUT", f"{API}/labels/{pair}{ANNA}", {"label": 1})
    _, found = page.json("POST", f"{API}/judge{ANNA}")
    assert {pair: one["judge"]["grade"] for pair, one in found["labels"].items()} == {
        pair: one.grade for pair, one in small.key.items()
    }


def test_a_blind_page_never_tells(small):
    with serve(small, blind=True) as page:
        page.json("PUT", f"{API}/labels/p001{ANNA}", {"label": 1})
        for path in (f"{API}/labels/p001/judge{ANNA}", f"{API}/judge{ANNA}"):
            status, problem = page.json("POST", path)
            assert (status, problem["error"]["kind"]) == (409, "settings")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"label": 3}, "label must be 0, 1 or 2, got 3"),
        ({"label": True}, "label must be 0, 1 or 2, got True"),
        ({"failure": "bias"}, "failure must be one of keyword"),
        ({"failure": ["keyword"]}, "failure must be one of keyword"),
        ({"failure": 0}, "failure must be one of keyword"),
        ({"note": "x" * 2001}, "note must be a text of at most 2000 characters"),
        ({"note": 1}, "note must be a text"),
        ([1], "must be a JSON object"),
        (b"not json", "not JSON"),
        ({"note": "x" * 40_000}, "not JSON"),
    ],
)
def test_what_is_no_label_is_refused_and_not_kept(shared, body, message):
    headers = {"content-type": "application/json"}
    status, problem = shared.json("PUT", f"{API}/labels/p001{ANNA}", body, **headers)
    assert status == 422
    assert message in problem["error"]["message"]
    assert shared.json("GET", f"{API}/labels{ANNA}")[1]["labels"] == {}


def test_an_unknown_pair_or_name_is_refused(shared):
    assert (
        "unknown pair 'p999'"
        in shared.json("PUT", f"{API}/labels/p999{ANNA}", {"label": 1})[1]["error"]["message"]
    )
    status, problem = shared.json("GET", f"{API}/labels?rater=../x")
    assert (status, problem["error"]["kind"]) == (409, "settings")
    assert shared.json("GET", f"{API}/labels")[0] == 409
    status, problem = shared.json("GET", f"{API}/nothing")
    assert (status, problem["error"]["kind"]) == (404, "settings")


@pytest.mark.parametrize("path", ["/", "/v1/audit", "/other/v1/audit", "/other/", f"/{TOKEN}x/"])
def test_who_does_not_know_the_secret_is_told_nothing(shared, path):
    status, data, _ = shared.ask("GET", path)
    assert status == 404
    assert TOKEN.encode() not in data
    assert b"pairs" not in data


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "rebound.example:80"},
        {"host": "127.0.0.1.example"},
        {"host": ""},
        {"origin": "https://other.example"},
        {"origin": "null"},
    ],
)
def test_another_host_or_origin_is_refused(shared, headers):
    status, data, _ = shared.ask("PUT", f"{API}/labels/p001{ANNA}", {"label": 1}, **headers)
    assert status == 403, data


def test_a_form_of_another_page_labels_nothing(shared):
    body, kind = b'{"label": 1}', {"content-type": "text/plain"}
    assert shared.ask("PUT", f"{API}/labels/p001{ANNA}", body, **kind)[0] == 422
    assert shared.json("GET", f"{API}/labels{ANNA}")[1]["labels"] == {}


def test_the_page_loads_nothing_from_other_hosts(shared):
    status, data, headers = shared.ask("GET", f"/{TOKEN}/")
    assert status == 200
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    text = data.decode()
    for name in ("page.css", "page.js"):
        status, part, _ = shared.ask("GET", f"/{TOKEN}/{name}")
        assert status == 200
        text += part.decode()
    assert "http:" not in text
    assert "https:" not in text
    assert "//" not in text
    assert shared.ask("GET", f"/{TOKEN}")[2]["location"] == f"/{TOKEN}/"


def test_a_name_in_use_elsewhere_is_said(page, small):
    with LabelBook(small, "ben"):
        status, problem = page.json("GET", f"{API}/labels?rater=ben")
    assert status == 409
    assert "labels in another process" in problem["error"]["message"]
    assert page.json("GET", f"{API}/labels?rater=ben")[0] == 200
