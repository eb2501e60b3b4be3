"""How commands speak: progress, plain ASCII, and the command that goes on."""

import json
import signal
import sys

import pytest

from cli.conftest import TEA, line
from cli.test_endings import HANGING, SLOW_JUDGE, finish, wait_for_lines
from deepera_graph.cli.console import describe_progress, go_on_command

ASCII = {
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "ascii",
}


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((57, 1140, 100_000, 36.0), "57 of about 5000, 1.6/s"),
        ((3, 3, 10, 2.0), "3 of 10, 1.5/s"),
        ((1, 1, 10, 120.0), "1 of 10, 0.5/min"),
        ((7, None, None, 1.0), "7, 7.0/s"),
        ((0, None, None, 0.0), "0"),
    ],
)
def test_progress_has_number_total_and_rate(given, shown):
    assert describe_progress(*given) == shown


def test_a_terminal_is_shown_the_percentage_and_the_estimated_total(
    deepera, questions, tmp_path, monkeypatch
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    source = questions(line("q1"), line("q2"))
    shown = deepera("rerank", source, "-o", tmp_path / "o.jsonl", "--backend", TEA).stderr
    assert "100%" in shown
    assert "2 of about 2" in shown


def test_indexing_shows_how_much_of_the_files_is_read(deepera, questions, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    source = questions({"text": "Tea cooled."}, {"text": "Tea grew."}, name="papers.jsonl")
    shown = deepera("index", source, "-c", "papers", "--path", tmp_path / "store").stderr
    assert "2 of about 2" in shown
    assert "100%" in shown


def test_a_limit_is_the_total(deepera, questions, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    source, out = questions(*(line(f"q{n}") for n in range(5))), tmp_path / "o.jsonl"
    shown = deepera("rerank", source, "-o", out, "--backend", TEA, "--limit", "2").stderr
    assert "2 of 2" in shown


def test_the_command_that_goes_on_can_be_pasted(monkeypatch):
    given = ["deepera", "rerank", "my questions.jsonl", "-o", "out.jsonl", "--overwrite"]
    monkeypatch.setattr(sys, "argv", given)
    again = go_on_command("--resume", without=["--overwrite"])
    assert again == "deepera rerank 'my questions.jsonl' -o out.jsonl --resume"
    monkeypatch.setattr(sys, "argv", again.replace("'", "").split())
    assert go_on_command("--resume").count("--resume") == 1


@pytest.mark.full
def test_after_an_interrupt_the_command_that_goes_on_is_told(start, questions, tmp_path):
    (tmp_path / "slow_judge.py").write_text(SLOW_JUDGE, encoding="utf-8")
    out, source = tmp_path / "out.jsonl", questions(line("q1"), line("q2", passages=HANGING))
    args = ("rerank", source, "-o", out, "--backend", "slow_judge:asleep")
    process = start(*args)
    wait_for_lines(out, 1)
    process.send_signal(signal.SIGINT)
    _, _, err = finish(process)
    command = f"deepera {' '.join(map(str, args))} --resume"
    assert f"go on with: {command}\n" in err


@pytest.mark.full
@pytest.mark.parametrize("encoding", [{}, {"PYTHONIOENCODING": "ascii"}])
def test_an_ascii_terminal_is_written_to_in_ascii(start, encoding):
    env = {**ASCII, "COLUMNS": "80", "PYTHONIOENCODING": "", **encoding}
    code, out, err = finish(start("demo", "--question", "q01", env=env), 60)
    assert (code, err) == (0, "")
    assert out.isascii()
    assert "..." in out


@pytest.mark.full
def test_json_is_utf_8_whatever_the_terminal_knows(start, questions):
    umlaut = line("q1", question="Does Käse help?", passages=["Käse lowered fasting glucose."])
    code, out, err = finish(start("rerank", questions(umlaut), "--backend", TEA, env=ASCII), 60)
    assert code == 0, err
    assert json.loads(out)["question"] == "Does Käse help?"
