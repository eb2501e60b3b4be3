"""Verdicts without a chat model: what a work turns, denies or lacks of a claim."""

from pathlib import Path

import pytest
from langchain_core.documents import Document

from deepera_graph import ManuscriptCheck, WorkLibrary
from deepera_graph.evidence.check import verdict
from deepera_graph.evidence.check.report import export_check

pytestmark = pytest.mark.full

TITLE = "Wax on stored apples"


def judge(folder: Path, claim: str, text: str, title: str = TITLE):
    works = WorkLibrary([Document(id="w", page_content=text, metadata={"title": title})])
    path = folder / "claims.csv"
    path.write_text(f'claim,reference\n"{claim}",{title}\n', encoding="utf-8")
    [pair] = ManuscriptCheck(library=works).check(path).pairs
    return pair


def test_a_title_that_says_the_opposite_supports_no_claim(tmp_path):
    text = "Peat soils emit large amounts of nitrous oxide after rewetting."
    title = "Biochar increases nitrous oxide pulses of peat after rewetting"
    claim = "In peat soils biochar reduced nitrous oxide pulses after rewetting."
    pair = judge(tmp_path, claim, text, title)
    assert pair.verdict == "partly"
    assert pair.notes == ("its title may say the opposite: reduced, where it has increases",)


def test_what_may_say_the_opposite_is_counted_and_stands_out(tmp_path):
    works = WorkLibrary([
        Document(id="w", page_content="Wax did not change firmness.", metadata={"title": TITLE}),
        Document(id="m", page_content="We met at night.", metadata={"title": "Moon"}),
    ])  # fmt: skip
    path = tmp_path / "claims.csv"
    rows = f'"Wax doubled the firmness of apples",{TITLE}\n"Tides doubled the height of waves",Moon'
    path.write_text(f"claim,reference\n{rows}\n", encoding="utf-8")
    report = ManuscriptCheck(library=works).check(path)
    assert report.describe_counts() == "2 not found (1 may say the opposite)"
    assert report.counts == {"not_found": 2}
    assert export_check(report, "html").count('<p class="note">it may say the opposite') == 1


@pytest.mark.full
@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        (
            "Seed coating did not affect the density of wild bees",
            "The seed coating reduced wild bee density: treated fields gained no weight.",
            "not_found",
        ),
        (
            "Seed coating reduced the weight of bee colonies",
            "No effect of the seed coating was found on the weight of bee colonies.",
            "not_found",
        ),
        (
            "Night cooling lowered the sugar of pears",
            "The sugar of pears did not change with night cooling (12.1% before, 12.0% after).",
            "not_found",
        ),
        (
            "Night cooling lowered the sugar of pears",
            "In pears, sugar was unchanged after night cooling (p = 0.4).",
            "not_found",
        ),
        (
            "Night cooling lowered the sugar of pears",
            "Night cooling reduced the sugar of pears (p = 0.04).",
            "supported",
        ),
        (
            "Night cooling had no effect on the sugar of pears",
            "In pears, sugar was unchanged after night cooling (p = 0.4).",
            "supported",
        ),
        (
            "Seed coating had no effect on the weight of bee colonies",
            "No effect of the seed coating was found on the weight of bee colonies.",
            "supported",
        ),
        (
            "Seed coating reduced the weight of bee colonies",
            "Objective: To assess the effect of seed coating on the weight of bee colonies.",
            "partly",
        ),
    ],
)
def test_a_finding_and_no_finding_do_not_support_each_other(tmp_path, claim, text, verdict):
    assert judge(tmp_path, claim, text).verdict == verdict


ELDERLY = "mortality in elderly patients"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (f"Statins reduced {ELDERLY}", f"Statins had no effect on {ELDERLY} at high risk."),
        (f"Statins reduced {ELDERLY}", f"With statins and placebo {ELDERLY} was similar."),
        (f"Statins reduced {ELDERLY}", f"Under statins {ELDERLY} stayed the same."),
        (f"Statins reduced {ELDERLY}", f"With statins there was little change in {ELDERLY}."),
        (f"Statins reduced {ELDERLY}", f"Statins made no difference to {ELDERLY}."),
        (f"Statins affected {ELDERLY}", f"Statins had no effect on {ELDERLY}."),
        (f"Statins had no effect on {ELDERLY}", f"Statins affected {ELDERLY}."),
        (f"With statins and placebo {ELDERLY} was similar", f"Statins reduced {ELDERLY}."),
        (f"Low-dose statins reduced {ELDERLY}", f"Low-dose statins had no effect on {ELDERLY}."),
    ],
)
def test_a_change_and_no_change_are_noted_however_they_are_said(tmp_path, claim, text):
    pair = judge(tmp_path, claim, text)
    assert pair.verdict == "not_found"
    assert "it may say the opposite" in pair.notes[0]


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Night cooling lowered sugar", "Sugar fell with night cooling; acid was unchanged."),
        (f"Statins reduced {ELDERLY}", f"Statins lowered {ELDERLY} with no effect on weight."),
        ("Our mortality is similar to earlier trials", "Statins reduced mortality in our trials."),
        ("Statins reduced mortality", "Those with statins did not have pain; mortality was 2%."),
        (f"Statins affected {ELDERLY}", f"Statins reduced {ELDERLY}."),
        ("Wax prevents the loss of firmness", "The firmness of apples with wax did not decrease."),
        ("Wax kept the firmness constant", "With wax the firmness remained similar."),
    ],
)
def test_no_change_of_something_else_or_of_the_claim_itself_is_not_noted(tmp_path, claim, text):
    assert not any("opposite" in one for one in judge(tmp_path, claim, text).notes)


WAXED = "Waxed apples lost less weight in storage."


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (WAXED, "Apples that were not waxed lost 8% of weight in storage, waxed ones 4%."),
        (WAXED, "Not waxed apples lost 8% of their weight in storage, and waxed apples 4%."),
        (WAXED, "Weight lost in storage was 4% in waxed and 8% in not waxed apples."),
        ("Smokers had more strokes.", "People who did not smoke had fewer strokes."),
        ("Children with vaccine had fewer colds.", "Children not vaccinated had more colds."),
        ("Nets halved the damage by birds.", "Without nets damage by birds doubled."),
        ("Nets reduced the damage by birds.", "Damage by birds doubled on farms without nets."),
        ("Damage by birds doubled without nets.", "On farms with nets damage by birds halved."),
        ("Wax reduced the loss of weight", "The reduction of the loss was similar across sites."),
        ("Wax reduced the loss of weight", "With wax the loss of weight was similar in all years."),
    ],
)
def test_the_name_of_a_group_denies_nothing(tmp_path, claim, text):
    pair = judge(tmp_path, claim, text)
    assert pair.verdict != "contradicted"
    assert not any("opposite" in one for one in pair.notes)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        (WAXED, "Waxed apples did not lose weight in storage."),
        ("Apples were waxed before storage", "Apples were not waxed before storage."),
        ("Wax reduced the loss of weight", "Effects were small and not reduced by wax of weight."),
        ("Wax reduced firmness of apples", "Wax coats apples without a reduction of firmness."),
        ("Wax reduced firmness of apples", "Wax coats apples without reducing their firmness."),
        ("Wax reduced the loss of weight", "The loss of weight was similar with wax and water."),
    ],
)
def test_what_denies_is_still_told(tmp_path, claim, text):
    pair = judge(tmp_path, claim, text)
    assert any("opposite" in one or "turned" in one for one in pair.notes)


@pytest.mark.parametrize("verb", ["raised", "reduced"])
@pytest.mark.parametrize(
    "text",
    [
        "In this double-blind trial kelp had no effect on the weight of snails.",
        "In a double blind, double-dummy trial kelp had no effect on the weight of snails.",
        "Kelp made no difference to the weight of snails in a randomised block trial.",
        "Kelp made no difference to the weight of snails in a randomized complete block design.",
        "The weight of snails did not differ with kelp in plots arranged in four blocks.",
    ],
)
def test_how_a_trial_was_made_is_no_change(tmp_path, verb, text):
    pair = judge(tmp_path, f"Kelp {verb} the weight of snails", text)
    assert (pair.verdict, pair.notes) == (
        "not_found",
        ("it may say the opposite: the passage finds no change",),
    )


def test_numbers_that_the_work_does_not_have_make_it_partly(tmp_path):
    text = "Wax coating kept apples firm. Night cooling did nothing to pears."
    pair = judge(tmp_path, "Wax coating kept apples firm in 90% of cases.", text)
    assert pair.verdict in ("partly", "not_found")
    assert "not in what was read: 90%" in pair.notes


STRIPS = "Flower strips raised the number of bumblebees by 30%."


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("Flower strips raised bumblebees, but not butterflies.", "butterflies"),
        ("Flower strips raised bumblebees, not butterflies.", "butterflies"),
        ("Flower strips raised bumblebees, but not the weight of bumblebees.", "weight"),
        ("Flower strips raised bumblebees, but not in hills of strips.", "hills"),
        ("Flower strips raised bumblebees, but had no effect on weeds.", "weeds"),
        ("Flower strips raised bumblebees, while beetles were unchanged.", "beetles"),
        ("Flower strips raised bumblebees without an effect on the rate of mites.", "mites"),
        ("Flower strips had no effect on soil but raised bumblebees.", "soil"),
        ("Flower strips raised the number of bumblebees, but not in mountains.", "mountains"),
    ],
)
def test_what_a_claim_says_is_unchanged_is_to_be_in_the_work(tmp_path, claim, missing):
    pair = judge(tmp_path, claim, STRIPS, "Flower strips")
    assert (pair.verdict, pair.notes) == ("partly", (f"not in what was read: {missing}",))


@pytest.mark.parametrize(
    "claim",
    [
        "Flower strips raised bumblebees, but not mortality.",
        "Flower strips raised bumblebees, but had no effect on yield.",
        "Flower strips raised bumblebees, but not significantly.",
        "Flower strips raised bumblebees, although no effect was seen over time.",
        "Flower strips not only look good, but raised bumblebees.",
    ],
)
def test_an_unchanged_outcome_that_the_work_names_is_not_noted(tmp_path, claim):
    text = f"{STRIPS} Yields did not differ. Deaths of bees were rare."
    assert judge(tmp_path, claim, text, "Flower strips").notes == ()


@pytest.mark.parametrize(
    ("claim", "text", "verdict"),
    [
        (
            "Night cooling lowered sugar by 0.7%",
            "Sugar was lower with night cooling (mean difference −0.7%, 95% CI −1.0 to −0.4).",
            "supported",
        ),
        (
            "Night cooling raised sugar by 0.7%",
            "Sugar was changed with night cooling (mean difference -0.7%, 95% CI -1.0 to -0.4).",
            "partly",
        ),
        (
            "Night cooling lowered sugar from 12.5 to 12.0%",
            "Sugar fell from 12·5% to 12·0% with night cooling.",
            "supported",
        ),
    ],
)
def test_a_number_is_found_with_its_sign_in_words_and_with_a_raised_point(
    tmp_path, claim, text, verdict
):
    assert judge(tmp_path, claim, text, "Night cooling of pears").verdict == verdict


@pytest.mark.parametrize(
    ("claim", "quote"),
    [
        ("Short cooling was linked to sugar in pears.", "Short cooling was linked to more sugar."),
        ("Long cooling was linked to sugar in pears.", "Long cooling was not linked to sugar."),
    ],
)
def test_of_sentences_that_are_about_as_near_the_one_in_the_words_of_the_claim_decides(
    tmp_path, claim, quote
):
    text = "Short cooling was linked to more sugar. Long cooling was not linked to sugar."
    pair = judge(tmp_path, claim, text, "Cooling and the sugar of pears")
    assert pair.quote == quote
    assert pair.verdict == ("supported" if claim.startswith("Short") else "contradicted")


@pytest.mark.parametrize(
    ("claim", "done", "found"),
    [
        (
            "Stress-reduction courses improved the sleep of older adults.",
            "METHODS: We randomised 146 older adults to courses of stress reduction or of sleep "
            "education.",
            "RESULTS: Sleep improved: the index fell by 2.8 points more with the courses.",
        ),
        (
            "An online sleep course reduced insomnia severity in nurses.",
            "We randomly assigned 212 shift-working nurses to an online sleep course or no course.",
            "After 12 weeks insomnia severity fell by 3 points more with it.",
        ),
        (
            "Caffeine reduced sleep time in nurses.",
            "Nurses were given coffee without sugar in a sleep laboratory.",
            "Of 90 nurses randomised, those given caffeine had a reduction in sleep time.",
        ),
    ],
)
def test_a_name_in_what_was_done_is_no_finding(tmp_path, claim, done, found):
    assert judge(tmp_path, claim, f"{done} {found}", "A course").quote == found


def test_a_planned_study_is_no_other_study_that_says_so(tmp_path):
    plan = "We will recruit 240 adults and test whether wax coating keeps apples firmer."
    works = [
        Document(id="w", page_content="Pears were sweet.", metadata={"title": TITLE}),
        Document(id="p", page_content=plan, metadata={"title": "Protocol for a trial of wax"}),
    ]
    path = tmp_path / "claims.csv"
    path.write_text(f'claim,reference\n"Wax coating keeps apples firmer.",{TITLE}\n', "utf-8")
    [pair] = ManuscriptCheck(library=WorkLibrary(works)).check(path).pairs
    assert pair.other is None


@pytest.mark.parametrize(
    ("claim", "text", "is_turned"),
    [
        ("Wax reduced mould.", "Mould was more frequent with wax.", True),
        ("Mould was reduced by wax.", "Mould was more common with wax than without.", True),
        ("Wax increased mould.", "Mould was less frequent in waxed fruit.", True),
        ("Wax increased mould.", "Mould was less frequent under wax (2%).", True),
        ("Wax reduced mould.", "Mould was more frequent with paper than with wax.", False),
        ("Wax reduced mould.", "Mould was less frequent with wax.", False),
        ("Wax reduced mould in pears.", "Mould was more common in pears than in apples.", False),
        ("Wax did not reduce mould.", "Mould was more frequent with wax.", False),
    ],
)
def test_what_is_more_with_a_thing_is_not_lowered_by_it(tmp_path, claim, text, is_turned):
    pair = judge(tmp_path, claim, text, "Fruit in paper and wax")
    assert any("with it" in one for one in pair.notes) == is_turned
    assert pair.verdict != "supported" or not is_turned


def test_a_sentence_on_another_time_turns_nothing_where_one_on_the_time_of_the_claim_is_there(
    tmp_path,
):
    text = (
        "Eighty students learned words by practice or reading. After one week, recall was 61% "
        "after practice and 38% after reading. Immediately, reading led to better recall than "
        "practice."
    )
    title = "Practice and the recall of words"
    claim = "Practice gives better recall after a week than reading."
    assert judge(tmp_path, claim, text, title).verdict in ("supported", "partly")
    claim = "Practice gives better recall immediately than reading."
    assert judge(tmp_path, claim, text, title).verdict == "contradicted"


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        ("Mould was more common with wax.", "Mould did not differ between arms."),
        (
            "Morning light was linked to sugar.",
            "Light in the morning had no association with sugar.",
        ),
    ],
)
def test_a_difference_or_a_link_where_there_is_none_is_told(tmp_path, claim, text):
    pair = judge(tmp_path, claim, text, "Wax and light and the mould and sugar of fruit")
    assert pair.verdict != "supported"
    assert any("finds no change" in one or "turned" in one for one in pair.notes)


@pytest.mark.parametrize(
    ("claim", "is_told"),
    [
        ("Night light causes soft pears.", True),
        ("Night light was associated with soft pears.", False),
    ],
)
def test_a_cause_where_the_work_has_an_association_is_told(tmp_path, claim, is_told):
    text = "Night light was associated with soft pears in 40 orchards."
    pair = judge(tmp_path, claim, text, "Night light and pears")
    assert pair.verdict == ("partly" if is_told else "supported")
    assert ("it has an association, and not a cause" in pair.notes) == is_told


@pytest.mark.parametrize(
    ("claim", "text", "told"),
    [
        ("Mulch prevents erosion.", "Growers may avoid erosion by mulch.", "may be so"),
        ("Mulch may prevent erosion.", "Growers may avoid erosion by mulch.", ""),
        ("Mulch prevents erosion.", "Our results suggest that mulch may prevent erosion.", ""),
        (
            "Mulch prevents erosion.",
            "Mulch was thought to prevent erosion. In our orchards mulch prevented erosion.",
            "",
        ),
    ],
)
def test_what_only_may_be_so_does_not_support_a_claim_that_it_is(tmp_path, claim, text, told):
    pair = judge(tmp_path, claim, f"{text} Yields of twelve orchards did not differ.")
    assert pair.verdict == ("partly" if told else "supported")
    assert (told in " ".join(pair.notes)) if told else not pair.notes


@pytest.mark.parametrize(
    ("claim", "text", "missing"),
    [
        (
            "A meta-analysis of 21 trials found no overall reduction in the risk of frost",
            "21 trials were pooled. Straw did not reduce the risk of frost (risk ratio 0.97).",
            "“meta-analysis”, “21”, “trials”",
        ),
        (
            "Mulch saves water",
            "Plots with straw lost 12% less moisture. We had 20 plots.",
            "“Mulch”, “saves”, “water”",
        ),
    ],
)
def test_what_is_partly_supported_says_why(tmp_path, monkeypatch, claim, text, missing):
    monkeypatch.setattr(verdict, "LOCAL_POINTS", verdict.Points(1.0, 0.0))
    pair = judge(tmp_path, claim, text)
    assert pair.verdict == "partly"
    assert pair.notes == (f"it only comes near; not in this sentence: {missing}",)
