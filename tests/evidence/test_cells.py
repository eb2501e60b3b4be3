"""Cells by rules: right on abstracts of ten fields, and only with words that are there."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from deepera_graph.evidence.table.cells import find_outcome, read_cells
from deepera_graph.evidence.table.designs import find_design

TABLES = Path(__file__).with_name("tables")
NUMBERS = ("n", "effect", "interval", "p")


def read(name):
    return [json.loads(one) for one in (TABLES / name).read_text("utf-8").splitlines()]


def numbers(value):
    """Return the numbers of a cell, with the sign of a p value, as they compare."""
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", value)], value[:1] in "<>"


def count(rows, names):
    """Count right, wrong and missed cells."""
    found = Counter()
    for row in rows:
        cells = read_cells(row["text"])
        for name in names:
            said = cells[name].value if name in cells else ""
            right = row["cells"][name]
            same = numbers(said) == numbers(right) if name in NUMBERS else said == right
            kind = "right" if said and same else "wrong" if said else "missed" if right else "none"
            found[kind] += 1
            found["known"] += bool(right)
    return found


@pytest.mark.parametrize("file", ["seen.jsonl", "held.jsonl"])
@pytest.mark.parametrize(
    ("names", "least"), [(NUMBERS, 0.95), (("design",), 0.95), (("direction",), 0.9)]
)
def test_cells_are_seldom_wrong_and_seven_of_ten_are_found(file, names, least):
    found = count(read(file), names)
    assert found["right"] / (found["right"] + found["wrong"]) >= least
    assert found["right"] / found["known"] >= 0.70


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("A cohort of 900 nurses was followed. Randomised trials are needed.", "cohort"),
        ("Cores were kept wet. It should not be used before field experiments exist.", ""),
        (
            "Randomised trials are lacking. In a case-control study, risk was higher.",
            "case-control",
        ),
        ("We call for a systematic review. Patients were randomly assigned.", "randomised trial"),
        ("Whether it should be used was tested in a randomised trial.", "randomised trial"),
        ("Data from 12 randomised trials (900 adults) were combined.", "meta-analysis"),
        ("Twelve randomised controlled trials were pooled.", "meta-analysis"),
        ("Of 12 trials a random-effects model was made.", "meta-analysis"),
        ("Twelve randomised trials (900 adults) were included.", "systematic review"),
        ("In 12 women and 3 field trials, site was a random effect.", "field experiment"),
        ("Randomised trials reported fewer falls. We did a case-control study.", "case-control"),
        ("Randomised trials are inconsistent. We did a cohort study.", "cohort"),
        ("We synthesised warming experiments of five biomes.", ""),
        ("Later start of schools: a natural experiment.", "observational"),
        ("A meta-regression of 64 studies was made.", "meta-analysis"),
        ("In a stepped-wedge trial of 12 wards, falls were fewer.", "trial"),
        (
            "Seventy prospective studies with 900 adults followed for 7 years were included.",
            "systematic review",
        ),
        ("Our randomised trial showed fewer falls.", "randomised trial"),
    ],
)
def test_a_design_that_others_should_have_is_not_that_of_a_study(text, design):
    found = read_cells(text)
    assert (found["design"].value if "design" in found else "") == design


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("Of 500 people screened, 412 were enrolled.", "412"),
        ("We approached 90 schools. of 500 people who were invited, 412 took part.", "412"),
        ("Of 500 eligible patients, 412 patients were randomised at 12 sites.", "412"),
        ("We screened 500 adults; 412 were randomised.", "412"),
        ("600 adults were enrolled, and 412 were randomised.", "412"),
        ("We enrolled 600 adults, of whom 412 were included.", "412"),
        ("600 adults were randomised, and 412 were analysed.", "600"),
        ("Of 500 screened patients, 412 were randomised.", "412"),
        ("Of 500 invited pupils, 412 pupils were analysed.", "412"),
        ("Of 500 women approached, 412 underwent randomisation.", "412"),
    ],
)
def test_those_who_were_screened_are_not_the_size_of_a_study(text, size):
    found = read_cells(text)
    assert (found["n"].value if "n" in found else "") == size


@pytest.mark.parametrize(
    ("title", "design"),
    [
        ("Double-blind trial of vitamin D3 on exacerbation of lung disease", "trial"),
        ("A double blind study of zinc", "trial"),
        ("Zinc in colds: a single-masked, placebo-controlled study", "trial"),
        ("Zinc in colds: a placebo controlled trial", "trial"),
        ("Open-label trial of zinc", "trial"),
        ("An open label, phase 2 study of zinc", "trial"),
        ("Phase III trial of zinc", "trial"),
        ("A non-randomised controlled trial of zinc", "trial"),
        ("Zinc and colds in primary care: a cluster trial", "trial"),
        ("Zinc versus tea: a noninferiority trial.", "trial"),
        ("Zinc and wheat: a field trial", "field experiment"),
        ("Zinc in colds: lessons from a cluster trial", ""),
        ("Zinc: the case for a trial", ""),
        ("Zinc and copper: a double-blind crossover trial", "crossover trial"),
        ("Zinc and copper: a cross-over study", "crossover trial"),
        ("A double-blind, randomised, placebo-controlled trial of zinc", "randomised trial"),
        ("An open-label, prospective cohort study of zinc", "cohort"),
        ("A blind spot of trials: double-blind studies are needed", ""),
        ("Blinding in double-blind trials", ""),
        ("Zinc in colds: study protocol for a double-blind trial", ""),
        ("Protocol for a randomised, placebo-controlled trial of zinc", ""),
        ("Zinc in colds, a randomised trial: study protocol", ""),
        ("Trial protocol. Adults will be randomised to zinc or none.", ""),
        ("A meta-analysis. The protocol for a review was registered.", "meta-analysis"),
        ("The study protocol was approved. Adults were randomised.", "randomised trial"),
    ],
)
def test_a_trial_is_known_however_it_is_blinded_and_a_protocol_is_none(title, design):
    found = find_design(title)
    assert (found.value if found else "") == design


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        (  # "or" is no odds ratio
            "Cores were incubated with 0, 2 or 5% biochar. Emission rose by 24% (p = 0.008).",
            {"effect": "24%", "p": "0.008", "direction": "higher"},
        ),
        (
            "The average yield increase was 11% (95% CI 7 to 15%).",
            {"effect": "11%", "interval": "7 to 15%", "direction": "higher"},
        ),
        (
            "Emission was 1.9 kg without and 1.2 kg with biochar, a reduction of 37% (p < 0.001).",
            {"effect": "37%", "p": "<0.001", "direction": "lower"},
        ),
        (
            "Yield was 5.2 t without and 5.3 t with it, a difference of 1.6% (95% CI -3 to 6%).",
            {"effect": "1.6%", "interval": "-3 to 6%", "direction": "no difference"},
        ),
        (  # another dose, with a test of its own
            "Yield was 28% higher with the high dose (5.9 t; p = 0.003), whereas the low "
            "one gave a gain of 9% that was not significant (p = 0.21).",
            {"effect": "28%", "p": "0.003", "direction": "higher"},
        ),
        (
            "Weight did not differ (p = 0.4), whereas height was 3% higher (p = 0.01).",
            {"effect": "3%", "p": "0.01", "direction": "higher"},
        ),
        (
            "Fasting lowered glucose by 0.4 mmol/L (95% CI 0.1 to 0.7) but HbA1c was unchanged "
            "(p = 0.91).",
            {"effect": "0.4 mmol/L", "interval": "0.1 to 0.7", "p": "", "direction": "lower"},
        ),
        (
            "HbA1c did not change, but glucose fell by 5% (p = 0.01).",
            {"effect": "5%", "p": "0.01", "direction": "lower"},
        ),
        (
            "Glucose fell by 5% (p = 0.01), and HbA1c was unchanged (95% CI -1 to 2).",
            {"effect": "5%", "interval": "", "p": "0.01", "direction": "lower"},
        ),
        (
            "Glucose fell by 5% (95% CI -1 to 9), but did not reach a significant change.",
            {"effect": "5%", "interval": "-1 to 9", "direction": "no difference"},
        ),
        (
            "Weight fell by 3% (p = 0.04), but this was not significant when adjusted (p = 0.2).",
            {"effect": "3%", "direction": "no difference"},
        ),
    ],
)
def test_a_row_is_of_one_comparison(text, cells):
    found = read_cells(text)
    assert {name: found[name].value if name in found else "" for name in cells} == cells


@pytest.mark.parametrize(
    ("question", "cells"),
    [
        ("Does fasting lower glucose in women?", ("0.4 mmol/L", "0.1 to 0.7", "", "lower")),
        ("Does fasting lower HbA1c in women?", ("", "", "0.91", "no difference")),
        ("Does fasting lower glucose and HbA1c?", ("0.4 mmol/L", "0.1 to 0.7", "", "lower")),
        ("Does fasting help women?", ("0.4 mmol/L", "0.1 to 0.7", "", "lower")),
        ("", ("0.4 mmol/L", "0.1 to 0.7", "", "lower")),
    ],
)
def test_a_finding_is_of_the_outcome_that_is_asked_for(question, cells):
    text = (
        "In 24 women, fasting lowered glucose by 0.4 mmol/L (95% CI 0.1 to 0.7) but HbA1c was "
        "unchanged (p = 0.91)."
    )
    found = read_cells(text, outcome=find_outcome(question))
    names = ("effect", "interval", "p", "direction")
    assert tuple(found[one].value if one in found else "" for one in names) == cells


@pytest.mark.parametrize(
    ("question", "effect"),
    [
        ("Is yield higher in fields with lime?", "5%"),
        ("Are weeds more abundant under lime?", "10%"),
        ("Are weeds affected by lime?", "10%"),
        ("Does lime raise N2O emissions?", "3%"),
        ("Is N2O higher in emissions under lime?", "3%"),
        ("Does lime raise CO2 emissions?", "4%"),
    ],
)
def test_an_outcome_may_be_the_subject_of_a_question_or_a_formula(question, effect):
    text = "Yield fell by 5% (p = 0.3) and weeds rose by 10% (p = 0.01) in fields with lime."
    if "emissions" in question:
        text = "CO2 emissions rose by 4% (p = 0.3) and N2O emissions by 3% (p = 0.01) with lime."
    found = read_cells(text, outcome=find_outcome(question))
    assert found["effect"].value == effect


@pytest.mark.parametrize(
    "said", ["which was not significant (p = 0.48)", "which did not differ (p = 0.48)"]
)
def test_what_a_clause_says_of_a_finding_belongs_to_it(said):
    text = f"Naps lengthened total sleep time by 4 minutes at night, {said}, in 64 adults."
    found = read_cells(text, outcome=find_outcome("Do naps lengthen total sleep time?"))
    assert [found[one].value for one in ("effect", "p", "direction")] == [
        "4 minutes",
        "0.48",
        "no difference",
    ]


def test_the_sentence_that_decides_comes_before_one_that_tells_more():
    decides = "Water rose from 6.1% to 9.8% (p < 0.001)."
    text = f"{decides} Conductivity fell by 55% (p = 0.02). Cores were few."
    assert read_cells(text)["effect"].value == "55%"
    cells = read_cells(text, (0, len(decides)))
    assert ("effect" in cells, cells["p"].value, cells["direction"].value) == (
        False,
        "<0.001",
        "higher",
    )
    assert read_cells(text, (len(text) - 16, len(text)))["effect"].value == "55%"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("We gave coffee to 240 C57BL/6 mice.", "240"),
        ("Coffee was given to 240 male C57BL/6 mice.", "240"),
        ("Coffee was given to 240 adult male specific-pathogen-free C57BL/6J mice.", "240"),
        ("Coffee was given to 24 C57BL/6J mice.", "24"),
        ("Coffee was given to 24 BALB/c mice.", "24"),
        ("Coffee was given to 24 wild-type (WT) mice.", "24"),
        ("Coffee was given to 24 Apoe−/− mice.", "24"),
        ("Coffee was given to 240 SV129/6 mice.", "240"),
        ("Coffee was given to SV129/6 mice.", ""),
        ("Coffee was given to C57BL/10 mice.", ""),
        ("Coffee was given to B6.129/10 mice.", ""),
        ("A549 cells were kept with coffee.", ""),
        ("CD4 T cells of 240 patients were counted.", "240"),
        ("Coffee was given to 240 H1N1 patients.", "240"),
        ("H1N1 patients had coffee.", ""),
        ("IL-6 patients and HLA-B27 patients had coffee.", ""),
        ("SARS-CoV-2 patients had coffee.", ""),
        ("COVID 19 patients had coffee.", ""),
        ("Coffee was given to 240 type 2 diabetes patients.", "240"),
        ("Coffee was given to 240 patients; type 2 diabetes patients and 300 controls.", "240"),
        ("Phase 3 patients had coffee, as had 240 adults.", "240"),
        ("Grade 12 pupils and stage 5 patients had coffee.", ""),
        ("At week 12 patients had coffee.", ""),
        ("Headache came in 12/40 patients.", "40"),
    ],
)
def test_a_number_that_is_part_of_a_name_is_no_size(text, size):
    found = read_cells(text)
    assert (found["n"].value if "n" in found else "") == size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("We compared 40 fields. Bees were more numerous (mean 84 vs 33 bees, p = 0.01).", "40"),
        ("Bees were more numerous in strips (mean 84 vs 40 bees, p = 0.01).", ""),
        ("Catches were higher in hedges (61 versus 25 beetles, p = 0.01).", ""),
        ("Abundance was higher (means 84 and 40 individuals; p = 0.02).", ""),
        ("Tits had more young (averaging 21 compared with 14 birds).", ""),
        ("Meadows held on average 12 plants and grazed ones 31 plants.", ""),
        ("We compared 30 vs 28 farms.", ""),
        ("We compared 30 organic vs 28 conventional farms.", "58"),
        ("We followed 300 coffee users versus 700 non-users.", "1000"),
        ("The mean age of 240 adults was 40 years.", "240"),
        ("Tea vs water: 60 adults were randomised.", "60"),
    ],
)
def test_what_a_group_had_is_no_size(text, size):
    found = read_cells(text)
    assert (found["n"].value if "n" in found else "") == size


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("Each 10 nmol/l higher level of it was associated with fewer falls (p = 0.01).", "lower"),
        ("Falls were fewer per 10 nmol/l increase in vitamin D (p = 0.01).", "lower"),
        ("For every 5 kg increase in weight, gout was more frequent (p = 0.01).", "higher"),
        ("Each SD higher intake was associated with lower mortality (p = 0.01).", "lower"),
        ("Each one-unit increase in score was linked to more falls (p = 0.01).", "higher"),
        ("A 1-unit increase in dose was associated with less gout (p = 0.01).", "lower"),
        ("With each 5-point increase in score, falls were less frequent (p = 0.01).", "lower"),
        ("Each additional cup was associated with 4% lower mortality (p = 0.01).", "4% lower"),
        ("A 10% increase in fibre was associated with 4% lower mortality.", "4% lower"),
        ("Mortality fell by 5% per 10 g/day increase in fibre (p = 0.01).", "5% lower"),
        ("Every 1 mmol/L rise in LDL raised risk by 22% (p = 0.01).", "22% higher"),
        ("Death: hazard ratio per 1-SD increment, 0.91 (p = 0.01).", "0.91 lower"),
        ("Weight rose; a 5 kg increase was seen in users (p = 0.01).", "5 kg higher"),
        ("Each group had 10% higher yields (p = 0.01).", "10% higher"),
        ("Intake was 5 mg per day higher (p = 0.01).", "5 mg higher"),
        ("The rate was 3 per 1,000 person-years lower (p = 0.01).", "lower"),
        ("Coffee increased the risk of falls (p = 0.01).", "higher"),
    ],
)
def test_by_how_much_an_exposure_differs_is_no_effect(text, cells):
    found = read_cells(text)
    assert " ".join(found[one].value for one in ("effect", "direction") if one in found) == cells


@pytest.mark.parametrize(
    "said",
    [
        "hazard ratio 1.03; 95% confidence interval [CI], 0.92 to 1.17",
        "hazard ratio for death from any cause, 1.03; 95% CI, 0.92 to 1.17",
        "hazard ratio 1.03, 95% confidence interval (CI) 0.92–1.17",
        "HR 1.03, 95 % CI: 0.92; 1.17",
        "HR 1.03, CI95% [0.92 to 1.17]",
        "HR 1.03, 95% CI=[0.92–1.17]",
        "adjusted hazard ratio [aHR] 1.03 [95% CI 0.92, 1.17]",
        "adjusted hazard ratio (aHR) 1.03 [95% CI 0.92, 1.17]",
        "HR 1.03 [0.92, 1.17]",
        "HR 1.03 (0.92 to 1.17)",
    ],
)
def test_an_interval_is_read_however_it_is_written(said):
    found = read_cells(f"Death was more frequent with coffee ({said}).")
    names = ("effect", "interval", "direction")
    assert [found[one].value for one in names] == ["1.03", "0.92 to 1.17", "no difference"]


def test_citations_behind_a_ratio_are_no_interval():
    assert "interval" not in read_cells("Death was as in others (OR 3.1 [2, 5]).")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("We followed 300 coffee users and 700 controls.", "1000"),
        ("We followed 300 coffee users and 700 non-users for 12 years.", "1000"),
        ("300 men and 400 women were followed for 12 years.", "700"),
        ("We compared 24 C57BL/6J mice and 24 Wistar rats.", "48"),
        ("We compared 24 mice fed coffee with 24 mice fed water.", "48"),
        ("Twenty-four C57BL/6J mice on coffee lived longer than 24 wild-type mice.", "48"),
        ("Mortality was lower in 24 coffee drinkers than in 30 tea drinkers.", "54"),
        ("We studied 20 mice, 20 rats and 20 rabbits.", "60"),
        ("We enrolled 240 adults, 120 women and 120 men.", "240"),
        ("A total of 240 adults were randomised: 118 to coffee and 122 to tea.", "240"),
        ("240 adults were randomised: 80 to coffee, 78 to tea and 82 to water.", "240"),
        ("Falls did not differ between 150 coffee users and 150 controls (p = 0.6).", "300"),
        ("We enrolled 240 adults. We compared 150 coffee users and 150 controls.", ""),
        ("We enrolled 1,000 adults: 300 coffee users and 700 controls.", "1000"),
        ("We randomised 120 adults to coffee and 120 to tea.", "240"),
        ("We studied 120 adults with asthma and 80 without.", "200"),
        ("We measured 30 treated plots and 30 untreated plots.", "60"),
        ("We studied 300 pupils in 12 schools.", "300"),
        ("We studied 12 schools and 300 pupils.", "300"),
        ("Eleven hospitals enrolled 600 patients.", "600"),
        ("Of 240 patients who were followed, 12 men and 8 women died.", "240"),
        ("We enrolled 240 patients and 200 patients completed the study.", "240"),
        ("We followed 240 patients, and 30 patients died.", "240"),
        ("We followed 240 patients and 30 patients had a stroke.", "240"),
        ("We enrolled 240 patients, of whom 100 women and 90 men came back.", "240"),
        ("Of 500 screened, 300 patients were enrolled.", "300"),
        ("Headache came in 12 of 40 patients.", "40"),
        ("Headache came in 12 of 40 patients and in 5 of 40 controls.", ""),
        ("Newts were found in 41 of 60 ponds and in 9 of 52 ponds with crayfish.", ""),
        ("Malaria kills 600,000 children a year. We enrolled 240 children.", "240"),
        ("In 240 adults, 120 adults were randomised to coffee. 90 adults died.", "240"),
        ("Of 9,870 children born in 1995, 7,402 were analysed at age 7 years.", "7402"),
        ("Of 240 adults who were randomised, 230 were analysed.", "240"),
        ("From 3,118 households, 1,712 infants aged 6 months were enrolled.", "1712"),
        ("Over 17,000 participants had coffee.", ""),
        ("600 adults were scheduled for coffee.", ""),
        ("We recorded 11,342 birds at 220 sites.", ""),
        ("In a sample of 12,490 ninth formers in 65 schools, marks rose.", ""),
        ("We gave 120 kg per year to wheat in 24 plots.", "24"),
        ("Fourteen trials (n = 4,227 in the coffee groups and 3,909 in others) were pooled.", ""),
        ("Nine trials were pooled: 486 adults had weight, 930 adults had intake.", ""),
        ("Nine trials were pooled, with a total of 930 adults; 486 adults had weight.", "930"),
        ("Death was as frequent in 5 men and 8 women. We followed 300 adults.", "300"),
        ("We invited 300 men and 400 women and enrolled 412 adults.", "412"),
        ("We randomised 60 trained and 58 untrained adults.", "118"),
        ("We compared 40 obese and 42 lean mice with 30 wild-type mice.", "112"),
        ("We stored 240 waxed and 240 uncoated fruits for eight weeks.", "480"),
        ("Weight fell in 12 obese and 42 lean mice.", ""),
        ("We enrolled 500 adults. We lost 12 obese and 14 lean adults.", "500"),
        ("We picked 20 ripe and 30 unripe figs from each of 10 branches.", ""),
        ("We tested 24 smooth and 24 rough tiles and 12 glazed tiles.", ""),
        ("We gave 5 low and 10 high doses.", ""),
        ("We studied one school and 30 adults.", "30"),
        ("We followed 12 men and sampled 30 ponds.", "12"),
        ("We gave coffee to 60 adults and water to 58 adults.", ""),
        ("We gave coffee to 60 adults and water to 58.", ""),
        ("We coated 120 apples with wax and left 118 apples uncoated.", ""),
        ("We coated 600 apples and kept them, with 600 uncoated ones, at 1 degree.", ""),
        ("We randomised 120 adults to coffee and gave water to 118 adults.", ""),
        ("We gave coffee to 240 adults, of whom 30 adults stopped.", "240"),
        ("We gave coffee to 240 adults from 2010 to 2012.", "240"),
    ],
)
def test_groups_that_are_studied_side_by_side_are_one_size(text, size):
    found = read_cells(text)
    assert (found["n"].value if "n" in found else "") == size


@pytest.mark.parametrize(
    ("said", "way"),
    [
        ("Coffee delayed sleep by 40 minutes", "higher"),
        ("Sleep onset was delayed by 40 minutes", "higher"),
        ("Coffee caused a delay of 40 minutes in sleep", "higher"),
        ("Coffee postponed bedtime by 30 minutes", "higher"),
        ("Coffee extended mean lifespan by 5.8%", "higher"),
        ("Coffee prolonged survival by 2 months", "higher"),
        ("Coffee lowered glucose and extended lifespan", ""),
        ("Coffee delayed the decline of memory by 2 years", "higher"),
        ("Coffee shortened sleep by 30 minutes", "lower"),
        ("Coffee reduced the delay of sleep by 40 minutes", "lower"),
        ("Coffee reduced delayed graft function by 20%", "lower"),
        ("Coffee led to fewer delays", "lower"),
        ("Delays fell by 20%", "lower"),
        ("Glucose was lowered by prolonged fasting", "lower"),
        ("Delayed-release coffee lowered glucose", "lower"),
        ("Coffee did not delay sleep", "no difference"),
    ],
)
def test_what_comes_later_or_lasts_longer_is_higher(said, way):
    cells = read_cells(f"{said} (p = 0.01).")
    assert (cells["direction"].value if "direction" in cells else "") == way


STROKE, BURNING = "Does aspirin reduce the risk of stroke?", "Does burning increase plant species?"
PRESSURE = "Does exercise lower blood pressure?"


@pytest.mark.parametrize(
    ("question", "text", "direction"),
    [
        (STROKE, "Stroke was more frequent in controls than with aspirin (OR 1.4).", "lower"),
        (STROKE, "Stroke was less frequent with aspirin than in controls (OR 0.7).", "lower"),
        (STROKE, "Stroke was rarer with placebo than with aspirin (p = 0.02).", "higher"),
        (
            STROKE,
            "Stroke was more frequent in controls than with aspirin (OR 1.1, 95% CI 0.8 to 1.5).",
            "no difference",
        ),
        (
            BURNING,
            "Unburned plots had more plant species than burned plots (19 vs 14, p = 0.01), so "
            "burning lowered richness.",
            "lower",
        ),
        (BURNING, "Burned plots had more plant species than unburned plots (p = 0.01).", "higher"),
        (
            PRESSURE,
            "Blood pressure fell by 8 mmHg in controls and by 2 mmHg with exercise (p = 0.03).",
            "higher",
        ),
        (PRESSURE, "Blood pressure was 122 mmHg with exercise (p = 0.03).", ""),
    ],
)
def test_a_direction_is_that_of_those_whom_a_question_asks_about(question, text, direction):
    found = read_cells(text, outcome=find_outcome(question), question=question)
    assert (found["direction"].value if "direction" in found else "") == direction


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("Lime raised yield in sand (by 45%, p < 0.01) but not in clay (2%, p = 0.81).", ""),
        (
            "Lime raised yield by 16% in the tropics (95% CI 11 to 21%) and had no effect in "
            "the north (-1%, 95% CI -4 to 3%).",
            "",
        ),
        ("Lime raised yield on sand (RR 2.1, 95% CI 1.1 to 4.0), but reduced it in clay.", ""),
        ("Lime raised yield by 16% (p = 0.01) but not protein (2%, p = 0.81).", "16%"),
        ("Lime led to a 9% increase in yield (p = 0.01) but not in protein (p = 0.8).", "9%"),
        ("Lime raised yield by 16% (p = 0.01), and farmers liked it in spring.", "16%"),
    ],
)
def test_a_finding_that_is_not_one_of_others_is_not_that_of_a_study(text, effect):
    found = read_cells(text, outcome=find_outcome("Does lime raise yield?"))
    assert (found["effect"].value if "effect" in found else "") == effect
    assert ("direction" in found) == bool(effect)


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("We reviewed 37 studies. Of these, 21 reported more bees near hedgerows.", ""),
        ("Of 499 children given varnish, 8% had caries, compared with 14% of 501 controls.", ""),
        ("Of 499 children, 8% had caries, and 5% of the girls.", "499"),
        ("Fields with hedgerows held 40 bees and fields without them 15 (p < 0.01).", ""),
        ("Mulched plots harboured 40 beetles.", ""),
        ("In 60 orchards, hedges attracted 30 birds.", "60"),
        ("We studied 40 bees.", "40"),
    ],
)
def test_what_a_place_held_is_no_size_of_a_study(text, n):
    found = read_cells(text)
    assert (found["n"].value if "n" in found else "") == n


@pytest.mark.parametrize(
    ("text", "design"),
    [
        ("We reviewed 14 randomised trials with 2,310 participants.", "review"),
        ("In this review of 12 controlled trials, tea lowered weight.", "review"),
        ("We critically appraised nine cohort studies of tea.", "review"),
        ("We systematically reviewed 14 randomised trials.", "systematic review"),
        ("In a randomised trial of 40 adults, we reviewed their records.", "randomised trial"),
        ("We reviewed records of 40 patients of a cohort.", "cohort"),
    ],
)
def test_who_reviews_trials_makes_none(text, design):
    assert read_cells(text)["design"].value == design
