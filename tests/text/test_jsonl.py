"""The one reader of JSON lines."""

from io import BytesIO

import pytest

from deepera_graph.errors import InputError
from deepera_graph.text.jsonl import parse_object, read_raw_lines


def test_blank_lines_are_passed_over_and_the_numbers_are_those_of_the_file():
    source = BytesIO(b'\xef\xbb\xbf{"a": 1}\n\n  \n{"a": 2}')
    assert [(one.number, one.end, one.text) for one in read_raw_lines(source)] == [
        (1, 12, b'{"a": 1}\n'),
        (4, 24, b'{"a": 2}'),
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\xff{}", "not UTF-8: invalid start byte at byte 1"),
        (b'{"a": }', "not JSON: Expecting value at column 7"),
        (b'{"a": "b', "not JSON: Unterminated string starting at column 7"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"[" * 100_000, "not JSON"),
        (b"[1]", "must be a JSON object, got [1]"),
    ],
)
def test_a_line_that_is_no_object_is_refused_with_the_cause(line, why):
    with pytest.raises(InputError) as error:
        parse_object(line)
    assert why in str(error.value)
