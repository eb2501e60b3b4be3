"""What is read out of a question file, and what is wrong with it."""

import io
import json

import pytest

from deepera_graph.errors import InputError
from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines, refuse_wrong_file
from deepera_graph.passages import read_passages

GOOD = b'{"id": "q", "question": "Why?", "passages": [{"text": "Because."}]}'


def read_one(raw):
    (line,) = read_lines(io.BytesIO(raw))
    return line


def test_a_line_is_read_with_its_number_and_where_it_ends():
    line = read_one(GOOD + b"\n")
    assert line == QuestionLine(
        number=1,
        end=len(GOOD) + 1,
        id="q",
        question="Why?",
        passages=[{"text": "Because."}],
        metadata={},
    )


def test_a_line_without_an_id_is_named_by_its_number():
    raw = b'\n\n{"question": "Why?", "passages": []}\n'
    assert read_one(raw).id == "3"


@pytest.mark.parametrize("value", [None, 7, "seven"])
def test_an_id_becomes_a_string(value):
    raw = json.dumps({"id": value, "question": "Why?", "passages": []}).encode()
    assert read_one(raw).id == ("1" if value is None else str(value))


def test_contexts_are_passages_and_a_first_stage_score_is_a_score():
    fields = {"question": "Why?", "contexts": [{"text": "a", "first_stage_score": 0.3}, "b"]}
    line = read_one(json.dumps(fields).encode())
    assert line.passages == [{"text": "a", "score": 0.3}, "b"]


def test_a_score_goes_before_a_first_stage_score():
    passages = [{"text": "a", "score": 0, "first_stage_score": 0.3}]
    line = read_one(json.dumps({"question": "Why?", "passages": passages}).encode())
    assert line.passages == [{"text": "a", "score": 0}]


def test_other_fields_are_metadata():
    fields = {"question": "Why?", "passages": [], "subject": "logic", "metadata": {"year": 1}}
    assert read_one(json.dumps(fields).encode()).metadata == {"subject": "logic", "year": 1}


def test_only_a_line_feed_ends_a_line():
    question = "One\u2028two\x85three\x0bfour?"
    raw = json.dumps({"question": question, "passages": []}, ensure_ascii=False).encode()
    assert read_one(raw + b"\r\n").question == question


def test_a_byte_order_mark_is_passed_over():
    assert read_one(b"\xef\xbb\xbf" + GOOD).id == "q"


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"not json", "not JSON: Expecting value at column 1"),
        (b'{"question": "\xff"}', "not UTF-8: invalid start byte at byte 15"),
        (b"[1]", "must be a JSON object, got [1]"),
        (b'{"a": NaN}', "not JSON: NaN is no JSON number"),
        (b"[" * 100_000, "not JSON: "),
        (b'{"id": true}', "id must be a string, got True"),
        (b'{"id": ""}', "id must be a string, got ''"),
        (b"{}", "has no question or query, found nothing"),
        (b'{"text": "a", "title": "b"}', "has no question or query, found text, title"),
        (b'{"question": " "}', "question must be a text, not blank, got ' '"),
        (b'{"question": 3}', "question must be a text, not blank, got 3"),
        (
            b'{"question": "Why?"}',
            "has no passages, contexts, documents, candidates, hits; found a question alone",
        ),
        (
            b'{"question": "Why?", "docs": []}',
            "has no passages, contexts, documents, candidates, h",
        ),
        (b'{"question": "Why?", "passages": null}', "passages must be a list, got None"),
        (b'{"question": "Why?", "contexts": {}}', "contexts must be a list, got {}"),
        (b'{"question": "W", "passages": [], "metadata": 1}', "metadata must be an object, got 1"),
    ],
)
def test_a_bad_line_says_what_is_wrong(raw, problem):
    bad = read_one(raw)
    assert isinstance(bad, BadLine)
    assert bad.error.startswith(problem)


def test_an_id_used_twice_names_the_first_line():
    first, second = read_lines(io.BytesIO(GOOD + b"\n" + GOOD))
    assert isinstance(first, QuestionLine)
    assert second.error == "id 'q' is used twice, first in line 1"
    assert (second.number, second.id) == (2, "q")


def test_lines_after_a_bad_one_are_read():
    lines = list(read_lines(io.BytesIO(b"nope\n" + GOOD)))
    assert [type(line) for line in lines] == [BadLine, QuestionLine]


def test_a_line_is_read_only_when_it_is_asked_for():
    source = io.BytesIO(GOOD + b"\n" + GOOD + b"\n")
    next(read_lines(source))
    assert source.tell() == len(GOOD) + 1


def test_a_request_to_cohere_or_jina_is_a_line():
    request = {"model": "rerank-3", "query": "Why?", "documents": ["a", {"text": "b"}], "top_n": 3}
    line = read_one(json.dumps(request).encode())
    assert (line.id, line.question, line.passages) == ("1", "Why?", ["a", {"text": "b"}])
    assert line.metadata == {"model": "rerank-3", "top_n": 3}


def test_a_request_of_rank_llm_is_a_line():
    request = {
        "query": {"text": "Why?", "qid": 264014},
        "candidates": [
            {"docid": "d1", "score": 15.9, "doc": {"title": "T", "contents": "a"}},
            {"docid": 7, "score": 14.1, "doc": "b"},
        ],
    }
    line = read_one(json.dumps(request).encode())
    assert (line.id, line.question) == ("264014", "Why?")
    assert line.passages == [
        {"title": "T", "contents": "a", "id": "d1", "score": 15.9},
        {"text": "b", "id": 7, "score": 14.1},
    ]
    read = [(one.id, one.page_content) for one in read_passages(line.passages)]
    assert read == [("d1", "a"), ("7", "b")]


@pytest.mark.parametrize("name", ["qid", "query_id", "_id"])
def test_the_id_of_a_question_goes_by_several_names(name):
    assert read_one(json.dumps({name: "x", "query": "Why?", "hits": []}).encode()).id == "x"


def refuse(raw):
    return list(refuse_wrong_file(read_lines(io.BytesIO(raw))))


def test_a_corpus_is_refused_after_a_few_lines_which_are_named_with_what_they_hold():
    source = io.BytesIO(b'{"title": "T", "abstract": "a"}\n' * 300)
    with pytest.raises(InputError) as caught:
        list(refuse_wrong_file(read_lines(source)))
    assert str(caught.value) == (
        "none of the first 20 lines can be used: "
        "line 1: has no question or query, found title, abstract; and 19 more. "
        "This looks like a corpus: see deepera index"
    )
    assert source.tell() < len(source.getvalue()) / 10


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"nope\n", "its only line cannot be used: line 1: not JSON"),
        (
            b"nope\n[1]\n[2]\n[3]\nnope\n",
            r"none of its 5 lines .*line 1: not JSON: .*; line 2: .*; line 3: .*; and 2 more$",
        ),
    ],
)
def test_a_short_file_of_bad_lines_alone_is_refused_too(raw, problem):
    with pytest.raises(InputError, match=problem):
        refuse(raw)


def test_a_file_with_a_good_line_among_the_first_is_read_on():
    lines = refuse(b"nope\n" * 19 + GOOD + b"\n" + b"nope\n" * 30)
    assert [line.number for line in lines] == list(range(1, 51))


def test_an_empty_file_is_refused():
    with pytest.raises(InputError, match="holds no question"):
        refuse(b"")


def test_a_good_line_is_given_on_before_the_next_one_is_read():
    source = io.BytesIO(GOOD + b"\n" + GOOD + b"\n")
    next(refuse_wrong_file(read_lines(source)))
    assert source.tell() == len(GOOD) + 1
