"""Rerank requests, in the bodies that clients of other services send."""

import math

import pytest

from deepera_graph.schema import Unjudged
from deepera_graph.serve.config import ServeConfig
from deepera_graph.testing import judged
from deepera_graph.usage import Usage
from support.list_judges import list_backend
from support.serving import PASSAGES, QUESTION, running

TEXTS = [*PASSAGES]
BEST = 1  # its place
# What the clients sent when they were tried (benchmarks/serve/clients.py), but for their headers.
COHERE_V2 = {"model": "local", "query": QUESTION, "documents": TEXTS, "top_n": 2}
COHERE_V1 = {
    "model": "rerank-v3.5",
    "query": QUESTION,
    "documents": [{"text": one} for one in TEXTS],
    "top_n": 2,
    "return_documents": True,
}
LITELLM_COHERE = {**COHERE_V2, "return_documents": True}
LITELLM_JINA = {"model": "local", "query": QUESTION, "top_n": 2, "documents": TEXTS}
LITELLM_VLLM = {**COHERE_V2, "return_documents": True}
LANGCHAIN_JINA = {
    "query": QUESTION,
    "documents": TEXTS,
    "model": "jina-reranker-v1-base-en",
    "top_n": None,
}
LLAMA_JINA = {"query": QUESTION, "documents": TEXTS, "model": "local", "top_n": 2}
LLAMA_TEI = {"query": QUESTION, "texts": TEXTS}
LITELLM_TEI = {
    "query": QUESTION,
    "texts": TEXTS,
    "raw_scores": False,
    "return_text": False,
    "truncate": False,
    "truncation_direction": "Right",
}


@pytest.fixture(scope="module")
def expected(server):
    """Places and scores by our own path, best first."""
    asked = {"question": QUESTION, "passages": TEXTS, "summarize": False}
    ranking = server.post("/v1/evidence", json=asked).json()["ranking"]
    return [(int(one["id"]) - 1, one["score"]) for one in ranking]


@pytest.fixture(scope="module")
def scripted():
    """A server whose judge fails at "Bad." and finds nothing usable if it is asked to fail."""

    def play(batch):
        if "fail" in batch["question"]:
            return ValueError("no reply")
        texts = [window["text"] for window in batch["windows"]]
        return [ValueError("bad") if one == "Bad." else judged(len(one) / 100) for one in texts]

    backend = list_backend(lambda batch: [as_verdict(one) for one in as_list(play(batch), batch)])
    with running(ServeConfig(backend=backend)) as client:
        yield client


def as_list(played, batch):
    return [played] * len(batch["windows"]) if isinstance(played, Exception) else played


def as_verdict(one):

    return Unjudged(cause=str(one), usage=Usage()) if isinstance(one, Exception) else one


@pytest.mark.parametrize(
    ("path", "body", "n"),
    [
        ("/v2/rerank", COHERE_V2, 2),
        ("/v1/rerank", COHERE_V1, 2),
        ("/v2/rerank", LITELLM_COHERE, 2),
        ("/v1/rerank", LITELLM_JINA, 2),
        ("/rerank", LITELLM_VLLM, 2),
        ("/v1/rerank", LANGCHAIN_JINA, 3),
        ("/v1/rerank", LLAMA_JINA, 2),
    ],
)
def test_what_a_client_of_cohere_or_jina_sends_is_ranked(server, expected, path, body, n):
    told = server.post(path, json=body)
    assert told.status_code == 200
    found = [(one["index"], one["relevance_score"]) for one in told.json()["results"]]
    assert found == expected[:n]
    assert told.json()["model"] == "local"
    assert told.json()["id"]


@pytest.mark.parametrize("body", [LLAMA_TEI, LITELLM_TEI])
def test_what_a_client_of_text_embeddings_inference_sends_is_ranked(server, expected, body):
    told = server.post("/rerank", json=body).json()
    assert [(one["index"], one["score"]) for one in told] == expected


def test_raw_scores_are_log_odds_and_texts_come_back_if_asked_for(server, expected):
    body = {**LLAMA_TEI, "raw_scores": True, "return_text": True}
    best = server.post("/rerank", json=body).json()[0]
    score = expected[0][1]
    assert best["score"] == pytest.approx(math.log(score / (1 - score)))
    assert best["text"] == TEXTS[BEST]
    for path, body in (
        ("/rerank", LITELLM_VLLM),
        ("/v1/rerank", COHERE_V1),
        ("/v2/rerank", COHERE_V2),
    ):
        [best, *_] = server.post(path, json={**body, "raw_scores": True}).json()["results"]
        assert best["relevance_score"] == pytest.approx(math.log(score / (1 - score)))


@pytest.mark.parametrize(
    ("path", "asked", "shown"),
    [
        ("/v1/rerank", None, True),
        ("/v1/rerank", False, False),
        ("/v2/rerank", None, False),
        ("/v2/rerank", True, True),
    ],
)
def test_documents_come_back_as_each_version_of_the_form_has_it(server, path, asked, shown):
    more = {} if asked is None else {"return_documents": asked}
    best = server.post(path, json={**COHERE_V2, **more}).json()["results"][0]
    assert best.get("document") == ({"text": TEXTS[BEST]} if shown else None)


def test_every_form_says_its_version_and_blank_documents_are_the_callers_fault(server):
    for path, version in (("/rerank", "1"), ("/v1/rerank", "1"), ("/v2/rerank", "2")):
        meta = server.post(path, json=LITELLM_VLLM).json()["meta"]
        assert meta["api_version"] == {"version": version}
    blank = server.post("/v1/rerank", json={"query": "Does tea help?", "documents": [" "]})
    assert (blank.status_code, blank.json()["error"]["kind"]) == (422, "input")


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_an_object_whose_text_is_empty_costs_itself_alone(server, expected, path):
    body = {**COHERE_V2, "documents": [*COHERE_V2["documents"], {"text": ""}, {"Text": None}]}
    told = server.post(path, json=body).json()
    assert [one["index"] for one in told["results"]] == [
        one for one, _ in expected[: body["top_n"]]
    ]
    assert "2 of" in told["meta"]["warnings"][0]
    wrong = server.post(path, json={**COHERE_V2, "documents": [{"text": 5}]})
    assert "documents.0 has no text; its text is 5" in wrong.text


def test_a_field_that_is_nearly_one_of_ours_is_named(server):
    body = {**COHERE_V2, "model": "rules", "topn": 1, "user": "me"}
    meta = server.post("/v1/rerank", json=body).json()["meta"]
    assert meta["warnings"] == ["unknown field 'topn'; did you mean top_n?"]


def test_a_model_of_another_service_is_the_configured_judge_and_the_reply_says_so(server):
    meta = server.post("/v1/rerank", json=COHERE_V1).json()["meta"]
    assert "'rerank-v3.5'" in meta["warnings"][0]
    assert "'local'" in meta["warnings"][0]


def test_a_model_that_is_a_judge_judges(server):
    told = server.post("/v1/rerank", json={**COHERE_V2, "model": "rules"}).json()
    assert told["model"] == "rules"
    assert "warnings" not in told["meta"]


def test_a_title_counts_as_it_does_for_the_reranker(server):
    documents = [{"title": "Wax", "text": one} for one in TEXTS]
    told = server.post("/v1/rerank", json={**COHERE_V2, "documents": documents}).json()
    own = server.post("/v1/evidence", json={"question": QUESTION, "passages": documents}).json()
    best = told["results"][0]
    assert best["relevance_score"] == own["ranking"][0]["score"]
    assert best["document"] == documents[BEST]


def test_chosen_fields_are_what_is_read(server, expected):
    documents = [{"name": "x", "finding": one} for one in TEXTS]
    body = {**COHERE_V2, "documents": documents, "rank_fields": ["finding"]}
    best = server.post("/v1/rerank", json=body).json()["results"][0]
    assert (best["index"], best["relevance_score"]) == expected[0]


@pytest.mark.full
def test_a_passage_that_could_not_be_judged_has_no_row_and_is_told(scripted):
    body = {"query": "Which?", "documents": ["Good one.", "Bad.", "Better, longer one."]}
    told = scripted.post("/v1/rerank", json=body).json()
    assert [one["index"] for one in told["results"]] == [2, 0]
    assert "1 of 3 passages could not be judged" in told["meta"]["warnings"][-1]


def test_a_list_without_room_for_a_failure_is_an_error(scripted):
    told = scripted.post("/rerank", json={"query": "Which?", "texts": ["Good one.", "Bad."]})
    assert told.status_code == 502
    assert "1 of 2 passages" in told.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v1/evidence"])
def test_if_nothing_could_be_judged_it_is_an_error(scripted, path):
    texts = ["Good one.", "Other."]
    body = {"query": "Fail to fail?", "documents": texts}
    if path == "/v1/evidence":
        told = scripted.post(path, json={"question": "Fail to fail?", "passages": texts})
        assert told.json()["outcome"] == "degraded"
        assert [one["score"] for one in told.json()["failed"]] == [None, None]
        return
    told = scripted.post(path, json=body)
    assert told.status_code == 502
    assert "Nothing could be judged" in told.json()["error"]["message"]


def test_no_documents_give_no_results(server):
    told = server.post("/v1/rerank", json={"query": "Which?", "documents": []})
    assert (told.status_code, told.json()["results"]) == (200, [])


def test_the_error_of_a_rerank_request_says_it_where_its_clients_look(server):
    told = server.post("/v1/rerank", json={"query": "Which?"}).json()
    assert told["error"]["kind"] == "input"
    assert told["detail"] == told["message"] == told["error"]["message"]
    assert "documents" in told["detail"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"top_n": 0}, "top_n"),
        ({"query": " "}, "question"),
        ({"documents": [1]}, "documents.0"),
        ({"documents": [{"image": "x"}]}, "documents.0"),
        ({"documents": [{"a": "x"}], "rank_fields": ["b"]}, "rank_fields"),
    ],
)
def test_a_field_that_cannot_be_used_is_named(server, change, word):
    told = server.post("/v1/rerank", json={**COHERE_V2, **change})
    assert told.status_code == 422
    assert word in told.json()["error"]["message"]


@pytest.mark.full
def test_what_is_served_is_said_as_text_embeddings_inference_says_it(server):
    told = server.get("/info").json()
    assert told["model_id"] == "local"
    assert "reranker" in told["model_type"]
