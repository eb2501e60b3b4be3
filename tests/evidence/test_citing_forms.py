"""Forms in which authors cite: several names, bodies, years, round brackets, commands of LaTeX."""

import pytest

from deepera_graph.evidence.check.citing import find_claims
from deepera_graph.evidence.check.manuscript import read_manuscript
from deepera_graph.evidence.check.marks import ManuscriptParagraph
from deepera_graph.evidence.check.references import Reference, ReferenceIndex, read_printed

LISTED = [
    "Okoro, C., Lee, M.-J., & Santos, P. (2020). Wax and the firmness of apples. Fruit, 1, 2.",
    "Šimić, A. (2019a). Night cooling and the sugar of pears. Fruit, 3, 4.",
    "Šimić, A. (2019b). Green tea and the growth of moss. Fruit, 5, 6.",
    "World Fruit Organization. (2021). Report on orchards of the world. WFO.",
    "Hughes, R., El-Sayed, A. (2015). Kelp and the height of waves. Coast, 7, 8.",
    "García Márquez, L., Ng, W. (2022). Cold rooms and the colour of plums. Fruit, 9, 10.",
]
NAMED = read_printed(LISTED)
NUMBERED = read_printed([f"{n}. {one}" for n, one in enumerate(LISTED, start=1)])
SAID = "Wax coating keeps stored apples firm"


def claims(text, references=NAMED):
    return find_claims([ManuscriptParagraph(text)], ReferenceIndex(references))


@pytest.mark.parametrize(
    ("mark", "keys"),
    [
        ("(Okoro, Lee & Santos, 2020)", ("1",)),
        ("(Hughes & El-Sayed, 2015; Okoro, Lee, and Santos, 2020)", ("5", "1")),
        ("(Nobody, Lee, & Santos, 2011)", ("Nobody 2011",)),
        ("(Šimić, 2019a,b)", ("2", "3")),
        ("(Šimić, 2019a, b; Okoro et. al, 2020)", ("2", "3", "1")),
        ("(World Fruit Organization [WFO], 2021)", ("4",)),
        ("(World Fruit Organization, 2021)", ("4",)),
        ("(WFO, 2021)", ("4",)),
        ("(García Márquez & Ng, 2022)", ("6",)),
    ],
)
def test_names_in_brackets_are_of_one_work(mark, keys):
    [claim] = claims(f"{SAID} {mark}.")
    assert claim.keys == keys
    assert claim.statement == f"{SAID}."


@pytest.mark.parametrize(
    ("told", "keys"),
    [
        ("Okoro, Lee, and Santos (2020)", ("1",)),
        ("Hughes et al., (2015)", ("5",)),
        ("Šimić (2019a and 2019b)", ("2", "3")),
        ("World Fruit Organization (2021)", ("4",)),
        ("WFO (2021)", ("4",)),
        ("García Márquez and Ng (2022)", ("6",)),
        ("Okoro 2020", ("1",)),
    ],
)
def test_names_in_the_sentence_are_of_one_work(told, keys):
    [claim] = claims(f"{told} found that wax coating keeps stored apples firm.")
    assert claim.keys == keys
    assert claim.statement == "found that wax coating keeps stored apples firm."


def test_a_year_behind_a_word_is_no_citation_unless_the_list_has_it():
    assert claims("Apples were picked in Kenya 2020 and in the May 2019 harvest.") == []


@pytest.mark.parametrize("mark", ["(ref. 2)", "(refs 1,3)", "(Refs. 1–3)", "(reference 4)"])
def test_references_that_are_called_so_cite(mark):
    [claim] = claims(f"{SAID} {mark}.", NUMBERED)
    assert claim.statement == f"{SAID}."


def test_numbers_in_round_brackets_cite_where_nothing_else_does():
    text = f"{SAID} (1, 2). Night cooling lowers the sugar of pears (3–4), and tea helps moss (5)."
    found = claims(text, NUMBERED)
    assert [one.keys for one in found] == [("1", "2"), ("3", "4"), ("5",)]
    assert [one.keys for one in claims(f"{text} Kelp lowers waves [6].", NUMBERED)] == [("6",)]
    [claim] = claims(f"{SAID} (1). {SAID} (2, 9).", NUMBERED)[1:]
    assert claim.keys == ("2", "9")
    assert claims("We asked (1) who waxed, (2) who cooled and (3) who did not.", NUMBERED) == []


@pytest.mark.parametrize("written", ["[contact @editor]", "[@a, write to @editor]"])
def test_a_name_on_a_network_in_brackets_is_no_key(written, tmp_path):
    (tmp_path / "a.bib").write_text("@misc{a, title={Wax on apples}, year={2020}}")
    path = tmp_path / "a.md"
    path.write_text(f"---\nbibliography: a.bib\n---\n{SAID} [@a].\n\nFor more {written} by mail.")
    keys = {key for one in read_manuscript(path).claims for key in one.keys}
    assert keys == ({"a"} if "contact" in written else {"a", "editor"})


@pytest.mark.parametrize(
    ("written", "told", "keys"),
    [
        (r"@ \parencites[see][3]{a}[4]{b}.", "@.", ("a", "b")),
        (r"@ \autocites(see)()[3]{a}{b}.", "@.", ("a", "b")),
        (r"\citeauthor{a} (\citeyear{a}) wrote that @.", "wrote that @.", ("a",)),
        (r"\citeauthor{a}'s \citeyearpar[p.~3]{a} trees say that @.", "trees say that @.", ("a",)),
        (r"@ by 38\,\% (\cite{a}; \cite{b}).", "@ by 38 %.", ("a", "b")),
        (r"@ at $1.2\,\mathrm{A/cm^2}$ \citep{a}.", "@ at 1.2 A/cm2.", ("a",)),
        (r"@.\footnote{See \citet{a}, but compare \citealt{a}.}", "@.", ("a",)),
        (r"\gls{Wax} coating \mbox{keeps} stored apples firm \cite{a}.", "@.", ("a",)),
    ],
)
def test_commands_of_latex_keep_what_they_are_given(tmp_path, written, told, keys):
    entries = r"\bibitem{a} Lund A. Wax. 2018. \bibitem{b} Mori K. Pears. 2019."
    body = rf"{written.replace('@', SAID)}\begin{{thebibliography}}{{9}}{entries}"
    path = tmp_path / "a.tex"
    path.write_text(rf"\begin{{document}}{body}\end{{thebibliography}}\end{{document}}")
    found = read_manuscript(path).claims
    assert {one.keys for one in found} == {keys}
    assert {one.statement for one in found} == {told.replace("@", SAID)}


@pytest.mark.parametrize(
    ("told", "keys"),
    [
        ("Okoro et al. (2020, Table 2)", ("1",)),
        ("Hughes and El-Sayed (2015; Fig. 3b)", ("5",)),
        ("Šimić (2019a, Supplementary Table S1)", ("2",)),
        ("García Márquez and Ng (2022, Section 4.1)", ("6",)),
        ("Okoro et al. (2020; n = 412)", ("1",)),
        ("Okoro et al. (2020; Hughes & El-Sayed, 2015)", ("1", "5")),
    ],
)
def test_names_with_more_beside_their_year_cite(told, keys):
    [claim] = claims(f"{told} found that wax coating keeps stored apples firm.")
    assert claim.keys == keys
    assert claim.statement == "found that wax coating keeps stored apples firm."


def test_what_stands_beside_the_year_of_an_unknown_place_makes_no_citation():
    assert not claims("Trials in Vienna (2019; 30 sites) kept apples firm in storage.")


@pytest.mark.parametrize(
    ("mark", "keys"),
    [
        ("[1, p. 12]", ("1",)),
        ("[2, pp. 3–4; 5]", ("2", "5")),
        ("[see 1, Fig. 2]", ("1",)),
        ("[e.g., 1, 3-4]", ("1", "3", "4")),
    ],
)
def test_numbers_may_have_words_and_places_in_their_brackets(mark, keys):
    [claim] = claims(f"{SAID} {mark}.", NUMBERED)
    assert claim.keys == keys
    assert claim.statement == f"{SAID}."


def test_the_place_behind_a_key_is_no_number_of_the_claim():
    library = [Reference.of_fields("okoro", {"title": "Wax and the firmness of apples"})]
    [claim] = claims("@okoro [p. 5] found that wax coating keeps stored apples firm.", library)
    assert claim.statement == "found that wax coating keeps stored apples firm."


def test_no_clause_begins_within_a_citation():
    text = f"{SAID} (Šimić, 2019a; see also Okoro et al., 2020, p. 12) and harms (Hughes, 2015)."
    [_, last] = claims(text)
    assert last.keys == ("5",)
    assert last.statement == f"{SAID} and harms."


@pytest.mark.parametrize("told", ["Okoro et al. [1] found that", "Trial of Okoro [1] |"])
def test_what_cites_a_work_twice_is_one_claim(told):
    [claim] = claims(f"{told} wax coating keeps stored apples firm [1].", NUMBERED)
    assert claim.keys == ("1",)
    assert "|" not in claim.statement


def test_a_clause_behind_a_semicolon_is_said_by_itself():
    first, second = claims(f"{SAID} [1]; pears sweeten fast [2].", NUMBERED)
    assert first.statement == SAID
    assert second.statement == "pears sweeten fast."


@pytest.mark.parametrize("mark", ["See [1], but compare [2].", "For a recent review, see [1]."])
def test_words_that_only_point_say_nothing(mark):
    assert {one.statement for one in claims(f"{SAID}. {mark}", NUMBERED)} == {f"{SAID}."}


def test_a_unit_ends_a_sentence_and_an_initial_does_not():
    text = "The film reached 1.2 A at 1.9 V. Wax keeps apples firm [1]. In 2019 J. Berg wrote [2]."
    assert [one.statement for one in claims(text, NUMBERED)] == [
        "Wax keeps apples firm.",
        "In 2019 J. Berg wrote.",
    ]


def test_what_hangs_on_a_clause_is_no_clause():
    text = f"{SAID} at all times [1], with an odds ratio of 1.9 (95% CI 1.4 to 2.6) [2]."
    first, second = claims(text, NUMBERED)
    assert first.statement == f"{SAID} at all times"
    assert (
        second.statement == f"{SAID} at all times, with an odds ratio of 1.9 (95% CI 1.4 to 2.6)."
    )


def test_short_footnotes_cite_what_an_earlier_one_names(tmp_path):
    path = tmp_path / "a.md"
    path.write_text(
        f"# Fruit\n\n{SAID}.[^1] It keeps pears firm, too.[^2] Cold sweetens plums.[^3] Wax keeps "
        "plums.[^4] Trees were old.[^5]\n\n"
        '[^1]: Ada Lund, "Wax on apples and pears," *Fruit* 3, no. 1 (2016): 1-9.\n'
        "[^2]: Ibid., 4.\n"
        '[^3]: Ben Roy, "Cold and the sweetness of plums," *Fruit* 4, no. 1 (2018): 1-9.\n'
        '[^4]: Lund, "Wax on apples," 7.\n'
        "[^5]: The owner told us so.\n",
        encoding="utf-8",
    )
    assert [one.keys for one in read_manuscript(path).claims] == [
        ("^1",), ("^1",), ("^3",), ("^1",),
    ]  # fmt: skip
