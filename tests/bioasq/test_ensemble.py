"""Ensembles by hand, by law, and by a planted optimum."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepera_graph.bioasq.ensemble import HOW, nominate, search_weights, weigh
from deepera_graph.bioasq.questions import BioasqQuestion
from deepera_graph.bioasq.runs import ScoredDocument
from deepera_graph.errors import InputError, SettingsError


def ranking(names):
    """A ranking of documents named by letters or numbers, with falling scores."""
    return [ScoredDocument(str(name), 100.0 - place) for place, name in enumerate(names)]


def names(ranked):
    return [one.pmid for one in ranked]


def golden(name, *pmids):
    return BioasqQuestion(id=name, type="summary", body="?", documents=pmids)


def test_six_of_the_first_and_four_of_the_second_that_are_new():
    first, second = {"q": ranking("abcdefghij")}, {"q": ranking("bxaycz123")}
    assert names(nominate(first, second)["q"]) == [*"abcdef", *"xyz1"]


def test_what_the_second_lacks_is_filled_from_the_first():
    first, second = {"q": ranking("abcdefghijkl")}, {"q": ranking("abx")}
    assert names(nominate(first, second)["q"]) == [*"abcdef", "x", *"ghi"]


def test_what_the_first_lacks_is_filled_from_the_second():
    first, second = {"q": ranking("ab")}, {"q": ranking("bcdefghijklm")}
    assert names(nominate(first, second)["q"]) == [*"ab", *"cdefghij"]


def test_a_question_of_one_run_alone_has_its_documents():
    made = nominate({"q": ranking("ab")}, {"r": ranking("cd")})
    assert {name: names(one) for name, one in made.items()} == {"q": ["a", "b"], "r": ["c", "d"]}


def test_more_than_the_nominated_are_filled_from_the_second_then_from_the_first():
    first, second = {"q": ranking("abcdefgh")}, {"q": ranking("bxyz")}
    assert names(nominate(first, second, n_first=2, n_second=1, n=7)["q"]) == [*"abxyz", *"cd"]
    with pytest.raises(SettingsError, match=r"2 documents have no room for the 2 \+ 1"):
        nominate(first, second, n_first=2, n_second=1, n=2)


def test_other_numbers_can_be_nominated():
    first, second = {"q": ranking("abc")}, {"q": ranking("xyz")}
    assert names(nominate(first, second, n_first=1, n_second=2)["q"]) == ["a", "x", "y"]
    for wrong in ((-1, 4), (0, 0)):
        with pytest.raises(SettingsError):
            nominate(first, second, n_first=wrong[0], n_second=wrong[1])


rankings = st.lists(st.integers(1, 30), unique=True, max_size=20).map(ranking)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(first=rankings, second=rankings)
def test_ten_documents_wherever_both_runs_together_have_them(first, second):
    together = {*names(first), *names(second)}
    made = [nominate({"q": first}, {"q": second})["q"]]
    made += [weigh([{"q": first}, {"q": second}], [1, 7], how=how)["q"] for how in HOW]
    for one in made:
        assert len(one) == len({*names(one)})
        assert {*names(one)} <= together
        scores = [document.score for document in one]
        assert scores == sorted(scores, reverse=True)
    assert len(made[0]) == min(10, len(together))
    assert all(len(one) == min(10, len(together)) for one in made[1:])


@pytest.mark.full
@settings(max_examples=40, deadline=None)
@given(first=rankings, second=rankings, weight=st.integers(1, 10))
def test_a_run_with_itself_or_with_a_weight_of_none_is_itself(first, second, weight):
    for how in HOW:
        alone = weigh([{"q": first}], [weight], how=how)["q"]
        assert names(alone) == names(first)[:10]
        with_itself = weigh([{"q": first}, {"q": first}], [1, weight], how=how)["q"]
        assert names(with_itself) == names(first)[:10]
        if len(first) >= 10:
            unweighted = weigh([{"q": first}, {"q": second}], [weight, 0], how="rank")["q"]
            assert names(unweighted) == names(first)[:10]


def test_a_weighted_sum_by_hand():
    """a: 1 * 1.0 + 2 * 0; b: 0.9 + 2 * 0.8; c: 0.8 + 2 * 1.0; x: 2 * 0.9."""
    made = weigh([{"q": ranking("abc")}, {"q": ranking("cxb")}], [1, 2])["q"]
    assert [(one.pmid, pytest.approx(one.score)) for one in made] == [
        ("c", 2.8), ("b", 2.5), ("x", 1.8), ("a", 1.0),
    ]  # fmt: skip


def test_ties_go_to_the_first_run():
    """7 * 0.1 is 0.7000000000000001 in floating point, and is to tie with 0.7."""
    first, second = {"q": ranking("123a")}, {"q": ranking("456789xyzb")}
    order = names(weigh([first, second], [1, 7], n=99)["q"])
    assert order.index("a") < order.index("b")
    order = names(weigh([second, first], [7, 1], n=99)["q"])
    assert order.index("b") < order.index("a")


def test_scores_of_both_runs_are_brought_to_one_scale():
    first = {"q": [ScoredDocument("a", 9.0), ScoredDocument("b", 8.0), ScoredDocument("c", 0.0)]}
    second = {"q": [ScoredDocument("c", 0.2), ScoredDocument("b", 0.1)]}
    made = weigh([first, second], [1, 1], how="min-max")["q"]
    assert made == [("a", 1.0), ("c", 1.0), ("b", pytest.approx(8 / 9))]


@pytest.mark.parametrize("weights", [[1], [1, -1], [1, float("nan")], [1, float("inf")], []])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(SettingsError):
        weigh([{"q": ranking("ab")}, {"q": ranking("b")}], weights)


def test_an_unknown_way_is_refused():
    with pytest.raises(SettingsError, match=r"how must be one of .*'min-max', got 'median'"):
        weigh([{"q": ranking("ab")}], [1], how="median")


def planted(n_questions, weights, seed=3):
    """Two runs, and golden documents that are the best ten by a weighted sum of them."""
    draw = random.Random(seed)
    first, second, wanted = {}, {}, []
    for number in range(n_questions):
        name, pool = f"q{number}", [str(one) for one in range(1, 31)]
        first[name] = ranking(draw.sample(pool, 20))
        second[name] = ranking(draw.sample(pool, 20))
        best = names(weigh([{name: first[name]}, {name: second[name]}], weights)[name])
        n_golden = draw.randint(1, 10)
        wanted.append(golden(name, *best[:n_golden]))
    return first, second, wanted


@pytest.mark.full
def test_a_planted_optimum_is_found():
    first, second, wanted = planted(400, (1, 7))
    found = search_weights(first, second, wanted)
    assert found.best == ((1.0, 7.0), pytest.approx(1.0))
    assert len(found.tried) == 121
    assert sum(one.map == pytest.approx(1.0) for one in found.tried) == 1


@pytest.mark.parametrize("how", HOW)
def test_what_the_search_says_is_what_the_ensemble_has(how):
    first, second, wanted = planted(6, (3, 2))
    found = search_weights(first, second, wanted, grid=(0, 1, 4), how=how)
    for tried in found.tried:
        made = weigh([first, second], tried.weights, how=how)
        mean = sum(average_precision(names(made[one.id]), one.documents) for one in wanted) / 6
        assert tried.map == pytest.approx(mean)
    assert found.best.map == max(one.map for one in found.tried)


def average_precision(ranked, documents):
    """LO-20: the sum of the precisions at the hits, over min(10, golden)."""
    hits = [place for place, pmid in enumerate(ranked[:10], start=1) if pmid in documents]
    precisions = [number / place for number, place in enumerate(hits, start=1)]
    return sum(precisions) / min(10, len(documents))


def test_among_equals_the_first_run_is_trusted_most():
    run = {"q": ranking("abc")}
    assert search_weights(run, run, [golden("q", "a")]).best.weights == (1.0, 0.0)


def test_a_question_without_a_ranking_counts_as_nothing_found():
    run = {"q": ranking("abc")}
    found = search_weights(run, run, [golden("q", "a"), golden("r", "b"), golden("s")])
    assert (found.best.map, found.n_questions) == (0.5, 2)


def test_what_cannot_be_searched_is_refused():
    run = {"q": ranking("abc")}
    with pytest.raises(InputError, match="no golden question has documents"):
        search_weights(run, run, [golden("q")])
    with pytest.raises(InputError, match="no run has any of the 1 golden"):
        search_weights(run, run, [golden("r", "a")])
    with pytest.raises(SettingsError, match="empty"):
        search_weights(run, run, [golden("q", "a")], grid=())


def test_golden_documents_are_found_however_they_are_spelled():
    run = {"q": [ScoredDocument("scifact/3", 1.0)]}
    for spelling in ("scifact/3", "http://www.ncbi.nlm.nih.gov/pubmed/3", "3/"):
        assert search_weights(run, run, [golden("q", spelling)]).best.map == 1.0
