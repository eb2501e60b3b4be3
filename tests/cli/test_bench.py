"""`deepera-lab bench table`."""

import json

import pytest

from cli.conftest import PASSAGES, line

QUICK = ("--resamples", "50")


@pytest.fixture
def data(questions):
    return questions(*(line(f"q{n}", golden=["b"]) for n in range(4)), name="tea.jsonl")


@pytest.fixture
def table(deepera_lab, data):
    def run(*args):
        return deepera_lab("bench", "table", data, *QUICK, *args)

    return run


@pytest.mark.full
def test_the_table_has_a_row_a_ranker(table):
    result = table("--rankers", "first-stage,random,bm25,deepera:local")
    assert result.exit_code == 0, result.output
    for name in ("random", "BM25"):
        assert f"| tea | {name} |" in result.stdout


def read(result):
    """The rows of each table of a result in JSON, by the names of its columns."""
    tables = json.loads(result.stdout)["tables"]
    return {
        one["name"]: [
            dict(zip((each["name"] for each in one["columns"]), row, strict=True))
            for row in one["rows"]
        ]
        for one in tables
    }


def metrics_of(result):
    row = read(result)["results"][0]
    return [name for name, cell in row.items() if isinstance(cell, dict)]


def test_json_has_the_numbers(table):
    result = table("--rankers", "first-stage,oracle", "--metrics", "HitRate@1,MRR", "--json")
    assert metrics_of(result) == ["HitRate@1", "MRR"]
    assert f"{len(PASSAGES)}.0 candidates" in json.loads(result.stdout)["findings"][0]
    first, oracle = (row["HitRate@1"]["mean"] for row in read(result)["results"])
    assert (first, oracle) == (0.0, 1.0)


def test_ndcg_is_measured_unless_other_metrics_are_named(table):
    result = table("--rankers", "first-stage", "--json")
    assert metrics_of(result) == ["HitRate@1", "HitRate@3", "MRR", "nDCG@10"]


def test_a_baseline_is_compared_with(table):
    result = table("--rankers", "bm25,random", "--baseline", "bm25", "--json")
    assert {one["ranker"] for one in read(result)["differences"]} == {"random"}


def test_quiet_shows_the_table_if_it_is_written_nowhere(table):
    assert table("--rankers", "bm25", "--quiet").stdout.startswith("# Rankers compared")


def test_results_are_written_and_not_replaced_unasked(table, tmp_path):
    args = ("--rankers", "bm25", "--limit", "2", "--out", tmp_path / "out", "--quiet")
    assert table(*args).output == ""
    assert {one.name for one in (tmp_path / "out").iterdir()} == {
        "results.md", "results.csv", "overview.csv", "manifest.json",
    }  # fmt: skip
    again = table(*args)
    assert again.exit_code == 2
    assert "exists; give --overwrite" in again.stderr
    assert table(*args, "--overwrite").exit_code == 0


def test_rankings_can_be_kept(table, tmp_path):
    args = ("--rankers", "bm25", "--keep", tmp_path / "kept")
    first = table(*args)
    assert any((tmp_path / "kept").rglob("*.jsonl"))
    assert table(*args).stdout == first.stdout


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--rankers", "best"), "got 'best'"),
        (("--rankers", "bm25,"), "--rankers must be names with commas between them"),
        (("--rankers", "dense:nowhere:build"), "cannot be imported"),
        (("--metrics", "Luck@1"), "got 'Luck@1'"),
        (("--baseline", "nobody"), "nobody"),
        (("--limit", "0"), "0"),
    ],
)
def test_options_that_cannot_be_are_one_line(table, args, problem):
    result = table(*args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr


def test_what_is_no_data_set_is_one_line(deepera_lab, tmp_path):
    result = deepera_lab("bench", "table", tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "is not a data set" in result.stderr


@pytest.mark.full
def test_the_default_metrics_are_those_in_the_help(table, deepera_lab):
    shown = "".join(deepera_lab("bench", "table", "--help").stdout.replace("│", " ").split())
    measured = metrics_of(table("--rankers", "first-stage", "--json"))
    assert f"[default:({','.join(measured)})]" in shown


def test_a_ranking_that_exists_is_scored(deepera_lab, tmp_path):
    files = {
        "bm25.trec": "1 Q0 a 1 9 bm25\n1 Q0 b 2 8 bm25\n",
        "ours.trec": "1 Q0 a 1 0.2 deepera\n1 Q0 b 2 0.9 deepera\n",
        "queries.tsv": "qid\tquery\n1\tDoes tea keep people awake?\n",
        "corpus.jsonl": '{"id": "a", "text": "Tea grows."}\n{"id": "b", "text": "It does."}\n',
        "qrels.txt": "1 0 b 1\n",
    }
    paths = {name: tmp_path / name for name in files}
    for name, text in files.items():
        paths[name].write_text(text)
    runs = [path for name, path in paths.items() if name.endswith(".trec")]
    how = ("--rankers", "first-stage", "--metrics", "MRR", "--json", *QUICK)
    places = ("--queries", paths["queries.tsv"], "--corpus", paths["corpus.jsonl"])
    result = deepera_lab("bench", "table", *runs, *places, "--qrels", paths["qrels.txt"], *how)
    rows = {row["data set"]: row["MRR"]["mean"] for row in read(result)["results"]}
    assert rows == {"bm25": 0.5, "ours": 1.0}
    result = deepera_lab("bench", "table", *runs, *places, *how)
    assert (result.exit_code, "go together, with TREC runs" in result.stderr) == (2, True)
