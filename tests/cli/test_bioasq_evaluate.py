"""`deepera-lab bioasq check` and `deepera-lab bioasq evaluate`."""

import json

import pytest

from support.bioasq import FIVE_GIVEN, FIVE_GOLDEN, docs, question, write_set


@pytest.fixture
def files(tmp_path):
    return (
        write_set(tmp_path / "golden.json", *FIVE_GOLDEN),
        write_set(tmp_path / "submission.json", *FIVE_GIVEN),
    )


def test_the_table_says_which_variant_it_is(deepera_lab, files):
    ours, theirs = (
        deepera_lab("bioasq", "evaluate", *files),
        deepera_lab("bioasq", "evaluate", *files, "--official"),
    )
    assert ours.exit_code == theirs.exit_code == 0, ours.output + theirs.output
    assert ours.stdout.startswith("corrected: ")
    assert theirs.stdout.startswith("official, edition 8: ")
    assert "| documents MAP * | 0.6345 | 5 |" in theirs.stdout
    assert "| yes/no macro F1 * | 0.4000 | 3 |" in theirs.stdout


def test_json_has_the_numbers_of_a_phase(deepera_lab, files):
    args = ("--official", "--edition", "5", "--phase", "a", "--json")
    plain = json.loads(deepera_lab("bioasq", "evaluate", *files, *args).stdout)
    assert plain["variant"] == "official, edition 5"
    assert plain["measures"]["documents_map"]["value"] == pytest.approx(0.1378730159)
    assert plain["measures"]["documents_map"]["questions"] == 5
    assert "yesno_accuracy" not in plain["measures"]


def test_a_measure_without_a_question_is_null(deepera_lab, tmp_path):
    golden = write_set(tmp_path / "golden.json", question("q", documents=docs(1)))
    args = ("bioasq", "evaluate", golden, golden, "--phase", "b")
    found = json.loads(deepera_lab(*args, "--json").stdout)["measures"]["list_f1"]
    assert found == {"value": None, "questions": 0}
    assert "| list F1 * | – | 0 |" in deepera_lab(*args).stdout


def test_a_test_set_in_the_place_of_the_golden_set_is_told(deepera_lab, files, tmp_path):
    asked = write_set(tmp_path / "test_set.json", question("q"))
    result = deepera_lab("bioasq", "evaluate", asked, files[1])
    assert result.exit_code == 1
    assert "has no golden documents or snippets or answers; is it the test set?" in result.stderr


def test_intervals_hold_the_value_and_are_the_same_twice(deepera_lab, files):
    args = ("bioasq", "evaluate", *files, "--intervals", "--resamples", "200", "--json")
    first, second = deepera_lab(*args).stdout, deepera_lab(*args).stdout
    assert first == second
    for one in json.loads(first)["measures"].values():
        if one["questions"] > 1:
            assert one["low"] <= one["value"] <= one["high"]
        elif one["questions"] == 1:
            assert one["low"] is None
    assert "0.6345 | 0." in deepera_lab(*args[:-1]).stdout


def test_what_the_submission_has_is_measured(deepera_lab, tmp_path, files):
    only = [{key: one[key] for key in ("id", "type", "body", "documents")} for one in FIVE_GIVEN]
    short = write_set(tmp_path / "short.json", *only[:3])
    result = deepera_lab("bioasq", "evaluate", files[0], short)
    assert "2 questions not answered" in result.stdout
    assert "documents MAP" in result.stdout
    assert "yes/no" not in result.stdout


def test_answers_to_questions_that_the_golden_set_lacks_are_told(deepera_lab, tmp_path, files):
    renamed = [{**one, "id": f"z{one['id']}"} for one in FIVE_GIVEN[:2]]
    other = write_set(tmp_path / "other.json", *renamed, *FIVE_GIVEN[2:])
    result = deepera_lab("bioasq", "evaluate", files[0], other, "--phase", "a")
    assert f"2 of 5 answers in {other} are to no question of {files[0]}" in result.stderr
    assert "'zq1'" in result.stderr
    assert deepera_lab("bioasq", "evaluate", files[0], other, "--phase", "a", "-q").stderr == ""
    assert deepera_lab("bioasq", "evaluate", *files).stderr == ""


def test_what_ends_the_evaluator_is_an_error_of_one_line(deepera_lab, tmp_path, files):
    bad = write_set(tmp_path / "bad.json", {**FIVE_GIVEN[0], "exact_answer": None})
    result = deepera_lab("bioasq", "evaluate", files[0], bad, "--official", "--phase", "b")
    assert result.exit_code == 2
    assert "question 1 ('q1'): exact_answer: must be text" in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_edition_goes_with_the_official_measures(deepera_lab, files):
    result = deepera_lab("bioasq", "evaluate", *files, "--edition", "8")
    assert result.exit_code == 2
    assert "--edition goes with --official" in result.stderr


def test_warnings_are_no_failure_unless_asked_for(deepera_lab, files):
    args = ("bioasq", "check", files[1], "--questions", files[0])
    result = deepera_lab(*args)
    assert result.exit_code == 0
    assert "warning: not-yes-or-no\n  q3: exact_answer: must be 'yes' or 'no'" in result.stdout
    assert "0 errors, 3 warnings" in result.stdout
    assert deepera_lab(*args, "--strict").exit_code == 1


def test_errors_come_first_and_make_the_code_1(deepera_lab, tmp_path):
    many = [question(f"q{n}", documents=docs(n, scheme="https")) for n in range(8)]
    path = write_set(tmp_path / "in.json", *many, {**question("q9"), "documents": None})
    result = deepera_lab("bioasq", "check", path)
    assert result.exit_code == 1
    assert result.stdout.startswith("error: crash\n  q9: documents: must be a list, got None")
    assert "and 3 more, see --json" in result.stdout
    plain = json.loads(deepera_lab("bioasq", "check", path, "--json").stdout)
    assert (plain["errors"], plain["warnings"]) == (1, 8)
    assert {
        "name": "spelling",
        "level": "warning",
        "question": "q7",
        "field": "documents",
    }.items() <= (plain["problems"][7].items())


def test_a_good_submission_is_told_in_one_line(deepera_lab, tmp_path):
    path = write_set(tmp_path / "in.json", question("q1", "yesno", docs(1), exact="yes"))
    result = deepera_lab("bioasq", "check", path, "--phase", "a")
    assert result.stdout.splitlines()[-1].endswith("in.json: 0 errors, 1 warning")


def test_an_empty_submission_is_no_good_one(deepera_lab, tmp_path):
    result = deepera_lab("bioasq", "check", write_set(tmp_path / "none.json"))
    assert result.exit_code == 2
    assert "none.json' has no question" in result.stderr
