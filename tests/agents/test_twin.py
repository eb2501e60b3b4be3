"""Work that is written once, for sync and async."""

import asyncio
from contextlib import contextmanager

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph.agents.twin import TwinRunnable, ado, ask, call, call_in_thread, do


class Doubles(TwinRunnable[list[int], list[int]]):
    """Asks another for the double of each number; of what fails it keeps 0."""

    def __init__(self, other):
        self.other, self.ended = other, 0

    def work(self, task, config):
        found = []
        with self._counted():
            for one in task:
                try:
                    found.append((yield ask(self.other, one, config)))
                except ValueError:
                    found.append(0)
        return found

    @contextmanager
    def _counted(self):
        try:
            yield
        finally:
            self.ended += 1


def double(number):
    if number < 0:
        raise ValueError("below 0")
    return 2 * number


def test_sync_and_async_do_the_same_work():
    doubles = Doubles(RunnableLambda(double))
    assert doubles.invoke([1, -1, 3]) == [2, 0, 6]
    assert asyncio.run(doubles.ainvoke([1, -1, 3])) == [2, 0, 6]


@pytest.mark.parametrize("run", [do, lambda work: asyncio.run(ado(work))])
def test_an_error_that_the_work_does_not_heed_ends_it(run):
    def fail(number):
        raise KeyError(number)

    doubles = Doubles(RunnableLambda(fail))
    with pytest.raises(KeyError):
        run(doubles.work([1], None))
    assert doubles.ended == 1


@pytest.mark.parametrize("run", [do, lambda work: asyncio.run(ado(work))])
def test_work_may_be_part_of_other_work_and_needs_no_call(run):
    def inner(number):
        return (yield call_in_thread(double, number)) if number else 0

    def outer():
        first = yield from inner(0)
        second = yield from inner(2)
        return [first, second]

    assert run(outer()) == [0, 4]


def test_each_form_of_a_call_is_used_where_it_belongs():
    async def adouble(number):
        return -double(number)

    def work():
        return (yield call(double, adouble, 2))

    assert do(work()) == 4
    assert asyncio.run(ado(work())) == -4
