"""Laws of sliding windows."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from deepera_graph.judges.llm.listwise import read_order
from deepera_graph.lab.rankers.llm import slide, sliding_windows

pytestmark = pytest.mark.full

QUICK = settings(max_examples=80, deadline=None)
SIZES = st.integers(2, 25).flatmap(lambda size: st.tuples(st.just(size), st.integers(1, size - 1)))


def slid(items, sort, **options):
    async def told(seen):
        return sort(seen)

    return asyncio.run(slide(items, told, **options))


def best_first(seen):
    """The order of a model that is always right: the greater the better."""
    return sorted(range(1, len(seen) + 1), key=lambda place: -seen[place - 1])


def test_windows_of_20_move_by_10_from_the_end_to_the_front():
    assert sliding_windows(30) == [(10, 30), (0, 20)]
    assert sliding_windows(100)[0] == (80, 100)
    assert len(sliding_windows(100)) == 9


def test_a_list_that_fits_no_whole_number_of_steps_is_covered():
    assert sliding_windows(25) == [(5, 25), (0, 15)]
    assert sliding_windows(21) == [(1, 21), (0, 11)]


def test_a_list_up_to_a_window_is_one_window():
    assert sliding_windows(20) == [(0, 20)]
    assert sliding_windows(3) == [(0, 3)]
    assert sliding_windows(0) == []


@QUICK
@given(st.integers(1, 120), SIZES)
def test_windows_cover_everything_and_overlap_by_what_travels_on(n, sizes):
    size, step = sizes
    spans = sliding_windows(n, size=size, step=step)
    assert spans[0][1] == n
    assert spans[-1][0] == 0
    assert all(0 < end - start <= size for start, end in spans)
    for (start, _), (_, next_end) in pairwise(spans):
        assert next_end - start == size - step


@QUICK
@given(st.lists(st.integers(-3, 40)), st.integers(0, 30))
def test_whatever_is_said_a_permutation_comes_out(order, n):
    said = read_order(order, n)
    made = said.order
    assert sorted(made) == list(range(1, n + 1))
    assert len(order) == n - said.n_missing + said.n_repeated + said.n_invented
    named = [place for place in dict.fromkeys(order) if 1 <= place <= n]
    assert made[: len(named)] == named
    assert made[len(named) :] == sorted(made[len(named) :])


@QUICK
@given(st.permutations(range(1, 12)))
def test_a_permutation_is_left_as_it_is(order):
    assert read_order(order, 11) == (order, 0, 0, 0)


@QUICK
@given(st.integers(0, 60), SIZES, st.randoms(use_true_random=False))
def test_nothing_is_lost_and_nothing_is_doubled(n, sizes, random):
    size, step = sizes
    babble = slid(
        list(range(n)),
        lambda seen: random.choices(range(-2, len(seen) + 5), k=random.randint(0, 30)),
        size=size,
        step=step,
    )
    assert sorted(babble) == list(range(n))


@QUICK
@given(st.integers(0, 80).flatmap(lambda n: st.permutations(range(n))), SIZES)
def test_a_model_that_is_right_brings_the_best_size_minus_step_to_the_front(items, sizes):
    size, step = sizes
    ranked = slid(items, best_first, size=size, step=step)
    exact = len(items) if len(items) <= size else size - step
    assert ranked[:exact] == sorted(items, reverse=True)[:exact]


@QUICK
@given(st.permutations(range(40)))
def test_the_best_of_all_comes_first_from_anywhere(items):
    assume(items[-1] != 39)
    assert slid(items, best_first, size=4, step=3)[0] == 39


def test_one_pass_promises_no_more_than_that():
    ranked = slid(list(range(30)), best_first)
    assert ranked[:10] == list(range(29, 19, -1))
    assert ranked != sorted(ranked, reverse=True)


def test_a_window_of_one_is_not_sorted():
    assert slid([7], lambda seen: 1 / 0) == [7]
