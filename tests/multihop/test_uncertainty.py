"""Sampled answers are grouped by meaning, and a batch's scores are divided by the number of sets.

The defects of the public code, by the names of the requirements: SU-D1, SU-D2, SU-D3, SU-D6.
"""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from deepera_graph import SettingsError, Usage
from deepera_graph.agents.twin import ado, as_work, do
from deepera_graph.errors import CallError
from deepera_graph.multihop.agent.adaptive import penalise
from deepera_graph.multihop.agent.roles import Entailment, Sample
from deepera_graph.multihop.agent.step_search import AnswerUncertainty, group_answers
from deepera_graph.multihop.path import normal_form
from deepera_graph.multihop.settings import Uncertainty, nli_labels
from deepera_graph.testing import ScriptedRole

QUESTION = "Where was Anna Berg born?"
BATCH = [{"title": "Anna Berg", "text": "Anna Berg was born in Uppsala."}]


def labels_of(pairs, default="neutral"):
    """An entailment that knows some pairs, and a list of what it was asked."""
    asked = []

    def entails(premise, hypothesis):
        asked.append((premise, hypothesis))
        return pairs.get((premise, hypothesis), default)

    return entails, asked


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Barack Obama", "barack  obama.", id="case-and-spaces"),
        pytest.param("The Hague", "Hague", id="article"),
        pytest.param("1,200", "1200", id="thousands"),
        pytest.param("1.50", "1.5", id="noughts"),
        pytest.param("in 1912", "1912", id="preposition"),
        pytest.param("12 March 1912", "March 12, 1912", id="date"),
        pytest.param("Yes, both are Swedish.", "yes", id="yes"),
        pytest.param("No", "no, they are not", id="no"),
        pytest.param("two", "2", id="number-word"),
        pytest.param("Malmö", "Malmo", id="accent"),
        pytest.param("unknown", "Insufficient evidence.", id="nothing-known"),
    ],
)
def test_closed_answers_are_compared_by_what_they_say(one, other):
    assert normal_form(one) == normal_form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1912", "1913"), ("yes", "no"), ("1.5", "15"), ("Berg", "Anna Berg"), ("12 km", "12 m"),
        ("-3", "3"), ("North Korea", "Korea"), ("Nora", "no"),
        ("No. 5", "no"), ("12 March", "3 December"),
    ],
)  # fmt: skip
def test_answers_that_differ_stay_apart(one, other):
    assert normal_form(one) != normal_form(other)


def test_both_directions_must_entail():
    entails, _ = labels_of({("Berlin", "a city in Germany"): "entailment"})
    assert do(group_answers(["Berlin", "a city in Germany"], as_work(entails))) == [0, 1]


def test_no_contradiction_is_not_enough():
    """SU-D1: the public code takes two answers for one unless they contradict each other."""
    entails, _ = labels_of({})
    assert do(group_answers(["a painter", "a Swede"], as_work(entails))) == [0, 1]
    assert do(group_answers(["a painter", "a Swede"], as_work(entails), lenient=True)) == [0, 0]


def test_lenient_answers_stay_apart_if_either_contradicts():
    entails, _ = labels_of({("Malmo", "Lund"): "contradiction"})
    assert do(group_answers(["Lund", "Malmo"], as_work(entails), lenient=True)) == [0, 1]


def test_a_set_that_was_given_is_never_changed():
    """SU-D6: an answer that matches two sets joins the first, and no earlier one moves."""
    same = {("p", "r"), ("r", "p"), ("q", "r"), ("r", "q")}
    entails, _ = labels_of(dict.fromkeys(same, "entailment"))
    assert do(group_answers(["p", "q", "r", "q"], as_work(entails))) == [0, 1, 0, 1]


def test_an_answer_is_compared_with_the_first_member_of_a_set_alone():
    chain = {("x", "y"), ("y", "x"), ("y", "z"), ("z", "y")}
    entails, asked = labels_of(dict.fromkeys(chain, "entailment"))
    assert do(group_answers(["x", "y", "z"], as_work(entails))) == [0, 0, 1]
    assert ("y", "z") not in asked


def test_equal_answers_are_not_compared():
    entails, asked = labels_of({})
    assert do(group_answers(["Lund", "lund", "Lund."], as_work(entails))) == [0, 0, 0]
    assert asked == []


answers = st.lists(st.sampled_from(["Lund", "Malmo", "Uppsala", "1912", "a town", "lund"]))


@pytest.mark.full
@given(answers, st.lists(st.sampled_from(["entailment", "neutral", "contradiction"]), min_size=1))
def test_at_most_every_ordered_pair_of_distinct_answers_is_asked(said, script):
    turn = iter(script * 100)
    asked = []

    def entails(premise, hypothesis):
        asked.append((premise, hypothesis))
        return next(turn)

    sets = do(group_answers(said, as_work(entails)))
    d = len(set(map(normal_form, said)))
    assert len(asked) == len(set(asked)) <= d * (d - 1)
    assert len(sets) == len(said)
    firsts = list(dict.fromkeys(sets))
    assert firsts == list(range(len(firsts)))


def test_the_divisor_is_the_number_of_sets():
    """SU-D2: one meaning leaves a score as it is, m of them divide it by m."""
    assert penalise([0.9, 0.2], 1) == [0.9, 0.2]
    assert penalise([0.9, 0.2], 4) == pytest.approx([0.225, 0.05])


def test_a_failed_score_stays_one_and_nothing_sampled_is_no_penalty():
    assert penalise([None, 0.4], 2) == [None, 0.2]
    assert penalise([0.4], None) == [0.4]


@pytest.mark.parametrize("logit", [-5.0, 3.2, float("nan"), float("inf")])
def test_raw_outputs_of_a_cross_encoder_are_refused(logit):
    """SU-D3: divided by 2, -5 would rise to -2.5."""
    with pytest.raises(SettingsError, match=f"got {logit!r}; raw outputs"):
        penalise([0.5, logit], 2)


def sampler_of(*said):
    """A sampler that gives the n-th sample its n-th answer, in whatever order it is asked."""

    def draw(task):
        answer = said[task["sample"] - 1]
        if isinstance(answer, Exception):
            raise answer
        return Sample(text=answer, usage=Usage(calls=1))

    return ScriptedRole(draw)


def measure(settings, sampler, entailer=None):
    """Measure one batch, sync and async alike."""
    measuring = AnswerUncertainty(settings, sampler, entailer)
    one = do(measuring.work(QUESTION, BATCH))
    other = asyncio.run(ado(measuring.work(QUESTION, BATCH)))
    assert one == other
    return one


def test_m_equal_answers_are_one_set_and_m_different_ones_are_m():
    equal, different = sampler_of("Lund", "lund", "Lund."), sampler_of("Lund", "Malmo", "Uppsala")
    settings = Uncertainty(samples=3, equivalence="exact")
    assert measure(settings, equal).record["n_sets"] == 1
    assert measure(settings, different).record["n_sets"] == 3


def test_every_batch_takes_m_samples_and_each_is_told_from_the_others():
    sampler = sampler_of("Lund", "Malmo")
    measured = measure(Uncertainty(samples=2, equivalence="exact"), sampler)
    assert measured.usage["sample"] == Usage(calls=2)
    assert sorted(one["sample"] for one in sampler.tasks) == [1, 1, 2, 2]
    assert all(one["evidence"] == BATCH for one in sampler.tasks)


def test_empty_and_failed_samples_are_dropped_and_told():
    failed = CallError("the server refused", usage=Usage(failed_calls=1))
    measured = measure(
        Uncertainty(samples=4, equivalence="exact"), sampler_of("Lund", failed, " ", "Lund")
    )
    assert measured.record["n_sets"] == 1
    assert measured.record["answers"] == ["Lund", "Lund"]
    assert measured.record["problem"].startswith("2 of 4 samples unusable, the first: the server")
    assert measured.usage["sample"] == Usage(calls=3, failed_calls=1)


def test_without_any_usable_sample_there_is_no_penalty_and_that_is_told():
    measured = measure(Uncertainty(samples=2, equivalence="exact"), sampler_of("", "..."))
    assert measured.record["n_sets"] is None
    assert "no penalty, as no sample was usable" in measured.record["problem"]


def entailer_of(label):
    def play(task):
        if isinstance(label, Exception):
            raise label
        return Entailment(label=label, usage=Usage(calls=1))

    return ScriptedRole(play)


def test_the_chat_model_compares_with_the_question_in_front():
    entailer = entailer_of("entailment")
    measured = measure(Uncertainty(samples=2), sampler_of("Lund", "Lund in Sweden"), entailer)
    assert measured.record["n_sets"] == 1
    assert measured.record["n_compared"] == 2
    assert measured.usage["entail"] == Usage(calls=2)
    assert entailer.tasks[0] == {
        "question": QUESTION, "premise": "Lund", "hypothesis": "Lund in Sweden",
    }  # fmt: skip


def test_a_comparison_that_failed_keeps_answers_apart_and_is_told():
    entailer = entailer_of(CallError("refused"))
    measured = measure(Uncertainty(samples=2), sampler_of("Lund", "Malmo"), entailer)
    assert measured.record["n_sets"] == 2
    assert measured.record["problem"] == "1 of 1 comparisons failed"


class Nli:
    """A cross-encoder that takes texts that hold each other's last word for entailed."""

    def predict(self, pairs):
        return [
            [0.1, 2.0, 0.5] if other.split()[-1] in one else [1.5, 0.2, 0.3] for one, other in pairs
        ]


def test_a_cross_encoder_may_compare():
    settings = Uncertainty(samples=2, compare=nli_labels(Nli()))
    assert measure(settings, sampler_of("Lund", "old Lund")).record["n_sets"] == 1
    assert measure(settings, sampler_of("Lund", "Malmo")).record["n_sets"] == 2


class Config:
    def __init__(self, *names):
        self.id2label = {str(place): name for place, name in enumerate(names)}


class NamedNli(Nli):
    """The same with its columns in another order, as the configuration says."""

    def __init__(self, *names):
        self.config = Config(*names)

    def predict(self, pairs):
        return [[row[0], row[2], row[1]] for row in super().predict(pairs)]


def test_the_columns_of_a_cross_encoder_are_those_of_its_configuration():
    model = NamedNli("CONTRADICTION", "NEUTRAL", "ENTAILMENT")
    inside = type("Wrapped", (), {"model": model, "predict": model.predict})()
    for one in (model, inside):
        compare = nli_labels(one)
        assert compare(QUESTION, "Lund", "old Lund") == "entailment"
        assert compare(QUESTION, "Lund", "Malmo") == "contradiction"
    assert nli_labels(NamedNli("contradicts", "neutral", "entails"))(QUESTION, "a", "a") == (
        "entailment"
    )


def test_columns_whose_names_say_nothing_are_refused_unless_they_are_given():
    model = NamedNli("LABEL_0", "LABEL_1", "LABEL_2")
    with pytest.raises(SettingsError, match=r"'LABEL_0', 'LABEL_1', 'LABEL_2'.*labels="):
        nli_labels(model)
    given = nli_labels(model, ("contradiction", "neutral", "entailment"))
    assert given(QUESTION, "Lund", "old Lund") == "entailment"
    with pytest.raises(SettingsError, match=r"got .'neutral', 'neutral', 'entailment'"):
        nli_labels(NamedNli("neutral", "neutral", "entailment"))


def test_bad_settings_are_refused_with_their_value():
    for fields, said in (
        ({"samples": 1}, "samples must be a whole number >= 2, got 1"),
        ({"equivalence": "near"}, "got 'near'"),
        ({"feedback": "never"}, "got 'never'"),
        ({"equivalence": "exact", "compare": print}, "compare goes with"),
    ):
        with pytest.raises(SettingsError, match=said):
            Uncertainty(**fields)
    with pytest.raises(SettingsError, match="needs an entailer or compare"):
        AnswerUncertainty(Uncertainty(), RunnableLambda(lambda task: Sample(text="x")))
    with pytest.raises(SettingsError, match="needs predict"):
        nli_labels(object())


def test_the_estimate_is_the_most_that_can_be_asked():
    asked = {
        one: Uncertainty(samples=5, equivalence=one).most_calls(4) for one in ("exact", "lenient")
    }
    assert asked["exact"] == {"sample": 20, "entail": 0}
    assert asked["lenient"] == {"sample": 20, "entail": 80}


def test_the_penalty_of_a_batch_can_put_a_right_passage_below_a_mediocre_one():
    """SU-N1: the penalty is the whole batch's."""
    right, mediocre = penalise([0.9], 4), penalise([0.3], 1)
    assert right[0] < mediocre[0]
