"""Passages read from pages of HTML."""

import pytest

from deepera_graph.errors import InputError
from deepera_graph.retrieval.sources import read_passages

PAGE = """<!DOCTYPE html>
<html><head><title>Kelp | A journal</title>
<meta name="citation_title" content="Kelp and otters">
<meta name="citation_author" content="Lee, Kim"><meta name="citation_author" content="Roy, Ann">
<meta name="citation_publication_date" content="2019/08/28">
<meta name="citation_journal_title" content="Sea"><meta name="citation_doi" content="10.1000/kelp">
<script>var kelp = "<p>died</p>";</script><style>p { color: red }</style></head>
<body><header><a href="/">A journal</a></header><nav><ul><li>Home<li>About</ul></nav>
<main><h1>Kelp and otters</h1>
<p>Kelp &amp; otters live <b>together</b> on
this coast.<p>Nobody closes a paragraph.
<h2>Results</h2><p>Kelp grew by 10<sup>5</sup> plants&nbsp;a year.</p>
<table><caption>Table 1. Cover.</caption><tr><th>Plot</th><th>%</th><tr><td>A<td>40</table>
<h3>Urchins</h3><p>They died<br>in all plots.</p>
<p hidden>Cookies.</p><div aria-hidden="true">Icon</div><button>Share</button>
<h2>References</h2><ol><li>Roy A. Urchins. 2001.</ol>
<h2>Discussion</h2><p>More is to be done.</p></main>
<aside>Related: eels.</aside><footer>Imprint</footer></body></html>"""
AFTER = ["Kelp & otters live together on this coast.", "Nobody closes a paragraph."]


def texts(name):
    return [(one.metadata.get("section"), one.page_content) for one in read_passages(name)]


def test_the_main_part_of_a_page_is_read_with_what_it_says_of_itself(write):
    found = list(read_passages(write("a.html", PAGE)))
    assert found[0].metadata == {
        "source": "a.html", "title": "Kelp and otters", "authors": "Lee, Kim; Roy, Ann",
        "year": 2019, "journal": "Sea", "doi": "10.1000/kelp", "part": 1,
    }  # fmt: skip
    rows = ["Kelp grew by 10⁵ plants a year.", "Table 1. Cover.", "Plot | %", "A | 40"]
    assert texts("a.html") == [
        (None, "\n\n".join(AFTER)),
        ("Results", "\n\n".join([*rows, "Urchins", "They died in all plots."])),
        ("Discussion", "More is to be done."),
    ]


def test_a_page_without_a_main_part_is_read_but_for_what_stands_around(write):
    page = PAGE.replace("<main>", "<div class='wide'>").replace("</main>", "</div>")
    write("a.html", PAGE)
    write("b.html", page)
    assert texts("a.html") == texts("b.html")


def test_a_page_that_marks_nothing_is_read_whole(write):
    page = "<title>Kelp</title>Kelp grew.<p>Otters<form>ate<input> urchins.</form>"
    [document] = read_passages(write("a.htm", page))
    assert document.page_content == "Kelp grew.\n\nOtters\n\nate urchins."
    assert document.metadata["title"] == "Kelp"


@pytest.mark.parametrize(
    ("head", "charset"),
    [
        ('<meta charset="iso-8859-1">', "cp1252"),
        ('<?xml version="1.0" encoding="iso-8859-2"?><html>', "iso-8859-2"),
        ("<meta http-equiv='Content-Type' content='text/html; charset=gb18030'>", "gb18030"),
        ("", "cp1252"),
        ("", "utf-8"),
        ("", "utf-8-sig"),
        ("", "utf-16"),
        ('<meta charset="utf-8">', "cp1252"),
        ('<meta charset="no-such-one">', "cp1252"),
    ],
)
def test_a_page_is_decoded_as_it_declares_itself_or_as_browsers_do(write, head, charset):
    name = write("a.html", f"<html>{head}<p>The cafés closed.".encode(charset))
    assert [one.page_content for one in read_passages(name)] == ["The cafés closed."]


@pytest.mark.full
@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<div>" * 10_000 + "Kelp grew.", "Kelp grew."),
        ("<p>Kelp grew." + "</div></b></nope>" * 10_000, "Kelp grew."),
        ("<nav>" * 5_000 + "Menu" + "</nav>" * 5_000 + "<p>Kelp grew.", "Kelp grew."),
        ("<p>Kelp grew.<!-- never closed " + "<!--" * 200_000, "Kelp grew."),
        ("<p>Kelp grew." + "<a <?x <![CDATA[" * 100_000, "Kelp grew."),
        ("<p>Kelp grew." + "<script>" * 100_000, "Kelp grew."),
    ],
    ids=["deep", "closed too often", "deep and left out", "comments", "tags", "scripts"],
)
def test_strange_nesting_costs_no_text_and_no_time(write, page, text):
    [document] = read_passages(write("a.html", page))
    assert document.page_content.startswith(text)


@pytest.mark.slow
def test_a_page_of_50_mb_is_read(write):
    part = (
        "<p>Kelp <b>grew</b> by 40% &amp; otters ate the urchins.</p><table><tr><td>1<td>2</table>"
    )
    n = (50 << 20) // len(part)
    [document] = read_passages(write("a.html", f"<main>{part * n}"), max_words=None)
    assert document.page_content.split("\n\n") == [
        "Kelp grew by 40% & otters ate the urchins.", "1 | 2",
    ] * n  # fmt: skip


def test_a_page_that_a_script_fills_is_named(write):
    name = write("a.html", "<html><body><div id=app></div><script>run()</script></body>")
    with pytest.raises(InputError, match=r"^a\.html: has no text; a page that a script fills"):
        list(read_passages(name))


def test_an_exponent_stays_one_and_a_raised_citation_changes_no_value(write):
    page = (
        "<p><sup>13</sup>C in 10<sup>6</sup> cells, 3 × 10<sup>−3</sup> M, Ca<sup>2+</sup>, the "
        "1<sup>st</sup> of 2<sup>nd</sup>, by 40%<sup><a href='#r12'>12</a></sup> in "
        "2019<sup><a href='#r3'>3</a>,"
        "<a href='#r4'>4</a></sup>.</p><p>H<sub>2</sub>O, 10<sup>6</p><p>5</sup> open</p>"
    )
    text = (
        "13C in 10⁶ cells, 3 × 10⁻³ M, Ca2+, the 1st of 2nd, by 40% in 2019.\n\nH2O, 106\n\n5 open"
    )
    assert texts(write("a.html", page)) == [(None, text)]
