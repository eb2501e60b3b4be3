"""Kept passages as LangChain documents."""

import copy
import json
from dataclasses import replace

import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, Settings, build_graph
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Which text?"
NESTED = {"year": 2020, "tags": ["a", {"deep": [1, 2]}], "title": "T", "retrieval_score": 3.5}


def documents():
    return [
        Document(id="d1", page_content="One. More.", metadata=copy.deepcopy(NESTED)),
        Document(page_content="Two. More.", metadata={"deepera": "old", "relevance_score": 0.01}),
        Document(id="d3", page_content="Three."),
    ]


def backend():
    return scripted_backend(lambda task: judged(0.9 if "More" in task["text"] else 0.2))


def test_documents_are_new_and_the_callers_stay_as_they_were():
    given = documents()
    before = copy.deepcopy(given)
    result = EvidenceReranker(backend()).rerank(QUESTION, given)
    for document in result.to_documents():
        document.metadata["deepera"]["reason"] = "changed"
        document.metadata.setdefault("tags", []).append("changed")
    assert given == before
    assert [one.metadata for one in given] == [one.metadata for one in before]
    assert "changed" not in str(result.to_documents())


def test_dicts_and_their_lists_stay_as_they_were():
    given = [{"id": "a", "text": "One. More.", "metadata": copy.deepcopy(NESTED), "score": 1.0}]
    before = copy.deepcopy(given)
    EvidenceReranker(backend()).rerank(QUESTION, given).to_documents()[0].metadata.clear()
    assert given == before


def test_ids_and_metadata_are_kept_and_extended():
    first, second = EvidenceReranker(backend()).rerank(QUESTION, documents()).to_documents()
    assert (first.id, second.id) == ("d1", None)
    assert first.page_content == "One. More."
    assert first.metadata.keys() == {"year", "tags", "title", "relevance_score", "deepera"}
    assert first.metadata["tags"] == NESTED["tags"]
    assert first.metadata["relevance_score"] == second.metadata["relevance_score"] == 0.9
    assert first.metadata["deepera"] == {
        "rank": 1,
        "band": "evidence",
        "reason": "scored 0.9",
        "direction": None,
        "position": "",
        "quote": "",
        "quote_span": None,
        "quote_status": "",
        "status": "scored",
        "window": None,
        "summary": "One.",
        "summary_status": "ok",
        "retrieval_rank": 1,
        "retrieval_score": 3.5,
        "citation": "T. 2020",
        "study": 1,
        "paper_status": None,
    }


@pytest.mark.parametrize(
    ("content", "shown", "beside"),
    [
        ("both", "One. More.", {"summary": "One."}),
        ("summary", "One.", {"summary": "One.", "text": "One. More."}),
        ("passage", "One. More.", {"summary": ""}),
    ],
)
def test_a_document_holds_the_passage_or_its_summary_and_no_text_twice(content, shown, beside):
    result = EvidenceReranker(backend(), content=content).rerank(QUESTION, documents())
    graph = build_graph(backend(), Settings(content=content))
    state = graph.invoke({"question": QUESTION, "passages": documents()})
    for first in (result.to_documents()[0], state["documents"][0]):
        assert first.page_content == shown
        verdict = first.metadata["deepera"]
        assert {key: verdict[key] for key in ("summary", "text") if key in verdict} == beside


def test_a_document_without_summary_holds_the_passage_once():
    result = EvidenceReranker(backend(), content="summary").rerank(QUESTION, documents())
    [record, *_] = result.kept
    again = replace(result, passages=(replace(record, summary=""),)).to_documents()[0]
    assert again.page_content == "One. More."
    assert "text" not in again.metadata["deepera"]


def test_documents_cite_their_source_and_the_id_only_if_nothing_is_known():
    given = [
        {"id": "a", "text": "One. More.", "DOI": "10.1000/x", "Title": "Moss", "Year": 2020},
        {"id": "b", "text": "Two. More."},
    ]
    first, second = EvidenceReranker(backend()).rerank(QUESTION, given).to_documents()
    assert first.metadata["deepera"]["citation"] == "Moss. 2020. doi:10.1000/x"
    assert second.metadata["deepera"]["citation"] == "b"


def test_metadata_is_json():
    for document in EvidenceReranker(backend()).rerank(QUESTION, documents()).to_documents():
        assert json.loads(json.dumps(document.metadata)) == document.metadata


def test_the_graph_gives_the_same_documents_as_the_front_door():
    given = documents()[::2]
    result = EvidenceReranker(backend()).rerank(QUESTION, given)
    state = build_graph(backend()).invoke({"question": QUESTION, "passages": given})
    assert state["documents"] == result.to_documents()
    assert [one.metadata for one in state["documents"]] == [
        one.metadata for one in result.to_documents()
    ]
