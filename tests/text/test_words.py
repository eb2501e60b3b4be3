import pytest

from deepera_graph.text.words import STOP_WORDS, content_words, stem, stem_verb, stems, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IL-6 and TGF-β", ["il6", "and", "tgfbeta"]),
        ("p53, CO₂ and HbA1c", ["p53", "co2", "and", "hba1c"]),
        ("a Li-ion cell", ["a", "li", "ion", "cell"]),
        ("first-line drugs", ["first", "line", "drugs"]),
        ("the patient's 1,200 mg (0.05)", ["the", "patient", "1,200", "mg", "0.05"]),
        ("Naïve Œuvre", ["naive", "œuvre"]),
        ("", []),
        ("--- !", []),
    ],
)
def test_words_keep_the_names_of_science(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    "forms",
    [
        "infection infected infects infectious",
        "surgery surgical surgeries",
        "increase increases increased increasing",
        "association associated associate",
        "tumour tumor tumours",
        "anaemia anemia",
        "analysis analyses analysed analyzed",
        "adolescent adolescents adolescence",
        "controlled control controlling",
        "woman women",
        "predictor predicts prediction predictive",
        "battery batteries",
    ],
)
def test_forms_of_a_word_share_a_stem(forms):
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    "forms", ["keep kept keeping", "find found", "lead led", "rise rose risen"]
)
def test_forms_of_an_irregular_verb_share_the_stem_of_the_verb(forms):
    assert len({stem_verb(form) for form in forms.split()}) == 1


@pytest.mark.parametrize("pair", ["patient patent", "cell call", "il6 il8", "star start"])
def test_other_words_do_not(pair):
    first, second = pair.split()
    assert stem(first) != stem(second)


def test_stems_leave_out_stop_words_and_keep_order_and_repetition():
    assert stems("The rats and the cats saw rats") == [stem("rat"), stem("cat"), "saw", stem("rat")]
    assert not STOP_WORDS & set(content_words("this is not about the ice"))
