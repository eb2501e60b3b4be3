"""Bad input to `deepera rerank`: one line of words, the right exit code, no traceback."""

import json

import pytest

from cli.conftest import PASSAGES, TEA, line


@pytest.fixture
def rerank(deepera):
    def run(source, *args):
        return deepera("rerank", source, *(args or ("--backend", TEA)))

    return run


BAD_LINES = {
    "empty question": (line(question=""), "question must be a text"),
    "long question": (line(question="a" * 10_001), "at most 10000 characters, got 10001"),
    "passage without text": (line(passages=[{"id": "a"}]), "passage 1 has no text"),
    "duplicate passage ids": (line(passages=PASSAGES * 2), "'a' is used twice"),
    "duplicate line ids": (line("first"), "'first' is used twice, first in line 1"),
    "not JSON": (b"{oops", "not JSON"),
    "not UTF-8": (b'{"question": "\xff"}', "not UTF-8"),
    "not an object": (b'"text"', "must be a JSON object"),
}


@pytest.mark.full
@pytest.mark.parametrize(("bad", "problem"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_and_the_rest_runs(rerank, questions, tmp_path, read, bad, problem):
    out = tmp_path / "out.jsonl"
    source = questions(line("first"), bad, line("last"))
    result = rerank(source, "--backend", TEA, "-o", out)
    assert result.exit_code == 1
    assert [one["id"] for one in read(out)] == ["first", "last"]
    assert result.stderr.startswith("deepera: line 2: ")
    assert problem in result.stderr
    (error,) = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))["errors"]
    assert error["line"] == 2
    assert problem in error["error"]


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize("name", ["papers.jsonl", "papers.csv"])
def test_a_corpus_is_recognised_at_once_and_leaves_nothing_behind(
    rerank, questions, tmp_path, name, dry
):
    lines = [{"title": "T", "abstract": "a"}] * 300 if name.endswith("l") else [b"title,abstract"]
    source = questions(*lines, *[b"T,a"] * 300, name=name)
    result = rerank(source, "--backend", TEA, "-o", tmp_path / "out.jsonl", *dry)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "has no question or query, found title, abstract; and 19 more" in result.stderr
    assert "This looks like a corpus: see deepera index" in result.stderr
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_many_bad_lines_are_not_told_one_by_one(rerank, questions, tmp_path):
    out = tmp_path / "out.jsonl"
    result = rerank(questions(line(), *[b"{oops"] * 300), "--backend", TEA, "-o", out)
    told = [one for one in result.stderr.splitlines() if "not JSON" in one]
    assert len(told) == 5
    assert "deepera: and 295 more bad lines" in result.stderr
    assert len(json.loads((tmp_path / "out.report.json").read_text())["errors"]) == 300


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv", "in.json"])
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_an_empty_file_leaves_code_1_and_no_files_as_other_empty_input_does(
    rerank, questions, tmp_path, name, dry
):
    result = rerank(questions(name=name), "--backend", TEA, "-o", tmp_path / "out.jsonl", *dry)
    assert result.exit_code == 1
    told = f"deepera: '{tmp_path / name}': holds no question, so there is nothing to rerank\n"
    assert (result.stdout, result.stderr) == ("", told)
    assert [one.name for one in tmp_path.iterdir()] == [name]


@pytest.mark.full
def test_a_very_long_passage_is_read_in_windows(rerank, questions):
    passages = [{"id": "long", "text": "Hills. " * 28_000 + "Green tea lowered fasting glucose."}]
    result = rerank(questions(line(passages=passages)))
    (ranked,) = json.loads(result.stdout)["ranking"]
    assert result.exit_code == 0
    assert ranked["score"] == 0.93


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--threshold", "1.2"), "threshold must be in [0, 1], got 1.2"),
        (("--top-n", "0"), "top_n must be a whole number >= 1, got 0"),
        (("--max-concurrency", "0"), "max_concurrency must be a whole number >= 1, got 0"),
        (("--backend", "locl"), "got 'locl'; did you mean 'local'?"),
        (("--preset", "carefull"), "got 'carefull'; did you mean 'careful'?"),
        (
            ("--mode", "group"),
            "'group' is not one of 'separate', 'fused', 'grouped'; did you mean ",
        ),
        (("--backend", "nowhere.judges:build"), "'nowhere.judges:build' cannot be imported"),
        (("--backend", "support.scripted:nobody"), "cannot be imported"),
        (("--backend", "json:dumps"), "--backend json:dumps cannot be built: TypeError"),
        (("--backend", "builtins:dict"), "must return a Backend, got {}"),
        (("--backend", "llm"), "--backend llm needs --model"),
        (("--backend", "local", "--model", "openai:x"), "--model goes with --backend llm"),
        (("--model", "x"), "--model must be 'provider:model'"),
        (("--base-url", "http://127.0.0.1:1"), "--base-url needs --model"),
        (("--model", "x", "--base-url", "127.0.0.1:1"), "--base-url must start with http"),
    ],
)
def test_a_setting_out_of_range_is_one_line(rerank, questions, args, problem):
    result = rerank(questions(line()), *args)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert problem in result.stderr
    assert result.stdout == ""


def test_a_missing_file_is_an_error(rerank, tmp_path):
    result = rerank(tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "no such file" in result.stderr


def test_a_folder_is_no_file(rerank, tmp_path):
    assert rerank(tmp_path).exit_code == 2


@pytest.mark.parametrize("existing", ["out.jsonl", "out.report.json"])
def test_an_existing_file_is_not_replaced(rerank, questions, tmp_path, existing):
    (tmp_path / existing).write_bytes(b"precious")
    result = rerank(questions(line()), "--backend", TEA, "-o", tmp_path / "out.jsonl")
    assert result.exit_code == 2
    assert f"{existing}' exists; give --overwrite" in result.stderr
    assert (tmp_path / existing).read_bytes() == b"precious"


def test_a_wrong_setting_leaves_an_old_file_alone(rerank, questions, tmp_path):
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"precious")
    rerank(questions(line()), "--threshold", "7", "-o", out, "--overwrite")
    assert out.read_bytes() == b"precious"


def test_the_input_is_never_the_output(rerank, questions):
    source = questions(line())
    result = rerank(source, "--backend", TEA, "-o", source, "--overwrite")
    assert result.exit_code == 2
    assert "is the input" in result.stderr
    assert source.stat().st_size > 0


def test_a_missing_folder_for_the_output_is_an_error(rerank, questions, tmp_path):
    result = rerank(questions(line()), "--backend", TEA, "-o", tmp_path / "no" / "out.jsonl")
    assert result.exit_code == 2
    assert "cannot be written: no such folder" in result.stderr


@pytest.mark.parametrize("name", ["out.jsonl.gz", "out.csv", "out.html"])
def test_json_lines_are_not_written_under_the_name_of_another_form(
    rerank, questions, tmp_path, name
):
    result = rerank(questions(line()), "--backend", TEA, "-o", tmp_path / name)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "e.g. out.jsonl, got" in result.stderr
    assert not (tmp_path / name).exists()


def test_a_missing_key_names_its_variable(rerank, questions, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    result = rerank(questions(line()), "--model", "openai:any")
    assert result.exit_code == 2
    assert "OPENAI_API_KEY" in result.stderr


def test_a_key_given_in_place_of_its_variable_is_not_printed(rerank, questions):
    args = ("--model", "openai:any", "--api-key-env", "sk-verysecret123")
    result = rerank(questions(line()), *args)
    assert result.exit_code == 2
    assert "verysecret" not in result.output
    assert "name of an environment variable" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("--top-n", "ten", "Invalid value for '--top-n': must be a whole number, got 'ten'"),
        (
            "--max-seconds",
            "soon",
            "Invalid value for '--max-seconds': must be a number, got 'soon'",
        ),
        ("--order", "best", "Invalid value for '--order': 'best' is not one of "),
    ],
)
def test_a_value_of_the_wrong_kind_is_told_in_plain_words(
    rerank, questions, option, value, problem
):
    result = rerank(questions(1), option, value)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stderr.count(repr(value)) == 1
    assert "Value error" not in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Does wax keep apples firm", 'deepera ask "Does wax keep apples firm"'),
        ("Does wax keep apples in.jsonl", 'deepera ask "Does wax keep apples" in.jsonl'),
        ("Does wax keep it --answer", 'deepera ask "Does wax keep it"'),
        ("Does wax", 'deepera ask "Does wax ..."'),
        ("Does wax -l papers", 'deepera ask "Does wax ..."'),
        ("tea --out x.csv", "it writes to stdout: --format csv > evidence.csv"),
        ("tea -o x.csv", "it writes to stdout: --format csv > evidence.csv"),
    ],
)
def test_ask_says_how_a_question_is_quoted_and_a_file_written(
    deepera, questions, tmp_path, monkeypatch, words, told
):
    questions(*PASSAGES)
    monkeypatch.chdir(tmp_path)
    result = deepera("ask", *words.split())
    assert result.exit_code == 2
    assert f"{told} (see" in result.stderr or result.stderr.endswith(f"{told}\n")
    assert result.stderr.count("\n") == 1


def test_a_mistyped_file_beside_a_question_of_one_word_is_told_alone(deepera):
    result = deepera("ask", "glucose", "none.jsonl")
    assert result.exit_code == 2
    assert "no such file: 'none.jsonl'" in result.stderr
    assert "quotes" not in result.stderr
