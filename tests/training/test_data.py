"""Pools from files and folders."""

import json

import pytest

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.training.lessons.pools import (
    GOLDEN,
    OTHER_PAPER,
    find_known_sources,
    read_pools,
    select_trainable,
)
from support.pools import instance_lines, pool, write_lines


def texts(one, label):
    return {passage.text for passage in one.passages if passage.label == label}


def test_what_bm25_finds_and_nobody_judged_golden_is_a_hard_negative(beir):
    first, _ = read_pools([beir], n_candidates=2)
    assert texts(first, 1) == {"Copper roofs turn green in the rain."}
    assert texts(first, 0) == {"Rain fell on copper roofs in wet summers."}
    assert [one.kind for one in first.passages] == [GOLDEN, OTHER_PAPER]
    assert first.passages[0].title == "Roofs"


def test_golden_documents_that_bm25_missed_are_added_to_train_on(beir):
    _, second = read_pools([beir], n_candidates=2)
    assert len(second.passages) == 3
    assert second.passages[-1].text == "Chimneys blacken walls."
    assert (second.n_golden, second.golden_outside) == (2, 0)


def test_golden_documents_that_bm25_missed_are_only_counted_to_measure(beir):
    _, second = read_pools([beir], n_candidates=2, adds_golden=False)
    assert len(second.passages) == 2
    assert (second.n_golden, second.golden_outside) == (2, 1)


def test_passages_of_an_article_have_their_section_as_kind_and_no_title(tmp_path):
    rows = [("a-0", "METHODS", "We counted lamps."), ("a-1", "RESULTS", "Nine lamps shone.")]
    passages = [dict(zip(("id", "section", "text"), row, strict=True)) for row in rows]
    folder = tmp_path / "harbour"
    write_lines(folder / "passages.jsonl", [{**one, "article": "a"} for one in passages])
    write_lines(folder / "articles.jsonl", [{"id": "a", "title": "Lamps of the harbour"}])
    asked = [{"id": f"q{n}", "article": "a", "golden": ["a-1"]} for n in (1, 2)]
    questions = ["How many lamps shone?", "Did lamps shine?"]
    write_lines(
        folder / "questions.jsonl",
        [{**one, "question": text} for one, text in zip(asked, questions, strict=True)],
    )
    pools = read_pools([folder])
    assert [(one.kind, one.label, one.title) for one in pools[0].passages] == [
        ("METHODS", 0, ""),
        (GOLDEN, 1, ""),
    ]
    assert pools[0].group == pools[1].group


def test_known_sets_are_found_in_one_folder_and_two_are_for_measuring_alone(tmp_path, beir):
    instance = {
        "id": "q",
        "question": "Do roofs turn green?",
        "contexts": [
            {"id": "a", "text": "They turned green.", "is_golden": True},
            {"id": "b", "text": "We asked.", "is_distractor": True, "distractor_type": "aims"},
            {"id": "c", "text": "Lamps shone."},
        ],
    }
    folder = tmp_path / "sets"
    for name in ("base", "natural"):
        write_lines(folder / "pubmedqa_dev" / f"{name}.jsonl", [instance])
    (folder / "scifact").mkdir()
    for name in ("corpus.jsonl", "queries.jsonl", "qrels"):
        (folder / "scifact" / name).symlink_to(beir / name)
    assert list(find_known_sources(folder)) == ["base", "natural", "scifact_train", "scifact_test"]
    assert find_known_sources(folder)["scifact_test"].weight == 0
    pools = read_pools([folder], sets=("base", "natural", "scifact_train"))
    assert [one.set for one in pools] == ["base", "natural", "scifact_train", "scifact_train"]
    assert [one.kind for one in pools[0].passages] == [GOLDEN, "aims", OTHER_PAPER]
    assert pools[0].group == pools[1].group != pools[2].group


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="empty-file"),
        pytest.param(b"{oops\n", "line 1: not JSON", id="garbage"),
        pytest.param(
            json.dumps({"id": "q", "question": "Why?", "contexts": [{"id": "a", "text": "So."}]}),
            "no question has a golden passage",
            id="question-without-golden",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, content, message):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DatasetError, match=message) as caught:
        read_pools([path])
    assert "bad" in str(caught.value)


def test_a_set_that_nothing_answers_can_be_measured_on(tmp_path):
    row = {"id": "q", "question": "Why?", "contexts": [{"id": "a", "text": "So."}]}
    (tmp_path / "none.jsonl").write_text(json.dumps(row))
    [pool] = read_pools([tmp_path / "none.jsonl"], adds_golden=False)
    assert pool.n_golden == 0


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"nowhere is not a data set"):
        read_pools([tmp_path / "nowhere"])


def test_two_sets_of_one_name_are_refused(lines, tmp_path):
    other = write_lines(tmp_path / "deep" / lines.name, instance_lines(2))
    with pytest.raises(SettingsError, match=r"two data sets are named 'lines'"):
        read_pools([lines, other])


def test_an_unknown_set_is_refused(lines):
    with pytest.raises(SettingsError, match="must be one of lines, got 'line'"):
        read_pools([lines], sets=("line",))


def test_pools_that_tell_nothing_apart_cannot_be_trained_on():
    assert select_trainable([pool("a", [1, 0]), pool("b", [1, 0], weight=0)]) == [pool("a", [1, 0])]
    with pytest.raises(InputError, match="nothing to train on"):
        select_trainable([pool("a", [1, 1]), pool("b", [0, 0])])


@pytest.mark.parametrize(
    ("labels", "fields", "message"),
    [
        ([], {}, "has no passage"),
        ([2], {}, "label must be 0 or 1, got 2"),
        ([1], {"weight": -1.0}, "must be >= 0, got -1.0"),
    ],
)
def test_a_pool_that_cannot_be_is_refused(labels, fields, message):
    with pytest.raises(InputError, match=message):
        pool("a", labels, **fields)
