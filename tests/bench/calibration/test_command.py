"""From a labelled file to a curve, by judging and from what was judged before."""

from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import EvidenceReranker
from deepera_graph.calibration.instance import read_labels
from deepera_graph.calibration.report import calibrate
from deepera_graph.errors import (
    BackendError,
    CallError,
    FailedShareError,
    InputError,
    SettingsError,
)
from deepera_graph.schema import PassageTask
from deepera_graph.settings.thresholds import Calibrated, Curve
from support.judging import Alone

pytestmark = pytest.mark.full


@pytest.fixture
def source(write, labelled) -> Path:
    return write("labelled.jsonl", labelled)


def test_a_labelled_file_becomes_a_curve(source, backend, tmp_path):
    out = tmp_path / "curve.json"
    report = calibrate(source, out, reranker=EvidenceReranker(backend), n_resamples=50)
    curve = Curve.load(out)
    assert curve.to_dict() == report["curve"]
    assert (curve.n_questions, curve.n_passages) == (30, 120)
    assert curve.judge == {"backend": "scripted"}
    assert curve.probability(0.05) == 0
    assert curve.probability(0.89) == 1


def test_a_reranker_takes_the_curve(source, backend, tmp_path):
    out = tmp_path / "curve.json"
    calibrate(source, out, reranker=EvidenceReranker(backend), n_resamples=50)
    rule = Calibrated(curve=Curve.load(out), probability=0.9)
    result = EvidenceReranker(backend, threshold=rule).rerank(
        "Does tea lower glucose?", ["It did [0.75].", "It is sold [0.30]."]
    )
    assert [passage.score for passage in result.kept] == [0.75]


def test_judging_makes_one_call_a_passage_and_no_summary(source, script):
    calibrate(source, None, reranker=EvidenceReranker(script.backend()), n_resamples=20)
    assert len(script.judged) == 120


def test_labels_do_not_reach_the_judge(source, backend):
    tasks = []

    def judge(task):
        tasks.append(task)
        return Alone(backend.judge).invoke(task)

    spied = replace(backend, judge=RunnableLambda(judge))
    calibrate(source, None, reranker=EvidenceReranker(spied), n_resamples=20)
    assert len(tasks) == 120
    assert {name for task in tasks for name in task} == PassageTask.__required_keys__
    assert not any(word in repr(task) for task in tasks for word in ("label", "golden"))


def test_every_judged_question_is_watched(source, backend):
    seen = []
    calibrate(source, None, reranker=EvidenceReranker(backend), n_resamples=20, watch=seen.append)
    assert [one.id for one in seen] == [f"q{number}" for number in range(30)]


def test_a_passage_that_failed_is_counted_and_not_fitted(source, script):
    script.scores = {"Tea 3 is old": ValueError("no"), **script.scores}
    report = calibrate(source, None, reranker=EvidenceReranker(script.backend()), n_resamples=20)
    assert report["data"]["failed"] == 1
    assert report["curve"]["n_passages"] == 119


def test_too_many_failures_give_no_curve(source, script):
    broken = {f"Tea {number} is": ValueError("no") for number in range(12)}
    script.scores = {**broken, **script.scores}
    with pytest.raises(FailedShareError, match=r"36 of 120 passages could not be judged, more th"):
        calibrate(source, None, reranker=EvidenceReranker(script.backend()), n_resamples=20)
    told = calibrate(
        source,
        None,
        reranker=EvidenceReranker(script.backend()),
        n_resamples=20,
        max_failed_share=0.3,
    )
    assert told["data"]["failed"] == 36


def test_an_unreachable_backend_ends_it_with_file_and_line(source, script):
    script.scores = {"Tea 29 ": CallError("no connection", unusable=True), **script.scores}
    with pytest.raises(BackendError, match=r"labelled\.jsonl, line 30: .*no connection"):
        calibrate(source, None, reranker=EvidenceReranker(script.backend()))


@pytest.mark.parametrize(
    ("passage", "message"),
    [
        pytest.param({"text": "Tea."}, "line 2: passage '1' has neither", id="no-label"),
        pytest.param({"text": "Tea.", "label": 2}, "label must be 0 or 1, got 2", id="graded"),
        pytest.param({"text": "Tea.", "label": "1"}, "0 or 1, got '1'", id="text"),
        pytest.param({"text": "Tea.", "label": 1, "is_golden": False}, "disagree", id="both"),
        pytest.param({"text": " ", "label": 1}, "line 2: passage 1 has no text", id="no-text"),
        pytest.param("Tea.", "passage '1' has neither a label", id="a-string"),
    ],
)
def test_a_bad_line_is_named_before_any_call(write, labelled, script, passage, message):
    bad = {"id": "bad", "question": "Does tea help?", "passages": [passage]}
    path = write("labelled.jsonl", [labelled[0], bad, *labelled[1:]])
    with pytest.raises(InputError, match=rf"labelled\.jsonl, line 2.*{message.split(': ')[-1]}"):
        calibrate(path, None, reranker=EvidenceReranker(script.backend()))
    assert script.judged == []


def as_golden(line):
    """Say what is evidence as `deepera-lab bench` has it."""
    passages = [{"id": one["id"], "text": one["text"]} for one in line["passages"]]
    return {**line, "passages": passages, "golden": ["a"]}


def test_golden_ids_say_the_same_as_labels(write, labelled):
    path = write("golden.jsonl", [as_golden(line) for line in labelled])
    assert read_labels(path) == read_labels(write("labelled.jsonl", labelled))


def test_golden_may_be_empty(write, labelled):
    path = write("golden.jsonl", [{**as_golden(labelled[0]), "golden": []}])
    assert read_labels(path) == {"q0": {"a": 0, "b": 0, "c": 0, "d": 0}}


@pytest.mark.parametrize(
    ("golden", "message"),
    [
        (["z"], r"line 1: golden names no passage: \['z'\]"),
        ("a", "line 1: golden must be a list of passage ids, got 'a'"),
        (["b"], "line 1: passage 'a': label and golden disagree"),
    ],
)
def test_golden_ids_that_cannot_be_are_named(write, labelled, golden, message):
    path = write("golden.jsonl", [{**labelled[0], "golden": golden}])
    with pytest.raises(InputError, match=message):
        read_labels(path)


def test_a_limit_takes_the_first_questions(write, labelled, script):
    few, more = write("few.jsonl", labelled[:20]), write("more.jsonl", [*labelled, {}])
    by = EvidenceReranker(script.backend())
    expected = calibrate(few, None, reranker=by, n_resamples=20)
    assert calibrate(more, None, reranker=by, n_resamples=20, limit=20) == expected


def test_a_line_that_is_not_json_is_named(tmp_path):
    path = tmp_path / "labelled.jsonl"
    path.write_text("{oops\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"labelled\.jsonl, line 1: not JSON"):
        read_labels(path)


@pytest.mark.parametrize(
    ("n_lines", "message"),
    [
        pytest.param(0, "holds no question", id="empty"),
        pytest.param(4, "at least 10 relevant .* got 4 and 12", id="tiny"),
    ],
)
def test_tiny_data_is_refused_with_counts(write, labelled, backend, n_lines, message):
    path = write("labelled.jsonl", labelled[:n_lines])
    with pytest.raises(InputError, match=message):
        calibrate(path, None, reranker=EvidenceReranker(backend))


def test_a_curve_is_fitted_on_too_few_labels_for_folds(write, labelled, backend, tmp_path):
    """Of ten labels a curve may come; what it would do on other questions is left out."""
    path, out = write("labelled.jsonl", labelled[:10]), tmp_path / "curve.json"
    report = calibrate(path, out, reranker=EvidenceReranker(backend), n_resamples=20)
    assert Curve.load(out).to_dict() == report["curve"]
    assert report["how"]["folds"] == 0
    assert report["how"]["why_not"] == (
        "cross-validation in 5 folds leaves 8 relevant and 24 irrelevant passages to fit on, and "
        "it takes 10 of each; label at least 3 more relevant, of other questions"
    )
    assert {one["on"] for one in report["operating_points"]} == {"score"}
    assert [one["probability"] for one in report["suggested"].values()] == [None, None]
    assert [one["after"] for one in report["quality"].values()] == [None, None]


@pytest.mark.parametrize(("n_lines", "n_more"), [(10, 3), (11, 2), (12, 1)])
def test_as_many_more_labels_as_are_named_are_enough(write, labelled, backend, n_lines, n_more):
    few, enough = (
        calibrate(
            write(f"{n}.jsonl", labelled[:n]),
            None,
            reranker=EvidenceReranker(backend),
            n_resamples=20,
        )["how"]
        for n in (n_lines, n_lines + n_more)
    )
    assert f"label at least {n_more} more relevant" in few["why_not"]
    assert (enough["folds"], enough["why_not"]) == (5, "")


def test_one_class_is_refused_before_any_call(write, labelled, script):
    barren = [{**line, "passages": line["passages"][1:]} for line in labelled]
    path = write("labelled.jsonl", barren)
    with pytest.raises(InputError, match="got 0 and 90"):
        calibrate(path, None, reranker=EvidenceReranker(script.backend()))
    assert script.judged == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"method": "spline"}, "got 'spline'", id="method"),
        pytest.param({"precision": 1.5}, r"precision must be in \[0, 1\]", id="precision"),
        pytest.param({"n_resamples": 0}, "n_resamples must be >= 1, got 0", id="resamples"),
    ],
)
def test_a_bad_option_is_refused_before_any_call(source, script, options, message):
    with pytest.raises(SettingsError, match=message):
        calibrate(source, None, reranker=EvidenceReranker(script.backend()), **options)
    assert script.judged == []


def test_an_existing_curve_is_not_overwritten_unasked(source, backend, tmp_path):
    out = tmp_path / "curve.json"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(SettingsError, match="exists; give --overwrite"):
        calibrate(source, out, reranker=EvidenceReranker(backend))
    assert out.read_text(encoding="utf-8") == "mine"
    calibrate(source, out, reranker=EvidenceReranker(backend), n_resamples=20, overwrite=True)
    assert Curve.load(out).method == "isotonic"


def test_the_input_is_not_overwritten(source, backend):
    with pytest.raises(SettingsError, match="is the input"):
        calibrate(source, source, reranker=EvidenceReranker(backend), overwrite=True)


def test_a_folder_is_no_place_for_a_curve(source, backend, tmp_path):
    with pytest.raises(SettingsError, match="cannot be written"):
        calibrate(source, tmp_path, reranker=EvidenceReranker(backend))


def test_a_missing_file_is_named(tmp_path, backend):
    with pytest.raises(InputError, match=r"none\.jsonl cannot be read"):
        calibrate(tmp_path / "none.jsonl", None, reranker=EvidenceReranker(backend))
