"""How `deepera` ends: exit codes, what is kept, what is not printed; mostly as a process."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import tomllib

import pytest

from cli.conftest import PASSAGES, TEA, TESTS, line
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

SLOW_JUDGE = '''
"""A judge that is slow, or hangs where the text says so."""
import asyncio
import time
from dataclasses import replace
from pathlib import Path

from langchain_core.runnables import RunnableLambda

from deepera_graph import Judgement
from support.scripted import Script


def seconds(task):
    if "hang" not in task["text"]:
        return 0.05
    Path("hangs").touch()
    return 60


async def ajudge(task):
    await asyncio.sleep(seconds(task))
    return Judgement(score=0.9)


def judge(task):
    time.sleep(seconds(task))
    return Judgement(score=0.9)


def asleep():
    return replace(Script({}).backend(), judge=RunnableLambda(judge, afunc=ajudge))


def blocked():
    return replace(Script({}).backend(), judge=RunnableLambda(judge))
'''
HANGING = [{"id": "h", "text": "this one hangs"}]


def wait_for_lines(path, n):
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        if path.exists() and path.read_bytes().count(b"\n") >= n:
            return
        time.sleep(0.02)
    pytest.fail(f"{path.name} never had {n} lines")


def finish(process, seconds=30):
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("factory", ["asleep", "blocked"])
def test_an_interrupt_keeps_finished_lines_and_waits_for_nothing(
    start, questions, read, tmp_path, factory
):
    (tmp_path / "slow_judge.py").write_text(SLOW_JUDGE, encoding="utf-8")
    out = tmp_path / "out.jsonl"
    source = questions(line("q1"), line("q2"), line("q3", passages=HANGING), line("q4"))
    process = start("rerank", source, "-o", out, "--backend", f"slow_judge:{factory}")
    wait_for_lines(out, 2)
    wait_for_lines(tmp_path / "hangs", 0)
    interrupted = time.monotonic()
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert time.monotonic() - interrupted < 5
    assert {one["id"] for one in read(out)} >= {"q1", "q2"}
    assert "q3" not in {one["id"] for one in read(out)}
    assert f"interrupted; finished lines kept in {out}: {len(read(out))}" in err
    assert "Traceback" not in err
    report = json.loads((tmp_path / "out.report.json").read_text(encoding="utf-8"))
    assert report["end"] == "interrupted"


INTERRUPTED_IMPORT = """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(30)
"""
ENTRY = "import sys; from importlib.metadata import EntryPoint; sys.exit(EntryPoint(*{}).load()())"


@pytest.mark.parametrize("way", ["module", "script"])
@pytest.mark.parametrize(
    ("program", "module"), [("deepera", "deepera_graph"), ("deepera-lab", "deepera_graph.lab")]
)
def test_an_interrupt_during_imports_is_one_line(environment, tmp_path, program, module, way):
    (tmp_path / "typer.py").write_text(INTERRUPTED_IMPORT, encoding="utf-8")
    scripts = tomllib.loads((TESTS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    entry = (program, scripts["scripts"][program], "console_scripts")
    how = ["-m", module] if way == "module" else ["-c", ENTRY.format(entry)]
    before = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, *how, "--help"],
        capture_output=True, text=True, env={**environment, "PYTHONPATH": before}, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", f"{program}: interrupted\n")


@pytest.mark.parametrize("more", [(), ("--multihop",)])
def test_an_interrupt_of_ask_waits_for_no_server(start, questions, more):
    source = questions(*PASSAGES, name="papers.jsonl")
    with ChatServer(lambda _: Reply(fault="hang")) as server:
        args = ("--base-url", server.base_url, "--model", "m", *more)
        process = start("ask", "Does green tea lower glucose?", source, *args)
        limit = time.monotonic() + 30
        while not server.calls and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        code, out, err = finish(process)
    assert (code, out) == (130, "")
    assert err == "deepera: interrupted\n"


def test_an_interrupt_while_waiting_for_stdin_ends_at_once(start):
    process = start("rerank", "-", "--backend", TEA, stdin=subprocess.PIPE)
    process.stdin.write(json.dumps(line("q1")).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == "q1"
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "finished lines kept in stdout: 1" in err


def test_a_pipe_goes_through_stdin_and_stdout(start):
    process = start("rerank", "-", "--backend", TEA, stdin=subprocess.PIPE)
    raw = b"".join(json.dumps(line(f"q{n}")).encode() + b"\n" for n in range(3))
    out, err = process.communicate(raw, timeout=30)
    assert process.returncode == 0
    assert [json.loads(one)["id"] for one in out.splitlines()] == ["q0", "q1", "q2"]
    assert b"3 lines written" in err


def test_a_line_that_is_not_utf_8_leaves_code_1(deepera, questions):
    result = deepera("rerank", questions(b"\xff", line("q2")), "--backend", TEA)
    assert result.exit_code == 1
    assert json.loads(result.stdout)["id"] == "q2"
    assert "line 1: not UTF-8" in result.stderr


def test_nobody_reading_on_is_no_traceback(start, questions):
    process = start("rerank", questions(*(line(f"q{n}") for n in range(300))), "--backend", TEA)
    process.stdout.readline()
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"Traceback" not in err


def test_a_factory_is_found_in_the_current_directory(tmp_path, questions, environment):
    code = "from support.scripted import tea_backend as build\n"
    (tmp_path / "my_judges.py").write_text(code, encoding="utf-8")
    run = "import sys; sys.path.remove(''); from deepera_graph.cli.main import run; run()"
    result = subprocess.run(
        [os.sys.executable, "-c", run, "rerank", questions(line()), "--backend", "my_judges:build"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["ranking"][0]["id"] == "b"


def test_an_unreachable_server_leaves_code_3(deepera, questions, tmp_path, no_wait):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    out = tmp_path / "out.jsonl"
    result = deepera("rerank", questions(line()), "-o", out, "--model", "any", "--base-url", url)
    assert result.exit_code == 3
    assert "line 1: the server cannot be reached" in result.stderr
    assert "Traceback" not in result.stderr
    assert not out.exists()


def test_a_refused_key_leaves_code_3_and_is_not_printed(deepera, questions, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-verysecret")

    def refuse(request):
        assert request.headers["authorization"] == "Bearer sk-verysecret"
        return Reply(status=401, content="Incorrect API key provided: sk-verysecret")

    with ChatServer(refuse) as server:
        result = deepera(
            "rerank", questions(line()), "-o", tmp_path / "out.jsonl", "--model", "any",
            "--base-url", server.base_url, "--api-key-env", "MY_KEY",
        )  # fmt: skip
    assert result.exit_code == 3
    assert "refused the API key (HTTP 401)" in result.stderr
    assert "verysecret" not in result.output
    for file in tmp_path.rglob("*.json*"):
        assert b"verysecret" not in file.read_bytes()


def test_a_server_that_answers_is_called_once_a_passage(deepera, questions, server, tmp_path, read):
    out = tmp_path / "out.jsonl"
    url = server.base_url
    result = deepera(
        "rerank", questions(line()), "-o", out, "--model", "org/model:7b", "--base-url", url
    )
    assert result.exit_code == 0, result.output
    assert server.requests[0].model == "org/model:7b"
    assert server.calls == 1 + len(PASSAGES) + 1
    (ranked,) = read(out)
    assert ranked["usage"]["calls"] == server.calls
    assert [one["id"] for one in ranked["ranking"] if one["kept"]] == ["b"]
