"""Tags that databases leave in titles and abstracts."""

import json

import pytest

from deepera_graph.retrieval.sources import read_passages
from deepera_graph.text.plain import clean_markup, drop_markup


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (
            "<b>Results</b> Wax kept <i>Malus</i> firm (p &lt; 0.05).",
            "Results Wax kept Malus firm (p < 0.05).",
        ),
        ("<jats:p>CO<jats:sub>2</jats:sub> rose.</jats:p>", "CO2 rose."),
        (
            "2 × 10<sup>5</sup> g<sup>-1</sup>, 10<jats:sup>&minus;4</jats:sup>, 1<sup>st</sup>",
            "2 × 10⁵ g-1, 10⁻⁴, 1st",
        ),
        (
            "10<sup>&#8722;3</sup> or 10<sup>&#x2212;3</sup> M, 5<sup>&amp;lt;</sup>",
            "10⁻³ or 10⁻³ M, 5&lt;",
        ),
        (
            "10<sup><i>5</i></sup> or 10<i><sup>-6</sup></i> M, <b>1<sup>st</sup></b>",
            "10⁵ or 10⁻⁶ M, 1st",
        ),
        ("Malus &amp; wax (p &lt; 0.001)", "Malus & wax (p < 0.001)"),
        ("&alpha;, &#x3b1; and &#945; (p&nbsp;=&nbsp;0.01)", "α, α and α (p = 0.01)"),
        ("R&D; AT&T &copy a&b; &unknown;", "R&D; AT&T &copy a&b; &unknown;"),
        ("&lt;i&gt;Malus&lt;/i&gt; (p &amp;lt; 0.05)", "Malus (p < 0.05)"),
        ("A vector<int>  of\nfirmness < 5 & more", "A vector<int>  of\nfirmness < 5 & more"),
    ],
)
def test_tags_of_html_and_jats_go_and_nothing_else(written, text):
    assert drop_markup(written) == text


@pytest.mark.parametrize("clean", [drop_markup, clean_markup])
def test_entities_are_read_once(clean):
    assert clean("p &amp;lt; 0.05") == "p &lt; 0.05"


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("a.jsonl", '{"id": "a", "title": "Wax &amp; &alpha;", "text": "Firm (p &lt; 0.05)."}'),
        ("a.csv", "id,title,text\na,Wax &amp; &alpha;,Firm (p &lt; 0.05).\n"),
        ("a.ris", "TY  - JOUR\nTI  - Wax &amp; &alpha;\nAB  - Firm (p &lt; 0.05).\nER  - \n"),
        ("a.bib", "@article{a, title={Wax &amp; &alpha;}, abstract={Firm (p &lt; 0.05).}}\n"),
        ("a.nbib", "PMID- 1\nTI  - Wax &amp; &alpha;\nAB  - Firm (p &lt; 0.05).\n"),
    ],
)
def test_no_record_of_a_file_has_entities(tmp_path, name, record):
    file = tmp_path / name
    file.write_text(record)
    [passage] = read_passages(file)
    assert passage.metadata["title"] == "Wax & α"
    assert passage.page_content.endswith("Firm (p < 0.05).")


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
