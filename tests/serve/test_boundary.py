"""What every request passes: keys, sizes, times, turns, its id; what log and counters say."""

import logging
import re
import socket
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.serve import page
from deepera_graph.serve.backing.judging import ServerJudges
from deepera_graph.serve.config import KEYS, RequestLimits, ServeConfig, read_keys
from deepera_graph.serve.metrics import Metrics
from deepera_graph.testing import judged
from support.list_judges import list_backend
from support.serving import running, running_server, wait_for, write_request

pytestmark = pytest.mark.full

KEY, OTHER = "a-long-key-1", "a-long-key-2"
WAITING = {"question": "wait for it?", "passages": ["One text."]}
QUICK = {"question": "Which text?", "passages": ["A secret text."]}


class Held:
    """A server whose judge waits, if the question says so, until it is let go."""

    def __init__(self):
        self.began, self.go = Event(), Event()

    def play(self, batch):
        if batch["question"].startswith("wait"):
            self.began.set()
            self.go.wait(30)
        return [judged(0.5) for _ in batch["windows"]]

    @contextmanager
    def running(self, **limits):
        self.began.clear()
        self.go.clear()
        config = ServeConfig(backend=list_backend(self.play), limits=RequestLimits(**limits))
        with running_server(config) as (client, server):
            self.client, self._server = client, server
            try:
                yield client
            finally:
                self.go.set()

    def stop(self, grace=None):
        self._server.config.timeout_graceful_shutdown = grace
        self._server.should_exit = True

    @contextmanager
    def asking(self, given=WAITING, path="/v1/evidence", **how):
        """Ask in a thread; yield once the judge is at it, where its status comes."""
        told = []
        asking = Thread(target=lambda: told.append(self.client.post(path, json=given, **how)))
        asking.start()
        try:
            assert self.began.wait(10)
            yield told
        finally:
            self.go.set()
            asking.join()


@pytest.fixture
def held():
    return Held()


@pytest.fixture(scope="module")
def guarded():
    """A server with keys and narrow limits."""
    limits = RequestLimits(body_bytes=100_000, documents=1000, characters=20_000)
    with running(ServeConfig(backend="rules", keys=(KEY, OTHER), limits=limits)) as client:
        yield client


def gauge(client):
    """Return how many requests hold a place."""
    return read_counters(client)["deepera_in_progress"]


def with_key(key=KEY):
    return {"Authorization": f"Bearer {key}"}


def read_counters(client, **how):
    lines = client.get("/metrics", **how).text.splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def send_raw(client, body, more=""):
    """Send a request over a socket of its own, and return that."""
    url = client.base_url
    sent = socket.create_connection((url.host, url.port))
    sent.sendall(write_request(body, len(body), more))
    return sent


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        (with_key("a-long-key-3"), 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Basic {KEY}"}, 401),
        ({"Authorization": f"bearer {OTHER}"}, 200),
        (with_key(), 200),
        ({"x-api-key": OTHER}, 200),
        ({"x-api-key": "ключ"}, 401),
    ],
)
def test_with_keys_only_who_has_one_may_ask(guarded, headers, status):
    given = {name: value.encode() for name, value in headers.items()}
    told = guarded.post("/v1/evidence", json=QUICK, headers=given)
    assert told.status_code == status
    if status == 401:
        assert told.headers["www-authenticate"] == "Bearer"
        assert KEY not in told.text


@pytest.mark.parametrize("path", ["/health", "/docs", "/openapi.json"])
def test_health_and_docs_need_no_key(guarded, path):
    assert guarded.get(path).status_code == 200


def test_the_health_can_be_asked_for_without_its_words(guarded):
    assert (guarded.head("/health").status_code, guarded.head("/health").text) == (200, "")


def test_a_judge_that_cannot_be_loaded_is_no_judge_that_still_loads(monkeypatch, caplog):
    def fail(*_):
        raise RuntimeError("no weights in /secret")

    monkeypatch.setattr("deepera_graph.reranker.EvidenceReranker.rerank", fail)
    judging = ServerJudges(ServeConfig(backend="rules"), Metrics())
    judging.warm_up()
    assert (judging.is_ready, judging.problem) == (False, "RuntimeError; the log says more")
    assert "no weights in /secret" in caplog.text


@pytest.mark.parametrize(
    "path",
    ["/metrics", "/v1/judges", "/v1/libraries", "/info", "/nothing", "/pages", "/papers/search"],
)
def test_all_else_needs_a_key(guarded, path):
    assert guarded.get(path).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "{own}"}, 200),
        ({"Origin": "https://elsewhere.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://elsewhere.example:80", "Host": "elsewhere.example:80"}, 403),
        ({"Host": "localhost:80"}, 200),
        ({"Host": "elsewhere.example"}, 403),
        ({"Host": "["}, 403),
    ],
)
def test_without_keys_pages_of_other_hosts_may_not_ask(server, headers, status):
    own = str(server.base_url).rstrip("/")
    given = {name: value.replace("{own}", own) for name, value in headers.items()}
    told = server.post("/v1/rerank", json={"query": "?", "documents": []}, headers=given)
    assert told.status_code == status


def test_a_probe_of_http_1_0_that_names_no_host_is_answered(server):
    address = (server.base_url.host, server.base_url.port)
    with socket.create_connection(address, timeout=10) as sent:
        sent.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert sent.recv(64).split()[1] == b"200"


def test_keys_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv(KEYS, f" {KEY}, {OTHER},")
    assert read_keys() == (KEY, OTHER)
    monkeypatch.setenv(KEYS, "short")
    with pytest.raises(SettingsError, match="shorter than 8") as told:
        read_keys()
    assert "'short'" not in str(told.value)


def test_a_body_of_20_mb_is_refused_and_the_next_request_is_answered(guarded):
    told = guarded.post("/v1/evidence", content=b"x" * 20_000_000, headers=with_key())
    assert (told.status_code, told.json()["error"]["kind"]) == (413, "too_large")
    assert guarded.post("/v1/evidence", json=QUICK, headers=with_key()).status_code == 200


def test_a_body_without_a_length_is_refused_once_it_is_too_large(guarded):
    parts = (b"x" * 50_000 for _ in range(4))
    assert guarded.post("/v1/evidence", content=parts, headers=with_key()).status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"question": NaN}', b"[]", b"\xff", b'{"a":' * 20_000, b"null"]
)
def test_a_body_that_is_no_json_object_is_bad(guarded, body):
    told = guarded.post("/v1/evidence", content=body, headers=with_key())
    assert (told.status_code, told.json()["error"]["kind"]) == (400, "input")


@pytest.mark.parametrize(
    ("value", "word"),
    [("1e999", "too large"), ("[" * 200 + "]" * 200, "nested")],
)
def test_a_body_that_no_reply_could_repeat_is_bad(guarded, value, word):
    document = f'{{"text": "One text.", "metadata": {{"a": {value}}}}}'
    for path, body in (
        ("/v1/evidence", '{"question": "Which?", "passages": [%s]}'),
        ("/v1/rerank", '{"query": "Which?", "documents": [%s], "return_documents": true}'),
    ):
        told = guarded.post(path, content=body.replace("%s", document), headers=with_key())
        assert (told.status_code, told.json()["error"]["kind"]) == (400, "input")
        assert word in told.json()["error"]["message"]


def test_a_thousand_documents_are_ranked_and_one_more_is_refused(guarded):
    texts = [f"text {n}" for n in range(1000)]
    asked = {"query": "Which text is 7?", "documents": texts}
    told = guarded.post("/v1/rerank", json=asked, headers=with_key())
    assert len({one["index"] for one in told.json()["results"]}) == 1000
    asked["documents"].append("one more")
    told = guarded.post("/v1/rerank", json=asked, headers=with_key())
    assert (told.status_code, told.json()["error"]["kind"]) == (422, "too_many")
    assert "1000 passages, got 1001" in told.json()["error"]["message"]


def test_too_many_characters_are_refused(guarded):
    asked = {"question": "Which?", "passages": ["x" * 20_001]}
    told = guarded.post("/v1/evidence", json=asked, headers=with_key())
    assert (told.status_code, told.json()["error"]["kind"]) == (422, "too_many")


def test_a_path_and_a_method_that_are_not_there_are_told_in_the_same_form(guarded):
    told = guarded.get("/v1/nothing", headers=with_key())
    assert (told.status_code, told.json()["error"]["kind"]) == (404, "missing")
    told = guarded.get("/v1/rerank", headers=with_key())
    assert (told.status_code, told.json()["error"]["kind"]) == (405, "method")


def test_the_id_of_a_request_is_taken_or_made(guarded):
    given = {**with_key(), "x-request-id": "mine-1"}
    told = guarded.post("/v1/evidence", json=QUICK, headers=given)
    assert told.headers["x-request-id"] == told.json()["request_id"] == "mine-1"
    made = {guarded.get("/health").headers["x-request-id"] for _ in range(2)}
    assert len(made) == 2
    bad = guarded.get("/health", headers={"x-request-id": "no good" * 40})
    assert re.fullmatch("[0-9a-f]{32}", bad.headers["x-request-id"])


def test_the_log_has_the_id_and_no_question_passage_or_key(guarded, caplog):
    caplog.set_level(logging.DEBUG)
    given = {**with_key(), "x-request-id": "mine-2"}
    guarded.post("/v1/evidence", json=QUICK, headers=given)
    guarded.post("/v1/evidence?q=secret", json={**QUICK, "judge": "secret"}, headers=given)
    assert wait_for(lambda: caplog.text.count(" id=mine-2") == 2)
    ours = [one.getMessage() for one in caplog.records if one.name.startswith("deepera_graph")]
    assert re.fullmatch(
        r"POST /v1/evidence 200 [\d.]+ ms id=mine-2 judge=rules passages=1", ours[0]
    )
    assert re.fullmatch(r"POST /v1/evidence 422 [\d.]+ ms id=mine-2 failure=settings", ours[1])


def test_being_well_is_not_logged(guarded, caplog):
    caplog.set_level(logging.INFO)
    guarded.get("/health")
    guarded.get("/v1/judges", headers={**with_key(), "x-request-id": "later"})
    assert wait_for(lambda: "id=later" in caplog.text)
    assert "/health" not in [word for one in caplog.records for word in one.getMessage().split()]


def test_questions_are_logged_if_that_is_asked_for(caplog):
    caplog.set_level(logging.INFO)
    with running(ServeConfig(backend="rules", log_content=True)) as client:
        client.post("/v1/evidence", json=QUICK)
    assert "question='Which text?'" in caplog.text
    assert "secret" not in caplog.text


def test_an_error_that_nobody_expected_tells_its_id_and_nothing_else(guarded, caplog, monkeypatch):
    def fail(*_):
        raise RuntimeError("A secret text.")

    monkeypatch.setattr("deepera_graph.serve.evidence.describe_reply", fail)
    given = {**with_key(), "x-request-id": "mine-3"}
    told = guarded.post("/v1/evidence", json=QUICK, headers=given)
    assert (told.status_code, told.json()["error"]["kind"]) == (500, "internal")
    assert "mine-3" in told.json()["error"]["message"]
    assert wait_for(lambda: "RuntimeError id=mine-3 at test_boundary.py" in caplog.text)
    assert "secret" not in told.text + caplog.text


def test_an_error_in_a_stream_is_its_last_event(guarded, monkeypatch):
    def fail(*_):
        raise SettingsError("no form for it")

    monkeypatch.setattr("deepera_graph.serve.evidence.describe_reply", fail)
    given = {**with_key(), "Accept": "text/event-stream"}
    told = guarded.post("/v1/evidence", json=QUICK, headers=given).text
    last = told.split("\n\n")[-2]
    assert last == 'event: error\ndata: {"error":{"kind":"settings","message":"no form for it"}}'


def test_counters_say_what_was_asked_and_what_became_of_the_passages(guarded):
    before = read_counters(guarded, headers=with_key())
    body = {"query": "Which?", "documents": ["One text.", "", "Another text."]}
    guarded.post("/v1/rerank", json=body, headers=with_key())
    guarded.post("/v1/rerank", json={}, headers=with_key())
    guarded.post("/v1/rerank", json={})
    after = read_counters(guarded, headers=with_key())
    grown = {name: after[name] - before.get(name, 0.0) for name in after}
    asked = 'deepera_requests_total{method="POST",path="/v1/rerank",status="%s"}'
    assert [grown[asked % status] for status in (200, 401, 422)] == [1, 1, 1]
    assert grown['deepera_passages_total{judge="rules",outcome="judged"}'] == 2
    assert grown['deepera_passages_total{judge="rules",outcome="failed"}'] == 1
    assert grown['deepera_batch_passages_count{judge="rules"}'] == 1
    assert grown['deepera_failures_total{kind="input"}'] == 1
    assert grown['deepera_request_seconds_count{path="/v1/rerank"}'] == 3


def test_no_client_adds_counters_by_odd_methods_and_paths(guarded):
    before = read_counters(guarded, headers=with_key())
    for method, path in (("PROPFIND", "/v1/rerank"), ("GET", "/made/up"), ("MKCOL", "/made/up")):
        guarded.request(method, path, headers=with_key())
    grown = read_counters(guarded, headers=with_key()).keys() - before.keys()
    assert not [name for name in grown if "PROPFIND" in name or "MKCOL" in name or "/up" in name]
    assert any('method="other",path="/v1/rerank"' in name for name in grown)


def test_a_stream_in_which_nothing_happens_says_that_it_goes_on(held, monkeypatch):
    monkeypatch.setattr("deepera_graph.serve.evidence._SECONDS_A_PING", 0.05)
    with held.running(seconds=0.3) as client:
        given = {"Accept": "text/event-stream"}
        assert (
            ": still at work\n\n" in client.post("/v1/evidence", json=WAITING, headers=given).text
        )


def test_texts_that_no_encoding_has_are_taken(guarded):
    body = b'{"question": "Which \\ud800?", "passages": ["a\\u0000 \\udfff text", "b"]}'
    told = guarded.post("/v1/evidence", content=body, headers=with_key())
    assert (told.status_code, len(told.json()["ranking"])) == (200, 2)


@pytest.mark.parametrize("path", ["/v1/evidence", "/v1/rerank"])
def test_a_request_that_takes_too_long_is_given_up(held, path):
    with held.running(seconds=0.2) as client:
        body = {"query": "wait?", "documents": ["a"]} if path == "/v1/rerank" else WAITING
        told = client.post(path, json=body)
        assert (told.status_code, told.json()["error"]["kind"]) == (504, "timeout")
        assert client.post("/v1/evidence", json=QUICK).status_code == 200


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
def test_work_that_goes_on_after_its_time_keeps_its_place(held, accept):
    with held.running(seconds=0.4, at_once=1, queue=0) as client:
        late = client.post("/v1/evidence", json=WAITING, headers={"Accept": accept})
        assert '"kind":"timeout"' in late.text
        assert gauge(client) == 1
        told = client.post("/v1/evidence", json=QUICK)
        assert (told.status_code, told.json()["error"]["kind"]) == (503, "busy")
        held.go.set()
        assert wait_for(lambda: gauge(client) == 0)
        assert client.post("/v1/evidence", json=QUICK).status_code == 200


@pytest.mark.parametrize(
    ("path", "work"),
    [
        ("/v1/passages?name=x.bib", "_read_file"),
        ("/v1/export", "_export"),
        ("/v1/table", "_tabulate"),
    ],
)
def test_a_file_that_takes_too_long_is_given_up_and_keeps_its_place(held, monkeypatch, path, work):
    monkeypatch.setattr(page, work, lambda *_: held.go.wait(30) and {})
    with held.running(seconds=0.4, at_once=1, queue=0) as client:
        given = {"result": {}, "format": "csv"}
        told = client.post(path, json=given)
        assert (told.status_code, told.json()["error"]["kind"]) == (504, "timeout")
        assert client.post(path, json=given).status_code == 503


def test_a_stream_that_takes_too_long_ends_with_an_error(held):
    with held.running(seconds=0.2) as client:
        given = {"Accept": "text/event-stream"}
        told = client.post("/v1/evidence", json=WAITING, headers=given).text
        assert '"kind":"timeout"' in told.split("\n\n")[-2]


def test_a_body_that_does_not_come_is_given_up(held):
    with held.running(seconds=0.2) as client, send_raw(client, b"") as sent:
        url = client.base_url
        with socket.create_connection((url.host, url.port)) as slow:
            slow.sendall(write_request(b"{", 9))
            assert b" 408 " in slow.recv(1000)
        assert b" 400 " in sent.recv(1000)


def test_requests_beyond_the_queue_are_refused_and_told_when_to_come_again(held):
    with held.running(at_once=1, queue=0) as client, held.asking() as told:
        busy = client.post("/v1/evidence", json=QUICK)
        assert (busy.status_code, busy.json()["error"]["kind"]) == (503, "busy")
        assert busy.headers["retry-after"] == "1"
        assert client.get("/health").status_code == 200
    assert told[0].status_code == 200


@pytest.mark.parametrize("more", ["", "Accept: text/event-stream\r\n"], ids=["at once", "stream"])
def test_a_client_that_hangs_up_gives_its_turn_away_once_its_work_has_ended(held, more):
    body = b'{"question": "wait", "passages": ["a"]}'
    with held.running(at_once=1, queue=0) as client:
        sent = send_raw(client, body, more)
        assert held.began.wait(10)
        assert gauge(client) == 1
        sent.close()
        ended = 'deepera_requests_total{method="POST",path="/v1/evidence"'
        assert wait_for(lambda: ended in client.get("/metrics").text)
        assert (gauge(client), client.post("/v1/evidence", json=QUICK).status_code) == (1, 503)
        held.go.set()
        assert wait_for(lambda: gauge(client) == 0)
        assert client.post("/v1/evidence", json=QUICK).status_code == 200


def test_what_is_in_flight_at_the_end_is_answered(held):
    with held.running() as client:
        with held.asking() as told:
            held.stop()
            assert wait_for(lambda: is_refused(client))
        assert told[0].status_code == 200


def is_refused(client):
    try:
        socket.create_connection((client.base_url.host, client.base_url.port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_request_that_outlives_the_grace_is_told_as_other_errors_are(held):
    with held.running(), held.asking() as told:
        held.stop(grace=0)
        assert wait_for(lambda: told)
    assert told[0].status_code == 503
    assert told[0].json()["error"]["kind"] == "stopped"
    assert "retry-after" in told[0].headers


def test_a_stream_that_outlives_the_grace_ends_with_an_error(held):
    with held.running(), held.asking(headers={"Accept": "text/event-stream"}) as told:
        held.stop(grace=0)
        assert wait_for(lambda: told)
    last = told[0].text.split("\n\n")[-2]
    assert last.startswith('event: error\ndata: {"error":{"kind":"stopped",')
