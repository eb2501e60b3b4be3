"""The engine on Ray: order, lost workers, and who can reach it."""

import os
import re
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from deepera_graph.errors import BackendError, SettingsError, WorkerError
from deepera_graph.jobs.ray import RayEngine
from support.tasks import ALWAYS, ONCE, Doubling

# Not imported here: Ray is set up before it is imported.
NO_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
pytestmark = [pytest.mark.slow, NO_RAY]
_LISTENING = "0A"
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")


@pytest.fixture
def work(tmp_path):
    return Doubling(tmp_path)


def test_every_task_gets_its_own_result_or_error(work):
    with RayEngine(work, n_workers=2) as engine:
        futures = [engine.start(number) for number in range(20)]
        with pytest.raises(SettingsError, match="no thirteen"):
            futures.pop(13).result(60)
        assert [future.result(60) for future in futures] == [2 * n for n in range(20) if n != 13]


def test_a_task_over_which_every_worker_is_lost_fails_alone_and_others_lose_nothing(work):
    numbers = [0, 1, ONCE, 2, ALWAYS, 3, 4, 5]
    with RayEngine(work, n_workers=2) as engine:
        futures = {number: engine.start(number) for number in numbers}
        with pytest.raises(WorkerError, match="3 workers were lost over it"):
            futures.pop(ALWAYS).result(60)
        assert {n: future.result(60) for n, future in futures.items()} == {
            n: 2 * n for n in futures
        }


def test_a_worker_that_cannot_get_ready_says_why(tmp_path):
    with (
        pytest.raises(SettingsError, match="no key at place"),
        RayEngine(Doubling(tmp_path, broken=True), n_workers=2),
    ):
        pass


def test_it_listens_on_the_loopback_alone_and_leaves_nothing_behind(work):
    with RayEngine(work, n_workers=1) as engine:
        engine.start(1).result(60)
        begun = [number for number in _below(os.getpid()) if number != os.getpid()]
        addresses = _listening([os.getpid(), *begun])
        assert addresses
        assert {address for address in addresses if address not in _LOOPBACK} == set()
    assert [number for number in begun if Path(f"/proc/{number}/exe").exists()] == []


def test_a_cluster_that_is_not_there_is_no_long_wait(work):
    with (
        pytest.raises(BackendError, match=r"cannot reach Ray at '127.0.0.1:1'"),
        RayEngine(work, n_workers=1, address="127.0.0.1:1"),
    ):
        pass


def _below(root):
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        found = re.search(r"\) \S (\d+)", _text(folder / "stat"))
        parents[int(folder.name)] = int(found.group(1)) if found else 0
    found = [root]
    for number in found:
        found.extend(child for child, parent in parents.items() if parent == number)
    return found


def _listening(numbers):
    """Addresses, in the kernel's hexadecimal, on which processes listen."""
    links = chain.from_iterable(Path(f"/proc/{number}/fd").glob("*") for number in numbers)
    sockets = {re.sub(r"\D", "", _target(link)) for link in links if "socket" in _target(link)}
    rows = [
        row.split()
        for name in ("tcp", "tcp6")
        for row in _text(Path("/proc/net", name)).splitlines()
    ]
    return [row[1].partition(":")[0] for row in rows if row[3] == _LISTENING and row[9] in sockets]


def _target(link):
    try:
        return str(link.readlink())
    except OSError:
        return ""


def _text(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
