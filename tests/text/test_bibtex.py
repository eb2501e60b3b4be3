"""BibTeX as programs and people write it."""

from io import BytesIO

import pytest

from deepera_graph.text.bibtex import read_bibtex

pytestmark = pytest.mark.full


def read(text):
    [record] = read_bibtex(BytesIO(text.encode()))
    assert not record.error
    return record.fields


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"NF-$\kappa$B, $\chi^2$ and \upsilon", r"NF-κB, $\chi^2$ and \upsilon"),
        (r"fell ($-$0.5, {\textminus}0.9 to $-0.1$)", "fell (-0.5, −0.9 to -0.1)"),
        (r"$\beta$ = $-$0.21, $\beta = -0.2$, $\Delta$", "β = -0.21, β = -0.2, Δ"),
        (r"from $5, to $6 or \$7 and $x$", "from $5, to $6 or $7 and x"),
        (r"na\"{\i}ve \c{c}a, \v s, \'{\i}, {\OE}uvre and {\AA}s", "naïve ça, š, í, Œuvre and Ås"),
        (r"p {\textless} 0.05, 5{\%} of 3 \_ 4", "p < 0.05, 5% of 3 _ 4"),
        (r"the patients{\textquoteright} wax\textendash firmness", "the patients’ wax–firmness"),
        (
            r"p $<$ 0.05, $p = 0.71$, 3 $\pm$ 1, $x \leq 5$ for $5",
            "p < 0.05, p = 0.71, 3 ± 1, x ≤ 5 for $5",
        ),
        ("pages 1--9 --- all", "pages 1–9 — all"),
        (r"LiNi$_{0.8}$Mn$_{0.1}$O$_2$ and $\mathrm{LiCoO_2}$", "LiNi0.8Mn0.1O2 and LiCoO2"),
        (r"CO\textsubscript{2}, \ce{H2O}, Ca$^{2+}$, R$^2$", "CO2, H2O, Ca2+, R2"),
        (r"1.2$\times$10$^{6}$ of $10^{-3}$ S cm$^{-1}$", "1.2×10⁶ of 10⁻³ S cm-1"),
        (r"10\textsuperscript{5} CFU, the 13\textsuperscript{th}", "10⁵ CFU, the 13th"),
        (
            r"$p < 10^{-4}$ at 25~$^{\circ}$C, 4\,$^\circ$C, p~=~0.03",
            "p < 10⁻⁴ at 25 °C, 4 °C, p = 0.03",
        ),
        (r"(~5 mm), 5~10 mg, $5 per m^2 to $6", "(~5 mm), 5~10 mg, $5 per m^2 to $6"),
        (
            "Data are at https://example.org/~rust/wax.",
            "Data are at https://example.org/~rust/wax.",
        ),
    ],
)
def test_tex_becomes_text_and_formulas_stay(written, text):
    assert read(f"@article{{k, abstract = {{{written}}}}}")["abstract"] == text


def test_an_address_keeps_its_hyphens():
    fields = read(
        r"@article{k, abstract={x}, url={https://x.org/a--b\_c}, doi={10.1002/(SICI)1--2\_3}}"
    )
    assert fields["url"] == "https://x.org/a--b_c"
    assert fields["doi"] == "10.1002/(SICI)1--2_3"


def test_an_entry_may_stand_in_parentheses():
    text = "@string(fs = {Fruit (Science)})\n@article(k, journal = fs, abstract = {Firm (6%).})\n"
    fields = read(text)
    assert (fields["key"], fields["journal"]) == ("k", "Fruit (Science)")
    assert fields["abstract"] == "Firm (6%)."


@pytest.mark.parametrize("stray", ["author+an = {1=me}", "{B}", "junk here"])
def test_what_is_no_field_costs_no_other_field(stray):
    fields = read(f"@article{{k, title = {{A}}, {stray}, abstract = {{Apples stay firm.}}}}")
    assert fields["abstract"] == "Apples stay firm."


def test_others_are_no_author():
    fields = read("@article{k, author = {Lee, Kim and Roy, Ann and others}, abstract = {Firm.}}")
    assert fields["authors"] == "Lee, Kim; Roy, Ann"


def test_names_that_stand_for_names_that_stand_for_names_do_not_unfold_for_ever():
    doubled = [f"@string{{a{n + 1} = a{n} # a{n} # a{n} # a{n}}}" for n in range(40)]
    lines = ['@string{a0 = "0123456789"}', *doubled, "@article{one, title = a40}"]
    found = list(read_bibtex(BytesIO("\n".join(lines).encode())))
    assert sum(len(str(one.fields)) for one in found) < 1_000_000
    broken = [one for one in found if one.error]
    assert "@string 'a8' is not put in its place" in broken[0].error
    assert "10 times as many characters as the file" in broken[0].error


def test_a_name_may_be_used_by_every_entry():
    journal = "Journal of the Chemical Physics of Wax and Apples"
    entries = "".join(f"@article{{k{n}, journal = jcp}}\n" for n in range(20_000))
    found = list(read_bibtex(BytesIO(f'@string{{jcp = "{journal}"}}\n{entries}'.encode())))
    assert {one.fields["journal"] for one in found} == {journal}
