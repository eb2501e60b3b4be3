"""Cells by rules, as authors of many fields word what they found."""

import time

import pytest

from deepera_graph.evidence.table.cells import read_cells


def show(text, *names):
    found = read_cells(text)
    return " | ".join(found[one].value if one in found else "" for one in names)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("120 received coffee and 118 received placebo.", "238"),
        ("40 received tea, 41 received coffee and 39 received water.", "120"),
        ("150 had surgery and 150 were given tea; 12 underwent more surgery.", ""),
        ("Of 300, 150 were given milk and 150 were given tea; 12 underwent surgery.", "300"),
        ("Forty patients were assigned to coffee and 38 to tea.", "78"),
        ("Mice (n = 24/group) had coffee.", ""),
        ("Respiration rose (n = 6 plots per treatment).", ""),
        ("Rats had coffee (n = 8 in each group).", ""),
        ("Twelve mice per group had coffee.", ""),
        ("There were 12 falls per 100 patients.", ""),
        ("Between 2010 and 2015 patients had coffee.", ""),
        ("During 2015 patients had coffee.", ""),
        ("We read the records of 12 million adults.", ""),
        ("Worms were as frequent (113 ± 14 vs 108 ± 11 individuals m−2).", ""),
        ("There were 14 ± 12 plants in each.", ""),
        ("We counted 40 plants m−2.", ""),
        ("Among 412 undergraduates, it was common.", "412"),
        ("We use data on 3,100 counties.", "3100"),
        ("On 3,400 open-domain questions, it was as good.", "3400"),
        ("It erred in 22% of 800 answers.", "800"),
        ("A test of 30 questions was answered better.", ""),
        ("We gave 240 questions to 60 adults.", "60"),
        ("Commercial 18650 cells were cycled.", ""),
        ("Forty-eight commercial 18650 cells were cycled in 2032 coin cells.", "48"),
        ("Nine 21700 lithium-ion cells were cycled.", "9"),
        ("We followed 18650 patients.", "18650"),
        ("It had no effect (t test, p = 0.18; 12 and 11 cells).", ""),
    ],
)
def test_a_size_is_of_all_groups_and_not_of_each(text, size):
    assert show(text, "n") == size


def test_the_words_of_a_size_are_whole():
    text = "In it 120 received coffee and 118 received placebo."
    assert text[slice(*read_cells(text)["n"].span)] == "120 received coffee and 118 received"


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("Randomised trials have shown mixed results. We followed a cohort.", "cohort"),
        ("Randomised trials suggest harm. We followed a cohort.", "cohort"),
        ("Across 27 randomised trials in 8,419 patients, it was safe.", "meta-analysis"),
        ("The review included nine prospective cohort studies.", "meta-analysis"),
        ("In a previous meta-analysis, it was safe. Adults were randomised.", "randomised trial"),
    ],
)
def test_a_design_of_others_is_not_that_of_a_study(text, design):
    assert show(text, "design") == design


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("Migraine days fell by 2.1 (95% CI 1.4 to 2.8) more with coffee.", "2.1 | lower"),
        ("Latency was cut by a factor of 2.3 (p = 0.01).", "2.3-fold | lower"),
        ("Richness rose by 1.3 species per year of age (95% CI 0.7 to 1.9).", "1.3 | higher"),
        ("Falls dropped by 2.4 events per ward (95% CI 1.1 to 3.7).", "2.4 | lower"),
        ("A 10% increase in wages reduces employment by 1.4 percent.", "1.4 percent | lower"),
        ("When temperature increased by 2 °C, yield fell by 8%.", "8% | lower"),
        ("Release was 7% higher when it was warmed by 5 °C.", "7% | higher"),
        ("Increasing nitrogen from 50 to 100 kg/ha increased protein by 1.3%.", "1.3% | higher"),
        ("Raising the dose by 10 mg reduced pain by 5%.", "5% | lower"),
        ("At 3 months more patients had recovered (p = 0.01).", " | higher"),
        ("Wounds had healed more often by 12 weeks (p = 0.01).", " | higher"),
        ("Its use raised attendance by 6.2 percentage points.", "6.2 percentage points | higher"),
        ("It raised the limit by 1.2 ± 0.4% (p = 0.01).", "1.2% | higher"),
        ("Intake was 112 kcal lower after a high-protein meal.", "112 kcal | lower"),
        ("Its yield was 2.3-fold higher.", "2.3-fold | higher"),
        (
            "It fell by 9.1 points with coffee and by 4.6 points with tea (between-group "
            "difference 4.5; p = 0.01).",
            "4.5 | lower",
        ),
        ("The relative risk of gout was 1.17 (1.05-1.31).", "1.17 | higher"),
        ("The hazard ratio of death, 0,71 (0,58-0,87), was low.", "0.71 | lower"),
        ("Nests failed (odds ratio per 100 m 0.84).", "0.84 | lower"),
        ("The resting HR was 72 bpm.", ""),
        ("The C:N ratio was 12.", ""),
        ("The sensitivity was 87% (95% CI 81 to 92).", "87% | "),
        ("Weight and sleep were linked, r(410) = .31, p < .001.", "0.31 | "),
        ("Uptake decreased from 34 to 21 % with silane.", " | lower"),
        ("Coffee improved pain from 6 to 3.", " | lower"),
        ("It improved retention after 200 cycles from 78.4% to 91.2%.", " | higher"),
        (
            "Respiration fell (difference -0.08 µmol CO2 m-2 s-1, 95% CI -0.31 to -0.01).",
            "-0.08 µmol CO2 m-2 s-1 | lower",
        ),
        ("Yield was higher by 0.4 t ha−1 (95% CI 0.1 to 0.7 t ha−1).", "0.4 t ha−1 | higher"),
        ("Stiffness rose by 3 J K-1 mol-1 (p = 0.01).", "3 J K-1 mol-1 | higher"),
        ("The hazard ratio of death was 0.71 for PD-1 blockers.", "0.71 | lower"),
        ("Weight fell by 3 in GLP-1 users (p = 0.01).", " | lower"),
        ("Scores fell by 12 on day -1 (p = 0.01).", " | lower"),
        ("Weight fell by 5 mg GLP-1 (p = 0.01).", "5 mg | lower"),
        ("Pressure raised efficiency from 98.1 to 99.2 % and more than doubled life.", " | higher"),
        ("Salt raised resistance by 1.8 mΩ (95% CI 0.9-2.7 mΩ).", "1.8 mΩ | higher"),
        (
            "Less cobalt lowered the onset by 18 °C (95% CI 11 to 25) and capacity by 2% (not "
            "significant).",
            "18 °C | lower",
        ),
        ("Capacity loss was 9.8% in cells with salt and 9.5% in cells without.", ""),
        (
            "Loss was 9.8% with salt and 9.5% without (difference 0.3 percentage points, "
            "95% CI -0.6 to 1.2).",
            "0.3 percentage points | no difference",
        ),
    ],
)
def test_an_effect_is_read_in_many_wordings(text, cells):
    assert (show(text, "effect", "direction") if cells else show(text, "effect")) == cells


@pytest.mark.parametrize(
    ("said", "p"),
    [
        ("p = 0,001", "0.001"),
        ("p = 1.2 × 10−5", "1.2e-5"),
        ("P < 10⁻⁵", "<1e-5"),
        ("p = 3e-4", "3e-4"),
        ("p = 0.4 for interaction", ""),
    ],
)
def test_a_p_value_is_read_in_many_styles(said, p):
    assert show(f"Coffee lowered pain by 5% ({said}).", "p", "direction") == f"{p} | lower"


@pytest.mark.parametrize(
    ("said", "interval"),
    [
        ("OR 0.91, 0.85 to 0.98", "0.85 to 0.98"),
        ("OR 0,91; 95% CI 0,85-0,98", "0.85 to 0.98"),
        ("OR 0.91, 95% confidence limits 0.85 and 0.98", "0.85 to 0.98"),
        ("OR 0.91, 95% CI from 0.85 to 0.98", "0.85 to 0.98"),
    ],
)
def test_an_interval_goes_before_words(said, interval):
    found = show(f"Fish did not delay dementia ({said}).", "interval", "direction")
    assert found == f"{interval} | lower"


def test_of_several_intervals_without_an_effect_none_is_taken():
    said = "Life was 3120 (95% CI 2960-3290) at 25 °C and 1380 (95% CI 1290-1480) at 45 °C."
    assert show(said, "effect", "interval") == " | "


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("Mulch reduced grain yield (p = 0.01)", "lower"),
        ("Coffee reduced weight gain (p = 0.01)", "lower"),
        ("Smoking increased bone loss (p = 0.01)", "higher"),
        ("Coffee reduced serum creatinine (p = 0.01)", "lower"),
        ("Tea reduced walking speed (p = 0.01)", "lower"),
        ("Loneliness increased depression (p = 0.01)", "higher"),
        ("Distraction reduced accuracy (p = 0.01)", "lower"),
        ("Patients had more adverse events (p = 0.01)", "higher"),
        ("Exercise improved depression (p = 0.01)", "lower"),
        ("Exercise improved quality of life in depressed people (p = 0.01)", "higher"),
        ("Tinnitus scores improved by 11% more with it (p = 0.01)", ""),
        ("Reading scores improved by 11% (p = 0.01)", "higher"),
        ("Pain scores improved by 11% (p = 0.01)", "lower"),
        ("Pain was worse with cold (p = 0.01)", "higher"),
        ("Yoga alleviated back pain (p = 0.01)", "lower"),
        ("Masks protected against infection (p = 0.01)", "lower"),
        ("Mortality was lower with higher intake (p = 0.01)", "lower"),
        ("Infarcts were smaller in the high-dose group (p = 0.01)", "lower"),
        ("Low income was associated with higher mortality (p = 0.01)", "higher"),
        ("Low income was associated with mortality (p = 0.01)", ""),
        ("Coffee and gout were inversely associated (p = 0.01)", "lower"),
        ("Pain decreased with oil (p = 0.01) but did not change with placebo", "lower"),
        ("Coffee lowered weight by 3 kg but did not affect height", "lower"),
        (
            "It was 29 g m-2 (SE 7) under no-till and 12 g m-2 under reduced tillage (p = 0.01)",
            "",
        ),
        ("It was 29.3 g under ploughing and 12.1 g under grass (p = 0.01)", ""),
        ("Unlike tea, which had no effect, coffee lowered pain (p = 0.01)", ""),
        ("Neither dose reduced pain", "no difference"),
        ("Coffee was no better than tea", "no difference"),
    ],
)
def test_a_way_is_that_of_the_outcome(said, way):
    assert show(f"{said}.", "direction") == way


@pytest.mark.parametrize("text", ["a" + " " * 20_000 + "b", "randomised " * 2_000, "1" * 20_000])
def test_reading_takes_time_that_is_linear_in_a_text(text):
    spent = []
    for part in (text[: len(text) // 4], text):
        start = time.process_time()
        read_cells(part)
        spent.append(time.process_time() - start)
    assert spent[1] < 8 * spent[0] + 0.1


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("Firmness had fallen by 6% in coated and by 31% in uncoated apples (p = 0.01).", "higher"),
        ("Firmness had fallen by 31% in uncoated and by 6% in coated apples (p = 0.01).", "higher"),
        ("Waxed apples lost 18% of their firmness and uncoated apples 39% (p = 0.01).", "higher"),
        ("HbA1c fell by 1.2% with tea and by 0.3% with placebo (p = 0.01).", "lower"),
        ("Yield rose by 12% with mulch and by 4% without mulch (p = 0.01).", "higher"),
        ("Yield rose by 4% in controls and by 12% in plots without tillage (p = 0.01).", ""),
    ],
)
def test_where_both_arms_change_one_way_the_outcome_goes_as_beside_the_control(text, way):
    assert show(text, "direction") == way
