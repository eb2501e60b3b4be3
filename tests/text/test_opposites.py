"""Findings that a summary turns around: negations, opposites, comparisons, exchanged arguments."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.text.drift import turned_findings

TURNED = [
    # a negation lost, or added
    ("Barley wax is effective against rust.", "Barley wax is not effective against rust."),
    ("Barley wax is not effective against rust.", "Barley wax is effective against rust."),
    ("Barley wax isn't effective against rust.", "Barley wax is effective against rust."),
    ("Wax was associated with rust.", "Wax was not significantly associated with rust."),
    ("Wax is associated with rust in barley.", "Wax is unassociated with rust in barley."),
    ("Wax had an effect on the rust.", "Wax had no effect on the rust."),
    ("Wax had no effect on the rust.", "Wax had a clear effect on the rust."),
    ("Mulch improves the yield of leeks.", "There is no evidence that mulch improves leek yield."),
    ("Mulch improves leek yield.", "The trial failed to show that mulch improves leek yield."),
    ("The pump was safe in goats.", "The pump was unsafe in goats."),
    ("The sensor detected fog at sea.", "The sensor never detected fog at sea."),
    ("Ibis eggs tolerate salt.", "Ibis eggs cannot tolerate salt, but heron eggs tolerate it."),
    # of an irregular verb
    ("Wax did not keep apples firm.", "Wax kept apples firm for eight weeks."),
    ("Wax kept apples firm.", "Wax did not keep apples firm for eight weeks."),
    ("Bees did not find the feeder.", "Bees found the feeder in ten minutes."),
    ("Mulching never led to more worms.", "Mulching led to more worms."),
    ("Larvae on clover did not lose weight.", "Larvae on clover lost weight."),
    # an opposite
    ("Mulch improved the soil of both fields.", "Mulch worsened the soil of both fields."),
    ("Soil quality deteriorated under mulch.", "Soil quality improved under mulch."),
    ("Iodine is harmful to snails.", "Iodine is beneficial to snails."),
    ("Rain was positively correlated with moss.", "Rain was negatively correlated with moss."),
    ("Zinc inhibits the growth of moss.", "Zinc promotes the growth of moss."),
    # a comparison turned, or its sides exchanged
    (
        "Yield was higher with mulch than with gravel.",
        "Yield was lower with mulch than with gravel.",
    ),
    (
        "Yield was lower with gravel than with mulch.",
        "Yield was lower with mulch than with gravel.",
    ),
    ("Yield was higher with mulch.", "Yield was lower with mulch."),
    ("Yield was higher with mulch.", "Yield was lower with mulch than with gravel."),
    ("Yield was lower with gravel.", "Yield was lower with mulch than with gravel."),
    (
        "Gravel gave better drainage than mulch.",
        "Mulch gave better drainage compared with gravel.",
    ),
    (
        "Snails lived longer on moss than on bark.",
        "Snails lived shorter on moss than on bark.",
    ),
    # who does it to whom
    ("Rust causes wilting of barley.", "Wilting of barley causes rust."),
    ("Moss inhibits lichen.", "Moss is inhibited by lichen."),
    ("Ferry noise predicts whale song.", "Whale song predicts ferry noise."),
    ("Rust causes wilting in barley.", "Wilting causes rust in barley."),
    ("Wax made apples softer.", "Wax kept apples firm in storage."),
    # less of what there is more of
    ("Ethylene made pears less sweet.", "Ethylene made the pears sweeter."),
    ("Ethylene made pears sweeter.", "Ethylene made the pears less sweet."),
    ("Waxed apples were less firm than bare ones.", "Waxed apples were firmer than bare ones."),
    ("Coated pots are less heavy.", "Coated pots are heavier than bare pots."),
    ("Moss was more dense in shade.", "Moss was less dense in shade than in sun."),
    ("Wax kept apples firm.", "Wax softened apples in storage."),
    # a verb that itself says the opposite of another
    ("Nets prevent falls of fledglings.", "Nets did not prevent falls of fledglings."),
    ("Nets do not block hail.", "Nets blocked hail in all orchards."),
    ("Garlic inhibits mould on bread.", "Garlic did not inhibit mould on bread under light."),
    ("Lead impairs learning in rats.", "Learning was not impaired by lead in rats."),
    ("Lead did not impair learning in rats.", "Lead impaired learning in rats."),
    ("Smoke impairs the healing of bark.", "Smoke improved the healing of bark."),
    ("Smoke promotes the healing of bark.", "Smoke impaired the healing of bark."),
    ("The spray is ineffective against rust.", "The spray was not ineffective against rust."),
    # sides exchanged, with more behind both
    ("Girls read faster than boys at school.", "Boys read faster than girls at school."),
    ("Moss grew more on oak than on ash in shade.", "Moss grew more on ash than on oak in shade."),
    ("Ash lives longer than non-native oak.", "Non-native oak lives longer than ash."),
    ("Rats prefer sugar over salt.", "Salt was preferred over sugar by rats."),
    ("Larks prefer hedges to fields.", "Larks preferred fields to hedges in winter."),
    ("Foxes drive the number of hares.", "The number of hares drives foxes."),
    # in one part of a sentence, and not in the other
    ("Nets prevent hail.", "Nets prevented frost but did not prevent hail."),
    ("Lime reduced moss on slate.", "Lime did not reduce moss on slate but reduced it on brick."),
    ("Mulch cut by hand suppresses grass.", "Mulch did not suppress grass but suppressed weeds."),
    ("Oak was harmed by frost.", "Oak, unlike beech, was not harmed by frost."),
]
FAITHFUL = [
    # as much of it as there is, said of the other side
    ("Bare apples were less firm than waxed apples.", "Waxed apples were firmer than bare apples."),
    ("Waxed pears were less sweet.", "Bare pears were sweeter."),
    ("Ethylene made pears no less sweet.", "Ethylene made the pears sweeter."),
    ("The less shade there was, the warmer the soil was.", "Soil was warmer in the sun."),
    ("Wax is effective against rust.", "Barley wax is effective against rust in all trials."),
    ("Wax did not work against rust.", "Wax was not effective against rust."),
    ("Wax was ineffective against rust.", "Wax was not effective against rust."),
    ("Wax is not only effective but cheap.", "Wax is effective and cheap."),
    ("Wax is effective in barley.", "Wax is effective in barley but not in rye."),
    ("Wax is not effective in rye.", "Wax is effective in barley, but it is not in rye."),
    ("Wax is effective in barley.", "Wax is effective in barley. Wax is not effective in rye."),
    (
        "Trees with little wax had a higher risk of rust.",
        "Trees with least wax had a 2.6-fold (95% CI 1.4 to 5.0, p = 0.01) higher risk of rust "
        "compared with those that had the most wax.",
    ),
    (
        "In the top 10 cm carbon was higher under grass.",
        "Carbon was higher under grass than under ploughing in the top 10 cm.",
    ),
    ("Groups were similar in yield.", "There was no difference in yield between groups."),
    ("No goat recovered.", "None of the goats recovered."),
    ("The goats did not recover.", "No goat recovered."),
    ("Yield did not differ.", "There was no significant difference in yield."),
    ("Mulch does not improve leek yield.", "There is no evidence that mulch improves leek yield."),
    ("Without mulch the yield fell.", "Plots lacking mulch had a yield that fell."),
    ("Mice lacking zinc grew less.", "Mice without zinc grew less than others."),
    ("Loss of zinc impairs growth.", "Zinc promotes growth."),
    ("Soil improved under mulch.", "Soil under mulch ameliorated."),
    ("Soil worsened without mulch.", "Soil improved with mulch."),
    (
        "Yield was higher with gravel than with mulch.",
        "Yield was lower with mulch than with gravel.",
    ),
    ("Yield was higher with gravel.", "Yield was lower with mulch than with gravel."),
    ("Yield was lower with mulch.", "Yield was lower with mulch than with gravel."),
    ("Yield was not higher with mulch.", "Yield was lower with mulch than with gravel."),
    (
        "Drainage was worse with mulch than gravel.",
        "Gravel gave better drainage compared with mulch.",
    ),
    ("Yield was higher with mulch.", "Yield was lower with gravel mulch."),
    ("Mortality was lower with the drug.", "Mortality was higher with placebo."),
    ("Rust causes wilting.", "Wilting is caused by rust."),
    ("Moss is inhibited by lichen.", "Lichen inhibits moss on stone."),
    ("Rust causes wilting of barley.", "Rust of barley causes wilting."),
    ("Rust causes spots in barley.", "Wilting causes spots and rust in barley."),
    ("Boats are not red.", "Wax is effective against rust."),
    ("Apples without wax softened.", "Waxed apples stayed firm, others softened."),
    ("Lead impairs learning in rats.", "Learning of rats was impaired by lead."),
    ("Lack of zinc impairs growth.", "Zinc did not impair growth."),
    ("Girls read faster than boys at school.", "Boys read slower than girls at school."),
    ("Rats prefer sugar over salt.", "Sugar was preferred to salt by rats."),
    (
        "Moss was denser with lime on sand than with gravel on clay.",
        "Moss was denser with lime on clay than with gravel on sand.",
    ),
    ("Mothers prefer to sleep near infants.", "Mothers preferred to sleep near infants."),
    ("Nets did not prevent hail.", "Nets prevented frost but did not prevent hail."),
    ("Tea helps those with impaired sleep to improve it.", "Tea improved impaired sleep."),
    ("Tea improved impaired sleep.", "Tea improved sleep."),
    ("Lime reduced moss on brick.", "Lime did not reduce moss on slate but reduced it on brick."),
    ("Frost slowed the growth of ash.", "Frost did not slow that of oak, but slowed that of ash."),
    ("Training improved balance.", "Training did not improve strength but improved balance."),
    (
        "Nets reduced rust of pears in spring.",
        "Rust of pears in spring was not reduced by lime but was reduced by nets.",
    ),
    ("Nets reduced bites at dawn.", "Nets did not reduce bites at noon, but did so at dawn."),
    ("Beech was harmed by frost.", "Oak, unlike beech, was not harmed by frost."),
    ("", "Wax is effective."),
    ("Wax is effective.", ""),
]


@pytest.mark.parametrize(("summary", "passage"), TURNED)
def test_what_is_turned_around_is_found(summary, passage):
    assert turned_findings(summary, passage)


@pytest.mark.parametrize(("summary", "passage"), TURNED)
def test_it_is_found_among_other_sentences(summary, passage):
    around = "Herons nest in June. Boats were counted twice by the wardens."
    assert turned_findings(f"Boats were counted. {summary}", f"{around} {passage} It rained.")


@pytest.mark.parametrize(("summary", "passage"), FAITHFUL)
def test_a_faithful_paraphrase_is_left_alone(summary, passage):
    assert turned_findings(summary, passage) == []


@pytest.mark.full
@given(
    st.lists(st.sampled_from([each for pair in TURNED for each in pair]), min_size=1, max_size=4)
)
def test_a_text_turns_nothing_of_itself_around(sentences):
    text = " ".join(sentences)
    assert turned_findings(text, text) == []
    assert turned_findings(sentences[0], text) == []


def test_it_is_said_what_stands_where():
    assert turned_findings("Wax is effective in rye.", "Wax is not effective in rye.") == [
        "effective, where the passage has “not effective”"
    ]
    assert turned_findings("Wax harms rye and worsened soil.", "Wax improved soil.") == [
        "worsened, where the passage has improved"
    ]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Caffeine shortened sleep latency.", "Caffeine lengthened sleep latency by 24 minutes."),
        ("The gel accelerates healing.", "The gel slowed healing in rats."),
        ("Ageing strengthens the tendon.", "Ageing weakened the tendon."),
        ("Frost prolonged flowering.", "Frost shortened flowering by six days."),
    ],
)
def test_a_verb_of_time_pace_or_strength_is_turned_by_its_opposite(said, found):
    assert turned_findings(said, found)
    assert not turned_findings(found, found)


def test_many_words_of_which_there_is_less_take_linear_time():
    spent = []
    for n in (1_000, 4_000):
        text = " ".join(f"less x{number}" for number in range(n))
        start = time.process_time()
        turned_findings("Pears were less sweet.", text)
        spent.append(time.process_time() - start)
    assert spent[1] < 8 * spent[0] + 0.1


RYE = "Rye yields better than oats."


@pytest.mark.parametrize(
    ("said", "found", "is_turned"),
    [
        (RYE, "The yield of oats was higher than that of rye.", True),
        (RYE, "Oats yielded more than rye.", True),
        (
            "Al garnets conduct better than Ta garnets.",
            "Ta garnets had higher conductivity than Al garnets.",
            True,
        ),
        ("Wax keeps pears firmer than paper.", "Paper kept pears firmer than wax.", True),
        (
            "Wax keeps pears firmer than paper.",
            "The firmness of pears was higher with paper than with wax.",
            True,
        ),
        (RYE, "The yield of rye was higher than that of oats.", False),
        (RYE, "The loss of yield of oats was higher than that of rye.", False),
        (RYE, "The height of oats was greater than that of rye.", False),
        ("Loss in rye was higher than in oats.", "Loss in oats was faster than in rye.", False),
        ("Loss in rye was higher than in oats.", "Loss in rye was earlier than in oats.", False),
        (
            "Wax keeps pears firmer than paper.",
            "Pears were firmer with wax than with paper.",
            False,
        ),
        (
            "Wax keeps pears firmer than paper.",
            "Pears with paper had a higher weight than with wax.",
            False,
        ),
        (
            "Frost is rather seen in winter than in summer.",
            "Yield was higher in winter than in summer.",
            False,
        ),
    ],
)
def test_what_is_done_better_is_what_there_is_more_of(said, found, is_turned):
    assert bool(turned_findings(said, found)) == is_turned


def test_soft_is_the_opposite_of_firm():
    assert turned_findings("Wax makes apples soft.", "Wax kept apples firm.")
    assert not turned_findings("Wax keeps apples firm.", "Wax kept apples firm in soft boxes.")


@pytest.mark.parametrize("whole", ["None of the samples cracked.", "No samples cracked in drying."])
def test_none_of_some_things_is_no_such_thing(whole):
    assert turned_findings("All samples cracked in drying.", whole)
    assert turned_findings(whole, "Most samples cracked in drying.")
    assert not turned_findings(whole, "None of the samples cracked in drying.")
