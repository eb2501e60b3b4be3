"""Several processes on one file, some of them killed."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from deepera_graph.stores.judgements import JudgementCache

pytestmark = pytest.mark.full

HERE = Path(__file__).parent
WRITER = HERE / "write_entries.py"
FORKER = HERE / "fork_with_open_cache.py"


def start(path, prefix, n):
    return subprocess.Popen(
        [sys.executable, str(WRITER), str(path), prefix, str(n)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_processes_that_start_at_once_lose_nothing(path):
    writers = [start(path, f"p{number}", 300) for number in range(5)]
    for writer in writers:
        _, problems = writer.communicate(timeout=60)
        assert (writer.returncode, problems) == (0, "")
    with JudgementCache(path) as cache:
        assert cache.stats().entries == {f"p{number}": 300 for number in range(5)}


def test_processes_see_what_others_put(path):
    with JudgementCache(path) as cache:
        cache.open()
        writer = start(path, "p", 20)
        assert writer.communicate(timeout=60)[1] == ""
        assert cache.get("p-19")["score"] == 19 / 7


def test_clearing_and_pruning_do_not_disturb_a_reader(path):
    with JudgementCache(path) as cache, JudgementCache(path) as other:
        for number in range(200):
            cache.put(str(number), "judge", {"reason": "r" * 300})
        assert other.get("7")
        cache.prune(max_bytes=20_000)
        assert cache.clear() > 0
        assert other.get("7") is None
        assert other.put("7", "judge", {"reason": "again"})
        assert cache.get("7") == {"reason": "again"}


def test_a_killed_writer_leaves_a_readable_file_with_all_it_had_put(path):
    for attempt in range(5):
        writer = start(path, f"w{attempt}", 0)
        first = writer.stdout.readline()
        time.sleep(random.Random(attempt).uniform(0, 0.1))
        writer.send_signal(signal.SIGKILL)
        said = [first, *writer.stdout]
        writer.stderr.close()
        writer.stdout.close()
        assert writer.wait(timeout=10) == -signal.SIGKILL
        keys = [line.strip() for line in said if line.endswith("\n")]
        with JudgementCache(path) as cache:
            lost = [key for key in keys if cache.get(key) is None]
        assert lost == []
        with closing(sqlite3.connect(path)) as check:
            assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_may_fork_while_it_uses_a_cache(path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(FORKER), str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with JudgementCache(path) as cache:
        assert cache.stats().n_entries == 21


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs a list of open files")
def test_a_forked_child_inherits_no_open_file(path):
    program = (
        "import os, sys\nfrom pathlib import Path\n"
        "from deepera_graph.stores.judgements import JudgementCache\n"
        "cache = JudgementCache(Path(sys.argv[1])).open()\n"
        "def n_open(): return sum(sys.argv[1] in os.readlink(f) for f in map("
        "'/proc/self/fd/{}'.format, os.listdir('/proc/self/fd')) if os.path.islink(f))\n"
        "before, child = n_open(), os.fork()\n"
        "if child == 0: os._exit(n_open())\n"
        "print(before > 0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("True 0\n", "")


def test_an_unclosed_cache_ends_quietly(path):
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from deepera_graph.stores.judgements import JudgementCache\n"
        "cache = JudgementCache(Path(sys.argv[1])); cache.put('k', 'judge', {'score': 1.0})\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [file.name for file in path.parent.iterdir()] == [path.name]
