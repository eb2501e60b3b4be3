"""Signs of failure over many questions."""

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import EvidenceReranker, Intent, Judgement, Summary
from deepera_graph.errors import AnswerError
from deepera_graph.jobs.lines import count_question
from deepera_graph.jobs.report import MOST_SUBJECTS, OTHER, Diagnostics, Histogram
from deepera_graph.schema import Backend

QUESTION = "Does green tea lower glucose?"


def intent(task):
    return Intent(
        topic="diet",
        entity_type=f"subject: {task['question']}",
        intent="other",
        expected_answer_type="other",
    )


def no_intent(task):
    raise AnswerError("nothing useful")


def judged(scores, *, reader=intent, summary="Glucose fell.", text="Glucose fell", **settings):
    """A result in which the n-th passage has the n-th score."""
    backend = Backend(
        name="numbers",
        intent=RunnableLambda(reader),
        judge=RunnableLambda(lambda task: Judgement(score=scores[int(task["text"].split()[-1])])),
        summarizer=RunnableLambda(lambda task: Summary(text=summary)),
    )
    passages = [f"{text} {n}" for n in range(len(scores))]
    return EvidenceReranker(backend, **settings).rerank(QUESTION, passages)


def found(*results):
    diagnostics = Diagnostics()
    for result in results:
        diagnostics.add(count_question(result))
    return diagnostics.to_dict()


def test_an_intent_that_fell_back_is_counted():
    signs = found(judged([0.5], reader=no_intent), judged([0.5]))["intent_failures"]
    assert signs["fallbacks"] == 1


@pytest.mark.parametrize(
    ("scores", "flat"),
    [
        pytest.param([0.5] * 6, 1, id="all-equal"),
        pytest.param([0.5, 0.5, 0.5, 0.5, 0.51], 1, id="hardly-different"),
        pytest.param([0.0, 0.0, 0.0, 0.0, 1.0], 0, id="yes-or-no"),
        pytest.param([0.1, 0.2, 0.3, 0.4, 0.9], 0, id="spread"),
        pytest.param([0.5] * 4, 0, id="too-few-to-tell"),
    ],
)
def test_scores_that_hardly_differ_are_undifferentiated(scores, flat):
    assert found(judged(scores))["intent_failures"]["undifferentiated"] == flat


def test_distinct_scores_and_their_spread_are_reported():
    signs = found(judged([0.1, 0.3, 0.5, 0.7, 0.9]))["intent_failures"]
    assert signs["distinct_scores"] == {"5": 1}
    assert signs["score_iqr"]["p50"] == pytest.approx(0.4, abs=0.005)


def test_subjects_are_compared():
    diagnostics = Diagnostics()
    diagnostics.add(count_question(judged([0.1, 0.2, 0.9, 0.8]), "a"))
    diagnostics.add(count_question(judged([0.1, 0.2, 0.3, 0.4]), "b"))
    drift = diagnostics.to_dict()["calibration_drift"]
    assert drift["largest_ks_distance"] == 0.5
    assert drift["subjects"]["a"]["pass_rate"] == 0.5
    assert drift["subjects"]["b"]["pass_rate"] == 0
    assert drift["subjects"]["b"]["quantiles"]["p90"] == 0.4


@pytest.mark.full
def test_many_subjects_are_lumped():
    diagnostics = Diagnostics()
    result = judged([0.5])
    for n in range(MOST_SUBJECTS + 3):
        diagnostics.add(count_question(result, f"s{n}"))
    subjects = diagnostics.to_dict()["calibration_drift"]["subjects"]
    assert len(subjects) == MOST_SUBJECTS + 1
    assert subjects[OTHER]["scores"] == 3


def test_empty_results_are_counted_also_when_on_empty_filled_them():
    signs = found(judged([0.9, 0.8]), judged([0.1]), judged([0.1], on_empty="top1"), judged([]))
    assert signs["over_filtering"] == {
        "empty_results": 2,
        "empty_share": round(2 / 3, 4),
        "kept": {"0": 2, "2": 1},
    }


def test_a_faithful_summary_retains_its_numbers():
    signs = found(judged([0.9], summary="Glucose fell by 4%.", text="Glucose fell by 4%"))
    assert signs["summary_drift"]["drifted"] == 0
    assert signs["summary_drift"]["number_retention"] == 1


def test_a_summary_with_a_number_of_its_own_is_drift():
    signs = found(judged([0.9], summary="Glucose fell by 40%.", text="Glucose fell by 4%"))
    assert signs["summary_drift"]["summaries"] == 1
    assert signs["summary_drift"]["drifted"] == 1


def test_nothing_added_is_nothing_found():
    signs = found()
    assert signs["over_filtering"]["empty_share"] is None
    assert signs["calibration_drift"]["largest_ks_distance"] is None


def test_a_histogram_knows_quantiles_to_half_a_hundredth():
    histogram = Histogram()
    for n in range(1001):
        histogram.add(n / 1000)
    for share in (0.1, 0.25, 0.5, 0.9, 1.0):
        assert histogram.quantile(share) == pytest.approx(share, abs=0.005)


def test_an_empty_histogram_has_no_quantiles_and_no_distance():
    assert Histogram().quantile(0.5) is None
    assert Histogram().distance(Histogram()) == 0
