"""`deepera-lab study` and `deepera-lab bench report`, as a user gives them."""

import json

import pytest
from typer.testing import CliRunner

from bench.lakes import write_jsonl
from deepera_graph.lab.cli.main import STUDIES as NAMED
from deepera_graph.lab.cli.main import app
from deepera_graph.lab.studies.base import StudyConfig
from deepera_graph.lab.studies.run import STUDIES
from support.openai_server import ChatServer

QUICK = ("--resamples", "20", "--quiet")


def deepera(*args):
    return CliRunner().invoke(app, [*map(str, args)])


@pytest.fixture
def data(tmp_path):
    passages = [
        {"id": "a", "text": "Effects of liming on trout are debated."},
        {"id": "b", "text": "Liming raised the number of trout by 12% in 40 lakes."},
        {"id": "c", "text": "Boats are painted in spring."},
    ]
    question = {"question": "Does liming raise the number of trout?", "golden": ["b"]}
    rows = [{"id": f"q{n}", **question, "passages": passages} for n in range(3)]
    return write_jsonl(tmp_path / "lakes.jsonl", rows)


def test_the_studies_of_the_command_line_are_those_of_the_table():
    assert (*STUDIES, "all") == NAMED


@pytest.mark.full
def test_the_help_teaches_all_studies_and_their_defaults():
    listed = " ".join(deepera("study", "--help").stdout.split())
    for name in STUDIES:
        assert f" {name} " in listed
    text = " ".join(deepera("study", "threshold", "--help").stdout.split())
    settings = StudyConfig()
    for values in (settings.thresholds, settings.cutoffs):
        assert ",".join(f"{one:g}" for one in values) in "".join(text.split("│")).replace(" ", "")
    assert settings.shares == (0.1, 0.5, 1.0)
    assert "deepera-lab study threshold" in text
    assert "130 interrupted" in text


@pytest.mark.full
@pytest.mark.parametrize("name", ["main", "threshold", "cost"])
def test_a_study_writes_its_files_and_shows_its_table(data, tmp_path, name):
    result = deepera("study", name, data, "--resamples", "20", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert f"# {STUDIES[name].title}" in result.stdout
    written = {one.name for one in (tmp_path / "out").iterdir()}
    assert {f"{name}.md", f"{name}.csv", "manifest.json"} <= written


@pytest.mark.full
def test_json_has_the_numbers(data):
    args = ("threshold", data, "--rankers", "deepera:local", "--thresholds", "0,1", "--json")
    (plain,) = json.loads(deepera("study", *args, *QUICK).stdout)
    (table,) = plain["tables"]
    assert [row[2] for row in table["rows"]] == [0, 1]
    assert table["rows"][0][3]["mean"] == 3
    assert table["rows"][1][5]["mean"] is None


@pytest.mark.full
def test_chat_models_can_answer_and_judge_the_answers(data, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    answered = [{**row, "answer": "by 12%"} for row in rows]
    write_jsonl(data, answered)

    def reply(request):
        if request.body["model"] == "writer":
            return {"answer": "By 12%."}
        return {"reason": "the same", "score": 5}

    with ChatServer(reply) as server:
        models = (
            f"--generator=writer@{server.base_url}",
            f"--answer-judge=marker@{server.base_url}",
        )
        args = ("main", data, "--rankers", "bm25", "--json", *models, *QUICK)
        first = deepera("study", *args)
        n_calls = len(server.requests)
        again = deepera("study", *args)
        assert first.exit_code == 0, first.output
        assert len(server.requests) == n_calls
    assert again.stdout == first.stdout
    table = json.loads(first.stdout)[0]["tables"][0]
    names = [one["name"] for one in table["columns"]]
    (row,) = table["rows"]
    assert row[names.index("F1")]["mean"] == 1
    assert row[names.index("LFS")]["mean"] == 5


@pytest.mark.full
def test_all_studies_go_into_folders_of_their_names(data, tmp_path):
    args = ("--rankers", "bm25", "--out", tmp_path / "out", *QUICK)
    result = deepera("study", "all", data, *args)
    assert result.exit_code == 0, result.output
    assert {one.name for one in (tmp_path / "out").iterdir()} == set(STUDIES)
    assert "Left out" in (tmp_path / "out" / "threshold" / "threshold.md").read_text()
    again = deepera("study", "all", data, *args)
    assert again.exit_code == 2
    assert "exists; give --overwrite" in again.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("args", "says"),
    [
        pytest.param(("treshold", "{data}"), "treshold", id="unknown-study"),
        pytest.param(("threshold", "nowhere.jsonl"), "nowhere.jsonl", id="no-such-file"),
        pytest.param(("threshold", "{data}", "--rankers", "bm25"), "filters", id="no-filter"),
        pytest.param(("threshold", "{data}", "--thresholds", "0.9,0.1"), "rise", id="falling"),
        pytest.param(("threshold", "{data}", "--thresholds", "x"), "got 'x'", id="no-number"),
        pytest.param(("threshold", "{data}", "--thresholds", "others=1"), "got 'others=1'",
                     id="no-intent"),
        pytest.param(("threshold", "{data}", "--thresholds", "calibrated:none.json:0.5"),
                     "none.json", id="no-curve"),
        pytest.param(("threshold", "{data}", "--tune-share", "1"), "between 0 and 1, got 1.0",
                     id="nothing-held-out"),
        pytest.param(("main", "{data}", "--max-failed-share", "2"), "got 2.0", id="failed-share"),
        pytest.param(("cutoff", "{data}", "--cutoffs", "0"), "got [0]", id="out-of-range"),
        pytest.param(("threshold", "{data}", "--threshold", "3"), "got 3.0", id="no-share"),
        pytest.param(("cost", "{data}", "--answer-judge", "llm"), "--generator", id="no-answers"),
        pytest.param(("main", "{data}", "--base", "x"), "base must be one of", id="no-base"),
        pytest.param(("main", "{data}", "--metrics", "hit"), "metric must be", id="no-metric"),
        pytest.param(("embeddings", "{data}", "--embeddings", "x"), "embeddings must be",
                     id="no-embeddings"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_the_bad_value(data, args, says):
    result = deepera("study", *(one.format(data=data) for one in args), *QUICK)
    assert result.exit_code == 2
    assert says in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_empty_file_is_named(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    result = deepera("study", "main", tmp_path / "empty.jsonl", *QUICK)
    assert result.exit_code == 2
    assert "empty" in result.stderr


@pytest.mark.full
def test_a_report_is_one_file_that_is_not_replaced_unasked(data, tmp_path):
    page = tmp_path / "report.html"
    args = ("bench", "report", data, "--out", page, "--studies", "main,cost", "--resamples", "20")
    result = deepera(*args)
    assert result.exit_code == 0, result.output
    assert "<h2>Efficiency</h2>" in page.read_text()
    again = deepera(*args)
    assert again.exit_code == 2
    assert "exists; give --overwrite" in again.stderr


def test_a_report_that_is_named_like_a_folder_is_refused(data, tmp_path):
    result = deepera("bench", "report", data, "--out", tmp_path / "rep", "--studies", "cost")
    assert result.exit_code == 2
    assert f"--out is a page, e.g. {tmp_path / 'rep'}.html, got" in " ".join(result.stderr.split())


def test_a_report_of_an_unknown_study_is_refused(data, tmp_path):
    result = deepera("bench", "report", data, "--out", tmp_path / "r.html", "--studies", "mian")
    assert result.exit_code == 2
    assert "'mian'" in result.stderr


@pytest.mark.full
def test_a_report_tells_programs_where_the_page_is(data, tmp_path):
    page = tmp_path / "r.html"
    args = (
        "bench",
        "report",
        data,
        "--out",
        page,
        "--studies",
        "cost",
        "--resamples",
        "20",
        "--json",
    )
    assert json.loads(deepera(*args).stdout) == {"page": str(page), "studies": ["cost"]}
