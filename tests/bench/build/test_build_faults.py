"""A build whose server fails now and then, and that is killed twice: the same bytes."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.build.model_script import answer
from bench.build.test_build_killed import wait_until
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]
FAULTS = (
    Reply(content="overloaded", status=500),
    Reply(content="too many", status=429),
    Reply(fault="reset"),
    Reply(content="{}", fault="half"),
)


class TenthFails:
    """A model that answers; every tenth request, drawn by its words, fails the first time."""

    def __init__(self):
        self.hit = set()

    def __call__(self, request):
        words = json.dumps(request.messages).encode()
        n = int(hashlib.sha256(words).hexdigest()[:8], 16)
        if n % 10 or n in self.hit:
            return answer(request)
        self.hit.add(n)
        return FAULTS[n // 10 % len(FAULTS)]


def build_in_a_process(server, out, corpus=()):
    command = [sys.executable, "-m", "bench.build.lake_builds", server.base_url, str(out), *corpus]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(TESTS)})


def compare_builds(tmp_path, kills, corpus=()):
    """Build with faults and kills after so many answers, and without; return the model, the files.

    The corpus, if it is not the invented one, is a file and the number of its abstracts.
    """
    model, files, addresses = TenthFails(), {}, {}
    with ChatServer(model, latency=0.02) as server:
        addresses["killed"] = server.base_url.encode()
        for n_answers in kills:
            killed = build_in_a_process(server, tmp_path / "killed", corpus)
            try:
                wait_until(lambda n=n_answers: server.answered >= n, seconds=300)
            finally:
                killed.kill()
                killed.wait()
            assert not (tmp_path / "killed" / "manifest.json").exists()
        assert build_in_a_process(server, tmp_path / "killed", corpus).wait() == 0
    with ChatServer(answer) as server:
        addresses["whole"] = server.base_url.encode()
        assert build_in_a_process(server, tmp_path / "whole", corpus).wait() == 0
    for name in ("killed", "whole"):
        folder = (tmp_path / name).rglob("*")
        files[name] = {one.name: one.read_bytes() for one in folder if one.suffix == ".jsonl"}
        manifest = (tmp_path / name / "manifest.json").read_bytes()
        files[name]["manifest.json"] = manifest.replace(addresses[name], b"the server")
    return model, files


def test_faults_that_pass_and_two_kills_change_no_byte(tmp_path):
    model, files = compare_builds(tmp_path, kills=(6, 14))
    assert model.hit
    assert len(files["whole"]) > 2
    assert files["killed"] == files["whole"]
