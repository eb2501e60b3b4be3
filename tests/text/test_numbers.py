"""Numbers in words."""

import pytest

from deepera_graph.evidence.table.cells import read_cells
from deepera_graph.text.terms import write_numbers


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("Eighty-four drivers", "84 drivers"),
        ("One hundred and ninety-one older persons", "191 older persons"),
        ("a hundred plots and three hundred five trees", "100 plots and 305 trees"),
        ("nineteen of twenty two", "19 of 22"),
        ("nobody at once", "nobody at once"),
    ],
)
def test_numbers_in_words_are_read(words, digits):
    assert write_numbers(words) == digits


def test_a_size_in_words_may_have_a_hundred():
    text = "One hundred and ninety-one older persons took part in a randomised trial."
    assert read_cells(text)["n"].value == "191"
