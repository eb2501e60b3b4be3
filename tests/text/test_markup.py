"""Tags that databases leave in titles and abstracts."""

import json

import pytest

from deepera_graph.retrieval.sources import read_passages
from deepera_graph.text.plain import drop_markup


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (
            "<b>Results</b> Wax kept <i>Malus</i> firm (p &lt; 0.05).",
            "Results Wax kept Malus firm (p < 0.05).",
        ),
        ("<jats:p>CO<jats:sub>2</jats:sub> rose.</jats:p>", "CO2 rose."),
        ("A vector<int>  of\nfirmness < 5 & more", "A vector<int>  of\nfirmness < 5 & more"),
    ],
)
def test_tags_of_html_and_jats_go_and_nothing_else(written, text):
    assert drop_markup(written) == text


def test_no_passage_of_a_file_has_tags(tmp_path):
    row = {
        "id": "a",
        "title": "Wax on <i>Malus</i>",
        "text": "<b>Results:</b> Wax kept apples firm.",
    }
    file = tmp_path / "papers.jsonl"
    file.write_text(json.dumps(row))
    [passage] = read_passages(file)
    assert "Results: Wax kept apples firm." in passage.page_content
    assert passage.metadata["title"] == "Wax on Malus"
    assert "<" not in passage.page_content
