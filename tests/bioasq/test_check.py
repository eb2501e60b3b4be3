"""Problems of a submission, named before it is sent."""

import json

import pytest

from deepera_graph.bioasq.check import check_submission
from deepera_graph.bioasq.official import evaluate_officially
from deepera_graph.bioasq.questions import parse_question
from deepera_graph.errors import InputError
from support.bioasq import FIXTURES, docs, piece, question, write_set

GOOD = (
    question("q1", "yesno", docs(1), [piece(1, 0, 9)], "yes", "Moss does."),
    question("q2", "factoid", docs(2), [piece(2, 0, 9, "title")], [["amber"], ["jet"]], "Amber."),
    question("q3", "list", docs(3), [piece(3, 0, 9)], [["iron"], ["zinc"]], "Two metals."),
    question("q4", "summary", docs(4), [piece(4, 0, 9)], None, "Moss is green."),
)
YESNO, FACTOID, LIST, SUMMARY = range(4)


@pytest.fixture
def check(tmp_path):
    """Checks good answers of which one is changed; returns (name, level, field) of problems."""

    def run(place=YESNO, change=None, *, questions=GOOD, **options):
        entries = [dict(one) for one in GOOD]
        entries[place] |= change or {}
        path = write_set(tmp_path / "submission.json", *entries)
        asked = None if questions is None else [*map(parse_question, questions)]
        return check_submission(path, asked, **options)

    return run


def test_a_good_submission_has_no_problem(check):
    assert check() == check(questions=None) == check(phase="a") == check(phase="b") == []


@pytest.mark.parametrize(
    ("place", "change", "name", "level", "field"),
    [
        (YESNO, {"snippets": [{**piece(1, 0, 9), "score": 1}]}, "crash", "error", "snippet 1"),
        (YESNO, {"exact_answer": ["yes"]}, "crash", "error", "exact_answer"),
        (YESNO, {"exact_answer": [["yes"]]}, "crash", "error", "exact_answer"),
        (YESNO, {"exact_answer": None}, "crash", "error", "exact_answer"),
        (YESNO, {"documents": None}, "crash", "error", "documents"),
        (FACTOID, {"exact_answer": ["amber"]}, "crash", "error", "exact_answer"),
        (FACTOID, {"exact_answer": [["amber", None]]}, "crash", "error", "exact_answer"),
        (YESNO, {"documents": docs(*range(11))}, "too-many-documents", "error", "documents"),
        (YESNO, {"documents": docs(1, 1)}, "repeated-document", "warning", "documents"),
        (YESNO, {"documents": docs(1, scheme="https")}, "spelling", "warning", "documents"),
        (YESNO, {"documents": ["1"]}, "spelling", "warning", "documents"),
        (YESNO, {"documents": [f"{docs(1)[0]}/"]}, "spelling", "warning", "documents"),
        (YESNO, {"documents": []}, "empty", "warning", "documents"),
        (
            YESNO,
            {"snippets": [piece(1, n, n + 9) for n in range(11)]},
            "too-many-snippets",
            "error",
            "snippets",
        ),
        (YESNO, {"snippets": [piece(1, 0, 9)] * 2}, "repeated-snippet", "warning", "snippet 2"),
        (YESNO, {"snippets": [piece(1, 0, 9, scheme="https")]}, "spelling", "warning", "snippet 1"),
        (YESNO, {"snippets": [{"text": "moss"}]}, "missing-key", "error", "snippet 1"),
        (YESNO, {"snippets": [piece(1, 0, 9, "sections.0")]}, "section", "warning", "snippet 1"),
        (
            YESNO,
            {"snippets": [piece(1, 9, 5, "title", "abstract")]},
            "two-sections",
            "warning",
            "snippet 1",
        ),
        (YESNO, {"snippets": [piece(1, 9, 5)]}, "offsets", "error", "snippet 1"),
        (
            YESNO,
            {"snippets": [{**piece(1, 0, 9), "text": "moss"}]},
            "offsets",
            "warning",
            "snippet 1",
        ),
        (YESNO, {"exact_answer": "Yes"}, "not-yes-or-no", "warning", "exact_answer"),
        (YESNO, {"exact_answer": "not known"}, "not-yes-or-no", "error", "exact_answer"),
        (YESNO, {"exact_answer": "maybe"}, "not-yes-or-no", "error", "exact_answer"),
        (FACTOID, {"exact_answer": "amber"}, "not-a-list", "error", "exact_answer"),
        (FACTOID, {"exact_answer": [[str(n)] for n in range(6)]}, "too-many-names", "error", None),
        (LIST, {"exact_answer": [[str(n)] for n in range(101)]}, "too-many-names", "error", None),
        (LIST, {"exact_answer": [["a", "b"]]}, "synonyms", "warning", "exact_answer"),
        (LIST, {"exact_answer": [["EGF "]]}, "blanks", "warning", "exact_answer"),
        (LIST, {"exact_answer": [["EGF."]]}, "full-stop", "warning", "exact_answer"),
        (LIST, {"exact_answer": [["a"], ["A"]]}, "repeated-name", "warning", "exact_answer"),
        (LIST, {"exact_answer": [[], ["a"]]}, "empty-name", "warning", "exact_answer"),
        (LIST, {"exact_answer": [[""]]}, "empty-name", "warning", "exact_answer"),
        (LIST, {"exact_answer": [["a" * 101]]}, "long-name", "error", "exact_answer"),
        (SUMMARY, {"exact_answer": "yes"}, "needless-answer", "warning", "exact_answer"),
        (SUMMARY, {"ideal_answer": "moss " * 201}, "long-ideal", "error", "ideal_answer"),
        (SUMMARY, {"ideal_answer": ["moss"]}, "ideal", "warning", "ideal_answer"),
        (SUMMARY, {"ideal_answer": ""}, "empty", "warning", "ideal_answer"),
        (SUMMARY, {"type": "list"}, "type", "warning", "type"),
        (SUMMARY, {"type": "opinion"}, "type", "warning", "type"),
    ],
)
def test_a_problem_is_named_with_question_and_field(check, place, change, name, level, field):
    [problem] = check(place, change)
    assert (problem.name, problem.level) == (name, level)
    assert problem.question == f"q{place + 1}"
    assert problem.field == (field or "exact_answer")
    assert problem.message


def test_two_spellings_of_a_document_are_told(check):
    found = check(YESNO, {"documents": docs(1) + docs(1, scheme="https")})
    assert [one.name for one in found] == ["spelling", "repeated-document"]


def test_what_is_asked_for_by_the_phase_is_missed(check, tmp_path):
    bare = [{"id": one["id"], "type": one["type"]} for one in GOOD]
    path = write_set(tmp_path / "bare.json", *bare)
    assert check_submission(path) == []
    found = check_submission(path, phase="b")
    fields = [(one.question, one.field) for one in found]
    assert ("q4", "ideal_answer") in fields
    assert ("q4", "exact_answer") not in fields


def test_an_unanswered_question_is_an_error_where_the_evaluator_ends(tmp_path):
    asked = [*map(parse_question, GOOD)]
    path = write_set(tmp_path / "in.json", GOOD[0])
    found = {one.question: one.level for one in check_submission(path, asked)}
    assert found == {"q2": "error", "q3": "error", "q4": "warning"}
    only_a = {key: GOOD[0][key] for key in ("id", "type", "body", "documents", "snippets")}
    levels = {one.level for one in check_submission(write_set(path, only_a), asked)}
    assert levels == {"warning"}


def test_ids_are_told_that_come_twice_or_were_not_asked(tmp_path):
    path = write_set(tmp_path / "in.json", *GOOD, GOOD[0], {**GOOD[1], "id": "q9"})
    found = check_submission(path, map(parse_question, GOOD))
    assert [(one.name, one.question) for one in found] == [
        ("repeated-id", "q1"),
        ("unknown-id", "q9"),
    ]


@pytest.mark.parametrize(
    ("entry", "name"), [("text", "crash"), ({"type": "list"}, "no-id"), ({"id": None}, "crash")]
)
def test_a_question_without_an_id_has_a_number(tmp_path, entry, name):
    [found] = check_submission(write_set(tmp_path / "in.json", entry))
    assert (found.name, found.question) == (name, "number 1")


def test_a_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "in.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="as BioASQ task B has it"):
        check_submission(path)


def load(path):
    """Golden questions; those of a type that is not known as summaries."""
    fields = json.loads(path.read_text(encoding="utf-8"))["questions"]
    return [
        parse_question({**one, "type": one["type"].replace("opinion", "summary")}) for one in fields
    ]


@pytest.mark.skipif(not FIXTURES.exists(), reason="needs the fixtures of the evaluator")
@pytest.mark.parametrize(
    ("case", "phase"),
    [
        ("question_missing_b", "b"),
        ("snippets_unknown_key", "a"),
        ("yesno_as_list", "b"),
        ("answer_null", "b"),
        ("factoid_flat_list", "b"),
    ],
)
def test_whatever_ends_the_evaluator_is_an_error(case, phase):
    golden, given = (FIXTURES / case / f"{name}.json" for name in ("golden", "submission"))
    with pytest.raises(InputError):
        evaluate_officially(golden, given, phase)
    assert "error" in {one.level for one in check_submission(given, load(golden), phase=phase)}
