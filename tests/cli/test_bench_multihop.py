"""`deepera-lab study multihop`."""

import json

import pytest

from deepera_graph.lab.studies.multihop.methods import MEANINGS, METHODS
from support.hops import QUESTIONS, write_hops

QUICK = ("--embeddings", "support.hops:CountingEmbeddings", "--resamples", "50")


@pytest.fixture
def multihop(deepera_lab, tmp_path):
    folder = write_hops(tmp_path / "lamps")

    def run(*args, folder=folder):
        return deepera_lab("study", "multihop", folder, *QUICK, *args)

    return run


@pytest.mark.full
def test_the_table_has_a_row_a_method(multihop):
    result = multihop()
    assert result.exit_code == 0, result.output
    for method in ("bm25", "nar-rrf", "expansion", "steps-expansion"):
        assert f"| lamps | {method} |" in result.stdout


def test_every_method_has_an_explanation():
    assert list(MEANINGS) == list(METHODS)


def test_json_has_the_numbers(multihop):
    found = json.loads(multihop("--methods", "bm25,expansion", "--budget", "5", "--json").stdout)
    (table,) = found["tables"]
    names = [one["name"] for one in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    assert [row["method"] for row in rows] == ["bm25", "expansion"]
    assert all(row["read"] <= 5 for row in rows)
    assert rows[1]["all@5"]["mean"] == 1.0


def test_results_are_written_with_a_manifest(multihop, tmp_path):
    out = tmp_path / "out"
    assert multihop("--methods", "bm25", "--out", out).exit_code == 0
    assert {one.name for one in out.iterdir()} == {"multihop.md", "methods.csv", "manifest.json"}
    again = multihop("--methods", "bm25", "--out", out)
    assert (again.exit_code, "give --overwrite" in again.stderr) == (2, True)


def test_steps_that_the_data_has_not_are_told(multihop, tmp_path):
    plain = write_hops(
        tmp_path / "plain", questions=[{**one, "subquestions": []} for one in QUESTIONS]
    )
    result = multihop("--methods", "steps-rrf", folder=plain)
    assert result.exit_code == 2
    assert "steps-rrf needs sub-questions, and plain has none" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--methods", "bm26"), "got 'bm26'"),
        (("--baseline", "best"), "got 'best'"),
        (("--budget", "0"), "--budget"),
    ],
)
def test_values_out_of_range_are_usage_errors(multihop, args, message):
    result = multihop(*args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_folder_without_data_is_named(multihop, tmp_path):
    (tmp_path / "empty").mkdir()
    nowhere, empty = (multihop(folder=tmp_path / name) for name in ("nowhere", "empty"))
    assert (nowhere.exit_code, empty.exit_code) == (2, 2)
    assert "nowhere is not a data set: no such file or folder" in nowhere.stderr
    assert "passages.jsonl: no such file; a data set has" in empty.stderr
