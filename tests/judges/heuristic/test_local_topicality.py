import pytest

from deepera_graph.judges.heuristic.topicality import (
    coverage,
    find_terms,
    measure_topicality,
    read_question_terms,
)
from deepera_graph.text.words import rarity, stem, stems


def covered(question, text, acronyms=()):
    need = read_question_terms(question, "")
    return coverage(need, find_terms(need, stems(text), acronyms))


def test_a_text_with_all_terms_covers_the_question():
    assert covered("Does shade reduce rust?", "Rust reduced by shading") == pytest.approx(1)


def test_a_text_with_none_covers_nothing():
    assert covered("Does shade reduce rust?", "Dogs walk.") == 0


def test_a_rare_term_weighs_more_than_a_common_one():
    question = "Do patients with pheochromocytoma improve?"
    assert covered(question, "pheochromocytoma") > covered(question, "patients")


def test_words_that_only_begin_alike_count_half():
    need = read_question_terms("mammograms", "")
    assert find_terms(need, ["mammography"], ()) == {"mammogram": 0.5}


def test_the_acronym_of_the_question_words_counts_for_them():
    question = "Does blood loss change health-related quality of life?"
    assert covered(question, "scores fell", ["HRQoL"]) > covered(question, "scores fell", ["XYZ"])


def test_neighbouring_words_count_for_an_acronym_of_the_question():
    question = "Is MRI safe?"
    text = "magnetic resonance imaging"
    assert covered(question, text) > covered(question, "imaging by resonance")


def test_two_words_for_one_thing_match():
    assert covered("Is renal damage seen?", "kidney damage") > covered("Is renal damage seen?", "")
    assert stem("kidney") in read_question_terms("Is renal damage seen?", "").weights


def test_a_term_in_the_title_alone_counts_half():
    need = read_question_terms("rust", "")
    in_text = measure_topicality(need, [{"rust": 1}], [], 10)
    in_title = measure_topicality(need, [], ["rust"], 10)
    assert (in_text.coverage, in_title.coverage) == (1, 0.5)


def test_repetition_strengthens_and_length_weakens():
    need = read_question_terms("rust", "")
    once, twice = (
        measure_topicality(need, [{"rust": 1}], [], 50),
        measure_topicality(need, [{"rust": 2}], [], 50),
    )
    longer = measure_topicality(need, [{"rust": 1}], [], 500)
    assert longer.strength < once.strength < twice.strength


def test_the_kind_of_an_entity_is_no_term():
    assert set(read_question_terms("", "organism: coffee").weights) == set(
        read_question_terms("", "coffee").weights
    )


def test_names_are_told_from_plain_words():
    need = read_question_terms("Why does J0101+11 pulse near Lake Moro?", "")
    assert measure_topicality(need, [], [], 5).names == 0
    assert measure_topicality(need, [dict.fromkeys(need.names, 1)], [], 5).names == 1
    assert measure_topicality(read_question_terms("why does it pulse?", ""), [], [], 5).names == 1


def test_a_question_without_words_is_covered_by_nothing():
    assert covered("of the?", "shade") == 0


def test_rarity_runs_from_common_to_unknown():
    assert 0 < rarity("patient") < rarity("glacier") <= 1
    assert rarity("qqqqzz") == 1
