"""The official evaluator, value by value."""

import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest

from deepera_graph.bioasq.measures import evaluate_phase
from deepera_graph.bioasq.official import EDITIONS, evaluate_officially
from deepera_graph.errors import InputError, SettingsError
from support.bioasq import (
    FIVE_GIVEN,
    FIVE_GOLDEN,
    FIXTURES,
    docs,
    draw_sets,
    piece,
    question,
    write_set,
)

JARS = os.environ.get("DEEPERA_BIOASQ_JARS", "")
NAMES = {
    "a": [
        f"{kind}_{name}"
        for kind in ("concepts", "documents", "snippets", "triples")
        for name in ("precision", "recall", "f1", "map", "gmap")
    ],
    "b": [
        *("yesno_accuracy", "factoid_strict", "factoid_lenient", "factoid_mrr", "list_precision"),
        *("list_recall", "list_f1", "yesno_macro_f1", "yesno_f1_yes", "yesno_f1_no"),
    ],
}


@pytest.fixture
def official(tmp_path):
    """Evaluates questions as the official evaluator does."""

    def evaluate(golden, given, phase, edition=8):
        files = (
            write_set(tmp_path / "golden.json", *golden),
            write_set(tmp_path / "sub.json", *given),
        )
        return evaluate_officially(*files, phase, edition=edition).values()

    return evaluate


def measured(values, kind):
    return {name.partition("_")[2]: one for name, one in values.items() if name.startswith(kind)}


@pytest.mark.parametrize(
    ("phase", "edition", "expected"),
    [
        (
            "a",
            8,
            {
                "documents_precision": 0.7,
                "documents_recall": 0.7333333333,
                "documents_f1": 0.6933333333,
                "documents_map": 0.6345396825,
                "documents_gmap": 0.5630044398,
                "snippets_precision": 0.6909090909,
                "snippets_recall": 0.6333333333,
                "snippets_f1": 0.6552380952,
                "snippets_map": 0.7,
            },
        ),
        ("a", 5, {"documents_map": 0.1378730159, "documents_gmap": 0.1111663681}),
        (
            "b",
            8,
            {
                "yesno_accuracy": 2 / 3,
                "yesno_macro_f1": 0.4,
                "yesno_f1_yes": 0.8,
                "yesno_f1_no": 0.0,
                "factoid_strict": 0.0,
                "factoid_lenient": 1.0,
                "factoid_mrr": 0.5,
                "list_precision": 0.5,
                "list_recall": 2 / 3,
                "list_f1": 0.5714285714,
            },
        ),
    ],
)
def test_five_questions_have_the_values_of_the_jar(official, phase, edition, expected):
    found = official(FIVE_GOLDEN, FIVE_GIVEN, phase, edition)
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("golden", "given", "expected"),
    [
        pytest.param(docs(*range(20)), docs(*range(20)), {"map": 2.0}, id="not-cut-at-10"),
        pytest.param(
            docs(1), docs(9, 1, 1), {"precision": 0.5, "recall": 1, "map": 0.5}, id="repeated"
        ),
        pytest.param(docs(1), docs(1, scheme="https"), {"map": 0, "f1": 0}, id="https-is-not-http"),
        pytest.param(
            docs(1) + docs(1, scheme="https"),
            docs(1),
            {"recall": 0.5, "map": 0.5},
            id="golden-under-both-schemes",
        ),
        pytest.param(
            docs(*range(15)),
            docs(0, 91, 2, 93, 4, 95, 6, 97, 8, 99),
            {"map": 0.3393650794},
            id="divided-by-10-of-15",
        ),
    ],
)
def test_documents_are_counted_as_they_are_written(official, golden, given, expected):
    found = official([question("q", documents=golden)], [question("q", documents=given)], "a")
    assert measured(found, "documents") == pytest.approx(
        measured(found, "documents") | expected, abs=1e-9
    )


@pytest.mark.parametrize("given", [(10, 20), (0, 0)], ids=["at-its-end", "at-its-beginning"])
def test_snippets_that_touch_share_one_character(official, given):
    golden = question("q", documents=docs("1"), snippets=[piece("1", 0, 10)])
    found = official([golden], [question("q", snippets=[piece("1", *given)])], "a")
    size = given[1] - given[0] + 1
    assert measured(found, "snippets")["recall"] == pytest.approx(1 / 11)
    assert measured(found, "snippets")["precision"] == pytest.approx(1 / size)


TWO = [["EGF", "epidermal growth factor"], ["TGF"]]


@pytest.mark.parametrize(
    ("given", "precision", "recall", "f1"),
    [
        pytest.param([["EGF"], ["egf"]], 0.5, 0.5, 0.5, id="the-same-again-is-wrong"),
        pytest.param([["EGF", "TGF"]], 1, 0.5, 2 / 3, id="only-the-first-of-an-inner-list"),
        pytest.param([["EGF "]], 0, 0, 0, id="a-trailing-blank"),
        pytest.param(
            [["epidermal growth factor"], ["EGF"], ["TGF"]], 2 / 3, 1, 0.8, id="a-second-synonym"
        ),
        pytest.param([[], ["EGF"]], 1, 0.5, 2 / 3, id="an-empty-one-is-dropped"),
    ],
)
def test_entities_of_lists(official, given, precision, recall, f1):
    found = official([question("q", "list", exact=TWO)], [question("q", "list", exact=given)], "b")
    assert measured(found, "list") == pytest.approx(
        {"precision": precision, "recall": recall, "f1": f1}
    )


def test_a_factoid_is_credited_beyond_the_fifth_candidate(official):
    given = [[f"wrong {rank}"] for rank in range(5)] + [["amber"]]
    found = official(
        [question("q", "factoid", exact=[["amber"]])], [question("q", "factoid", exact=given)], "b"
    )
    assert measured(found, "factoid") == pytest.approx({"strict": 0, "lenient": 1, "mrr": 1 / 6})


@pytest.mark.parametrize(
    ("said", "right"), [("not known", 1), ("unknown", 1), ("maybe", 0), ("yes and no", 0)]
)
def test_a_golden_no_is_met_by_no_anywhere(official, said, right):
    golden = [question("q", "yesno", exact="no")]
    found = official(golden, [question("q", "yesno", exact=said)], "b")
    assert (found["yesno_accuracy"], found["yesno_f1_no"]) == (right, right)


def test_an_unanswered_question_is_left_out_of_phase_a(official):
    golden = [question("q1", documents=docs(1)), question("q2", documents=docs(2))]
    assert official(golden, golden[:1], "a")["documents_map"] == 1


@pytest.mark.parametrize(
    ("phase", "given", "message"),
    [
        ("b", {"id": "q9"}, r"question 'q' is not answered, at which"),
        ("b", {"exact_answer": ["amber"]}, r"question 1 \('q'\): exact_answer: must be a list of"),
        ("b", {"exact_answer": None}, r"\('q'\): exact_answer: .* got null"),
        ("b", {"exact_answer": 7}, r"\('q'\): exact_answer: .* got 7"),
        ("b", {"exact_answer": [["amber", None]]}, r"\('q'\): exact_answer: an inner list .* null"),
        (
            "a",
            {"snippets": [{**piece(1, 0, 9), "score": 1}]},
            r"\('q'\): snippet 1: the key 'score'",
        ),
        ("a", {"snippets": [{**piece(1, 0, 9), "text": None}]}, r"snippet 1: text must be text"),
        (
            "a",
            {"snippets": [piece(1, 0, 9) | {"offsetInEndSection": 1.5}]},
            "a whole number, got 1.5",
        ),
        ("a", {"snippets": ["text"]}, "snippet 1: expected an object, got 'text'"),
        ("a", {"documents": None}, r"\('q'\): documents: must be a list, got None"),
        ("a", {"documents": [None]}, r"\('q'\): documents: must hold texts, got None"),
        ("a", {"body": None}, r"\('q'\): body: must be text, got None"),
    ],
)
def test_a_crash_of_the_evaluator_names_question_and_field(official, phase, given, message):
    golden = question("q", "factoid", docs(1), [piece(1, 0, 9)], [["amber"]])
    with pytest.raises(InputError, match=message):
        official([golden], [golden | given], phase)


@pytest.mark.parametrize("exact", [["yes"], [["yes"]], []])
def test_yes_in_a_list_is_a_crash(official, exact):
    golden = question("q", "yesno", exact="yes")
    with pytest.raises(InputError, match=r"'q'.*: exact_answer: .*list"):
        official([golden], [golden | {"exact_answer": exact}], "b")


def test_snippets_that_the_evaluator_cannot_merge_are_a_crash(official):
    odd = [piece(1, 13, 54), piece(7, 31, 15), piece(7, 10, 29), piece(7, 17, 33)]
    golden = question("q", documents=docs(1), snippets=[piece(1, 0, 99)])
    with pytest.raises(InputError, match="'q': snippets: of those that overlap, some end before"):
        official([golden], [golden | {"snippets": odd}], "a")
    found = official([golden], [golden | {"snippets": odd[1:]}], "a")
    assert found["snippets_precision"] == 0


def test_numbers_that_stand_for_texts_are_read_as_such(official):
    golden = question("1", "factoid", exact=[["7"]])
    assert official([golden], [golden | {"id": 1, "exact_answer": [[7]]}], "b")["factoid_mrr"] == 1


def test_an_edition_that_is_not_known_is_refused(official):
    with pytest.raises(SettingsError, match="edition must be one of 5, 8, 9, got 7"):
        official(FIVE_GOLDEN, FIVE_GIVEN, "a", 7)


@pytest.mark.parametrize("phase", ["A", "phase a", ""])
def test_a_phase_that_is_not_known_is_refused(official, phase):
    with pytest.raises(SettingsError, match="phase must be one of 'a', 'b', got"):
        official(FIVE_GOLDEN, FIVE_GIVEN, phase)
    with pytest.raises(SettingsError, match="phase must be one of 'a', 'b', got"):
        evaluate_phase([], [], phase)


def test_a_golden_question_that_stands_there_twice_is_refused(official):
    with pytest.raises(InputError, match="the id 'q1' stands there twice"):
        official(FIVE_GOLDEN[:1] * 2, FIVE_GIVEN, "a")


def expected_values():
    if not FIXTURES.exists():
        return
    cases = json.loads((FIXTURES / "expected.json").read_text(encoding="utf-8"))
    for case, runs in cases.items():
        for run, values in runs.items():
            if found := re.fullmatch(r"phase([AB])-e(\d)", run):
                yield pytest.param(
                    case, found[1].lower(), int(found[2]), values, id=f"{case}-{run}"
                )


@pytest.mark.skipif(not FIXTURES.exists(), reason="needs the official evaluator's values")
@pytest.mark.parametrize(("case", "phase", "edition", "expected"), [*expected_values()])
def test_every_value_is_that_of_the_official_evaluator(case, phase, edition, expected):
    files = FIXTURES / case / "golden.json", FIXTURES / case / "submission.json"
    if "crash" in expected:
        with pytest.raises(InputError, match="official evaluator ends"):
            evaluate_officially(*files, phase, edition=edition)
        return
    assert evaluate_officially(*files, phase, edition=edition).values() == as_numbers(expected)


def as_numbers(expected):
    wanted = {
        name: math.nan if value is None else value
        for name, value in expected.items()
        if not name.startswith(("concepts", "triples"))
    }
    return pytest.approx(wanted, abs=1e-9, rel=0, nan_ok=True)


@pytest.mark.slow
@pytest.mark.skipif(not JARS, reason="DEEPERA_BIOASQ_JARS names no folder of the official jars")
@pytest.mark.parametrize("seed", range(200))
def test_random_questions_are_measured_as_by_the_jar(tmp_path, seed):
    golden, given = draw_sets(seed)
    files = write_set(tmp_path / "golden.json", *golden), write_set(tmp_path / "sub.json", *given)
    edition = EDITIONS[seed % len(EDITIONS)]
    for phase in ("a", "b"):
        expected = run_jar(phase, edition, files)
        if expected is None:
            with pytest.raises(InputError):
                evaluate_officially(*files, phase, edition=edition)
        else:
            found = evaluate_officially(*files, phase, edition=edition).values()
            assert found == as_numbers(expected)


def run_jar(phase, edition, files):
    """Return what the official evaluator prints, by name; None if it ends with an exception."""
    done = subprocess.run(
        [
            *("java", "-Dfile.encoding=UTF-8", "-cp", str(Path(JARS) / "*")),
            *("evaluation.EvaluatorTask1b", f"-phase{phase.upper()}", "-e", str(edition)),
            *map(str, files),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    numbers = [float(one) for one in done.stdout.replace("isnan", " ").split()]
    names = NAMES[phase]
    return dict(zip(names, numbers, strict=True)) if len(numbers) == len(names) else None
