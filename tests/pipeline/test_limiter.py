"""A limit that threads and event loops share."""

import asyncio
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.settings.budget import Limiter
from deepera_graph.testing import Gauge


def hold(limiter, gauge, seconds):
    with limiter, gauge.entry():
        time.sleep(seconds)


async def ahold(limiter, gauge, seconds):
    async with limiter:
        with gauge.entry():
            await asyncio.sleep(seconds)


def free_slots(limiter, n):
    """How many enter at once without waiting."""

    async def enter():
        entered = 0
        for _ in range(n + 1):
            try:
                await asyncio.wait_for(limiter.__aenter__(), 0.02)
            except TimeoutError:
                break
            entered += 1
        for _ in range(entered):
            await limiter.__aexit__(None, None, None)
        return entered

    return asyncio.run(enter())


@pytest.mark.full
@pytest.mark.parametrize("n", [1, 3, 7])
def test_threads_and_loops_together_never_exceed_the_limit(n):
    limiter, gauge = Limiter(n), Gauge()

    async def many():
        await asyncio.gather(*(ahold(limiter, gauge, 0.001) for _ in range(40)))

    with ThreadPoolExecutor(24) as pool:
        loops = [pool.submit(asyncio.run, many()) for _ in range(2)]
        threads = [pool.submit(hold, limiter, gauge, 0.001) for _ in range(80)]
        for one in [*loops, *threads]:
            one.result(30)
    assert gauge.entered == 160
    assert gauge.most == n
    assert free_slots(limiter, n) == n


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 4),
    fates=st.lists(st.tuples(st.floats(0, 0.004), st.none() | st.floats(0, 0.004)), max_size=25),
)
def test_no_turn_is_lost_when_waiters_are_cancelled(n, fates):
    limiter, gauge = Limiter(n), Gauge()

    async def run():
        tasks = [asyncio.create_task(ahold(limiter, gauge, held)) for held, _ in fates]
        for task, (_, patience) in zip(tasks, fates, strict=True):
            if patience is not None:
                asyncio.get_running_loop().call_later(patience, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
    assert gauge.most <= n
    assert free_slots(limiter, n) == n


@pytest.mark.full
def test_a_storm_of_cancellations_over_several_loops_loses_no_turn():
    limiter, gauge = Limiter(2), Gauge()

    async def impatient(seed):
        chance = random.Random(seed)
        for _ in range(60):
            with suppress(TimeoutError):
                await asyncio.wait_for(ahold(limiter, gauge, 0.0005), chance.random() * 0.003)

    def run(seed):
        async def several():
            await asyncio.gather(*(impatient(seed + n) for n in range(4)))

        asyncio.run(several())

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (0, 100, 200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert gauge.most <= 2
    assert free_slots(limiter, 2) == 2


def test_a_turn_granted_to_a_cancelled_waiter_is_passed_on():
    limiter = Limiter(1)

    async def run():
        await limiter.__aenter__()
        first = asyncio.create_task(limiter.__aenter__())
        second = asyncio.create_task(limiter.__aenter__())
        await asyncio.sleep(0)
        await limiter.__aexit__(None, None, None)  # granted to the first ...
        first.cancel()  # ... which is gone before it wakes up
        await asyncio.wait_for(second, 1)
        assert first.cancelled() or first.done()
        await limiter.__aexit__(None, None, None)

    asyncio.run(run())
    assert free_slots(limiter, 1) == 1


def test_those_who_wait_are_served_in_the_order_they_came():
    limiter, served = Limiter(1), []

    async def one(name):
        async with limiter:
            served.append(name)
            await asyncio.sleep(0)

    async def run():
        await asyncio.gather(*(one(name) for name in range(20)))

    asyncio.run(run())
    assert served == list(range(20))


def test_an_error_inside_gives_the_turn_back():
    limiter = Limiter(1)
    for _ in range(3):
        with pytest.raises(KeyError), limiter:
            raise KeyError
    assert free_slots(limiter, 1) == 1
