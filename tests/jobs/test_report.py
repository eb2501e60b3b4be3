"""The report of a run."""

import io

from deepera_graph import EvidenceReranker
from deepera_graph.jobs.lines import BadLine, count_question
from deepera_graph.jobs.report import MOST_ERRORS, JobReport
from deepera_graph.jobs.rerank import rerank_lines
from support.scripted import Script

GOOD_TEXT = "Green tea lowered fasting glucose by 4%."


def report_of(source, scores, **settings):
    report = JobReport()
    by = EvidenceReranker(Script(scores).backend(), **settings)
    rerank_lines(by, source, io.BytesIO(), report=report)
    return report.to_dict()


def test_it_counts_lines_passages_outcomes_and_calls(make_file, make_line):
    source = make_file(
        make_line("q1", GOOD_TEXT, "hills"), make_line("q2", "hills"), make_line("q3"), b"{"
    )
    plain = report_of(source, {"lowered": 0.9})
    assert plain["lines"] == {"read": 4, "written": 3, "bad": 1}
    assert plain["passages"]["ranked"] == 3
    assert plain["passages"]["kept"] == 1
    assert plain["passages"]["statuses"] == {"scored": 3}
    assert plain["outcomes"] == {"nothing_retrieved": 1, "ok": 1, "no_evidence": 1}
    assert plain["usage"]["calls"] == 6
    assert {stage: used["calls"] for stage, used in plain["usage"]["stages"].items()} == {
        "intent": 2,
        "score": 3,
        "summarize": 1,
    }
    assert plain["errors"][0]["line"] == 4
    assert plain["end"] == "complete"


def test_lines_of_an_earlier_version_that_were_over_filtered_count_as_no_evidence():
    result = EvidenceReranker(Script({}).backend(), threshold=0.9).rerank("Which?", ["hills"])
    stats = count_question(result)
    report = JobReport()
    report.add({**stats, "outcome": "over_filtered"}, earlier=True)
    report.add(stats)
    assert report.outcomes == {"no_evidence": 2}


def test_it_has_times_and_the_manifest(make_file, make_line):
    plain = report_of(make_file(make_line("q1", GOOD_TEXT)), {"lowered": 0.9}, threshold=0.7)
    assert plain["seconds"]["wall"] > 0
    assert "summed over questions" in plain["seconds"]["stages_are"]
    assert set(plain["seconds"]["stages"]) >= {"intent", "score", "select", "summarize"}
    assert plain["manifest"]["backend"] == "scripted"
    assert plain["manifest"]["settings"]["threshold"] == 0.7


def test_it_counts_failures_by_cause(make_file, make_line):
    scores = {"one": ValueError("too long"), "two": ValueError("too long"), "three": OSError("off")}
    plain = report_of(make_file(make_line("q1", "one", "two", "three", "four")), scores)
    assert plain["passages"]["failed"] == 3
    assert plain["passages"]["failures_by_cause"] == {
        "ValueError: too long": 2,
        "OSError: off": 1,
    }


def test_causes_that_quote_different_replies_are_one_commonest_cause(make_file, make_line):
    report = JobReport()
    scores = {
        "one": ValueError("no JSON object: 'hello'"), "two": ValueError("no JSON object: 'bye'"),
        "three": ValueError('no JSON object: "it\'s"'), "4": OSError("off"), "5": OSError("off"),
    }  # fmt: skip
    source = make_file(make_line("q1", "one", "two", "three", "4", "5", "fine"))
    rerank_lines(EvidenceReranker(Script(scores).backend()), source, io.BytesIO(), report=report)
    assert report.commonest_cause() == ("ValueError: no JSON object: 'hello'", 3)
    assert JobReport().commonest_cause() is None


def test_it_lists_no_more_errors_than_fit():
    report = JobReport()
    for number in range(MOST_ERRORS + 5):
        report.add_bad(BadLine(number, 0, None, "not JSON"))
    assert report.n_bad == MOST_ERRORS + 5
    assert len(report.to_dict()["errors"]) == MOST_ERRORS


def test_a_subject_is_read_from_the_line(make_file, make_line):
    source = make_file(
        make_line("q1", GOOD_TEXT, subject="diet"), make_line("q2", "hills", subject="geology")
    )
    drift = report_of(source, {"lowered": 0.9})["diagnostics"]["calibration_drift"]
    assert list(drift["subjects"]) == ["diet", "geology"]
    assert drift["largest_ks_distance"] == 1
    assert sorted(drift["between"]) == ["diet", "geology"]
