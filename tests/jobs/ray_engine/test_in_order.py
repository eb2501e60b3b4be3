"""Results in the order of tasks, whatever engine does them."""

import asyncio

import pytest

from deepera_graph.jobs.ray import AHEAD, LocalEngine, in_order


async def nap(seconds):
    await asyncio.sleep(seconds)
    if seconds == 0.003:
        raise ValueError("three")
    return seconds


def test_results_come_in_order_though_the_first_task_takes_longest():
    naps = [0.02, 0.0, 0.01, 0.0]
    with LocalEngine(nap, 4) as engine:
        assert list(in_order(engine, naps)) == naps


def test_only_so_many_tasks_are_read_ahead():
    read = []
    with LocalEngine(nap, 3) as engine:
        results = in_order(engine, (read.append(n) or 0.0 for n in range(1000)))
        for n_taken in range(1, 20):
            next(results)
            assert len(read) < n_taken + AHEAD * 3


def test_an_error_of_reading_comes_after_the_results_before_it():
    def tasks():
        yield from (0.002, 0.0)
        raise OSError("torn")

    done = []
    with LocalEngine(nap, 2) as engine, pytest.raises(OSError, match="torn"):
        done.extend(one for one in in_order(engine, tasks()) if done.append(one))
    assert done == [0.002, 0.0]


def test_an_error_of_a_task_comes_at_its_place():
    results = []
    with LocalEngine(nap, 2) as engine, pytest.raises(ValueError, match="three"):
        results.extend(one for one in in_order(engine, [0.01, 0.003, 0.0]) if results.append(one))
    assert results == [0.01]
