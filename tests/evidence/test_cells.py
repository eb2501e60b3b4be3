"""Cells by rules: right on abstracts of ten fields, and only with words that are there."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from deepera_graph.evidence.table.cells import read_cells

TABLES = Path(__file__).with_name("tables")
NUMBERS = ("n", "effect", "interval", "p")


def read(name):
    return [json.loads(one) for one in (TABLES / name).read_text("utf-8").splitlines()]


def numbers(value):
    """Return the numbers of a cell, with the sign of a p value, as they compare."""
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", value)], value[:1] in "<>"


def count(rows, names):
    """Count right, wrong and missed cells."""
    found = Counter()
    for row in rows:
        cells = read_cells(row["text"])
        for name in names:
            said = cells[name].value if name in cells else ""
            right = row["cells"][name]
            same = numbers(said) == numbers(right) if name in NUMBERS else said == right
            kind = "right" if said and same else "wrong" if said else "missed" if right else "none"
            found[kind] += 1
            found["known"] += bool(right)
    return found


@pytest.mark.parametrize("file", ["seen.jsonl", "held.jsonl"])
@pytest.mark.parametrize(
    ("names", "least"), [(NUMBERS, 0.95), (("design",), 0.95), (("direction",), 0.9)]
)
def test_cells_are_seldom_wrong_and_seven_of_ten_are_found(file, names, least):
    found = count(read(file), names)
    assert found["right"] / (found["right"] + found["wrong"]) >= least
    assert found["right"] / found["known"] >= 0.70
