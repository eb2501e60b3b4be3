"""What is read of a manuscript: citations in all forms, lists of references, bad input."""

import pytest

from deepera_graph.errors import InputError
from deepera_graph.evidence.check.citing import find_claims
from deepera_graph.evidence.check.manuscript import read_manuscript
from deepera_graph.evidence.check.marks import ManuscriptParagraph
from deepera_graph.evidence.check.references import Reference, ReferenceIndex, read_printed
from support.manuscripts import entry
from support.pdfs import FOUR_REFERENCES, draw_raised, write_pdf

LISTED = [entry("lund2018"), entry("mori2019"), entry("tanaka2020"), entry("garcia2018")]
NUMBERED = read_printed(LISTED)


def claims(text, references=NUMBERED, section=""):
    return find_claims([ManuscriptParagraph(text, section)], ReferenceIndex(references))


def keyed(*keys):
    return [Reference.of_fields(key, {"title": f"On {key}"}) for key in keys]


@pytest.mark.parametrize(
    ("mark", "keys"),
    [
        ("[2]", ("2",)),
        ("[1,3]", ("1", "3")),
        ("[1–3]", ("1", "2", "3")),
        ("[1-2, 4]", ("1", "2", "4")),
        ("[1][3]", ("1", "3")),
        ("[1], [3]", ("1", "3")),
        ("(Mori, 2019)", ("2",)),
        ("(see Lund and Roy 2018; Tanaka et al., 2020)", ("1", "3")),
        ("(Garcia et al., 2018)", ("4",)),
        ("(Nobody et al., 2011)", ("Nobody 2011",)),
    ],
)
def test_marks_name_their_references(mark, keys):
    [claim] = claims(f"Wax coating keeps stored apples firm {mark}.")
    assert claim.keys == keys
    assert claim.statement == "Wax coating keeps stored apples firm."


@pytest.mark.parametrize("mark", ["[@a; @b]", "[see @a, p. 3; -@b]", "[@{a}; @b]"])
def test_keys_of_pandoc_are_read(mark):
    [claim] = claims(f"Wax coating keeps stored apples firm {mark}.", keyed("a", "b"))
    assert claim.keys == ("a", "b")


def test_a_name_in_the_sentence_cites():
    [claim] = claims("Tanaka et al. (2020) found that green tea lowers fasting glucose.")
    assert claim.keys == ("3",)


@pytest.mark.parametrize(
    "text",
    [
        "The difference was small (95% CI [3, 7]) in all of the groups.",
        "Apples were picked (in May 2019) and stored for some weeks.",
        "Trees were cut at 2 [1-3] years of age in all of the groups.",
        "Firmness was measured within [1–3] weeks of storage.",
        "The median age was 2 [1–3] in all of the groups.",
        "The mean age was 2.5 years [2-3] in all of the groups.",
        "The score rose by 2 [1, 3] points in all of the groups.",
        "Write to anna@example.org for the data of this study.",
    ],
)
def test_what_is_no_citation_is_none(text):
    assert claims(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Apples were kept cool for 12 weeks [1-3].",
        "Recent work [1-3] points to a decline of waxed apples.",
        "Work since 2010 [1-3] points to a decline of waxed apples.",
        "The median age of felled trees is 45 years [1-3].",
        "Others saw [1,2] weeks later that the apples fell.",
        "Wax kept 2 apples [1-3] firm in all of the groups.",
    ],
)
def test_what_is_near_a_measure_may_be_a_citation(text):
    assert claims(text)


def test_a_mark_behind_the_full_stop_is_of_the_sentence_before():
    first, second = claims(
        "Wax keeps stored apples very firm.[1] Cool nights change sweet pears.[2]"
    )
    assert (first.keys, second.keys) == (("1",), ("2",))


def test_marks_alone_are_of_the_sentence_before():
    [claim] = claims("Wax keeps stored apples very firm.\n\n[1]. [2].")[:1]
    assert (claim.statement, claim.keys) == ("Wax keeps stored apples very firm.", ("1",))
    assert claims("[1].") == []


def test_each_clause_of_a_sentence_is_judged_with_its_own_citation():
    first, second = claims(
        "Wax coating keeps stored apples firm [1], whereas cool nights lower sugar of pears [2]."
    )
    assert first.statement == "Wax coating keeps stored apples firm"
    assert second.statement == "cool nights lower sugar of pears."
    assert first.sentence == second.sentence


FIRM, SOFT = "found that wax kept apples firm", "softened them with water."
AUTHORS = [
    "Lund, A., & Roy, B. (2018). Wax on apples. Fruit.",
    "Mori, K. (2019). Cool pears. Fruit.",
]
NAMED = read_printed([*AUTHORS, "Berg, C. (2012). Water and apples. Fruit."])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"Lund and Roy (2018) {FIRM}, whereas Berg (2012) {SOFT}", [("1", FIRM), ("3", SOFT)]),
        (
            f"Lund and Roy [1] {FIRM}, while Berg [3] {SOFT}",
            [("1", f"Lund and Roy {FIRM}"), ("3", f"Berg {SOFT}")],
        ),
        (
            f"Lund and Roy's (2018) trial {FIRM}; Berg (2012, p. 4) {SOFT}",
            [("1", f"trial {FIRM}"), ("3", SOFT)],
        ),
        (
            f"Lund and colleagues (2018) {FIRM}, but water softened them (Berg, 2012).",
            [("1", FIRM), ("3", "water softened them.")],
        ),
        (f"Lund and Roy (2018) {FIRM} (Berg, 2012).", [("1", FIRM), ("3", f"{FIRM}.")]),
        (
            f"In 40 trees, Lund and Roy (2018) {FIRM}, Berg (2012) {SOFT}",
            [("1", f"In 40 trees, {FIRM}"), ("3", SOFT)],
        ),
        (
            "Cool nights sweeten ripe pears (Mori, 2019), and, in 2018, "
            f"Lund and Roy (2018) {FIRM}.",
            [("2", "Cool nights sweeten ripe pears"), ("1", f"in 2018, {FIRM}.")],
        ),
        (
            "Wax keeps stored apples firm, as shown by Lund and Roy (2018), and pears sweet in "
            "cool nights (Mori, 2019).",
            [
                ("1", "Wax keeps stored apples firm, as shown by"),
                ("2", "pears sweet in cool nights."),
            ],
        ),
        (f"Lund and Roy (2018) as well as Berg (2012) {FIRM}.", [("1 3", f"as well as {FIRM}.")]),
        (
            "Cool nights sweeten pears by 8% (Mori, 2019). "
            f"Lund and Roy (2018) {FIRM}, whereas Berg (2012) {SOFT}",
            [("2", "Cool nights sweeten pears by 8%."), ("1", FIRM), ("3", SOFT)],
        ),
        (
            "Wax [1] and water [3] keep apples firm.",
            [("1", "Wax and water keep apples firm."), ("3", "water keep apples firm.")],
        ),
    ],
)
def test_what_names_at_the_start_of_a_clause_found_is_told_behind_them(text, told):
    assert [(" ".join(one.keys), one.statement) for one in claims(text, NAMED)] == told


def test_keys_in_the_place_of_names_are_told_apart_as_names_are():
    text = f"@{{a}} {FIRM}, whereas @{{b}} {SOFT}"
    assert [(one.keys, one.statement) for one in claims(text, keyed("a", "b"))] == [
        (("a",), FIRM),
        (("b",), SOFT),
    ]


@pytest.mark.parametrize(
    ("text", "section", "purpose"),
    [
        ("Reads were aligned using BWA [1].", "", "method"),
        ("Firmness was measured as previously described [1].", "", "method"),
        ("Models were fitted with the lme4 package (version 1.1) [1].", "", "method"),
        ("The scale of Berg was used in all groups [1].", "Methods", "method"),
        ("Concentrations were calculated in triplicate [1].", "Methods", "method"),
        ("Wax coating keeps apples firm, as reviewed in [1].", "", "review"),
        ("Wax coating keeps apples firm in storage [1].", "", "finding"),
        ("Patients using statins had fewer strokes than others [1].", "", "finding"),
    ],
)
def test_the_purpose_of_a_citation_is_told(text, section, purpose):
    assert claims(text, section=section)[0].purpose == purpose


def test_printed_entries_give_title_names_and_year():
    apa = "Lund, A., & Roy, B. (2018). Wax coating and stored apples. Fruit Science, 3, 1-9."
    for text in (entry("lund2018"), apa):
        [found] = read_printed([text])
        assert found.source.title.startswith("Wax coating and")
        assert found.name == ("lund", "2018")


def test_wrapped_lines_of_a_page_are_one_entry():
    lines = ["[1] Lund A, Roy B. Wax coating and the firmness", "of stored apples. Fruit. 2018.",
             "[2] Mori K. Night cooling. 2019."]  # fmt: skip
    assert [one.key for one in read_printed(lines, wrapped=True)] == ["1", "2"]


def test_tex_takes_in_files_and_leaves_out_what_is_no_text(tmp_path):
    (tmp_path / "part.tex").write_text(
        "\\section{Results}Wax coating\\footnote{Of shellac.} keeps \\emph{stored} apples firm"
        "~\\citep[p.~3]{a,b}. % \\cite{c}\n\\begin{equation}x\\cite{d}\\end{equation}\n"
        "\\citet{b} found that night cooling lowers the sugar of pears by 8\\%."
    )
    (tmp_path / "whole.tex").write_text(
        "\\begin{document}\\input{part}\\begin{thebibliography}{9}\\bibitem{a} Lund A. Wax. 2018."
        "\\bibitem{b} Mori K. Pears. 2019.\\end{thebibliography}\\end{document}"
    )
    found = read_manuscript(tmp_path / "whole.tex")
    assert [one.keys for one in found.claims] == [("a", "b"), ("b",)]
    assert found.claims[0].section == "Results"
    assert "stored apples firm" in found.claims[0].statement
    assert "8%" in found.claims[1].statement


def test_a_table_of_claims_has_references_by_doi_title_or_entry(tmp_path):
    path = tmp_path / "claims.csv"
    path.write_text(
        "claim,reference\nWax keeps apples firm,10.5555/wax.1\nPears lose,Night cooling\n"
    )
    found = read_manuscript(path)
    assert [one.source.doi for one in found.references] == ["10.5555/wax.1", ""]
    assert found.references[1].source.title == "Night cooling"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.md", b"# On\n\nWax keeps apples firm [1].\n", "no references found"),
        (
            "a.md",
            b"# On\n\nWax.\n\n# References\n\n1. Lund A. Wax on apples. 2018.\n",
            "nothing cites",
        ),
        ("a.tex", b"Wax \\cite{a}.\\bibliography{gone}", "no such file of references"),
        ("a.csv", b"claim,other\nWax keeps apples firm,x\n", "no references found"),
        (
            "a.csv",
            b"claim,reference\n" + b"x" * 20_000 + b",y\n",
            "line 2: a claim must have at most",
        ),
        ("a.odt", b"x", "must be .docx, .tex, .md"),
        ("a.pdf", write_pdf(None), "scanned"),
    ],
)
def test_bad_input_has_a_line_of_its_own(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_manuscript(tmp_path / name)


def test_pages_of_a_pdf_are_told(tmp_path):
    (tmp_path / "a.pdf").write_bytes(
        write_pdf(
            ["Introduction", "Wax keeps stored apples firm [1]."],
            ["Cool nights lower the sugar of pears [2]."],
            ["References", "[1] Lund A. Wax. 2018.", "[2] Mori K. Pears. 2019."],
        )
    )
    assert [one.page for one in read_manuscript(tmp_path / "a.pdf").claims] == ["1", "2"]


def test_raised_numbers_of_a_pdf_cite(tmp_path):
    page = draw_raised(
        (b"Wax keeps stored apples firm.", b""),
        (b"1,2", b"0 -14 Td"),
        (b"Cool nights lower the sugar of pears", b""),
        (b"3-4", b""),
        (b" in the dry weeks of the year.", b"0 -14 Td"),
        (b"", b""),
        (b"Fig.1 shows it. In 12 trials of type 2 it was not so.", b"0 -14 Td"),
        (b"", b""),
        *FOUR_REFERENCES,
    )
    (tmp_path / "a.pdf").write_bytes(write_pdf([""], drawn_as=page))
    found = read_manuscript(tmp_path / "a.pdf").claims
    assert [one.keys for one in found] == [("1", "2"), ("3", "4")]
    assert found[0].statement == "Wax keeps stored apples firm."


@pytest.mark.parametrize(
    "text",
    [
        "The gene il6 and the protein p53 were measured in all plates.",
        "It is shown in fig.2 and in table 3 of the other work.",
        "Coated apples kept 94% and bare ones 69 of their weight.",
        "Wax keeps stored apples very firm.1",  # one alone may be chance
        "Wax keeps apples firm.1 Cool nights change pears.9",  # the list has no 9
    ],
)
def test_numbers_behind_words_that_are_no_citations_are_none(text):
    assert claims(text) == []


@pytest.mark.parametrize("mark", ["[@a]", "[1]"])
def test_names_beside_keys_or_numbers_cite_too(mark):
    listed = [
        Reference.of_fields("a", {"title": "On a"}),
        *read_printed([f"1. {LISTED[0]}", f"2. {LISTED[1]}"]),
    ]
    found = claims(
        f"Wax coating keeps apples firm {mark}. Cooling sweetens stored pears (Mori, 2019). "
        "Green tea lowers fasting glucose (Nobody et al., 2011). Storms raged (Reuters, 2011).",
        listed,
    )
    assert [one.keys for one in found] == [(mark.strip("[@]"),), ("2",), ("Nobody 2011",)]


def test_a_list_of_references_needs_no_blank_lines(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(
        "# On\n\nWax keeps apples firm (Lund and Roy, 2018). Cold sweetens pears (Mori, 2019).\n\n"
        "# References\n\nLund, A., Roy, B. (2018). Wax coating and the firmness of\nstored apples. "
        "Fruit Science.\nMori, K. (2019). Night cooling and the sugar content of pears.\n"
    )
    found = read_manuscript(path)
    assert [one.source.title for one in found.references] == [
        "Wax coating and the firmness of stored apples",
        "Night cooling and the sugar content of pears",
    ]
    assert [one.keys for one in found.claims] == [("1",), ("2",)]


RAISED_LIST = (
    "\n\n## References\n\n1. Lund A. Wax. Fruit. 2018.\n2. Mori K. Pears. Fruit. 2019.\n"
    "3. Roy B. More on pears. Fruit. 2020.\n"
)


@pytest.mark.parametrize(
    ("mark", "keys"),
    [
        ("<sup>2</sup>", ("2",)),
        ("<sup>1, 3</sup>", ("1", "3")),
        ("^2^", ("2",)),
        ("^1-3^", ("1", "2", "3")),
        ("²", ("2",)),
        ("¹⁻³", ("1", "2", "3")),
    ],
)
def test_raised_numbers_of_markdown_cite(tmp_path, mark, keys):
    (tmp_path / "a.md").write_text(f"Cool nights lower the sugar of pears.{mark}{RAISED_LIST}")
    [found] = read_manuscript(tmp_path / "a.md").claims
    assert (found.statement, found.keys) == ("Cool nights lower the sugar of pears.", keys)


def test_what_is_raised_to_a_power_is_no_citation(tmp_path):
    text = "Plots of 2 m² and 10 cm<sup>2</sup> had R^2^ above 0.9 and 10^3^ pears [1]."
    (tmp_path / "a.md").write_text(f"{text}{RAISED_LIST}")
    [found] = read_manuscript(tmp_path / "a.md").claims
    assert found.keys == ("1",)


@pytest.mark.parametrize("form", ["{0}, {1}., Roy, B. ({2}).", "{0} {1}, Roy B ({2})"])
def test_a_list_without_numbers_is_found_in_the_first_half_of_a_pdf(tmp_path, form):
    names = ["Abbott", "Brown", "Carter", "Dahl"]
    printed = [form.format(one, "A", 2011 + at) for at, one in enumerate(names)]
    entries = [part for one in printed for part in (f"{one} A trial of", "wax in long fields.")]
    cited = [f"{one} and Roy ({2011 + at}) kept apples firm." for at, one in enumerate(names)]
    page = ["Introduction", *cited, "References", *entries]
    (tmp_path / "a.pdf").write_bytes(write_pdf(page))
    found = read_manuscript(tmp_path / "a.pdf")
    assert [one.source.authors[0].split()[0].rstrip(",") for one in found.references] == names
    assert [one.keys for one in found.claims] == [(str(at),) for at in range(1, 5)]


def test_the_heading_of_the_list_is_no_title(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(f"Wax keeps apples firm [1].\n\n## References\n\n1. {LISTED[0]}\n")
    assert read_manuscript(path).title == ""


def test_tables_and_figures_behind_the_list_are_no_references(tmp_path):
    (tmp_path / "draft.md").write_text(
        "# Introduction\n\nWax keeps stored apples firm [1].\n\n# References\n\n"
        "1. Lund A. Wax coating and apples. Fruit Science. 2018.\n"
        "2. Mori K. Night cooling and pears. Orchard Letters. 2019.\n\n"
        "Table 1. Trials of the storage of fruit.\n\n"
        "| trial | finding |\n|---|---|\n| orchard | Night cooling made pears less sweet [2] |\n\n"
        "Figure 1. Wax coating kept apples firm in cold storage [1].\n"
    )
    found = read_manuscript(tmp_path / "draft.md")
    assert [one.key for one in found.references] == ["1", "2"]
    assert [one.keys for one in found.claims] == [("1",), ("2",), ("1",)]
    assert found.claims[-1].section == "Figures and tables"


@pytest.mark.parametrize(
    ("row", "statements"),
    [
        ("Wax keeps apples firm [1] | 77", ["Wax keeps apples firm"]),
        ("77 | Wax keeps apples firm [1] | n = 40", ["Wax keeps apples firm"]),
        ("[1] | Wax keeps apples firm | 0.8 (0.6-1.1)", ["Wax keeps apples firm"]),
        (
            "Wax keeps stored apples firm [1] | Cooling makes stored pears sweet [2]",
            ["Wax keeps stored apples firm", "Cooling makes stored pears sweet"],
        ),
        ("Wax | keeps stored apples firm [1] | 77", ["Wax | keeps stored apples firm"]),
    ],
)
def test_a_cell_beside_a_claim_is_no_part_of_it(tmp_path, row, statements):
    (tmp_path / "draft.md").write_text(
        f"# Draft\n\n| a | b | c |\n|---|---|---|\n| {row} |\n\n# References\n\n"
        "1. Lund A. Wax coating and apples. Fruit Science. 2018.\n"
        "2. Mori K. Night cooling and pears. Orchard Letters. 2019.\n"
    )
    assert [one.statement for one in read_manuscript(tmp_path / "draft.md").claims] == statements


def test_a_bar_in_a_sentence_is_no_row():
    said = "The chance P(A | B) of keeping stored apples firm is high"
    assert [one.statement for one in claims(f"{said} [1].")] == [f"{said}."]


@pytest.mark.parametrize(
    ("title", "name"), [("\\title{On falls}", "Intro"), ("\\title{Intro}", "Intro"), ("", "")]
)
def test_the_only_section_of_a_manuscript_with_a_title_keeps_its_name(tmp_path, title, name):
    (tmp_path / "draft.tex").write_text(
        f"{title}\\begin{{document}}\\section{{Intro}}\nWax keeps apples firm~\\cite{{l}}.\n"
        "\\begin{thebibliography}{1}\\bibitem{l} Lund A. Wax coating and apples. 2018."
        "\\end{thebibliography}\\end{document}"
    )
    found = read_manuscript(tmp_path / "draft.tex")
    assert [one.section for one in found.claims] == [name]
