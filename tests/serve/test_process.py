"""`deepera serve` as a process: its options, its end under load, several workers."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
from langchain_core.documents import Document

from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.serve.config import KEYS
from support.serving import PASSAGES, QUESTION, wait_until_ready

ASKED = {"question": QUESTION, "passages": [*PASSAGES]}
KEY = "a-long-key-1"


@contextmanager
def serving(*options, **variables):
    """Run the command; yield its process and a client."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deepera_graph", "serve", "--port", str(port), *options]
    environment = {**os.environ, **variables}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            wait_until_ready(client)
            yield process, client
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.slow
def test_sigterm_under_load_ends_with_every_answer_given(tmp_path):
    with serving("--backend", "rules", "--path", str(tmp_path)) as (process, client):
        answered, refused = [], []

        def ask(number):
            try:
                told = client.post("/v1/evidence", json=ASKED)
            except httpx.TransportError as error:
                refused.append(type(error))
            else:
                answered.append(told.status_code)
                if len(answered) == 20:
                    process.send_signal(signal.SIGTERM)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(ask, range(200)))
        assert process.wait(20) == 0
        assert set(answered) == {200}
        assert len(answered) + len(refused) == 200
        # a connection that is kept may be closed between two requests, never within an answer
        assert set(refused) <= {httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError}
        said = process.stderr.read()
    assert said.count("POST /v1/evidence 200") == len(answered)
    assert "Traceback" not in said
    assert QUESTION not in said
    assert said.splitlines()[-1] == "deepera: stopped"


@pytest.mark.slow
def test_workers_share_an_address_their_counters_and_a_folder(tmp_path):
    with open_store("wax", path=tmp_path) as store:
        store.add([Document(id="a", page_content=PASSAGES[1])])
    options = ("--backend", "rules", "--workers", "2", "--path", str(tmp_path))
    with serving(*options, **{KEYS: KEY}) as (process, client):
        client.headers["Authorization"] = f"Bearer {KEY}"
        for _ in range(6):
            with httpx.Client(base_url=client.base_url, headers=client.headers) as another:
                assert another.post("/v1/evidence", json=ASKED).status_code == 200
        counted = 'deepera_requests_total{method="POST",path="/v1/evidence",status="200"} 6.0'
        deadline = time.monotonic() + 30
        while counted not in client.get("/metrics").text:  # it counts once an answer is sent
            assert time.monotonic() < deadline
            time.sleep(0.05)
        asked = {"question": QUESTION, "library": "wax"}

        def search(_):
            with httpx.Client(
                base_url=client.base_url, headers=client.headers, timeout=30, trust_env=False
            ) as own:
                return own.post("/v1/evidence", json=asked).json()["kept"]

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(search, range(8))) == [["a"]] * 8
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert process.stderr.read().splitlines()[-1] == "deepera: stopped"


@pytest.mark.slow
def test_an_interrupted_server_says_so_in_one_line_and_a_quiet_one_nothing(tmp_path):
    options = ("--backend", "rules", "--path", str(tmp_path))
    for more, said in ((), ["deepera: interrupted"]), (("--quiet",), []):
        with serving(*options, *more) as (process, _):
            process.send_signal(signal.SIGTERM if more else signal.SIGINT)
            assert process.wait(30) == (0 if more else 130)
            assert process.stderr.read().splitlines()[-1:] == said


@pytest.mark.slow
def test_an_interrupt_ends_a_server_that_a_shell_began_in_the_background_as_any_other(tmp_path):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as the process inherits it
    try:
        with serving("--backend", "rules", "--path", str(tmp_path)) as (process, _):
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read().splitlines()[-1:] == ["deepera: interrupted"]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_stuck_judge_does_not_keep_the_process(tmp_path):
    module = tmp_path / "stuck.py"
    module.write_text(
        "import time\n"
        "from dataclasses import replace\n"
        "from deepera_graph import local_backend\n"
        "from deepera_graph.judges.base import Judge\n"
        "class Stuck(Judge):\n"
        "    def judge(self, batch, config=None):\n"
        "        time.sleep(600)\n"
        "def build():\n"
        "    return replace(local_backend('rules'), name='stuck', judge=Stuck(), spec=None)\n"
    )
    options = ("--backend", "stuck:build", "--timeout", "0.5")
    with serving(*options, PYTHONPATH=str(tmp_path)) as (process, client):
        assert client.post("/v1/evidence", json=ASKED).status_code == 504
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
