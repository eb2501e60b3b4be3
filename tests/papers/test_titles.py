"""The paper that a title names."""

import random

import pytest

from deepera_graph.literature.paper_keys import normalize_id, title_key
from deepera_graph.papers import PaperBase, Scope
from deepera_graph.papers.paper import read_date, read_year
from papers.world import write_lines

pytestmark = pytest.mark.full

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def with_typo(title, chance):
    at = chance.randrange(len(title))
    kind = chance.choice(["drop", "add", "change", "swap"])
    letter = chance.choice(LETTERS)
    if title[at].isdigit() or (kind == "swap" and any(one.isdigit() for one in title[at : at + 2])):
        return title
    return {
        "drop": title[:at] + title[at + 1 :],
        "add": title[:at] + letter + title[at:],
        "change": title[:at] + letter + title[at + 1 :],
        "swap": title[:at] + title[at : at + 2][::-1] + title[at + 2 :],
    }[kind]


def test_titles_with_typos_are_matched(base, world):
    chance = random.Random(2)
    papers = [one for one in world for _ in range(2)]
    found = 0
    for paper in papers:
        asked = with_typo(with_typo(paper["title"], chance), chance)
        match = base.title(asked)
        found += match.paper is not None and match.paper.id == paper["id"]
    assert found >= 0.97 * len(papers)


@pytest.mark.parametrize(
    "change",
    [
        str.upper,
        lambda title: title.replace(":", " --").replace(" ", "  "),
        lambda title: rf"\emph{{{title}}}.",
        lambda title: title.replace("study", "{S}tudy"),
        lambda title: f"“{title}”",
    ],
)
def test_case_marks_and_tex_do_not_count(base, world, change):
    for paper in world[:20]:
        match = base.title(change(paper["title"]))
        assert (match.status, match.paper.id) == ("exact", paper["id"])


def test_titles_that_are_not_there_are_not_matched(base, world):
    for number, paper in enumerate(world):
        assert base.title(paper["title"] + "7").status == "none"
        assert base.title(f"Notes on harbour law, part {number}").status == "none"


def test_a_dropped_subtitle_is_matched_if_it_is_one_papers(tmp_path):
    papers = [
        {"id": "a", "title": "TIDEWATER: a corpus of harbour logs"},
        {"id": "b", "title": "Annual report: spring"},
        {"id": "c", "title": "Annual report: autumn"},
    ]
    with PaperBase.build(tmp_path / "b.papers", write_lines(tmp_path / "p.jsonl", papers)) as base:
        assert base.title("Tidewater").paper.id == "a"
        assert base.title("Annual report").status == "none"
        assert base.title("Annual report", scope=Scope(hide=("c",))).paper.id == "b"
        assert base.title("?!").status == "no_words"


@pytest.mark.parametrize(
    ("given", "id"),
    [
        ("arXiv:2101.00001v3", "2101.00001"),
        ("https://arxiv.org/abs/2101.00001v12", "2101.00001"),
        ("http://arxiv.org/pdf/2101.00001.pdf", "2101.00001"),
        ("10.48550/arXiv.2101.00001", "2101.00001"),
        ("cs.CL/0112017v1", "cs/0112017"),
        ("https://doi.org/10.18653/V1/P19-1001", "10.18653/v1/p19-1001"),
        ("doi: 10.1000/A:B/c", "10.1000/a:b/c"),
        ("https://openalex.org/W2741809807", "W2741809807"),
        ("https://aclanthology.org/P19-1001.pdf", "P19-1001"),
        ("  P19-1001 ", "P19-1001"),
        ("2020.acl-main.1", "2020.acl-main.1"),
        ("s2:07cd", "s2:07cd"),
    ],
)
def test_ids_have_one_form(given, id):
    assert normalize_id(given) == id
    assert normalize_id(id) == id


def test_dates_are_read_as_sources_write_them():
    assert [read_date(one) for one in (20250204, "2021-8", "2021-02-30", None, "soon")] == [
        "2025-02-04",
        "",
        "2021-02",
        "",
        "",
    ]
    assert [read_year(one) for one in (20250204, "2021-08", 2019.0, True, 12)] == [
        2025,
        2021,
        2019,
        None,
        None,
    ]
    assert (
        title_key(r"The \'Etude of {BERT}: $k$-means & co.") == "the etude of bert k means and co"
    )
