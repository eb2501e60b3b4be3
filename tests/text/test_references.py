"""References in CSL, with values that are not what its schema says."""

import json
from io import BytesIO

import pytest

from deepera_graph.text.records import read_records

ISSUED = {"date-parts": [[2020]]}


@pytest.mark.parametrize(
    ("broken", "kept"),
    [
        ({"issued": {"date-parts": {"0": 1}}}, {}),
        ({"issued": {"date-parts": 5}}, {}),
        ({"issued": {"date-parts": [2020]}}, {"year": 2020}),
        ({"issued": ISSUED, "author": [{"family": 5, "given": ["a"]}]}, {"year": 2020}),
        ({"issued": ISSUED, "author": [{"family": "Lee", "given": 5}]}, {"authors": "Lee"}),
        ({"issued": ISSUED, "author": [{"literal": {}}, {"family": "Lee"}]}, {"authors": "Lee"}),
    ],
)
def test_a_strange_value_costs_itself_alone(broken, kept):
    item = {"title": "Wax", "abstract": "Apples stay firm.", **broken}
    [record] = read_records(BytesIO(json.dumps([item]).encode()), ".json")
    assert not record.error
    assert {
        "title": "Wax",
        "abstract": "Apples stay firm.",
        **kept,
    }.items() <= record.fields.items()


def test_tags_in_an_abstract_part_no_formula_and_keep_an_exponent():
    abstract = "<jats:p>CO<jats:sub>2</jats:sub> in 10<jats:sup>5</jats:sup> cells.</jats:p>"
    item = {"title": "Wax", "issued": ISSUED, "abstract": abstract}
    [record] = read_records(BytesIO(json.dumps([item]).encode()), ".json")
    assert record.fields["abstract"] == "CO2 in 10⁵ cells."
