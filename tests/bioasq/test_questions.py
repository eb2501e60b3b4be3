"""Reading and writing questions of BioASQ."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.bioasq.measures import evaluate_phase
from deepera_graph.bioasq.questions import (
    TYPES,
    BioasqQuestion,
    Snippet,
    document_url,
    parse_question,
    read_pmid,
    read_questions,
    read_submission,
    write_questions,
)
from deepera_graph.errors import InputError
from support.bioasq import FIVE_GOLDEN, piece, question, write_set

TEXT = st.text(min_size=1, max_size=20).filter(str.strip)
SNIPPETS = st.builds(
    Snippet,
    document=TEXT,
    text=st.text(),
    begin_section=st.sampled_from(["title", "abstract"]),
    begin=st.integers(0, 999),
    end_section=st.sampled_from(["title", "abstract"]),
    end=st.integers(0, 999),
)
EXACT = st.none() | TEXT | st.lists(st.lists(TEXT, min_size=1).map(tuple), min_size=1).map(tuple)
QUESTIONS = st.builds(
    BioasqQuestion,
    id=TEXT,
    type=st.sampled_from(TYPES),
    body=TEXT,
    documents=st.lists(TEXT).map(tuple),
    snippets=st.lists(SNIPPETS, max_size=3).map(tuple),
    exact_answer=EXACT,
    ideal_answers=st.lists(TEXT, max_size=2).map(tuple),
)


@pytest.mark.full
@given(asked=st.lists(QUESTIONS, max_size=4, unique_by=lambda one: one.id))
def test_what_was_written_is_read_again(tmp_path_factory, asked):
    path = tmp_path_factory.getbasetemp() / "questions.json"
    write_questions(path, asked)
    assert read_questions(path) == asked


def test_a_path_may_be_a_text(tmp_path):
    path = str(tmp_path / "questions.json")
    write_questions(path, [])
    assert read_questions(path) == read_submission(path, []) == []


def test_a_question_has_one_of_the_types():
    with pytest.raises(InputError, match=r"type must be one of yesno, .*, got 'yes/no'"):
        BioasqQuestion(id="q", type="yes/no", body="Do mosses need roots?")


@pytest.mark.parametrize("given", ["golden.json", parse_question(FIVE_GOLDEN[0]), {"id": "q"}, 5])
def test_what_is_no_list_of_questions_is_named(given):
    with pytest.raises(InputError, match=f"must be a list .*, got one {type(given).__name__}"):
        evaluate_phase(given, [], "a")
    with pytest.raises(InputError, match=f"must be a list .*, got one {type(given).__name__}"):
        evaluate_phase([], given, "b")


def test_the_file_has_the_names_of_bioasq(tmp_path):
    path = tmp_path / "out.json"
    write_questions(path, [parse_question(FIVE_GOLDEN[1])])
    assert json.loads(path.read_text(encoding="utf-8")) == {"questions": [FIVE_GOLDEN[1]]}


@pytest.mark.parametrize(
    ("document", "pmid"),
    [
        ("http://www.ncbi.nlm.nih.gov/pubmed/17", "17"),
        ("https://www.ncbi.nlm.nih.gov/pubmed/17/", "17"),
        (" https://pubmed.ncbi.nlm.nih.gov/17", "17"),
        ("17", "17"),
        ("scifact/17", "17"),
        ("scifact/a-17", "scifact/a-17"),
        ("https://example.org/moss", "https://example.org/moss"),
    ],
)
def test_a_pmid_is_found_however_it_is_written(document, pmid):
    assert read_pmid(document) == pmid


@given(st.integers(1, 10**9).map(str))
def test_a_pmid_has_one_url(pmid):
    assert read_pmid(document_url(pmid)) == pmid


def test_ids_of_other_collections_are_left_alone():
    assert document_url("moss-1") == "moss-1"


def test_an_entity_may_be_given_without_its_list():
    assert parse_question({**FIVE_GOLDEN[0], "exact_answer": ["a", ["b", "c"]]}).exact_answer == (
        ("a",),
        ("b", "c"),
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "opinion"}, "type must be one of yesno, factoid, list, summary, got 'opinion'"),
        ({"body": " "}, "body must be text, got ' '"),
        ({"documents": "17"}, "documents must be a list, got '17'"),
        ({"documents": [17]}, "documents must hold texts alone, got 17"),
        ({"snippets": [{}]}, "document of a snippet must be text, got None"),
        (
            {"snippets": [{**piece(1, 0, 9), "offsetInEndSection": True}]},
            "offsetInEndSection of a snippet must be a whole number, got True",
        ),
        ({"exact_answer": 3}, "exact_answer must be text or a list, got 3"),
        ({"exact_answer": [[3]]}, r"must be a list of texts, got \[3\]"),
        ({"ideal_answer": {}}, "ideal_answer must be text or a list of texts, got {}"),
    ],
)
def test_a_wrong_field_is_named_with_its_question(tmp_path, change, message):
    path = write_set(tmp_path / "in.json", question("q1"), question("q2") | change)
    with pytest.raises(InputError, match=rf"in.json: question 2 \('q2'\): .*{message}"):
        read_questions(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a JSON file"),
        ("[]", 'expected {"questions"'),
        ('{"questions": [7]}', "question 1: expected an object, got 7"),
    ],
)
def test_another_file_is_refused(tmp_path, text, message):
    path = tmp_path / "in.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_questions(path)


def test_an_id_stands_in_a_file_once(tmp_path):
    path = write_set(tmp_path / "in.json", question("q1"), question("q1"))
    with pytest.raises(InputError, match="question 2: the id 'q1' stands there twice"):
        read_questions(path)


def test_a_submission_takes_type_and_body_from_its_questions(tmp_path):
    asked = [parse_question(one) for one in FIVE_GOLDEN]
    answered = {"id": "q4", "type": "list", "exact_answer": "no"}
    path = write_set(tmp_path / "in.json", answered, question("q9"))
    [found] = read_submission(path, asked)
    assert (found.type, found.body, found.exact_answer) == ("yesno", asked[3].body, "no")


def test_an_answer_without_an_id_is_an_error(tmp_path):
    path = write_set(tmp_path / "in.json", {"type": "list", "body": "What?"})
    with pytest.raises(InputError, match="question 1: id must be text, got None"):
        read_submission(path, [parse_question(FIVE_GOLDEN[0])])
