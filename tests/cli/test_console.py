"""How commands speak: progress, plain ASCII, and the command that goes on."""

import json
import os
import shlex
import signal
import sys
from threading import Event
from types import SimpleNamespace

import pytest

from cli.conftest import QUESTION, TEA, line
from cli.test_endings import HANGING, SLOW_JUDGE, finish, wait_for_lines
from deepera_graph.agents.journal import Journal
from deepera_graph.cli.shared.bars import Bar, describe_left, describe_progress, progress_bar
from deepera_graph.cli.shared.console import from_thread, go_on_command, speak_as
from support.manuscripts import LIBRARY, PLANTED, write_manuscript

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


@pytest.mark.parametrize(
    ("done", "total", "seconds", "shown"),
    [
        (25, 100, 60.0, "about 3 min left"),
        (1, 100, 200.0, "about 6 h left"),
        (90, 100, 90.0, "about 10 s left"),
        (100, 100, 90.0, ""),
        (5, None, 90.0, ""),
    ],
)
def test_the_rest_is_told_by_the_average_since_the_start(done, total, seconds, shown):
    assert describe_left(done, total, seconds) == shown


def test_a_bar_goes_by_the_average_though_several_things_end_at_once():
    clock = iter([0.0, 60.0, 60.1, 60.2])
    shown = []
    progress = SimpleNamespace(
        add_task=lambda *_, **__: 1, update=lambda _, **fields: shown.append(fields["left"])
    )
    bar = Bar(progress, "judging", 40, plain=False, clock=lambda: next(clock))
    for n in (1, 2, 4):
        bar.reach(n)
    assert shown == ["about 39 min left", "about 19 min left", "about 9 min left"]


@pytest.mark.parametrize(("hidden", "n_lines"), [(False, 4), (True, 0)])
def test_where_no_bar_is_shown_there_is_a_line_every_quarter_of_a_minute(capsys, hidden, n_lines):
    ticks = iter(range(0, 1000, 10))
    with progress_bar("indexing", hidden=hidden, clock=lambda: next(ticks)) as bar:
        for n in range(1, 10):
            bar.move(to=n, count=n, total=18)
    told = capsys.readouterr().err.splitlines()
    assert len(told) == n_lines
    if told:
        assert told[0] == "deepera: indexing: 2 of 18, 6.0/min, 11 %, about 3 min left"


@pytest.mark.full
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
    shown = deepera("index", source, "-l", "papers", "--path", tmp_path / "store").stderr
    assert "2 of about 2" in shown
    assert "100%" in shown


def test_a_limit_is_the_total(deepera, questions, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    source, out = questions(*(line(f"q{n}") for n in range(5))), tmp_path / "o.jsonl"
    shown = deepera("rerank", source, "-o", out, "--backend", TEA, "--limit", "2").stderr
    assert "2 of 2" in shown


def test_the_command_that_goes_on_can_be_pasted(monkeypatch):
    speak_as("deepera")  # another test may have run the other program
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
@pytest.mark.parametrize("command", ["check", "table"])
def test_a_check_or_table_that_is_interrupted_tells_how_to_go_on(
    deepera, tmp_path, monkeypatch, command
):
    put, out = Journal.put, tmp_path / "out.md"

    def interrupt(*args):
        put(*args)
        raise KeyboardInterrupt

    what = write_manuscript(PLANTED[1], tmp_path) if command == "check" else "Is wax good?"
    args = (command, what, LIBRARY, "--backend", "rules", "--quiet", "-o", out)
    monkeypatch.setattr(Journal, "put", interrupt)
    monkeypatch.setattr(sys, "argv", ["deepera", *map(str, args)])
    result = deepera(*args)
    assert result.exit_code == 130
    assert "interrupted; what is done is kept in" in result.stderr
    assert f"go on with: {shlex.join(['deepera', *map(str, args), '--resume'])}\n" in result.stderr
    monkeypatch.setattr(Journal, "put", put)
    assert deepera(*args, "--resume").exit_code in (0, 1)


@pytest.mark.full
@pytest.mark.parametrize("said", ["", "ascii"], ids=["by the locale", "by Python's variable"])
def test_a_terminal_of_ascii_is_written_to_without_accents(start, questions, said):
    env = {**ASCII, "COLUMNS": "80", "PYTHONIOENCODING": said}
    paper = questions({"text": "Café au lait … lowered fasting glucose."}, name="p.jsonl")
    code, out, err = finish(start("ask", QUESTION, paper, "--backend", TEA, env=env), 60)
    assert (code, err) == (0, "")
    assert "Cafe au lait ... lowered fasting glucose." in out
    assert out.isascii()


@pytest.mark.full
def test_json_is_utf_8_whatever_the_terminal_knows(start, questions):
    umlaut = line("q1", question="Does Käse help?", passages=["Käse lowered fasting glucose."])
    code, out, err = finish(start("rerank", questions(umlaut), "--backend", TEA, env=ASCII), 60)
    assert code == 0, err
    assert json.loads(out)["question"] == "Does Käse help?"


def test_what_comes_from_a_thread_is_the_same_and_so_is_its_error():
    def count_to_two():
        yield 1
        yield 2
        raise ValueError("no three")

    seen = []
    with pytest.raises(ValueError, match="no three"):
        seen.extend(from_thread(count_to_two()))
    assert seen == [1, 2]
    assert list(from_thread(iter("ab"))) == ["a", "b"]


@pytest.mark.full
def test_an_interrupt_does_not_wait_for_a_thread_that_hangs():
    released, ended = Event(), Event()

    def hang():
        yield 1
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(60)
        ended.set()

    with pytest.raises(KeyboardInterrupt):
        list(from_thread(hang()))
    assert not ended.is_set()
    released.set()
