import json

import pytest

from deepera_graph.backends.local.count_terms import count_terms
from deepera_graph.backends.local.count_terms import main as count
from deepera_graph.backends.local.fit import fit_cues, main
from deepera_graph.backends.local.logistic import fit_logistic, logistic
from deepera_graph.text.words import stem


@pytest.fixture
def instance(question, passages):
    kinds = {"aim": True, "methods": True, "background": True, "elsewhere": False, "result": False}
    return {
        "question": question,
        "contexts": [
            {"text": passages[kind], "is_golden": kind == "result", "is_distractor": look_alike}
            for kind, look_alike in kinds.items()
        ],
    }


def test_a_logistic_fit_finds_the_odds():
    rows = [(0.0,)] * 4 + [(1.0,)] * 4
    labels = [True, False, False, False, True, True, True, False]
    intercept, weight = fit_logistic(rows, labels, ridge=1e-9)
    assert logistic(intercept) == pytest.approx(0.25)
    assert logistic(intercept + weight) == pytest.approx(0.75)


def test_a_share_counts_like_a_repetition():
    rows, labels = [(0.0,), (1.0,), (1.0,), (0.0,)], [True, True, False, False]
    twice = fit_logistic([*rows, rows[0]], [*labels, labels[0]])
    assert fit_logistic(rows, labels, [2, 1, 1, 1]) == pytest.approx(twice)


def test_the_logistic_function_bears_large_numbers():
    assert logistic(1e9) <= 1
    assert logistic(-1e9) >= 0


def test_cues_of_results_get_the_higher_weights(instance):
    weights = fit_cues([[instance]])
    assert weights["percentage"] > 0 > weights["method"]


def test_the_command_writes_all_weights(instance, tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "out.json"
    source.write_text(json.dumps(instance) + "\n", encoding="utf-8")
    main(["--cues", str(source), "--measures", str(source), "-o", str(target)])
    weights = json.loads(target.read_text(encoding="utf-8"))
    assert set(weights) == {"cues", "measures"}
    assert "strength" in weights["measures"]


def test_terms_are_counted_once_a_document_and_documents_once():
    table = count_terms(["Ice and ice.", "Ice and ice.", "Ice melts 3 times"])
    assert table == {"documents": 2, "counts": {"ice": 2, "melt": 1, "tim": 1}}


def test_the_count_command_reads_texts_and_contexts(instance, tmp_path):
    source, target = tmp_path / "in.jsonl", tmp_path / "counts.json"
    lines = [json.dumps(instance), json.dumps({"text": "Coffee grows."})]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    count([str(source), "-o", str(target), "--least", "2", "--source", "invented"])
    table = json.loads(target.read_text(encoding="utf-8"))
    assert table["source"] == "invented"
    assert table["documents"] == 6
    assert table["counts"][stem("coffee")] == 5
