"""Manuscripts that cite in several styles: each citation is read by its own, and once."""

import pytest
from docx import Document

from deepera_graph.evidence.check.citing import find_claims
from deepera_graph.evidence.check.manuscript import read_manuscript
from deepera_graph.evidence.check.marks import ManuscriptParagraph
from deepera_graph.evidence.check.references import Reference, ReferenceIndex, read_printed
from support.manuscripts import entry
from support.pdfs import FOUR_REFERENCES, draw_raised, write_pdf

LISTED = [entry("lund2018"), entry("mori2019"), entry("tanaka2020"), entry("garcia2018")]
NUMBERED = read_printed(LISTED)


def claims(text, references):
    return find_claims([ManuscriptParagraph(text)], ReferenceIndex(references))


PRINTED = read_printed([f"{at}. {one}" for at, one in enumerate(LISTED, start=1)])
KEYED = [Reference.of_fields("berg", {"title": "On tea", "authors": "Berg, A", "year": 2018})]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Wax keeps apples firm [1]. Tea lowers glucose [@berg]. Pears are sweet [2].", "1 berg 2"),
        ("Wax keeps apples firm [@berg] and pears sweet [2].", "berg 2"),
        ("Wax keeps apples firm [1] (Mori, 2019). Tea lowers glucose [@berg].", "1+2 berg"),
        ("Pears are sweet (Mori, 2019), but tea lowers glucose [3].", "2 3"),
        ("Mori (2019) found sweet pears. Tea lowers glucose [3].", "2 3"),
        ("Wax keeps apples firm (Lund and Roy 2018 [1]; Mori 2019 [2]).", "1+2"),
        ("Pears are sweet (Mori, 2019) [2].", "2"),
        ("Lund et al. (2017) found that wax keeps apples firm [1].", "1"),  # online a year before
        ("Wax keeps apples firm (Lund et al., 2017) [1].", "1"),
        ("Pears are sweet [Mori 2019]. Wax is firm [1]. Lund and Roy [2018] say so.", "2 1 1"),
        ("Wax keeps apples firm [1]. See the map in [2019] and pears in [0, 1].", "1"),
        ("Wax keeps apples firm [1]. Pears are sweet [9]. Tea is good [@berg].", "1 9 berg"),
    ],
)
def test_each_citation_of_a_mixture_is_read_once(text, keys):
    found = claims(text, [*KEYED, *PRINTED])
    assert ["+".join(one.keys) for one in found] == keys.split()


@pytest.mark.parametrize(
    ("text", "listed", "keys"),
    [
        ("Wax keeps apples firm [@berg]. The item [1] of the scale is of pears.", KEYED, "berg"),
        ("Wax keeps apples firm (Berg, 2018). The item [1] is of pears.", KEYED, "berg"),
        (
            "Wax keeps apples firm (Lund and Roy, 2018). Pears are sweet (Mori, 2019). The item "
            "[3] of the scale is of tea.",
            NUMBERED,
            "1 2",
        ),
        ("Pears are sweet [1]. Wax keeps apples firm [2].", KEYED, "1 2"),  # of a list not found
    ],
)
def test_numbers_in_brackets_cite_no_list_without_numbers_beside_others(text, listed, keys):
    found = claims(text, listed)
    assert ["+".join(one.keys) for one in found] == keys.split()


def test_a_file_of_keys_and_a_printed_list_are_read_together(tmp_path):
    (tmp_path / "a.bib").write_text("@article{berg, title={On wax}, author={Berg, A}, year=2018}")
    listed = "\n".join(f"{at}. {one}" for at, one in enumerate(LISTED, start=1))
    (tmp_path / "a.md").write_text(
        "---\nbibliography: a.bib\n---\nWax keeps apples firm \\citep[p.~2]{berg}. Pears are sweet "
        f"[2]. Wax is good [@berg].\n\n# References\n\n{listed}\n"
    )
    for bib in (None, tmp_path / "a.bib"):
        found = read_manuscript(tmp_path / "a.md", bibliography=bib)
        assert [one.keys for one in found.claims] == [("berg",), ("2",), ("berg",)]
        assert [one.key for one in found.references] == ["berg", "2"]  # what is cited of the list
        assert found.uncited == ()


def test_footnotes_of_markdown_cite(tmp_path):
    (tmp_path / "a.md").write_text(
        "Wax keeps apples firm.[^1] Pears are sweet.[^b] Tea lowers glucose.[^3] Figs are soft.[^4]"
        f"\n\n[^1]: {LISTED[0]}\n[^b]: See [2].\n[^3]: Tanaka et al. 2020, p. 3.\n"
        "[^4]: Not all of them are.\n\n# References\n\n"
        + "\n".join(f"{at}. {one}" for at, one in enumerate(LISTED, start=1))
    )
    found = read_manuscript(tmp_path / "a.md")
    assert [one.keys for one in found.claims] == [("^1",), ("2",), ("3",)]
    assert found.claims[0].sentence == "Wax keeps apples firm [^1]."


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (
            "Wax keeps apples firm [see @berg, pp. 3-4; also @lund, Fig. 2]. It is cool.",
            "berg+lund",
        ),
        ("Pears are sweet (Mori, 2019, pp. 3-4; see Chap. 2). It is cool.", "2"),
        ("Pears are sweet [2](#ref-2) and firm [1,3](#r).", "2 1+3"),
        ("Pears are sweet.^[Mori 2019, p. 3.] Tea is good for glucose.^[@berg].", "2 berg"),
        ("Pears are sweet.[^1] Cold nights came.\n\n[^1]: Mori (2019), p. 3.", "2"),
        ("Pears are sweet.[^1] Cold nights came.\n\n[^1]: Some are, as dry fields show [3].", "3"),
    ],
)
def test_places_links_and_notes_do_not_hide_a_citation(tmp_path, text, keys):
    listed = "\n".join(f"{at}. {one}" for at, one in enumerate(LISTED, start=1))
    (tmp_path / "a.md").write_text(f"# On\n\n{text}\n\n# References\n\n{listed}\n")
    found = read_manuscript(tmp_path / "a.md")
    assert ["+".join(one.keys) for one in found.claims] == keys.split()
    assert [one.key for one in found.references] == ["1", "2", "3", "4"]


@pytest.mark.full
def test_a_list_that_word_counts_is_one_with_numbers(tmp_path):
    document = Document()
    document.add_paragraph("Pears are sweet (Mori, 2019). Wax keeps apples firm (Lund and Roy, "
                           "2018). Green tea lowers fasting glucose [3].")  # fmt: skip
    document.add_heading("References", 1)
    for one in LISTED:
        document.add_paragraph(one, style="List Number")
    document.save(str(tmp_path / "a.docx"))
    found = read_manuscript(tmp_path / "a.docx")
    assert [one.keys for one in found.claims] == [("2",), ("1",), ("3",)]


def test_raised_numbers_of_a_pdf_cite_beside_names(tmp_path):
    page = draw_raised(
        (b"Wax keeps stored apples firm.", b""),
        (b"1,2", b"0 -14 Td"),
        (b"Cool nights lower the sugar of pears", b""),
        (b"3", b""),
        (b" in the dry weeks, and Dahl et al. (2017) say so.", b"0 -14 Td"),
        (b"", b""),
        *FOUR_REFERENCES,
    )
    (tmp_path / "a.pdf").write_bytes(write_pdf([""], drawn_as=page))
    found = read_manuscript(tmp_path / "a.pdf").claims
    assert [one.keys for one in found] == [("1", "2"), ("3",), ("4",)]
