"""The loop of neighbourhood-aware retrieval: traces worked out by hand, and laws."""

import asyncio
import math
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.agents.twin import ado, as_work
from deepera_graph.errors import SettingsError
from deepera_graph.multihop.agent.adaptive import AdaptiveOptions, adapt, search_adaptively

pytestmark = pytest.mark.full

FIRST = ["d1", "d2", "d3", "d4"]
SCORES = {
    "d1": 0.9, "d2": 0.2, "d3": 0.4, "d4": 0.1, "d5": 0.95, "d6": 0.3, "d7": 0.8, "d8": 0.05,
}  # fmt: skip
NEAR = {
    "d1": ("d5", "d6"), "d2": ("d8", "d1"), "d3": ("d7", "d8"), "d4": ("d2", "d3"),
    "d5": ("d7", "d1"), "d6": ("d5", "d1"), "d7": ("d5", "d3"), "d8": ("d2", "d4"),
}  # fmt: skip


def trace(result):
    """Batches as `R d1 d2`, `F d5`, with the pool by the iteration's parity."""
    iterations = {one.id: one.iteration for one in (*result.passages, *result.unscored)}
    return [f"{'RF'[iterations[batch[0]] % 2]} {' '.join(batch)}" for batch in result.batches]


def ranking(result):
    return [(one.id, round(one.score, 6)) for one in result.passages]


def score(question, ids):
    return [SCORES[name] for name in ids]


def run(first=FIRST, scores=SCORES, near=NEAR, **options):
    return search_adaptively(
        "q", first, near.__getitem__, lambda _, ids: [scores[name] for name in ids], **options
    )


def divide_by(*divisors):
    """Divide the scores of one batch after the other, as uncertain answers have it."""
    left = list(divisors)

    def rescore(question, ids, scores):
        n_meanings = left.pop(0)
        return [one / n_meanings for one in scores]

    return rescore


def test_fx4_vanilla():
    result = run(budget=6, batch_size=2)
    assert trace(result) == ["R d1 d2", "F d5 d6", "R d3 d4"]
    assert ranking(result) == [
        ("d5", 0.95), ("d1", 0.9), ("d3", 0.4), ("d6", 0.3), ("d2", 0.2), ("d4", 0.1),
    ]  # fmt: skip


def test_fx4_with_uncertain_answers():
    result = run(budget=6, batch_size=2, rescore=divide_by(1, 2, 4))
    assert ranking(result) == [
        ("d1", 0.9), ("d5", 0.475), ("d2", 0.2), ("d6", 0.15), ("d3", 0.1), ("d4", 0.025),
    ]  # fmt: skip
    assert {one.id: one.raw_score for one in result.passages} == {
        name: SCORES[name] for name in ("d1", "d2", "d3", "d4", "d5", "d6")
    }


def test_a_penalty_is_of_a_batch_so_that_the_right_passage_of_one_may_fall_below_a_mediocre_one():
    """Property SU-N1: d3 is better than d2 and d6, but stands in the batch with four answers."""
    plain = [name for name, _ in ranking(run(budget=6, batch_size=2))]
    revised = [name for name, _ in ranking(run(budget=6, batch_size=2, rescore=divide_by(1, 2, 4)))]
    assert plain.index("d3") < min(plain.index("d2"), plain.index("d6"))
    assert revised.index("d3") > max(revised.index("d2"), revised.index("d6"))


def test_fx4_a_the_budget_cuts_the_last_batch():
    result = run(budget=5, batch_size=3)
    assert trace(result) == ["R d1 d2 d3", "F d5 d6"]
    assert [name for name, _ in ranking(result)] == ["d5", "d1", "d3", "d6", "d2"]


@pytest.mark.parametrize("budget", [8, 20])
def test_fx4_b_everything_reachable_is_scored_and_no_more(budget):
    result = run(budget=budget, batch_size=2)
    assert trace(result) == ["R d1 d2", "F d5 d6", "R d3 d4", "F d7 d8"]
    assert ranking(result) == [
        ("d5", 0.95), ("d1", 0.9), ("d7", 0.8), ("d3", 0.4),
        ("d6", 0.3), ("d2", 0.2), ("d4", 0.1), ("d8", 0.05),
    ]  # fmt: skip


def test_fx4_c_the_frontier_goes_by_revised_scores():
    """Defect SU-D4: by scores that were not revised d7 would be taken."""
    result = run(budget=4, batch_size=1, rescore=divide_by(4, 10, 1, 1))
    assert trace(result) == ["R d1", "F d5", "R d2", "F d6"]
    raw = run(budget=4, batch_size=1, rescore=divide_by(4, 10, 1, 1), priority="scored")
    assert trace(raw) == ["R d1", "F d5", "R d2", "F d7"]


def test_fx4_d_an_empty_pool_passes_its_turn_and_numbers_keep_their_meaning():
    result = run(first=["d1"], budget=8, batch_size=2)
    assert trace(result) == ["R d1", "F d5 d6", "F d7", "F d3", "F d8", "F d2 d4"]
    assert sorted({one.iteration for one in result.passages}) == [0, 1, 3, 5, 7, 9]


def test_fx4_e_a_budget_of_one():
    assert trace(run(budget=1, batch_size=2)) == ["R d1"]


def test_fx4_f_an_empty_first_stage_asks_nothing():
    def never(*_):
        raise AssertionError("it was asked")

    result = search_adaptively("q", [], never, never)
    assert (result.passages, result.batches, result.rest) == ((), (), ())


def test_of_equal_neighbours_the_nearest_goes_first_whatever_its_id():
    near = {"a": ("z", "m", "b"), "z": (), "m": (), "b": ()}
    result = search_adaptively(
        "q", ["a"], near.__getitem__, lambda _, ids: [0.5 for _ in ids], budget=3, batch_size=2
    )
    assert result.batches == (("a",), ("z", "m"))
    assert [one.id for one in result.passages] == ["a", "z", "m"]


def test_neighbours_of_the_best_come_before_those_of_an_equal_that_was_scored_later():
    near = {"a": ("x",), "b": ("y",), "x": (), "y": ()}
    scores = {"a": 0.2, "b": 0.7, "x": 0.1, "y": 0.1}
    result = run(["a", "b"], scores, near, budget=4, batch_size=2)
    assert result.batches == (("a", "b"), ("y", "x"))


def test_a_better_source_raises_a_neighbour_which_keeps_its_place():
    near = {"a": ("x", "y"), "b": ("y",), "x": (), "y": ()}
    scores = {"a": 0.4, "b": 0.4, "x": 0.1, "y": 0.1}
    equal = run(["a", "b"], scores, near, budget=3, batch_size=1)
    assert equal.batches == (("a",), ("x",), ("b",))
    raised = run(["a", "b"], {**scores, "b": 0.9}, near, budget=3, batch_size=2)
    assert raised.batches == (("a", "b"), ("y",))
    assert raised.passages[-1].via == "b"


def test_of_equal_sources_the_first_is_named():
    near = {"a": ("x",), "b": ("x",), "x": ()}
    found = run(["a", "b"], {"a": 0.4, "b": 0.4, "x": 0.1}, near, budget=3, batch_size=2)
    assert found.passages[-1].via == "a"


def test_it_says_whose_neighbour_a_passage_is_and_in_which_turn_it_was_scored():
    found = {one.id: one for one in run(budget=6, batch_size=2).passages}
    assert (found["d1"].iteration, found["d1"].via) == (0, None)
    assert (found["d5"].iteration, found["d5"].via) == (1, "d1")
    assert (found["d3"].iteration, found["d3"].via) == (2, None)


def test_what_the_budget_does_not_reach_is_left_in_the_order_of_the_first_stage():
    assert run(budget=3, batch_size=2).rest == ("d3", "d4")


@pytest.mark.parametrize("failed", [None, math.nan, math.inf])
def test_a_passage_that_cannot_be_scored_is_no_zero_and_leads_nowhere(failed):
    result = run(scores={**SCORES, "d1": failed}, budget=4, batch_size=2)
    assert [(one.id, one.iteration) for one in result.unscored] == [("d1", 0)]
    assert trace(result) == ["R d1 d2", "F d8", "R d3"]
    assert "d1" not in dict(ranking(result))
    assert result.n_asked == 4


def test_scores_below_zero_rank_like_others():
    logits = {name: 10 * one - 5 for name, one in SCORES.items()}
    assert [name for name, _ in ranking(run(scores=logits, budget=6, batch_size=2))] == [
        name for name, _ in ranking(run(budget=6, batch_size=2))
    ]


@pytest.mark.parametrize("logit", [-2.5, 1.5])
@pytest.mark.parametrize("feedback", ["each", "after"])
def test_scores_that_are_no_probabilities_are_not_divided(logit, feedback):
    """Defect SU-D3: -5 / 2 would raise a bad passage of an uncertain batch."""
    with pytest.raises(SettingsError, match=rf"must be in \[0, 1\], got {logit} for 'd2'"):
        run(scores={**SCORES, "d2": logit}, budget=2, rescore=divide_by(2), feedback=feedback)


def test_revised_after_all_the_batches_are_those_without_revision():
    result = run(budget=6, batch_size=2, rescore=halve_uncertain, feedback="after")
    assert result.batches == run(budget=6, batch_size=2).batches
    assert result.feedback == "after"
    assert dict(ranking(result))["d5"] == 0.475
    assert dict(ranking(result))["d1"] == 0.9


def halve_uncertain(question, ids, scores):
    return [one / 2 if "d5" in ids else one for one in scores]


def test_revised_after_all_batches_are_asked_about_together():
    both = threading.Barrier(2, timeout=30)

    def rescore(question, ids, scores):
        both.wait()
        return scores

    run(["d1", "d3"], budget=2, batch_size=1, near=dict.fromkeys(SCORES, ()), rescore=rescore,
        feedback="after")  # fmt: skip


def test_a_batch_without_scores_is_not_revised():
    scores = {**SCORES, "d1": None, "d2": None}
    result = run(scores=scores, budget=4, batch_size=2, rescore=divide_by(1), feedback="each")
    assert [one.id for one in result.passages] == ["d3", "d4"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be .* >= 1, got 0"),
        ({"batch_size": 0}, "batch_size must be .* >= 1, got 0"),
        ({"feedback": "never"}, "feedback must be one of .*, got 'never'"),
        ({"priority": "raw"}, "priority must be one of .*, got 'raw'"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        run(**options)


def test_a_scorer_that_loses_passages_is_an_error():
    with pytest.raises(ValueError, match="1 scores for 2 passages"):
        search_adaptively("q", ["a", "b"], lambda _: (), lambda *_: [0.5])


@pytest.mark.parametrize("revised", [[0.1], [0.1, math.nan]])
def test_a_revision_that_is_unusable_is_an_error(revised):
    with pytest.raises(ValueError, match="revised score"):
        run(budget=2, rescore=lambda *_: revised)


names = st.integers(0, 11).map(lambda n: f"d{n:02}")
graphs = st.dictionaries(names, st.lists(names, max_size=4, unique=True))
few = st.sampled_from([0.1, 0.5, 0.9])


@st.composite
def searches(draw):
    near = draw(graphs)
    scores = {f"d{n:02}": draw(st.none() | few) for n in range(12)}
    return {
        "first": draw(st.lists(names, max_size=8)),
        "near": near,
        "scores": scores,
        "budget": draw(st.integers(1, 14)),
        "batch_size": draw(st.integers(1, 5)),
    }


def reachable(first, near, scores):
    found, todo = set(), [*first]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += near.get(name, []) if scores[name] is not None else []
    return found


def perform(one, near=None):
    asked = []

    def count(question, ids):
        asked.append(list(ids))
        return [one["scores"][name] for name in ids]

    near = one["near"] if near is None else near
    result = search_adaptively(
        "q", one["first"], lambda name: near.get(name, ()), count,
        budget=one["budget"], batch_size=one["batch_size"],
    )  # fmt: skip
    return result, asked


@settings(max_examples=150, deadline=None)
@given(searches())
def test_each_passage_is_scored_once_up_to_the_budget_or_all_that_can_be_reached(one):
    result, asked = perform(one)
    every = [name for batch in asked for name in batch]
    assert len(every) == len(set(every))
    assert len(every) == min(
        one["budget"], len(reachable(one["first"], one["near"], one["scores"]))
    )
    assert all(len(batch) <= one["batch_size"] for batch in asked)
    assert [list(batch) for batch in result.batches] == asked
    assert len(result.passages) + len(result.unscored) == result.n_asked
    scores = [passage.score for passage in result.passages]
    assert scores == sorted(scores, reverse=True)


@settings(max_examples=50, deadline=None)
@given(searches())
def test_the_order_of_a_dict_changes_nothing(one):
    turned = dict(reversed(one["near"].items()))
    assert perform(one)[0] == perform(one, turned)[0]


@settings(max_examples=50, deadline=None)
@given(searches())
def test_a_passage_in_its_own_list_or_twice_in_another_changes_nothing(one):
    odd = {name: [name, *near, *near] for name, near in one["near"].items()}
    assert perform(one)[0] == perform(one, odd)[0]


@settings(max_examples=50, deadline=None)
@given(searches(), st.sampled_from(["each", "after"]))
def test_async_finds_the_same(one, feedback):
    def score(question, ids):
        return [one["scores"][name] for name in ids]

    def revise(question, ids, scores):
        return [score / len(ids) for score in scores]

    async def ascore(question, ids):
        return score(question, ids)

    async def arevise(question, ids, scores):
        return revise(question, ids, scores)

    def near(name):
        return one["near"].get(name, ())

    options = {name: one[name] for name in ("budget", "batch_size")} | {"feedback": feedback}
    found = search_adaptively("q", one["first"], near, score, rescore=revise, **options)
    how = {"rescore": as_work(arevise), "options": AdaptiveOptions(**options)}
    assert found == asyncio.run(ado(adapt("q", one["first"], near, as_work(ascore), **how)))


def test_with_affinities_what_many_lead_to_goes_before_what_the_best_leads_to():
    scores = {"a": 0.9, "b": 0.6, "c": 0.5, "x": 0.1, "y": 0.1}
    edges = {"a": ["x"], "b": ["y"], "c": ["y"]}

    def run(affinity):
        return search_adaptively(
            "q", ["a", "b", "c"], lambda name: edges.get(name, ()),
            lambda question, names: [scores[one] for one in names],
            budget=4, batch_size=3, affinity=affinity,
        ).batches[-1][:1]  # fmt: skip

    assert run(None) == ("x",)
    assert run(lambda one, other: 1.0) == ("y",)
    assert run(lambda one, other: 1.0 if one == "a" else 0.5) == ("x",)
