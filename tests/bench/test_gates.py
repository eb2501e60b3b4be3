"""Each planted bad distractor is caught by its gate; prose passes."""

from random import Random

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.lab.build.writing.answers import contains_answer
from deepera_graph.lab.build.writing.faults import ProseModel
from deepera_graph.lab.build.writing.gates import (
    GATES,
    CandidateDistractor,
    Gates,
    failed_gates,
)

QUESTION = "Does liming raise the pH of acid ponds?"
GOLDEN = (
    "In 14 limed ponds the pH rose from 4.9 to 6.8 within two months, while it did not change in "
    "the 12 untreated ponds. Dissolved aluminium fell by half in the limed ponds, and mayflies "
    "were seen again in nine of them by the following spring."
)
GOOD = (
    "Crushed limestone was spread from boats on 14 ponds in the uplands, at a dose of two tonnes "
    "a hectare. Water was sampled at three depths once a month, and samples were kept on ice until "
    "they reached the laboratory. Twelve ponds of similar size nearby received no treatment."
)
ANSWER = "It rose to 6.8"


def candidate(text=GOOD, **changes):
    fields = {
        "text": text,
        "gold_answer": ANSWER,
        "question_similarity": 0.5,
        "natural_similarities": [0.3, 0.4, 0.5, 0.6],
        "natural_lengths": [40, 45, 50, 60],
        "golden": [GOLDEN],
        "question": QUESTION,
        **changes,
    }
    return CandidateDistractor(**fields)


def test_prose_passes_every_gate():
    assert failed_gates(candidate(synonyms=["an increase to 6.8", "yes"])) == []


@pytest.mark.parametrize(
    ("bad", "gate"),
    [
        pytest.param("  \n", "blank", id="blank"),
        pytest.param(f"{GOOD} By June, it rose to 6.8!", "contains-answer", id="answer"),
        pytest.param("Boats are painted in spring.", "too-short", id="short"),
        pytest.param(f"{GOOD} {GOLDEN} {GOOD[:120]}.", "too-long", id="long"),
        pytest.param(f"Deceptive: {GOOD}", "label", id="kind"),
        pytest.param(f"Distractor 1: {GOOD}", "label", id="number"),
        pytest.param(f"**Misleading passage** - {GOOD}", "label", id="bold"),
        pytest.param(f"[Background] : {GOOD}", "label", id="brackets"),
        pytest.param(f"Passage (B): {GOOD}", "label", id="letter"),
        pytest.param(f"Sure, {GOOD}", "chatter", id="sure"),
        pytest.param(f"Here is a passage as you asked:\n{GOOD}", "chatter", id="here"),
        pytest.param(f"{GOOD} Let me know if you need another one.", "chatter", id="let-me-know"),
        pytest.param(f"As an AI language model, {GOOD}", "refusal", id="ai"),
        pytest.param(f"I'm sorry, but that is wrong. {GOOD}", "refusal", id="sorry"),
        pytest.param(f"I cannot write misleading text. {GOOD}", "refusal", id="cannot"),
        pytest.param(f"{GOOD} This passage is incorrect.", "says-it-is-false", id="incorrect"),
        pytest.param(
            f"{GOOD} But it does not answer the question.", "says-it-is-false", id="no-answer"
        ),
        pytest.param(
            f"{GOOD} This contradicts the correct answer.", "says-it-is-false", id="contradicts"
        ),
        pytest.param(f"According to the passage, {GOOD}", "names-the-task", id="passage"),
        pytest.param(f"{GOOD} It is a distractor.", "names-the-task", id="distractor"),
        pytest.param(f"{GOOD} The context states otherwise.", "names-the-task", id="context"),
        pytest.param(f"Thematic focus: liming.\n{GOOD}", "prompt-echo", id="focus"),
        pytest.param(f"{GOOD}\nExplanation: it differs.", "prompt-echo", id="explanation"),
        pytest.param(f"<think>They want lime.</think> {GOOD}", "prompt-echo", id="thinking"),
        pytest.param(f"{GOOD} In [X] ponds nothing changed.", "placeholder", id="x"),
        pytest.param(f"{GOOD} Lorem ipsum dolor.", "placeholder", id="lorem"),
        pytest.param(f"{GOOD} The study by [author name] agrees.", "placeholder", id="name"),
        pytest.param(f"## Methods\n{GOOD}", "markup", id="heading"),
        pytest.param(f"- **Dose**: two tonnes.\n{GOOD}", "markup", id="list"),
        pytest.param(f"{GOOD} Samples were then sent to the", "cut-off", id="cut"),
        pytest.param(f"{GOOD} {GOOD[:112]}", "repeats-itself", id="loop"),
        pytest.param(f"{QUESTION} {GOOD}", "repeats-question", id="question"),
    ],
)  # fmt: skip
def test_a_planted_distractor_is_caught_by_its_gate(bad, gate):
    assert gate in failed_gates(candidate(bad))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("did not change", "changed", id="negation"),
        pytest.param("6.8", "5.1", id="number"),
        pytest.param("rose", "fell", id="word"),
    ],
)
def test_a_copy_of_the_golden_passage_with_one_change_is_caught(old, new):
    assert "copies-golden" in failed_gates(candidate(GOLDEN.replace(old, new)))


def test_a_near_duplicate_of_another_distractor_is_caught():
    almost = GOOD.replace("two tonnes", "three tonnes").replace("on ice", "cool")
    assert failed_gates(candidate(others=[almost])) == ["duplicate"]


def test_what_is_farther_from_the_question_than_natural_contexts_is_caught():
    natural = [number / 100 for number in range(100)]
    verdicts = [
        failed_gates(candidate(question_similarity=one, natural_similarities=natural))
        for one in (0.09, 0.1)
    ]
    assert verdicts == [["far-from-question"], []]


def test_lengths_count_from_half_to_twice_the_median():
    n_words = len(GOOD.split())
    medians = {"too-long": n_words / 2 - 1, "too-short": 2 * n_words + 1}
    for gate, median in medians.items():
        assert failed_gates(candidate(natural_lengths=[median])) == [gate]
    for median in (n_words / 2, 2 * n_words):
        assert failed_gates(candidate(natural_lengths=[median])) == []


def test_without_natural_contexts_likeness_to_them_is_not_judged():
    alone = candidate(natural_similarities=(), natural_lengths=(), question_similarity=-9.0)
    assert failed_gates(alone) == []


def test_limits_can_be_loosened():
    text = "Boats were used to spread crushed limestone."
    assert failed_gates(candidate(text)) == ["too-short"]
    assert failed_gates(candidate(text), Gates(min_length=0)) == []


@pytest.mark.parametrize(
    "changes", [{"min_percentile": 101}, {"min_length": 3}, {"max_copied": 0}, {"max_likeness": 2}]
)
def test_limits_out_of_range_are_refused(changes):
    with pytest.raises(SettingsError, match=f"{next(iter(changes))} must be"):
        Gates(**changes)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The pH was 6.80 by June.", "pH was 6.8"),
        ("Aluminium fell by 12.5 percent.", "fell by 12.5%"),
        ("About 1200 fry were released.", "1,200 fry"),
        ("Fry were released in twelve ponds", "12 ponds"),
        ("LIMING INCREASES survival.", "liming increased survival"),
        ("Behaviour of IL-6", "behavior of il-6"),
        ("Perch increased to 40 a net.", "increased to 40"),
        ("In 42 of the ponds", "42"),
    ],
)
def test_an_answer_is_found_however_it_is_written(text, answer):
    assert contains_answer(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes, the ponds were limed.", "yes"),
        ("It may be that no pond was limed.", "No"),
        ("It may be so.", "maybe."),
        ("Perch increased significantly.", "significantly increased"),
        ("There was no significant difference in depth.", "No significant difference"),
        ("The pH was 16.8.", "6.8"),
        ("A limestone pond", "lime"),
        ("Anything at all", ""),
    ],
)
def test_no_answer_is_found_where_none_is_given(text, answer):
    assert not contains_answer(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The bees came back after 38 min.", "38 minutes"),
        ("The bees came back after 0.63 h.", "38 minutes"),
        ("It took thirty-eight minutes in all.", "38 min"),
        ("Yields fell by a third.", "by 33%"),
        ("The dose was 0.5 g a day.", "500 mg"),
        ("It melted at 423 K.", "150 °C"),
        ("Root mass rose twofold.", "it doubled"),
        ("The pH climbed to 6.80 in June.", "rose to 6.8"),
        ("Mortality decreased by 12 per cent.", "reduced mortality by 12%"),
        ("There was a shortage of silicate.", "lack of silicate"),
    ],
)
def test_an_answer_is_found_in_other_units_and_words(text, answer):
    assert contains_answer(text, answer)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The smoker was pumped for 38 s.", "38 minutes"),
        ("There were 38 hives.", "38 minutes"),
        ("The dose was 5 g a day.", "500 mg"),
        ("It melted at 150 K.", "150 °C"),
        ("Pressure was 150 MPa.", "150 °C"),
        ("The pH fell to 6.8 in June.", "rose to 6.8"),
        ("Mortality was not reduced, by 12% or at all.", "reduced mortality by 12%"),
        ("There was no shortage of silicate.", "lack of silicate"),
    ],
)
def test_another_amount_or_the_opposite_is_no_answer(text, answer):
    assert not contains_answer(text, answer)


@pytest.mark.parametrize(
    ("answer", "yes", "no"),
    [
        ("yes", "Liming raised the pH of ponds.", "Liming did not raise the pH of ponds."),
        ("no", "The pH of ponds was unchanged by liming.", "Liming raised the pH of ponds."),
        ("increased", "With liming the pH of ponds rose.", "With liming the pH of ponds fell."),
        ("no significant difference", "The pH of limed ponds did not differ.",
         "The pH of limed ponds differed."),
    ],
)  # fmt: skip
def test_a_verdict_is_found_where_the_question_is_known(answer, yes, no):
    asked = "Does liming raise the pH of ponds?"
    assert contains_answer(yes, answer, asked)
    assert not contains_answer(no, answer, asked)
    assert not contains_answer(f"It was asked whether {yes.lower()}", answer, asked)


def test_a_long_answer_is_found_by_any_of_its_sentences():
    answer = (
        "Liming is worth its price. Mayflies and stoneflies came back to most treated ponds in the "
        "second spring after treatment. More ponds should be treated."
    )
    told = "As others saw, mayflies and stoneflies came back to most treated ponds in that spring."
    assert contains_answer(told, answer)
    assert not contains_answer(GOOD, answer)


def test_what_an_answer_takes_from_the_question_gives_nothing_away():
    answer = (
        "Liming raises the pH of acid ponds in the uplands, and twice so where the soil is thin."
    )
    aim = "We wanted to know whether liming raises the pH of acid ponds in the uplands."
    asked = "Does liming raise the pH of acid ponds in the uplands?"
    assert not contains_answer(aim, answer, asked)


def test_names_of_gates_are_short_words():
    assert len(GATES) == 19
    assert all(name == name.lower() and " " not in name for name in GATES)


def test_prose_on_another_subject_than_the_corpus_is_prose_and_its_words_at_random_are_not():
    model = ProseModel.fit([GOLDEN, ANSWER])
    words = GOOD.split()
    assert model.measure_order(GOOD) > Gates().min_word_order
    for seed in range(5):
        Random(seed).shuffle(words)
        assert model.measure_order(" ".join(words)) < Gates().min_word_order
    assert model.measure_order("Too short to tell.") is None


def test_words_in_no_order_are_caught():
    assert failed_gates(candidate(word_order=0.1)) == ["no-prose"]
    assert failed_gates(candidate(word_order=0.1), Gates(min_word_order=0)) == []
