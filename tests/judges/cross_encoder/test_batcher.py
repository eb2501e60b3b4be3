"""Batches are shared by threads and loops; failures, cancelling, forks and endings stay apart."""

import asyncio
import gc
import os
import subprocess
import sys
import time
import weakref
from concurrent.futures import CancelledError, ThreadPoolExecutor
from textwrap import dedent
from threading import Event, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.judges.cross_encoder.backend import Batcher


class Work:
    """Doubles numbers, and keeps the batches; a negative number makes its batch fail."""

    def __init__(self, seconds=0.0, gate=None):
        self.batches, self.seconds, self.gate = [], seconds, gate
        self.begun = Event()

    def __call__(self, items):
        self.batches.append(list(items))
        self.begun.set()
        if self.gate is not None:
            assert self.gate.wait(10)
        time.sleep(self.seconds)
        if any(item < 0 for item in items):
            raise ValueError(f"bad item among {len(items)}")
        return [2 * item for item in items]


def batcher_of(work, batch_size=8):
    return Batcher(work, size=abs, batch_size=batch_size)


def many(batcher, items, n_threads=16):
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(lambda item: batcher.submit(item).result(10), items))


def busy(batch_size=8):
    """A batcher at work on item 0, and what lets it go on."""
    work = Work(gate=Event())
    batcher = batcher_of(work, batch_size)
    first = batcher.submit(0)
    assert work.begun.wait(10)
    return batcher, work, first


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 9), st.integers(1, 12))
def test_everyone_gets_the_own_result_and_no_batch_is_too_large(items, batch_size, n_threads):
    work = Work()
    assert many(batcher_of(work, batch_size), items, n_threads) == [2 * item for item in items]
    assert sorted(item for batch in work.batches for item in batch) == sorted(items)
    assert all(1 <= len(batch) <= batch_size for batch in work.batches)


def test_what_waits_is_cut_by_size():
    batcher, work, first = busy(batch_size=3)
    futures = [batcher.submit(item) for item in (5, 90, 7, 80, 6, 70)]
    work.gate.set()
    assert [one.result(10) for one in (first, *futures)] == [0, 10, 180, 14, 160, 12, 140]
    assert work.batches == [[0], [90, 80, 70], [7, 6, 5]]


def test_threads_share_batches():
    work = Work(seconds=0.01)
    many(batcher_of(work, 32), range(320), n_threads=64)
    assert len(work.batches) <= 40


def test_one_loop_shares_batches():
    work = Work(seconds=0.01)
    batcher = batcher_of(work, 32)

    async def all_of_them():
        return await asyncio.gather(
            *(asyncio.wrap_future(batcher.submit(item)) for item in range(320))
        )

    assert asyncio.run(all_of_them()) == [2 * item for item in range(320)]
    assert len(work.batches) <= 20


def test_a_lone_item_hardly_waits():
    batcher = batcher_of(Work())
    batcher.submit(1).result(10)
    waits = []
    for item in range(50):
        start = time.perf_counter()
        batcher.submit(item).result(10)
        waits.append(time.perf_counter() - start)
    assert sorted(waits)[10] < 0.003


def test_a_bad_item_fails_alone():
    batcher, work, _ = busy()
    futures = [batcher.submit(item) for item in (1, -2, 3)]
    work.gate.set()
    assert (futures[0].result(10), futures[2].result(10)) == (2, 6)
    with pytest.raises(ValueError, match="bad item among 1"):
        futures[1].result(10)
    assert work.batches == [[0], [3, -2, 1], [3], [-2], [1]]


def test_a_wrong_number_of_results_is_a_failure():
    batcher = Batcher(lambda items: [1, 2, 3], size=abs, batch_size=4)
    with pytest.raises(ValueError, match="3 results for 1 items"):
        batcher.submit(1).result(10)


def test_what_is_cancelled_while_it_waits_is_not_done():
    batcher, work, first = busy()
    second, third = batcher.submit(2), batcher.submit(3)
    assert second.cancel()
    assert not first.cancel()
    work.gate.set()
    assert third.result(10) == 6
    assert work.batches == [[0], [3]]


async def test_a_cancelled_task_takes_its_item_along():
    batcher, work, _ = busy()
    tasks = [asyncio.ensure_future(asyncio.wrap_future(batcher.submit(item))) for item in (1, 2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.sleep(0)
    work.gate.set()
    assert await tasks[1] == 4
    assert work.batches == [[0], [2]]


def test_several_loops_at_once_get_their_own():
    batcher = batcher_of(Work(seconds=0.002), 16)

    async def some(start):
        found = (asyncio.wrap_future(batcher.submit(n)) for n in range(start, start + 40))
        return await asyncio.gather(*found)

    found = {}
    threads = [
        Thread(target=lambda at=at: found.update({at: asyncio.run(some(at))}))
        for at in (0, 100, 200)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == {at: [2 * n for n in range(at, at + 40)] for at in (0, 100, 200)}


def test_a_loop_that_is_gone_does_not_stop_the_others():
    batcher, work, _ = busy()

    async def leave():
        asyncio.wrap_future(batcher.submit(1))

    asyncio.run(leave())
    later = batcher.submit(2)
    work.gate.set()
    assert later.result(10) == 4


def test_the_thread_ends_when_there_is_nothing_to_do_and_begins_again(monkeypatch):
    monkeypatch.setattr("deepera_graph.judges.cross_encoder.backend.LINGER", 0.01)
    batcher = batcher_of(Work())
    for item in (1, 2):
        assert batcher.submit(item).result(10) == 2 * item
        while batcher._line._server is not None:
            time.sleep(0.005)
    ref = weakref.ref(batcher)
    del batcher
    for _ in range(100):
        gc.collect()
        if ref() is None:
            break
        time.sleep(0.01)
    assert ref() is None


def test_closed_means_no_more_and_what_waited_is_cancelled():
    batcher, work, first = busy()
    waiting = batcher.submit(5)
    closer = Thread(target=batcher.close)
    closer.start()
    with pytest.raises(CancelledError):
        waiting.result(10)
    work.gate.set()
    closer.join(10)
    assert first.result(0) == 0
    with pytest.raises(RuntimeError, match="is ending"):
        batcher.submit(1)


def fresh(code):
    return subprocess.run(
        [sys.executable, "-c", dedent(code)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_anew_even_if_the_parent_was_at_work():
    done = fresh("""
        import os, time
        from threading import Event
        from deepera_graph.judges.cross_encoder.backend import Batcher
        gate, begun, renewed = Event(), Event(), []
        def work(items):
            begun.set()
            gate.wait(0 if renewed else 10)
            return [2 * one for one in items]
        batcher = Batcher(work, size=abs, batch_size=4, renew=lambda: renewed.append(1))
        first = batcher.submit(1)
        begun.wait(10)
        waiting = batcher.submit(2)
        child = os.fork()
        if child == 0:
            os._exit(0 if renewed and batcher.submit(21).result(10) == 42 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        gate.set()
        print(first.result(10), waiting.result(10))
    """)
    assert (done.stdout, done.returncode) == ("2 4\n", 0)


def test_a_program_that_ends_in_the_middle_ends():
    done = fresh("""
        import time
        from deepera_graph.judges.cross_encoder.backend import Batcher
        def work(items):
            time.sleep(0.3)
            print("done", len(items), flush=True)
            return items
        batcher = Batcher(work, size=abs, batch_size=2)
        batcher.submit(1)
        time.sleep(0.1)
        futures = [batcher.submit(n) for n in range(9)]
    """)
    assert (done.stdout, done.stderr, done.returncode) == ("done 1\n", "", 0)
