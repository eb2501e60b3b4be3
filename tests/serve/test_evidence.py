"""`POST /v1/evidence`: the full result, at once and event by event."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepera_graph import EvidenceReranker
from deepera_graph.export import describe_result
from deepera_graph.result import RerankResult
from support.serving import PASSAGES, QUESTION

ASKED = {"question": QUESTION, "passages": [*PASSAGES]}
TIMES = ("seconds",)


def without_times(plain):
    return {name: value for name, value in plain.items() if name not in TIMES}


def read_events(text):
    blocks = [one for one in text.split("\n\n") if one and not one.startswith(":")]
    pairs = (block.split("\n", 1) for block in blocks)
    return [(head.removeprefix("event: "), json.loads(data[6:])) for head, data in pairs]


@pytest.mark.full
def test_a_result_over_http_is_that_of_the_reranker_in_process(server):
    told = server.post("/v1/evidence", json=ASKED).json()
    own = describe_result(EvidenceReranker("local").rerank(QUESTION, PASSAGES), whole=True)
    plain = json.loads(json.dumps(without_times(own)))
    assert {name: told[name] for name in plain} == plain


@pytest.mark.full
def test_a_result_says_what_was_dropped_and_why(server):
    told = server.post("/v1/evidence", json=ASKED).json()
    assert told["kept"] == ["2"]
    assert {one["id"] for one in told["dropped"]} == {"1", "3"}
    assert all(one["reason"] and one["score"] is not None for one in told["dropped"])


@pytest.mark.full
def test_a_result_over_http_can_be_read_as_one(server):
    told = server.post("/v1/evidence", json=ASKED).json()
    assert [one.id for one in RerankResult.from_dict(told).kept] == ["2"]


@pytest.mark.full
def test_a_stream_ends_with_the_result_that_is_given_at_once(server):
    at_once = server.post("/v1/evidence", json=ASKED).json()
    told = server.post("/v1/evidence", json=ASKED, headers={"Accept": "text/event-stream"})
    events = read_events(told.text)
    assert told.headers["content-type"].startswith("text/event-stream")
    names = [name for name, _ in events]
    assert names == ["intent", *["scored"] * 3, "kept", "summary", "result"]
    last = events[-1][1]
    differ = ("seconds", "request_id")
    assert {**last, **dict.fromkeys(differ)} == {**at_once, **dict.fromkeys(differ)}


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"question": " "}, 422, "question"),
        ({"question": None}, 422, "question"),
        ({"question": "a" * 60_000}, 422, "at most 10000 characters, got 60000"),
        ({"passages": None}, 422, "library"),
        ({"library": "x"}, 422, "passages and library"),
        ({"passages": ["a", ""]}, 422, "passage 2"),
        ({"passages": [{"text": ""}]}, 422, "passage 1 has no text; its text is ''"),
        ({"passages": [{"id": "a", "text": "b"}, {"id": "a", "text": "c"}]}, 422, "'a'"),
        ({"judge": "rule"}, 422, "did you mean 'rules'"),
        ({"threshold": 1.5}, 422, "1.5"),
        ({"n": 0}, 422, "n must be greater than or equal to 1, got 0"),
        ({"question": None, "query": "q"}, 422, "; unknown field 'query'"),
        ({"tresholt": 0.5}, 422, "unknown field 'tresholt'; did you mean 'threshold'?"),
        ({"n": 1, "top_n": 2}, 422, "give n or top_n, which are the same, not both"),
        ({"threshold": True}, 422, "threshold must be a valid number"),
        ({"passages": [5]}, 422, "passages.0 must be a valid string or a valid dict"),
        ({"passages": None, "library": "none"}, 404, "'none'"),
        ({"passages": None, "source": "nowhere"}, 404, "'nowhere'"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(server, change, status, word):
    given = {name: value for name, value in {**ASKED, **change}.items() if value is not None}
    told = server.post("/v1/evidence", json=given)
    assert told.status_code == status
    assert word in told.json()["error"]["message"]
    assert told.json()["error"].keys() == {"kind", "message"}


def test_a_request_may_choose_judge_threshold_and_what_is_done(server):
    more = {"judge": "rules", "threshold": 0.0, "n": 2, "summarize": False, "answer": True}
    told = server.post("/v1/evidence", json={**ASKED, **more}).json()
    assert (told["judge"], told["threshold"], len(told["kept"])) == ("rules", 0.0, 2)
    assert {one["summary"] for one in told["ranking"]} == {""}
    assert told["answer"]["status"]


def test_the_judges_are_listed_the_configured_one_first(server):
    judges = server.get("/v1/judges").json()["judges"]
    assert [(one["name"], one["default"]) for one in judges] == [("local", True), ("rules", False)]


@pytest.mark.full
def test_requests_at_once_get_what_each_gets_alone(server):
    """A score must not depend on who else asks."""
    asked = [
        {"question": QUESTION, "passages": [*PASSAGES, f"Wax kept {n} of 90 apples firm."]}
        for n in range(8)
    ]
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(lambda one: server.post("/v1/evidence", json=one).json(), asked))
    reranker = EvidenceReranker("local")
    for one, given in zip(told, asked, strict=True):
        own = json.loads(reranker.rerank(QUESTION, given["passages"]).to_json())
        scores = [(each["id"], each["score"], each["quote"]) for each in own["passages"]]
        assert [(each["id"], each["score"], each["quote"]) for each in one["ranking"]] == scores
