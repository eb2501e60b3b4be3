"""A judge that errs as often as told must give the hit rate that arithmetic says."""

from hashlib import sha256
from itertools import pairwise
from math import sqrt

import pytest
from langchain_core.runnables import RunnableLambda

from bench.lakes import make_instance
from bench.study_lakes import compare
from deepera_graph import Judgement
from deepera_graph.calibration.instance import Dataset
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.base import StudyConfig
from deepera_graph.reranker import EvidenceReranker
from support.scripted import Script

pytestmark = pytest.mark.full

N_QUESTIONS, N_PASSAGES = 120, 6
Z_99 = 2.576


def draw(*parts):
    digest = sha256("|".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def golden_place(number):
    return 1 + int(draw("place", number) * N_PASSAGES)


def reranker_that_errs(error):
    """Each passage is judged wrong with probability *error*, whatever happens to the others."""

    def judge(task):
        number = int(task["question"].split()[-1].rstrip("?"))
        right = task["text"].startswith(f"Passage {golden_place(number)} ")
        wrong = draw(error, task["question"], task["text"]) < error
        return Judgement(score=0.9 if right != wrong else 0.2)

    backend = Script({}).backend()
    made = type(backend)(
        name="errs",
        intent=backend.intent,
        judge=RunnableLambda(judge),
        summarizer=backend.summarizer,
    )
    return EvidenceReranker(made, content="passage")


def chance_of_a_hit(place, error):
    """Ties stay in first-stage order, so the golden passage wins only if none before it scores."""
    found = (1 - error) ** place
    all_low = error * (1 - error) ** (N_PASSAGES - 1) if place == 1 else 0
    return found + all_low


def analytic(error):
    """Return the expected hit rate and half its interval of 99 %."""
    chances = [chance_of_a_hit(golden_place(number), error) for number in range(N_QUESTIONS)]
    half = Z_99 * sqrt(sum(one * (1 - one) for one in chances)) / N_QUESTIONS
    return sum(chances) / N_QUESTIONS, half


def measured(error, n_questions):
    instances = [
        make_instance(number, n=N_PASSAGES, golden=(golden_place(number),))
        for number in range(n_questions)
    ]
    data = Dataset("lakes", lambda: instances)
    plan = StudyConfig(metrics=("HitRate@1",), n_resamples=1)
    table = compare([DeepEra(reranker_that_errs(error))], [data], plan)
    return table.rows[0].estimates[0].mean


@pytest.mark.parametrize("error", [0, 0.1, pytest.param(0.3, marks=pytest.mark.slow)])
def test_hit_rate_lies_in_the_interval_of_the_analytic_value(error):
    expected, half = analytic(error)
    n_questions = N_QUESTIONS if error else N_QUESTIONS // 5  # without errors there is no chance
    assert abs(measured(error, n_questions) - expected) <= half + 1e-9


def test_the_analytic_value_is_right_for_two_passages():
    """Golden second of two: it wins if it is judged right and the other one, too."""
    assert chance_of_a_hit(2, 0.1) == pytest.approx(0.9**2)
    assert chance_of_a_hit(1, 0.1) == pytest.approx(0.9 + 0.1 * 0.9 ** (N_PASSAGES - 1))


def test_the_intervals_tell_the_error_rates_apart():
    bounds = [analytic(error) for error in (0, 0.1, 0.3)]
    assert bounds[0] == (1, 0)
    for (upper, upper_half), (lower, lower_half) in pairwise(bounds):
        assert upper - upper_half > lower + lower_half


def test_a_judge_that_is_always_wrong_never_hits():
    assert analytic(1) == (0, 0)
    assert measured(1, n_questions=20) == 0
