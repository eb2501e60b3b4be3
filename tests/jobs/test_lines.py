"""What is read out of a question file, and what is wrong with it."""

import io
import json

import pytest

from deepera_graph.jobs.lines import BadLine, QuestionLine, read_lines

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
        (b"{}", "question must be a text, not blank, got None"),
        (b'{"question": " "}', "question must be a text, not blank, got ' '"),
        (b'{"question": 3}', "question must be a text, not blank, got 3"),
        (b'{"question": "Why?"}', "has no passages, only a question"),
        (b'{"question": "Why?", "docs": []}', "has no passages, only docs"),
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
