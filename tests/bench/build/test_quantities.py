"""Numbers and quantities as real texts write them."""

import pytest

from deepera_graph.lab.build.writing.answers import contains_answer
from deepera_graph.lab.build.writing.faults import read_quantities


def values(text):
    return [(one.value, one.kind) for one in read_quantities(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2,4-D", [(2, ""), (4, "")]),
        ("1,2-dichloroethane", [(1, ""), (2, "")]),
        ("2,3,7,8-TCDD", [(2, ""), (3, ""), (7, ""), (8, "")]),
        ("12,5 %", [(12.5, "share")]),
        ("0,0005", [(0.0005, "")]),
        ("a 2,5-fold rise", [(2.5, "ratio")]),
        ("1,200 eggs", [(1200, "")]),
        ("-1,234,567.5 mg", [(1234.5675, "mass")]),
        ("of 1,2,3 and 4", [(1, ""), (2, ""), (3, ""), (4, "")]),
        ("in 2009,2010", [(2009, ""), (2010, "")]),
        ("12, 15", [(12, ""), (15, "")]),
        ("0,005 g", [(0.005, "mass")]),
        ("1,000,0005", [(1, ""), (0, ""), (5, "")]),
    ],
)
def test_commas_part_thousands_decimals_and_what_stands_in_a_list(text, expected):
    assert values(text) == [(pytest.approx(value), kind) for value, kind in expected]


def test_a_share_with_a_decimal_comma_is_that_with_a_point():
    question = "What share of the moths was caught?"
    assert contains_answer("The traps caught 12,5 % of the moths.", "12.5 percent", question)


@pytest.mark.parametrize("text", ["1,2-" * 9, ",".join(["100"] * 9), "9" * 400, "٣,٤ ٪", "², ½"])
def test_any_run_of_digits_and_commas_is_read(text):
    read_quantities(text)
