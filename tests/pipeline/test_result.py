"""Results: counts, round trips and views."""

import json
import pickle
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest

from deepera_graph import EvidenceReranker, RerankResult, Usage
from deepera_graph.result import RankedPassage
from deepera_graph.testing import judged, scripted_backend

QUESTION = "Does <b>tea</b> lower glucose?"


@pytest.fixture(scope="module")
def result():
    scores = {"Tea & milk. Yes.": 0.9, "Tea alone.": 0.3, "Bad.": RuntimeError("<broke>")}
    long = "Nothing here. " * 30 + "Found it."
    backend = scripted_backend(
        lambda task: (
            judged(scores[task["text"]])
            if task["text"] in scores
            else judged(0.95 if "Found" in task["text"] else 0.1, quote="Found it.")
        )
    )
    reranker = EvidenceReranker(backend, max_passage_chars=200, max_failed_share=0.5, answer=True)
    passages = [
        {"id": "<a>", "text": "Tea & milk. Yes.", "metadata": {"n": [1]}, "score": 2},
        *list(scores)[1:],
        {"id": "long", "text": long},
    ]
    return reranker.rerank(QUESTION, passages)


def test_every_passage_is_in_exactly_one_part(result):
    parts = [*result.kept, *result.dropped, *result.failed]
    assert sorted(one.id for one in parts) == sorted(one.id for one in result.passages)
    assert [one.id for one in result.kept] == ["long", "<a>"]
    assert [one.id for one in result.dropped] == ["2"]
    assert [one.id for one in result.failed] == ["3"]


def test_a_long_passage_is_flagged_and_its_window_and_quote_point_into_it(result):
    long = result.kept[0]
    assert long.windowed
    assert long.text[slice(*long.window)].endswith("Found it.")
    assert long.text[slice(*long.quote_span)] == "Found it."
    assert not any(one.windowed or one.window for one in result.passages[1:])


def test_a_result_survives_json(result):
    again = RerankResult.from_json(result.to_json())
    assert again == result
    assert [type(one.window) for one in again.kept] == [tuple, type(None)]
    assert again.to_documents() == result.to_documents()


def test_a_result_survives_a_dict_and_pickle(result):
    assert RerankResult.from_dict(result.to_dict()) == result
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_result_of_another_format_is_refused(result):
    with pytest.raises(ValueError, match="format must be 1, got 99"):
        RerankResult.from_dict({**result.to_dict(), "format": 99})


def test_fields_of_a_later_version_are_ignored(result):
    plain = result.to_dict()
    plain["passages"][0]["later"] = plain["later"] = 1
    assert RerankResult.from_dict(plain) == result


def test_the_manifest_names_backend_settings_and_versions(result):
    manifest = result.manifest
    assert (manifest["backend"], manifest["model"]) == ("scripted", "scripted")
    assert manifest["settings"]["threshold"] == 0.8
    assert {"deepera-graph", "langgraph", "langchain-core", "python"} <= manifest["versions"].keys()
    json.dumps(dict(manifest))


def test_usage_and_time_are_there_for_every_stage(result):
    assert result.usage.keys() == {"intent", "score", "summarize", "answer"}
    stages = {"intent", "score", "select", "summarize", "answer", "total"}
    assert result.seconds.keys() == stages
    assert sum(result.seconds[stage] for stage in stages - {"total"}) <= result.seconds["total"]
    assert isinstance(result.total_usage, Usage)


def test_the_repr_is_one_readable_line(result):
    assert repr(result) == (
        "<RerankResult ok: 2 kept, 1 dropped, 1 failed; best long=0.95, <a>=0.90; "
        "'Does <b>tea</b> lower glucose?'>"
    )


def test_a_kept_score_of_zero_shows_in_the_repr():
    result = EvidenceReranker(scripted_backend({"a": 0.0}), threshold=0).rerank("Which?", ["a"])
    assert "best 1=0.00" in repr(result)


def test_the_notebook_view_escapes_everything(result):
    html = result._repr_html_()
    assert "<b>tea</b>" not in html
    assert "Does &lt;b&gt;tea&lt;/b&gt;" in html
    assert "&lt;a&gt;" in html
    assert "&lt;broke&gt;" in html
    assert "Tea &amp; milk." in html
    assert "<script" not in html


def test_the_notebook_view_counts_what_it_does_not_show():
    backend = scripted_backend(lambda task: judged(0.1))
    html = EvidenceReranker(backend).rerank("Which?", [f"t{n}" for n in range(12)])._repr_html_()
    assert "and 7 more dropped" in html


def test_passages_cannot_be_changed(result):
    with pytest.raises(AttributeError):
        result.passages[0].score = 1.0
    assert replace(result.passages[0], score=0.5).score == 0.5
    assert isinstance(result.passages[0], RankedPassage)


def test_an_empty_result_is_a_result():
    result = EvidenceReranker(scripted_backend({})).rerank("Which?", [])
    assert (result.outcome, result.passages, result.to_documents()) == ("nothing_retrieved", (), [])
    assert RerankResult.from_json(result.to_json()) == result
    assert "0 kept, 0 dropped, 0 failed" in repr(result)
    assert result._repr_html_().startswith("<div>")
    assert result.backend_failure is None


def test_metadata_that_json_has_no_form_for_is_written_as_text():
    metadata = {"published": date(2020, 5, 17), "file": Path("a/b.pdf")}
    passage = {"id": "a", "text": "Tea lowered glucose by 4%.", "metadata": metadata}
    again = RerankResult.from_json(
        EvidenceReranker("local").rerank("Does tea lower glucose?", [passage]).to_json()
    )
    assert again.passages[0].metadata == {
        "published": "2020-05-17",
        "file": "a/b.pdf",
    }


def test_the_outcome_over_filtered_of_earlier_versions_is_read_as_no_evidence(result):
    plain = {**result.to_dict(), "outcome": "over_filtered"}
    assert RerankResult.from_dict(plain).outcome == "no_evidence"


def test_a_dict_of_a_result_is_plain_json_data():
    numpy = pytest.importorskip("numpy")
    metadata = {
        "read": datetime(2020, 5, 17, 12, 30),
        "score": numpy.float32(0.5),
        "n": numpy.int64(3),
        "vector": numpy.array([1.0, 2.0]),
        "gap": float("nan"),
        "raw": b"\xff",
    }
    passage = {"id": "a", "text": "Tea lowered glucose by 4%.", "metadata": metadata}
    plain = EvidenceReranker(scripted_backend({})).rerank("Which?", [passage]).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["passages"][0]["metadata"] == {
        "read": "2020-05-17T12:30:00", "score": 0.5, "n": 3, "vector": [1.0, 2.0], "gap": None,
        "raw": "_w==",
    }  # fmt: skip
