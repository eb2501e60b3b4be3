"""`deepera rerank --resume`: what it goes on with, what it refuses, and what it says."""

import errno
import json
import re

import pytest

from cli.conftest import CALLS, TEA, line
from deepera_graph.jobs import files

pytestmark = pytest.mark.full


@pytest.fixture
def source(questions):
    return questions(
        line("q1"), b"no line", *(line(n, question=f"{n}: does tea help?") for n in ("q2", "q3"))
    )


@pytest.fixture
def rerank(deepera, source, tmp_path):
    def run(*args, given=source):
        args = ("--backend", TEA, *args) if "--model" not in args else args
        return deepera("rerank", given, "-o", tmp_path / "out.jsonl", *args)

    return run


def report(folder):
    return json.loads((folder / "out.report.json").read_text(encoding="utf-8"))


def test_a_torn_last_line_is_cut_and_done_again(rerank, tmp_path):
    out = tmp_path / "out.jsonl"
    rerank()
    whole = out.read_bytes()
    out.write_bytes(whole[:-40])
    result = rerank("--resume")
    assert result.exit_code == 1
    assert out.read_bytes() == whole
    assert "3 lines written (2 of them earlier), 1 bad" in result.stderr
    assert report(tmp_path)["lines"] == {"read": 4, "written": 3, "bad": 1}
    assert report(tmp_path)["earlier"]["written"] == 2
    assert [one["line"] for one in report(tmp_path)["errors"]] == [2]


def test_a_full_disk_keeps_what_is_done_and_names_the_command_that_goes_on(
    rerank, read, tmp_path, monkeypatch
):
    add, added = files._add_line, []

    def fill(file, data):
        added.append(data)
        if len(added) > 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(file, data)

    with monkeypatch.context() as full:
        full.setattr(files, "_add_line", fill)
        result = rerank()
    assert result.exit_code != 0
    assert "No space left on device" in result.stderr
    assert f"finished lines kept in {tmp_path / 'out.jsonl'}: 1" in result.stderr
    assert re.search("go on with: .* --resume", result.stderr)
    assert len(read(tmp_path / "out.jsonl")) == 1
    assert "3 lines written (1 of them earlier), 1 bad" in rerank("--resume").stderr


def test_with_nothing_there_it_begins(rerank, read, tmp_path):
    assert rerank("--resume").exit_code == 1
    assert len(read(tmp_path / "out.jsonl")) == 3
    assert (tmp_path / "out.manifest").exists()


def test_twice_makes_no_call(rerank, server, tmp_path):
    args = ("--model", "any", "--base-url", server.base_url, "--cache", "off")
    rerank(*args)
    before = (tmp_path / "out.jsonl").read_bytes()
    rerank(*args, "--resume")
    assert server.calls == 3 * CALLS
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_after_a_limit_the_rest_is_done(rerank, server, read, tmp_path):
    args = ("--model", "any", "--base-url", server.base_url, "--max-concurrency", "1")
    rerank(*args, "--max-calls", CALLS + 1)
    assert [one["outcome"] for one in read(tmp_path / "out.jsonl")] == [
        "ok",
        "budget_stop",
        "budget_stop",
    ]
    result = rerank(*args, "--resume")  # with another limit, or none as here
    assert [one["outcome"] for one in read(tmp_path / "out.jsonl")] == ["ok", "ok", "ok"]
    assert server.calls == 3 * CALLS
    assert "(1 of them earlier)" in result.stderr


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--threshold", "0.3"), "settings.threshold was 0.8 and is 0.3"),
        (("--no-summaries",), "settings.content was 'both' and is 'passage'"),
        (("--backend", "support.scripted:other"), "cannot be"),
        (("--model", "openai:any", "--base-url", "http://localhost:1/v1"), "model was not set and"),
    ],
)
def test_another_run_is_refused_by_what_differs(rerank, tmp_path, args, problem):
    rerank()
    before = {path: path.read_bytes() for path in tmp_path.glob("out.*")}
    result = rerank(*args, "--resume")
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in tmp_path.glob("out.*")} == before


def test_another_input_is_refused(rerank, questions, tmp_path):
    rerank()
    other = questions(line("q1", question="Does tea taste well?"), name="other.jsonl")
    result = rerank("--resume", given=other)
    assert result.exit_code == 2
    assert "line 1 is not the one that" in result.stderr


def test_the_same_lines_elsewhere_are_the_same_input(rerank, source, questions, tmp_path):
    rerank()
    moved = tmp_path / "moved.jsonl"
    moved.write_bytes(source.read_bytes() + json.dumps(line("q4")).encode())
    result = rerank("--resume", given=moved)
    assert "4 lines written (3 of them earlier)" in result.stderr


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("-o", "-", "--resume"), "--resume needs a file for --out, got '-'"),
        (("-o", "/dev/null", "--resume"), "--resume needs a file for --out, got '/dev/null'"),
        (("--resume", "--overwrite"), "give --resume or --overwrite, not both"),
        (("--resume", "--dry-run"), "give --resume or --dry-run, not both"),
        (("--resume", "--report", "out.manifest"), "cannot be two of"),
    ],
)
def test_what_cannot_be_resumed_is_one_line(rerank, tmp_path, monkeypatch, args, problem):
    monkeypatch.chdir(tmp_path)
    result = rerank(*args)
    assert result.exit_code == 2
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_stdin_cannot_be_resumed(rerank):
    result = rerank("--resume", given="-")
    assert result.exit_code == 2
    assert "--resume needs a file for IN" in result.stderr


def test_without_it_an_old_manifest_is_not_replaced(rerank, tmp_path):
    (tmp_path / "out.manifest").write_text("mine", encoding="utf-8")
    result = rerank()
    assert result.exit_code == 2
    assert "out.manifest' exists; give --overwrite to replace it, or --resume" in result.stderr
    assert not (tmp_path / "out.jsonl").exists()


def test_the_manifest_says_what_ran_and_holds_no_secret(rerank, server, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-verysecret")
    rerank("--model", "any", "--base-url", server.base_url, "--api-key-env", "MY_KEY")
    ran = json.loads((tmp_path / "out.manifest").read_bytes().splitlines()[0])["ran"]
    assert ran["spec"]["base_url"] == server.base_url
    assert ran["settings"]["threshold"] == 0.8
    assert b"verysecret" not in (tmp_path / "out.manifest").read_bytes()
