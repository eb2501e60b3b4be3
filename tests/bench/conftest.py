"""Folders of invented data."""

import pytest

from bench.lakes import write_jsonl


@pytest.fixture
def beir_folder(tmp_path):
    folder = tmp_path / "lakes_beir"
    write_jsonl(
        folder / "corpus.jsonl",
        [
            {"_id": "d1", "title": "Trout", "text": "Trout grow slowly in cold lakes."},
            {"_id": "d2", "title": "Algae", "text": "Algae bloom when phosphorus enters a lake."},
            {"_id": "d3", "title": "Boats", "text": "Boats are painted in spring."},
        ],
    )
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": "7", "text": "What makes algae bloom?"},
            {"_id": "8", "text": "Do trout grow in cold water?"},
            {"_id": "9", "text": "Never judged"},
        ],
    )
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n7\td2\t2\n8\td1\t1\n8\td3\t1\n8\td2\t0\n"
    )
    return folder


@pytest.fixture
def article_folder(tmp_path):
    folder = tmp_path / "lake_trials"
    write_jsonl(
        folder / "passages.jsonl",
        [
            {"id": "A-0", "article": "A", "section": "METHODS", "text": "Two ponds were limed."},
            {"id": "B-0", "article": "B", "section": "RESULTS", "text": "Pike ate fewer perch."},
            {"id": "A-1", "article": "A", "section": "RESULTS", "text": "The pH rose to 7.1."},
        ],
    )
    write_jsonl(folder / "articles.jsonl", [{"id": "A", "title": "Liming of ponds"}])
    write_jsonl(
        folder / "questions.jsonl",
        [
            {
                "id": "1", "article": "A", "split": "train", "intervention": " lime ",
                "comparator": "no lime", "outcome": "pH.", "label": "increased", "golden": ["A-1"],
            },
            {"id": "2", "article": "B", "split": "val", "question": "Who ate?", "golden": ["B-0"]},
        ],
    )  # fmt: skip
    return folder
