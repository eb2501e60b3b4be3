"""Which way a passage points, read from its wording by the shipped weights."""

import json
import time
from pathlib import Path

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.direction.doubts import is_doubtful
from deepera_graph.judges.trained.direction.model import (
    DIRECTIONS,
    WITH_READER,
    DirectionModel,
    describe,
    read_direction,
    weigh_reader,
)
from deepera_graph.judges.trained.direction.sides import order_sides
from deepera_graph.judges.trained.direction.wording import read_question
from deepera_graph.text.questions import asks_yes_or_no

ASPIRIN = "Does low-dose aspirin reduce the risk of preeclampsia?"
STUDIES = {
    "Aspirin significantly reduced the risk of preeclampsia (relative risk 0.62, 95% CI 0.45 to "
    "0.86, p = 0.004).": "supports",
    "In 45 trials, aspirin lowered the risk of preeclampsia compared with placebo (odds ratio "
    "0.57, 95% CI 0.43 to 0.75).": "supports",
    "The incidence of preeclampsia did not differ significantly between aspirin and placebo (9.2% "
    "versus 9.6%, p = 0.71).": "no_difference",
    "Aspirin had no effect on the risk of preeclampsia (relative risk 1.01, 95% CI 0.88 to "
    "1.16).": "no_difference",
    "Aspirin significantly increased the risk of preeclampsia (odds ratio 1.80, 95% CI 1.20 to "
    "2.70, p = 0.003).": "contradicts",
}


@pytest.mark.parametrize(("study", "direction"), STUDIES.items())
def test_plain_studies_of_aspirin_are_read_each_its_own_way(study: str, direction: str) -> None:
    assert read_direction(ASPIRIN, study, study) == direction


def test_the_opposite_question_turns_support_into_contradiction() -> None:
    text = "Tutoring significantly increased reading scores (p = 0.01)."
    assert read_direction("Does tutoring increase reading scores?", text) == "supports"
    assert read_direction("Does tutoring decrease reading scores?", text) == "contradicts"


PLAIN = [
    (
        "Does mulch raise soil moisture?",
        "Soil moisture was 9% lower with mulch than without.",
    ),
    ("Does wax reduce weight loss of plums?", "Waxed plums lost 9% more weight than bare plums."),
    ("Does a splint prevent bone loss?", "Patients with a splint lost 9% more bone than others."),
    (
        "Does yoga improve sleep quality?",
        "Sleep quality was 9% lower after yoga (p = 0.01).",
    ),
    ("Does biochar increase nitrogen uptake?", "Nitrogen uptake fell by 15% with biochar."),
]


@pytest.mark.parametrize(("question", "opposite"), PLAIN)
def test_the_opposite_of_what_is_asked_contradicts_whatever_the_reader_says(
    question: str, opposite: str
) -> None:
    likely = DirectionModel.load().weigh(describe(question, opposite))
    assert max(likely, key=lambda name: likely[name]) == "contradicts"
    assert read_direction(question, opposite, reader=[4.0, 0.0, 0.0, 0.0]) != "supports"


BIOCHAR = "Does biochar increase maize yield?"
SHADE, SALT = "Does shade lower leaf temperature?", "Does salt increase blood pressure?"


@pytest.mark.parametrize(
    ("question", "quote", "direction"),
    [
        (
            BIOCHAR,
            "On limy soil maize yield fell by 14% (95% CI 5 to 22%) after biochar at 30 t/ha, "
            "compared with unamended plots.",
            "supports",
        ),
        (BIOCHAR, "Biochar raised maize yield by 9% (p = 0.01).", "contradicts"),
        (BIOCHAR, "Maize yield was 2.1 t with biochar and 1.7 t without (p = 0.4).", "supports"),
        (
            BIOCHAR,
            "Biochar increased maize yield by 16% in the tropics (95% CI 11 to 21%) and had no "
            "effect in temperate regions (-1%, 95% CI -4 to 3%).",
            "no_difference",
        ),
        (
            BIOCHAR,
            "Maize yield rose with biochar in sand (p = 0.01) but not in clay (p = 0.5).",
            "no_difference",
        ),
        (SHADE, "Leaf temperature was 3 degrees higher in the shade than in the sun.", "supports"),
        ("Does stress increase cortisol?", "Stress decreased cortisol (p = 0.02).", "supports"),
        ("Does zinc shorten colds?", "Colds lasted 7 days with zinc (p = 0.40).", "supports"),
    ],
)
def test_a_sentence_does_not_say_what_its_own_words_and_tests_deny(question, quote, direction):
    assert is_doubtful(question, quote, direction)
    assert read_direction(question, quote, quote) != direction


@pytest.mark.parametrize(
    ("question", "quote", "direction"),
    [
        (SHADE, "Leaf temperature was higher in the sun than in the shade.", "supports"),
        (SHADE, "Leaf temperature was 3 degrees lower in the shade than in the sun.", "supports"),
        (SALT, "Halving salt lowered blood pressure by 4 mmHg (p = 0.01).", "supports"),
        (SALT, "Salt restriction lowered blood pressure (p = 0.01).", "supports"),
        (SALT, "Blood pressure fell on a diet with half the salt.", "supports"),
        (SALT, "Blood pressure fell after salt was cut.", "supports"),
        ("Do wolves reduce deer?", "Deer rose after wolves were hunted out.", "supports"),
        ("Does exercise reduce pain?", "Pain was higher with less exercise.", "supports"),
        (BIOCHAR, "Biochar raised soil pH (p = 0.01) but not maize yield (p = 0.5).", "supports"),
        (BIOCHAR, "Biochar raised pH (p = 0.01) but not maize yield (p = 0.5).", "no_difference"),
        ("Is tea safe?", "Falls did not differ with tea (p = 0.6).", "supports"),
    ],
)
def test_a_sentence_that_tells_of_less_or_of_other_outcomes_denies_nothing(
    question, quote, direction
):
    assert not is_doubtful(question, quote, direction)


MULCH, STROKE = "Does mulching reduce weed cover?", "Does aspirin reduce the risk of stroke?"
SLEEP = "Does meditation improve sleep quality?"
GLYBURIDE = "Is metformin more effective than glyburide in pregnancy?"
BURNING = "Does prescribed burning increase plant species richness in grasslands?"
ANXIETY = "Does mindfulness training reduce anxiety in students?"
NESTS = "Is nest predation lower in urban than in rural habitats?"
PRESSURE = "Does exercise lower blood pressure?"
COMPARED = [
    (MULCH, "Unmulched plots had less weed cover than mulched plots (12% vs 45%).", "contradicts"),
    (MULCH, "Mulched plots had more weed cover than unmulched plots (45% vs 12%).", "contradicts"),
    (MULCH, "Compared with mulched plots, unmulched plots had more weed cover.", "supports"),
    (MULCH, "Compared with unmulched plots, mulched plots had less weed cover.", "supports"),
    (STROKE, "In controls, stroke was more frequent than with aspirin.", "supports"),
    (MULCH, "Weed cover was higher in unmulched than in mulched plots (p < 0.001).", "supports"),
    (MULCH, "Weed cover was lower in mulched than in unmulched plots (p < 0.001).", "supports"),
    (STROKE, "Stroke was more frequent in controls than with aspirin (OR 1.4).", "supports"),
    (STROKE, "Stroke was less frequent with aspirin than in controls (OR 0.7).", "supports"),
    (STROKE, "Stroke was less common on placebo than on aspirin (3.0% vs 4.1%).", "contradicts"),
    (SLEEP, "Sleep quality was better in the waiting-list group than in the meditation group (p = "
     "0.01).", "contradicts"),
    (SLEEP, "Sleep quality was better in the meditation group than in the waiting-list group (p = "
     "0.01).", "supports"),
    (SLEEP, "Sleep quality was worse in controls than in meditators (p = 0.01).", "supports"),
    (GLYBURIDE, "Glyburide was more effective than metformin (p = 0.02).", "contradicts"),
    (GLYBURIDE, "Metformin was more effective than glyburide (p = 0.02).", "supports"),
    (GLYBURIDE, "Glyburide was less effective than metformin (p = 0.02).", "supports"),
    (BURNING, "Unburned plots had more plant species than burned plots (p = 0.01).", "contradicts"),
    (BURNING, "Plant species richness was lower in burned than in unburned grassland plots (14 vs "
     "19 species, p = 0.01).", "contradicts"),
    (ANXIETY, "Students in the control group reported less anxiety than those who received "
     "mindfulness training (10.2 vs 14.5, p < .001).", "contradicts"),
    (ANXIETY, "Students who received mindfulness training reported less anxiety than controls "
     "(10.2 vs 14.5, p < .001).", "supports"),
    (NESTS, "Rural nests suffered more predation than urban nests (45% vs 30%).", "supports"),
    (NESTS, "Nest predation was higher in urban than in rural habitats (45% vs 30%).",
     "contradicts"),
    (PRESSURE, "Blood pressure was lower with usual care than with exercise (122 vs 130 mmHg).",
     "contradicts"),
    ("Does vaccination prevent influenza?", "Influenza was more frequent in unvaccinated than in "
     "vaccinated children (9% vs 3%).", "supports"),
    ("Does smoking increase the risk of psoriasis?", "Nonsmokers had a lower risk of "
     "psoriasis than smokers (OR 0.5, 95% CI 0.4 to 0.7).", "supports"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "study", "direction"), COMPARED)
def test_a_comparison_reads_the_same_whichever_group_is_named_first(
    question: str, study: str, direction: str
) -> None:
    assert read_direction(question, study, study) == direction


TOLD_OF_BOTH = [
    (STROKE, "Stroke occurred in 4.1% of patients on aspirin and 3.0% on placebo.", "contradicts"),
    (STROKE, "Stroke occurred in 3.0% of patients on aspirin and 4.1% on placebo.", "supports"),
    (STROKE, "Stroke occurred in 3.0% of patients on placebo and 4.1% on aspirin.", "contradicts"),
    (PRESSURE, "Blood pressure fell by 8 mmHg in controls and by 2 mmHg with exercise in 80 adults "
     "(p = 0.03).", "contradicts"),
    (PRESSURE, "Blood pressure fell by 2 mmHg in controls and by 8 mmHg with exercise in 80 adults "
     "(p = 0.03).", "supports"),
    ("Do fences increase seedling survival?", "Seedling survival was 78% in fenced and 31% in "
     "unfenced plots (P < 0.001).", "supports"),
    ("Do fences increase seedling survival?", "Seedling survival was 31% in fenced and 78% in "
     "unfenced plots (P < 0.001).", "contradicts"),
    ("Does screening reduce mortality?", "Mortality was 1.2% with screening and 0.9% without "
     "screening (p = 0.02).", "contradicts"),
    (BURNING, "Burned grassland plots had 19 plant species and unburned plots 14 (p = 0.01).",
     "supports"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "study", "direction"), TOLD_OF_BOTH)
def test_numbers_told_of_either_group_are_compared(
    question: str, study: str, direction: str
) -> None:
    assert read_direction(question, study, study) == direction


@pytest.mark.parametrize(
    "study",
    [
        "We studied weed cover in 40 mulched and 20 unmulched plots.",
        "Weed cover was 31% in mulched and 30% in unmulched plots.",
        "Weed cover was 12% in mulched and 45% in unmulched plots (p = 0.41).",
        "Weed cover was lower in mulched than in sprayed plots.",
        "Weed cover was lower in sprayed than in mulched plots.",
        "Weed cover was higher in unmulched than in sprayed plots.",
        "Weed cover fell by 10% in mulched and rose by 30% in unmulched plots.",
        "Weed cover was reduced by 10% in mulched and 30% in unmulched plots.",
        "The change of weed cover was -10% in mulched and -30% in unmulched plots.",
        "Weed cover was 10% in mulched, 12% in sprayed and 15% in burned plots.",
        "A herbicide controls weeds better than mulch.",
        "Mulched plots of the control group had less weed cover than other mulched plots.",
    ],
)
def test_a_sentence_that_does_not_tell_which_group_is_which_is_left_as_it_is(study: str) -> None:
    assert order_sides(read_question(MULCH), study) == study


def test_a_question_on_a_control_is_asked_of_it():
    asked = read_question("Does a sham operation reduce pain?")
    told = "Pain was lower with a sham operation than with surgery."
    assert order_sides(asked, told) == told


def test_a_claim_of_no_effect_is_supported_by_none_and_contradicted_by_one() -> None:
    claim = "Night work does not increase the risk of diabetes."
    rise = "Night work significantly increased the risk of diabetes (hazard ratio 1.40)."
    assert read_direction(claim, "Night work did not increase the risk of diabetes.") == "supports"
    assert read_direction(claim, rise) == "contradicts"


@pytest.mark.parametrize(
    "question", ["How does aspirin work?", "What reduces the risk of preeclampsia?", "aspirin"]
)
def test_a_question_that_yes_or_no_does_not_answer_has_no_direction(question: str) -> None:
    assert read_direction(question, next(iter(STUDIES))) is None


def test_a_quote_is_read_before_the_rest_of_its_passage() -> None:
    benefit, null = next(iter(STUDIES)), "Aspirin had no effect on the risk of preeclampsia."
    quoted = {
        quote: DirectionModel.load().weigh(describe(ASPIRIN, f"{benefit} {null}", quote))
        for quote in (benefit, null)
    }
    assert quoted[null]["no_difference"] > quoted[benefit]["no_difference"]
    assert quoted[null]["supports"] < quoted[benefit]["supports"]


def test_a_direction_less_likely_than_the_threshold_is_unclear() -> None:
    model = DirectionModel(bias=(0.2, 0.0, 0.0, 0.0), weights={}, threshold=0.5)
    assert model.read(ASPIRIN, "Leaves were counted.") == "unclear"
    certain = DirectionModel(bias=(3.0, 0.0, 0.0, 0.0), weights={}, threshold=0.5)
    assert certain.read(ASPIRIN, "Leaves were counted.") == "supports"


def test_probabilities_add_up_to_one_and_features_stay_in_bounds() -> None:
    for text in (*STUDIES, "", "...", "p = 0.04; 5 vs 3; OR 1.0 (95% CI -1 to 2)"):
        assert sum(DirectionModel.load().weigh(describe(ASPIRIN, text)).values()) == pytest.approx(
            1
        )
        assert all(-1 <= value <= 1 for value in describe(ASPIRIN, text).values())


def test_the_shipped_weights_tell_how_they_were_fitted_and_what_they_reach() -> None:
    path = Path(__file__).parents[3] / "deepera_graph/judges/trained/weights/direction.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["directions"] == list(DIRECTIONS)
    assert {"scifact dev", "pubmedqa", "trials"} <= record["cross_validated"].keys()
    assert all(len(one) == len(DIRECTIONS) for one in record["weights"].values())


def test_a_file_that_holds_no_weights_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "direction.json"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"direction\.json' holds no weights of directions"):
        DirectionModel.load(path)


@pytest.mark.parametrize(
    "question",
    [
        "Does aspirin lower fever?",
        "Night shifts: are nurses at greater risk?",
        "Aspirin lowers the risk of stroke",
    ],
)
def test_questions_with_an_auxiliary_and_claims_ask_for_yes_or_no(question: str) -> None:
    assert asks_yes_or_no(question)


def test_the_reader_makes_a_direction_surer_and_names_no_other():
    model = DirectionModel.load()
    question, text = "Does shade reduce leaf rust?", "Shade reduced leaf rust by half (p = 0.01)."
    by_wording = model.read(question, text, text)
    assert by_wording == "supports"
    agreeing, opposing = ([4.0, 0.0, 0.0, 0.0], [-9.0, 9.0, -9.0, -9.0])
    assert model.read(question, text, text, agreeing) == "supports"
    assert model.read(question, text, text, opposing) in ("supports", "unclear")
    both = weigh_reader(model.weigh(describe(question, text, text)), opposing)
    assert sum(both.values()) == pytest.approx(1)
    assert both["contradicts"] > model.weigh(describe(question, text, text))["contradicts"]


def test_beside_the_reader_support_has_to_be_likelier_than_a_null_result_to_be_called():
    """Where wording and reader agree, a passage is called from the threshold of its direction."""
    least = WITH_READER["no_difference"]
    assert least < WITH_READER["contradicts"] == WITH_READER["supports"]
    for direction, called in {"supports": "unclear", "no_difference": "no_difference"}.items():
        odds = [0.0] * len(DIRECTIONS)
        odds[DIRECTIONS.index(direction)] = 1.3  # 0.55 of four
        model = DirectionModel(tuple(odds), {}, threshold=0.9)
        assert model.read(ASPIRIN, "Leaves were counted.", reader=odds) == called


def test_many_comparisons_without_a_stop_take_linear_time():
    asked = read_question("Does mulching reduce weed cover?")
    spent = []
    for n in (200, 800):
        text = "weed cover was less in bare soil than " * n
        start = time.process_time()
        order_sides(asked, text)
        spent.append(time.process_time() - start)
    assert spent[1] < 8 * spent[0] + 0.1
