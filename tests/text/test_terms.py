import json
import random
import re
import time
from importlib.resources import files

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deepera_graph.text.terms import missing_terms
from deepera_graph.text.words import split_sentences

_CORPUS = files("deepera_graph").joinpath("demo", "corpus.jsonl").read_text("utf-8")
PASSAGES = [json.loads(line)["text"] for line in _CORPUS.splitlines()]


@pytest.mark.parametrize(
    ("summary", "passage"),
    [
        pytest.param("Patients lived longer.", "those treated lived longer", id="opens-a-sentence"),
        pytest.param("It fell. Researchers agree.", "it fell", id="opens-another"),
        pytest.param("It fell: Researchers agree.", "it fell", id="after-a-colon"),
        pytest.param("- Researchers agree\n- Others do not", "they do", id="list"),
        pytest.param("1) Researchers agree", "all 1 agree", id="numbered-list"),
        pytest.param("“Researchers agree.”", "they agree", id="opens-a-quotation"),
        pytest.param("12 of 30 died", "of 30 rats, 12 died", id="of-is-no-unit"),
        pytest.param("some 10–15 mg", "some 10-15 mg", id="range"),
        pytest.param("some 10 to 15 mg", "some 10 – 15 mg", id="spaced-range"),
        pytest.param("10 mg was best", "doses of 5, 10 and 15 mg", id="shared-unit"),
        pytest.param("10 mg was best", "10-15 mg", id="unit-of-a-range"),
        pytest.param("10 and 15 mg", "10 mg and 15 mg", id="unit-left-out"),
        pytest.param("5 mg was best", "dose (mg): 5, 10", id="unit-in-a-heading"),
        pytest.param("95% CI 2 to 3", "95 % confidence interval 2-3", id="confidence-interval"),
        pytest.param("it fell (95% CI)", "(95% CI, 2–3)", id="interval"),
        pytest.param("(p < 0.05)", "(P<.05)", id="p-value"),
        pytest.param("1,200 cells", "1200 cells", id="thousands-comma"),
        pytest.param("1200 cells", "1,200 cells", id="thousands-comma-in-passage"),
        pytest.param("12 000 cells", "12,000 cells", id="thousands-space"),
        pytest.param("12000 cells", "12\u202f000 cells", id="thousands-thin-space"),
        pytest.param("in group 1 200 died", "group 1; 200 died", id="no-thousands"),
        pytest.param("RNAs were cut", "the RNA was cut", id="plural"),
        pytest.param("an RNA was cut", "RNAs were cut", id="singular"),
        pytest.param("all of Parkinson’s kin", "the Parkinson's kin", id="possessive"),
        pytest.param("as Parkinson had it", "Parkinson's way", id="possessive-left-out"),
        pytest.param("at 5 μg", "at 5 µg", id="two-signs-for-micro"),
        pytest.param("at 10² m", "at 10² m", id="power"),
        pytest.param("at 10^-3 m", "at 10⁻³ m", id="power-written-out"),
        pytest.param("3 mg/kg a day", "3 mg kg⁻¹ a day", id="per"),
        pytest.param("0.3 Mg C ha−1 yr−1", "0.3 Mg per hectare per year", id="per-with-substance"),
        pytest.param("90 kg ha-1", "90 kg N per hectare", id="substance-left-out"),
        pytest.param("1.2 A cm⁻²", "1.2 A/cm2", id="per-square"),
        pytest.param("a 2.6-fold rise", "2.6 times higher", id="fold"),
        pytest.param("3 mg per kg a day", "3 mg/kg a day", id="per-word"),
        pytest.param("fell by 5 percent", "fell by 5%", id="percent"),
        pytest.param("after 3 hours", "after 3 h", id="hours"),
        pytest.param("a 3-day stay", "it took 3 days", id="unit-in-a-compound"),
        pytest.param("three rats", "3 rats", id="count-word"),
        pytest.param("a 2-fold rise", "a twofold rise", id="fold"),
        pytest.param("in CO2", "in CO₂", id="subscript"),
        pytest.param("TGF-β rose", "TGF-beta rose", id="greek"),
        pytest.param("TGFβ rose", "TGF-β rose", id="greek-joined"),
        pytest.param("IL-6-dependent growth", "growth depends on IL-6", id="compound"),
        pytest.param("an anti-PD-1 drug", "a drug against PD-1", id="compound-before"),
        pytest.param("the IL-6 level", "the IL 6 level", id="spaced-name"),
        pytest.param("a T-cell count", "a count of T cells", id="spaced-letter"),
        pytest.param("an X-ray of it", "an x-ray of it", id="small-in-passage"),
        pytest.param("at Kelp sites", "at kelp sites", id="capital-added"),
        pytest.param("so Tp53 rose", "TP53 rose", id="only-a-first-capital"),
        pytest.param("so Aspirin helps", "ASPIRIN HELPS", id="heading"),
        pytest.param("and The end", "an end", id="stop-word"),
        pytest.param("E. coli grew", "Escherichia coli grew", id="short-genus"),
        pytest.param("Kinases act", "the kinase acts", id="substance-known"),
        pytest.param("Pseudomonas grew", "it was Pseudo-\nmonas", id="line-end"),
        pytest.param("COVID-19 spread", "COVID-\n19 spread", id="line-end-number"),
        pytest.param("Rémy did it", "it was Re\u0301my", id="decomposed"),
        pytest.param("five mice in Fiji", "ﬁve\r\nmice in Fi\u00adji", id="printed"),
        pytest.param("at 25 °C", "at 25\u00a0 ºC", id="printed-degree"),
        pytest.param("", "anything 5", id="nothing-said"),
        pytest.param("it fell by 0.7%", "a difference of -0.7%", id="sign-in-words"),
        pytest.param("it fell by 0.7%", "a difference of −0.7%", id="minus-in-words"),
        pytest.param("it was 0.7% lower", "a difference of −0·7%", id="sign-in-a-comparison"),
        pytest.param("a weight loss of 5 kg", "a change of -5 kg", id="sign-in-a-noun"),
        pytest.param(
            "it fell by 0.7% (95% CI, 0.4 to 1.0)", "-0.7%, 95% CI -1.0 to -0.4", id="interval"
        ),
        pytest.param("a change of -0.7%", "it fell by about 0.7%", id="sign-in-words-of-passage"),
        pytest.param("it rose by 0.7%", "a change of +0.7%", id="plus"),
        pytest.param("they differed by 0.7%", "a difference of -0.7%", id="differed"),
        pytest.param("from 12.5 to 12.0%", "from 12·5% to 12·0%", id="raised-point"),
        pytest.param("from 12·5 to 12·0%", "from 12.5% to 12.0%", id="raised-point-said"),
        pytest.param("p = 0.04, 3 m", "p=0∙04, 3 m", id="other-raised-point"),
        pytest.param("at 3 × 10⁶ m", "at 3·10⁶ m", id="product-of-a-power"),
    ],
)
def test_a_term_of_the_passage_is_not_missing(summary, passage):
    assert missing_terms(summary, passage) == []


@pytest.mark.parametrize(
    ("summary", "passage", "missing"),
    [
        pytest.param("5 rats", "15 rats, 5.2 of them", "5", id="part-of-a-number"),
        pytest.param("5.2 rats", "5.1 rats or 2", "5.2", id="decimals"),
        pytest.param("12 rats", "1.2 rats", "12", id="point"),
        pytest.param("1.200 rats", "1200 rats", "1.200", id="point-is-no-comma"),
        pytest.param("200 rats", "1,200 rats", "200", id="part-of-thousands"),
        pytest.param("at 5 µg", "at 5 mg", "5 µg", id="unit"),
        pytest.param("at 5 µg", "5 mg, then 3 µg", "5 µg", id="unit-of-another"),
        pytest.param("by 5%", "5 rats, 3%", "5%", id="percent-of-another"),
        pytest.param("by 5", "by 3", "5", id="number"),
        pytest.param("5 mg/kg", "5 mg in all", "5 mg/kg", id="per"),
        pytest.param("after 3 days", "after 3 weeks", "3 days", id="time"),
        pytest.param("3 million", "3 billion", "3 million", id="million"),
        pytest.param("at -5 °C", "at 5 °C", "-5 °C", id="sign-added"),
        pytest.param("at 5 °C", "at −5 °C", "5 °C", id="sign-dropped"),
        pytest.param("it rose by 0.7%", "a change of -0.7%", "0.7%", id="against-the-sign"),
        pytest.param("it changed by 0.7%", "a change of -0.7%", "0.7%", id="sign-not-said"),
        pytest.param("it fell, then rose by 3 m", "by -3 m", "3 m", id="nearest-word-has-the-sign"),
        pytest.param("it fell at 5 °C", "at -5 °C", "5 °C", id="no-amount"),
        pytest.param("a change of -3 m", "it rose by 3 m", "-3 m", id="passage-rises"),
        pytest.param("12 rats", "12·5 rats", "12", id="raised-point-parts-nothing"),
        pytest.param("p > 0.05", "p < 0.05", "> 0.05", id="comparison"),
        pytest.param("p = 0.05", "p < 0.05", "= 0.05", id="equal"),
        pytest.param("at 102 m", "at 10² m", "102 m", id="power-flattened"),
        pytest.param("at 10² m", "at 102 m", "10² m", id="power-made"),
        pytest.param("at 10⁻³ m", "at 10³ m", "10⁻³ m", id="power-sign"),
        pytest.param("at 10³ m", "at 10 m", "10³ m", id="power-added"),
        pytest.param("three rats", "two rats", "three", id="count-word"),
        pytest.param("a threefold rise", "a twofold rise", "threefold", id="fold"),
        pytest.param("twofold rise", "a rise in 2 rats", "twofold", id="fold-of-a-count"),
        pytest.param("IL-8 rose", "IL-6 rose in 8 rats", "IL-8", id="gene"),
        pytest.param("TP63 rose", "TP53 rose", "TP63", id="gene-number"),
        pytest.param("tP53 rose", "TP53 rose", "tP53", id="gene-case"),
        pytest.param("TGF-β rose", "TGF-α rose, β too", "TGF-β", id="greek"),
        pytest.param("the β form", "the α form", "β", id="greek-alone"),
        pytest.param("beta cells", "alpha cells", "beta", id="greek-name"),
        pytest.param("in H2SO4", "in H2SO3", "H2SO4", id="formula"),
        pytest.param("in CO", "in CO₂", "CO", id="formula-shorter"),
        pytest.param("the Fe3+ ion", "the Fe2+ ion", "Fe3", id="charge"),
        pytest.param("E. coli grew", "S. aureus grew", "E", id="genus"),
        pytest.param("in E. coli it grew", "in E. albertii it grew", "E. coli", id="epithet"),
        pytest.param("Bacillus cereus", "Bacillus subtilis", "Bacillus cereus", id="full-epithet"),
        pytest.param("a phase III trial", "a phase II trial", "III", id="roman"),
        pytest.param("an HBV case", "a hepatitis case", "HBV", id="acronym"),
        pytest.param("seen in Brazil", "seen in Chile", "Brazil", id="place"),
        pytest.param("Scandium helps", "zirconium helps", "Scandium", id="substance-opens"),
        pytest.param("Cas12 cuts", "Cas9 cuts", "Cas12", id="name-with-number-opens"),
        pytest.param("an mRNA form", "a DNA form", "mRNA", id="mixed-case"),
        pytest.param("by the COVID-19 wave", "19 COVID waves", "COVID-19", id="parts-apart"),
        pytest.param("19 rats", "the COVID-19 wave", "19", id="number-of-a-name"),
        pytest.param("NF-κB and A", "NF-κB", "A", id="letter"),
    ],
)
def test_a_term_the_passage_lacks_is_missing(summary, passage, missing):
    assert missing_terms(summary, passage) == [missing]


def test_terms_come_in_order_and_once():
    summary = "In Brazil 5 mg of XJ-9, in Brazil XJ-9."
    assert missing_terms(summary, "") == ["Brazil", "5 mg", "XJ-9"]


@pytest.mark.full
@given(st.data())
def test_sentences_of_a_passage_miss_no_term(data):
    passage = data.draw(st.sampled_from(PASSAGES))
    sentences = [one.text for one in split_sentences(passage)]
    chosen = data.draw(st.lists(st.sampled_from(sentences), min_size=1, max_size=4, unique=True))
    assert missing_terms(" ".join(chosen), passage) == []


@given(st.text(alphabet="aA1 .,-–\n5%µgm<βé²'"))
@example("A-\n1g")
def test_any_text_misses_no_term_of_its_own(text):
    for sentence in split_sentences(text):
        assert missing_terms(sentence.text, sentence.text) == []


@pytest.mark.full
def test_changed_digits_are_missing():
    seed = random.Random(4)
    changed = unseen = 0
    for passage in PASSAGES:
        for place in re.finditer(r"\d", passage):
            digit = seed.choice([one for one in "123456789" if one != place.group()])
            summary = passage[: place.start()] + digit + passage[place.end() :]
            changed += 1
            unseen += not missing_terms(summary, passage)
    assert changed > 300
    assert unseen <= 0.05 * changed  # the other number may stand in the passage too


@pytest.mark.full
@pytest.mark.parametrize("unit", ["A ", "5 ", "5-", "A-", "1 200 ", "a\n", ". ", "5, ", "E. coli "])
def test_a_hostile_text_takes_no_more_than_linear_time(unit):
    text = unit * (25_000 // len(unit))
    began = time.thread_time()
    missing_terms(text, text)
    assert time.thread_time() - began < 1.25
