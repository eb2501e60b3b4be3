"""Where a statement and a sentence part ways."""

import time

import pytest

from deepera_graph.evidence.contrast import list_contrasts
from evidence.test_verdict import judge

NO_CHANGE = "it may say the opposite: the passage finds no change"
CHANGE = "it may say the opposite: the passage finds a change"
RAISED = "1.32 (95% CI 1.10 to 1.58)"
SCAB = (
    "Scab was found on 3.6% of apples in the wax group and 3.3% in the control group "
    "(risk ratio 1.10; 95% CI 0.87 to 1.42; P = 0.42)."
)
MOULD = "Wax lowered mould on the skin by 62% (p = 0.02) but did not change the firmness."
RUST = "Rust occurred on 10.8% of pears in the wax group and in 18.6% in the control group."
DOSES = "Protection was seen in trees that got wax daily but not in those with single doses."
RIPE = (
    "Ripening was shorter in the wax group than in the control group "
    "(mean difference -0.5 days, 95% CI -0.9 to -0.1)."
)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Wax had no effect on scab of apples.", SCAB),
        ("Wax did not prevent scab of apples.", SCAB),
        ("Scab was as common with wax as with control.", SCAB),
        ("Wax did not change the firmness of apples.", MOULD),
        ("The firmness of apples was unchanged by wax.", MOULD),
        ("Wax lowered mould by 62%.", MOULD),
        ("Wax lowered mould, but did not change the firmness.", MOULD),
        ("Rust was found on 18.6% of control pears and on 10.8% with wax.", RUST),
        ("Rust was less frequent with wax than with control.", RUST),
        ("Rust was more frequent with control than with wax.", RUST),
        ("Wax reduced rust.", RUST),
        ("Wax lowered the weight of apples.", "Without wax, weight rose from 4 to 9 g."),
        ("Wax reduced mould.", "Mould fell when wax increased from 2 to 4 g."),
        ("Wax reduced mould.", "Wax increased from 2 to 4 weekly coats reduced mould."),
        ("Raw apples cracked more often than waxed.", "6% of waxed apples cracked, 47% of raw."),
        ("Single doses of wax gave no protection.", DOSES),
        ("Wax gave protection daily, but not in single doses.", DOSES),
        ("Daily wax gave protection.", DOSES),
        ("Wax gave protection, except in single doses.", DOSES),
        ("Wax cut rust, but had no effect on mould.", "Mould was as common as without wax."),
        ("Wax gave protection, but only in trees with daily doses.", DOSES),
        ("Wax cut rust, but not in pines.", "Wax cut rust in ash trees more than in pines."),
        ("Wax cut rust, but not in pines.", "In ash trees wax cut rust; in pines it did not."),
        ("Wax shortened ripening.", RIPE),
        ("Ripening was shortened by wax.", RIPE),
        ("Wax reduced weight.", "Weight fell by 5 kg with wax and by 2 kg in the control group."),
        ("Wax cut losses.", "Losses were higher in the control group than in the wax group."),
        ("Wax reduced rust.", "Rust and scab were rarer with wax."),
        ("Wax reduced rust (p = 0.08).", "Rust was rarer with wax (p = 0.08)."),
        ("Wax reduced rust.", "Rust was rarer with wax (p = 0.01; after a year, p = 0.2)."),
        ("Clover did not cut leaching of wax.", "Rye cut leaching of wax, and clover did not."),
        ("Yield of wax did not rise further.", "Yield rose with wax, but did not rise further."),
        ("Scab was unaffected by wax.", "Wax cut rust and mould by 4%, but scab was unaffected."),
        ("Wax made rust rarer.", "Fewer trees with wax had rust than without."),
        (
            "Wax did not reduce scab.",
            "Scab was seen on 9% of waxed and on 8% of other pears (p = 0.7), rust was rarer.",
        ),
        ("Wax reduced scab.", "The score was 1.1 patches in the wax group and 1.9 in the control."),
        ("Low wax had a higher risk of rust.", "High wax was associated with lower risk of rust."),
        ("Bees were more common on hedges.", "Bees were twice as common on hedges as in fields."),
        ("Bees were less common on hedges.", "Bees were not as common on hedges as in fields."),
        ("Deaths did not differ between wax and paper.", "Rust was less common with wax or paper."),
        (
            "Under wax sugar was higher in the top half.",
            "Sugar was 9% higher under wax than under paper in the top half, but lower below it.",
        ),
        (
            "Wax reduced rust of pears.",
            "Rust occurred in 122 (8.5%) of 1438 pears given wax and 174 (12.1%) of 1438 pears "
            "given no wax (absolute reduction 3.6%, 95% CI 1.4-5.8).",
        ),
        (
            "In ash trees rust was related to wax.",
            "Rust was related to wax in ash trees, but there was no relation in pines.",
        ),
        (
            "Wax reduced leaf rust in pines.",
            "Wax did not reduce leaf rust in ash trees but reduced it in pines.",
        ),
        ("Bees saw more roses in sun than shade.", "Bees saw fewer roses in shade than in sun."),
        ("Wax lowered rust.", "Wax lowered rust but not mould."),
        ("Wax did not lower mould.", "Wax lowered rust but not mould."),
        ("Wax lowered rust but not mould.", "Wax lowered rust but not mould."),
        ("Wax reduced rust.", "Wax reduced rust, but not significantly."),
        ("Wax reduced rust.", "Wax reduced rust but not enough to replace nets."),
        ("Wax reduced rust in ash trees.", "Wax reduced rust not only in pines but in ash trees."),
        ("Wax reduced bites at dawn.", "Wax did not reduce bites at noon, but did so at dawn."),
    ],
)
def test_what_says_the_same_is_left_alone(claim, sentence):
    assert list_contrasts(claim, sentence) == []


@pytest.mark.parametrize(
    ("claim", "sentence", "note"),
    [
        ("Wax improved the firmness of apples.", MOULD, NO_CHANGE),
        ("Wax lowered mould by 62%, and improved the firmness.", MOULD, NO_CHANGE),
        ("Wax had no effect on mould of the skin.", MOULD, CHANGE),
        (
            "Wax reduced the risk of scab on apples.",
            "The risk of scab on apples was 1.3% with wax (risk ratio 0.9; 95% CI 0.7 to 1.2).",
            "its difference may be due to chance: 95% CI 0.7 to 1.2",
        ),
        (
            "Wax reduced scab.",
            "Scab was rarer with wax (p = 0.31).",
            "its difference may be due to chance: p = 0.31",
        ),
        (
            "Rust was found on 18.6% of pears with wax and on 10.8% of controls.",
            RUST,
            "the groups of 18.6% and 10.8% are exchanged",
        ),
        (
            "Rust was found less on pears with wax (18.6%) than on controls (10.8%).",
            RUST,
            "the groups of 18.6% and 10.8% are exchanged",
        ),
        (
            "Wax and control pears had rust in 18.6% and 10.8%, respectively.",
            RUST,
            "the groups of 18.6% and 10.8% are exchanged",
        ),
        (
            "Rust was more frequent with wax than with control.",
            RUST,
            "it may say the opposite: more frequent, where the numbers of the passage are 10.8% "
            "and 18.6%",
        ),
        (
            "Wax increased rust of pears.",
            RUST,
            "it may say the opposite: increased, where the numbers of the passage are 10.8% and "
            "18.6%",
        ),
        (
            "Single doses of wax gave protection.",
            DOSES,
            "it has the exception “not in those with single doses”",
        ),
        ("Wax cut rust, but had no effect on mould of the skin.", MOULD, CHANGE),
        (
            "Wax gave protection, but not in trees with daily doses.",
            DOSES,
            "it is so where the claim has “not in trees with daily doses”",
        ),
        (
            "Wax gave protection, except in trees with daily doses.",
            DOSES,
            "it is so where the claim has “except in trees with daily doses”",
        ),
        (
            "Wax gave protection, but had no effect in trees with daily doses.",
            DOSES,
            "it is so where the claim has “had no effect in trees with daily doses”",
        ),
        (
            "Wax gave protection, but only in trees with single doses.",
            DOSES,
            "it has the exception “not in those with single doses”",
        ),
        (
            "Wax cut rust, but not in pines.",
            "Wax cut rust in pines more than in ash trees.",
            "it is so where the claim has “not in pines”",
        ),
        (
            "Wax prolonged ripening.",
            RIPE,
            "it may say the opposite: prolonged, where the passage has shorter with it",
        ),
        (
            "Wax raised losses.",
            "Losses were higher in the control group than in the wax group.",
            "it may say the opposite: raised, where the passage has higher without it",
        ),
        (
            "Wax raised losses.",
            "Waxed pears had lower losses than control pears.",
            "it may say the opposite: raised, where the passage has lower with it",
        ),
        ("Clover cut leaching of wax.", "Rye cut leaching of wax, and clover did not.", NO_CHANGE),
        (
            "Clover cut leaching of wax.",
            "Rye cut leaching of wax, while clover had no effect.",
            NO_CHANGE,
        ),
        (
            "Wax improved the firmness of apples.",
            "Wax cut rust by 22%, but firmness was unchanged.",
            NO_CHANGE,
        ),
        ("Wax reduced bites.", "With wax bites did not become rarer.", NO_CHANGE),
        (
            "Wax raised the firmness.",
            "Firmness was 4.2 mm Hg lower with wax than without.",
            "it may say the opposite: raised, where the passage has lower with it",
        ),
        (
            "Rust was more common with paper than with wax.",
            "Rust was more common with wax (26% vs 18%; P = 0.02).",
            "it may say the opposite: more common, where the passage has more common without it",
        ),
        (
            "Wax was associated with lower odds of rust.",
            "Wax was associated with higher odds of rust (OR 1.21, 95% CI 1.13-1.30).",
            "it may say the opposite: lower, where the passage has higher with it",
        ),
        (
            "Wax increased rust.",
            "Fewer pears with wax had rust than with paper.",
            "it may say the opposite: increased, where the passage has fewer with it",
        ),
        (
            "Wax raised yields.",
            "Waxed trees produced 41% lower yields than control trees.",
            "it may say the opposite: raised, where the passage has lower with it",
        ),
        (
            "Wax increased scab.",
            "The number of patches of scab was 1.1 in the wax group and 1.9 in the controls.",
            "it may say the opposite: increased, where the numbers of the passage are 1.1 and 1.9",
        ),
        ("Wax raised the rate of rust.", "Rust was not more frequent.", NO_CHANGE),
        (
            "Wax had no effect on the stay of fruit in store.",
            "Wax shortened the stay of fruit in store by 8% (p = 0.003).",
            CHANGE,
        ),
        (
            "Wax had no effect on rust of pears.",
            "Rust of pears was seen in 18.0% with wax, as compared with 9.9% of controls (P<.01).",
            CHANGE,
        ),
        (
            "Rust was seen in 90.2% with wax and 93.1% with paper.",
            "Rust was seen in 93.1% with wax and 90.2% with paper (difference 2.9%).",
            "the groups of 90.2% and 93.1% are exchanged",
        ),
        (
            "In pines rust was related to the age of wax.",
            "Rust was related to the age of wax in ash trees, but there was no relation in pines.",
            "it may be of what is not so: “there was no relation in pines”",
        ),
        (
            "Rust was more common with wax than without.",
            "Rust occurred in 122 (8.5%) of 1438 pears given wax and 174 (12.1%) of 1438 pears "
            "given no wax (absolute reduction 3.6%, 95% CI 1.4-5.8).",
            "it may say the opposite: more common, where the numbers of the passage are 8.5% and "
            "12.1%",
        ),
        ("No-till cut yields.", "Yields were the same.", NO_CHANGE),
        (
            "Wax reduced the number of mites.",
            "Wax reduced the number of flies, whereas the number of mites was not affected.",
            NO_CHANGE,
        ),
        (
            "Wax lowered the firmness of apples.",
            "Wax improved firmness after 200 days from 58.4 to 71.2 N.",
            "it may say the opposite: lowered, where the passage has a change from 58.4 to 71.2",
        ),
        (
            "Waxed apples cracked more often than raw apples.",
            "6% of waxed apples were cracked and 47% of raw ones.",
            "it may say the opposite: more, where the numbers of the passage are 6% and 47%",
        ),
    ],
)
def test_what_differs_is_told(claim, sentence, note):
    assert list_contrasts(claim, sentence) == [note]


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Lead stunts barley.", "Lead had no effect on the height of barley (p = 0.6)."),
        ("Lead stunts barley.", "The height of barley was unaffected by lead."),
        ("Asthma is caused by smoke.", "Smoke was unrelated to asthma in 900 adults."),
        ("Music calms dogs.", "There was no evidence that music calms dogs."),
        ("Music calms cats.", "Music calmed dogs but had no effect on cats."),
        ("Smoke causes asthma.", "Smoke was not associated with asthma (OR 0.99)."),
    ],
)
def test_what_has_no_effect_does_nothing_by_whatever_verb(claim, sentence):
    assert list_contrasts(claim, sentence) == [NO_CHANGE]


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("Lead is a metal found in barley.", "Lead had no effect on the height of barley."),
        ("We studied lead in barley.", "Lead had no effect on the height of barley."),
        ("Barley tolerates lead.", "Lead had no effect on the height of barley."),
        ("Lead does not stunt barley.", "Lead had no effect on the height of barley."),
        ("Music calms dogs.", "Music calmed dogs but had no effect on cats."),
        ("Music calms dogs.", "Music calmed dogs with no adverse effects."),
        ("Drought kills oaks.", "Oaks died of drought, with no association with age."),
        ("Rot infects wheat.", "Rot infected wheat; warmth had no effect on infection."),
        ("Wax was not inferior to paint.", "Wax was non-inferior to paint for firmness."),
    ],
)
def test_what_has_no_effect_on_another_thing_denies_nothing(claim, sentence):
    assert list_contrasts(claim, sentence) == []


@pytest.mark.parametrize(
    ("claim", "sentence", "is_turned"),
    [
        (
            "Wax lowers the risk of rust.",
            f"The hazard ratio for rust with wax versus placebo was {RAISED}.",
            True,
        ),
        (
            "Wax lowers the risk of rust.",
            f"Wax was associated with rust (hazard ratio {RAISED}).",
            True,
        ),
        (
            "Wax lowers the risk of rust.",
            "The hazard ratio for rust with wax versus placebo was 0.72 (95% CI 0.6 to 0.9).",
            False,
        ),
        (
            "Wax lowers the risk of rust.",
            f"The hazard ratio for rust with placebo versus wax was {RAISED}.",
            False,
        ),
        (
            "Wax raises the risk of rust.",
            f"Wax was associated with rust (hazard ratio {RAISED}).",
            False,
        ),
        (
            "Wax raises survival.",
            "Wax was associated with survival (HR 0.5, 95% CI 0.3 to 0.8).",
            False,
        ),
        (
            "Wax lowers rust.",
            "Not using wax was associated with rust (OR 1.5, 95% CI 1.1 to 2.0).",
            False,
        ),
    ],
)
def test_a_ratio_is_read_with_its_control_and_with_its_link(claim, sentence, is_turned):
    notes = list_contrasts(claim, sentence)
    assert any(one.startswith("it may say the opposite") for one in notes) == is_turned


@pytest.mark.parametrize(
    ("claim", "sentence", "left_out"),
    [
        ("Wax lowered mould.", "Wax lowered rust but not mould.", "not mould"),
        ("Tea cut pulse.", "Tea lowered weight but not pulse in 80 adults.", "not pulse"),
        ("Wax reduced rust.", "Rust was reduced by nets but not wax.", "not wax"),
        ("Warmth advanced oak.", "Warmth advanced beech but not oak.", "not oak"),
        ("Lime raised worms.", "Lime raised beetles, but not that of worms.", "not that of worms"),
    ],
)
def test_a_thing_that_is_left_out_needs_no_preposition(claim, sentence, left_out):
    assert list_contrasts(claim, sentence) == [f"it has the exception “{left_out}”"]


@pytest.mark.parametrize(
    "sentence",
    [
        "There were 27% fewer stings with nets than without (rate ratio 0.73, 95% CI 0.6 to 0.9).",
        "With nets, there were 27% fewer stings.",
        "Nets led to 27% fewer stings.",
        "Growers with nets had 27% fewer stings.",
        "Fewer stings were recorded under nets.",
        "The rate ratio for stings with nets was 0.73 (95% CI 0.6 to 0.9).",
    ],
)
def test_more_where_there_are_fewer_is_told_however_it_is_said(sentence):
    for claim in [
        "There were more stings with nets.",
        "More stings were seen with nets than without.",
        "Nets resulted in more stings.",
        "Stings were more frequent with nets.",
    ]:
        [note] = list_contrasts(claim, sentence)
        assert note.startswith("it may say the opposite: more")
    for claim in [
        "There were fewer stings with nets.",
        "More stings were seen without nets.",
        "There were more stings without nets than with nets.",
        "Growers without nets had more stings.",
        "Stings were more common in those not given nets.",
        "More birds were seen with nets.",
    ]:
        assert list_contrasts(claim, sentence) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Sugar was higher in the lime group (p = 0.01).",
        "Pears given lime had higher sugar.",
        "More sugar was found in pears with lime.",
    ],
)
def test_what_is_higher_in_another_group_than_the_control_of_a_claim_is_told(sentence):
    for claim in [
        "Sugar was higher in the control group.",
        "Sugar was higher with placebo.",
        "Sugar was higher without lime.",
        "Control pears had higher sugar.",
    ]:
        [note] = list_contrasts(claim, sentence)
        assert note.endswith("in another group, not in that of the claim")
    for claim in [
        "Sugar was higher in the lime group.",
        "Sugar was lower in the control group.",
        "Pears with lime had higher sugar than controls.",
        "Acid was higher in the control group.",
    ]:
        assert list_contrasts(claim, sentence) == []


def test_what_is_higher_in_another_group_supports_no_claim(tmp_path):
    text = "We counted stings on 60 farms. Sugar was higher in the lime group at harvest."
    pair = judge(tmp_path, "Sugar was higher in the control group.", text, "Lime and sugar")
    assert pair.verdict in ("partly", "not_found")
    assert pair.notes


def test_what_was_counted_decides_no_finding(tmp_path):
    text = "Stings of bees were counted on 60 farms. With nets there were 27% fewer stings."
    pair = judge(tmp_path, "There were more stings of bees with nets.", text, "Nets and bees")
    assert pair.quote == "With nets there were 27% fewer stings."
    assert pair.verdict != "supported"


def test_what_was_done_decides_no_finding(tmp_path):
    text = f"Apples were given wax for 8 weeks. {MOULD}"
    pair = judge(tmp_path, "Wax improved the firmness of apples.", text)
    assert (pair.verdict, pair.notes) == ("not_found", (NO_CHANGE,))


def test_neither_a_design_nor_another_dose_decides_a_finding(tmp_path):
    text = (
        "In a randomised complete block experiment we applied 0, 10 or 30 t ha-1 of wood biochar "
        "to 12 plots and counted earthworms in spring. Earthworm abundance was 41% lower in plots "
        "that received 30 t ha-1 than in unamended plots (95% CI 22 to 56%, P = 0.003). At 10 t "
        "ha-1 abundance did not differ from the control (P = 0.48)."
    )
    claim = "Biochar applied at 30 t per hectare reduced earthworm abundance by 41%."
    pair = judge(tmp_path, claim, text)
    assert pair.quote.startswith("Earthworm abundance was 41% lower")
    assert "opposite" not in "".join(pair.notes)


def test_another_crop_is_another_population(tmp_path):
    text = "Inoculation increased the uptake of phosphorus by 1.9-fold in adult maize."
    pair = judge(tmp_path, "Inoculation increased the uptake of phosphorus by wheat.", text)
    note = "another crop: it is of maize, and not of wheat"
    assert (pair.verdict, pair.notes) == ("partly", (note,))


def test_what_may_be_due_to_chance_supports_in_part_alone(tmp_path):
    pair = judge(
        tmp_path, "Wax reduced scab of apples.", "Scab of apples was rarer with wax (p = 0.31)."
    )
    assert pair.verdict == "partly"


@pytest.mark.parametrize(
    ("claim", "text", "notes"),
    [
        (
            "At night, wax made no difference to the surface temperature of leaves.",
            "Surface temperature of leaves was 4.2 °C lower under wax than over soil at noon. "
            "At night there was no difference.",
            (CHANGE, "not in this sentence, but elsewhere in the abstract: “night”"),
        ),
        (
            "Early picking reduced mortality of trees.",
            "Death or major loss of trees by winter occurred in 37.0% of trees with early picking "
            "and 36.8% with late picking (RR 1.00; 95% CI 0.88-1.13). Mortality was 6.4% in the "
            "early group and 9.0% in the late group (P=0.03).",
            ("not in this sentence, but elsewhere in the abstract: “mortality”",),
        ),
    ],
)
def test_where_another_finding_has_more_of_a_claim_it_is_told(tmp_path, claim, text, notes):
    assert judge(tmp_path, claim, text).notes == notes


@pytest.mark.parametrize(
    "claim",
    [
        "Nets reduced malaria in villages, but not with weekly dips.",
        "Nets reduced malaria, though not with weekly dips.",
    ],
)
def test_what_the_claim_leaves_out_and_the_work_has_is_told(tmp_path, claim):
    text = (
        "Nets reduced malaria in villages by 20%. Protection was seen with weekly dips of nets "
        "without salt, but not with single dips."
    )
    pair = judge(tmp_path, claim, text, "Nets and malaria in villages")
    assert pair.verdict == "partly"
    assert "Protection was seen" in f"{pair.notes}{pair.quote}"


def test_another_sentence_that_finds_nothing_of_the_outcome_of_a_claim_is_quoted(tmp_path):
    text = "Wax shortened the ripening of stored pears by 8%. Firmness was unaffected."
    pair = judge(tmp_path, "Wax improved the firmness of stored pears.", text)
    assert pair.verdict != "supported"
    assert "Firmness was unaffected." in f"{pair.notes}{pair.quote}"


@pytest.mark.parametrize(
    "words",
    [
        "wax ",
        "was associated with ",
        "fewer trees with wax were ",
        "there were fewer ",
        "with wax there were fewer colds ",
        "more without wax than ",
        "wax led to fewer ",
        "but not in those ",
    ],
)
def test_a_long_statement_is_read_in_a_moment(words):
    began = time.process_time()
    list_contrasts(words * 1000, (words * 200)[:800])
    assert time.process_time() - began < 2
