import pytest

from deepera_graph.judges.heuristic.analysis import CUE_WEIGHTS, find_sought, read_sentences
from deepera_graph.judges.heuristic.topicality import (
    CUE_NAMES,
    count_cues,
    find_names,
    section_weight,
)
from deepera_graph.text.words import words


def grounding(text, kind="result"):
    return read_sentences(text, kind)[0].grounding


@pytest.mark.parametrize(
    "text",
    [
        "Survival was higher in shaded ponds (61% vs 40%, p < 0.01).",
        "The peptide binds the channel and therefore inhibits calcium influx.",
        "No difference was found between the two soils.",
        "Wear was significantly related to humidity (r = 0.71, p < 0.01).",
    ],
)
def test_results_are_grounded(text):
    assert grounding(text) > 0.5


@pytest.mark.parametrize(
    "text",
    [
        "We aimed to evaluate whether ponds differ.",
        "Samples were collected by divers and analysed using a standard scale.",
        "Ponds are common, but little is known about their fish.",
        "Shade may perhaps help, and further work is needed.",
        "The cause remains unknown and is still debated.",
        "Does shade help?",
    ],
)
def test_aims_methods_background_and_speculation_are_not(text):
    assert grounding(text) < 0.4


def test_every_cue_has_a_weight():
    assert set(CUE_WEIGHTS) == set(CUE_NAMES)


def test_cues_are_counted_by_word_form():
    text = "Growth increased by 12% and did not differ (p = 0.2)."
    counts = dict(zip(CUE_NAMES, count_cues(text, words(text)), strict=True))
    assert (counts["direction"], counts["negation"], counts["percentage"]) == (1, 1, 1)
    assert (counts["aim"], counts["statistic"], counts["relation"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("intent", "answer", "kind"),
    [
        ("causal inference", "categorical", "result"),
        ("other", "other", "result"),
        ("definition", "descriptive", "definition"),
        ("definition", "numeric", "figure"),
        ("mechanism", "procedural", "procedure"),
    ],
)
def test_the_intent_says_what_is_sought(intent, answer, kind):
    fields = {"topic": "", "entity_type": "", "intent": intent, "expected_answer_type": answer}
    assert find_sought(fields) == kind


def test_a_procedure_is_sought_among_methods():
    text = "Samples were dried and weighed using a balance."
    assert grounding(text, "procedure") > grounding(text)


@pytest.mark.parametrize(
    ("section", "sign"),
    [
        ("Results", 1),
        ("ABSTRACT.RESULTS", 1),
        ("", 0),
        ("Conclusion", 0),
        ("Materials and methods", -1),
        ("Introduction", -1),
        ("References", -1),
        ("Chapter 7", 0),
    ],
)
def test_section_labels_weigh(section, sign):
    weight = section_weight(section)
    assert (weight > 0) - (weight < 0) == sign


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Why does KIF99 stall near Lake Moro?", ["kif99", "lake", "moro"]),
        ("Is Shade Good For Coffee?", []),
        ("Is shade good?", []),
        ("", []),
    ],
)
def test_names_in_a_question(question, names):
    assert find_names(question) == names


@pytest.mark.parametrize(
    ("text", "cue", "count"),
    [
        ("p<0.05, P = .1 and p-value &lt; 1, not xp < 2 or p of 3", "statistic", 3),
        ("CI, OR, aOR, SEM and SD, not CIA, xOR, or, SE", "statistic", 5),
        ("odds ratio, relative risks, r = -.3, ± 2, +/-2, not for = 3", "statistic", 5),
        ("5 vs. 4 versus 3 v 2, not 1 vsx or xv", "statistic", 3),
        ("To TEST it we AIM to find, not onto test, to testify?", "intention", 4),
    ],
)
def test_a_cue_is_a_word_of_its_own(text, cue, count):
    assert count_cues(text, words(text))[CUE_NAMES.index(cue)] == count
