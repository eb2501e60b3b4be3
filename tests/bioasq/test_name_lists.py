"""Lists as chat models write them outside of JSON, which are read, and prose, which is not."""

import pytest

from deepera_graph.bioasq.phase_b.replies import IdealReply, NamesReply, read_list, read_names

LISTS = {  # what is written: the names
    "BRCA1, BRCA2, TP53": ["BRCA1", "BRCA2", "TP53"],
    "The genes are BRCA1, BRCA2 and TP53.": ["BRCA1", "BRCA2", "TP53"],
    "The answer is ZIR3": ["ZIR3"],
    "They include nausea and rash": ["nausea", "rash"],
    "WAS, CAN, IS1, MET, HAS1, NOT": ["WAS", "CAN", "IS1", "MET", "HAS1", "NOT"],
    "NO, CO, H2S": ["NO", "CO", "H2S"],
    "collagen I, collagen III, factor I": ["collagen I", "collagen III", "factor I"],
    "I kappa B kinase, I-131, I band": ["I kappa B kinase", "I-131", "I band"],
    "toll-like receptor 4, glucagon like peptide 1": [
        "toll-like receptor 4", "glucagon like peptide 1",
    ],
    "Prader-Willi syndrome; May-Thurner syndrome; Will's disease": [
        "Prader-Willi syndrome", "May-Thurner syndrome", "Will's disease",
    ],
    "advance directives, living will, do not resuscitate orders": [
        "advance directives", "living will", "do not resuscitate orders",
    ],
    "nausea\nvomiting\nrash, itching": ["nausea", "vomiting", "rash, itching"],
    "Here are the unwanted effects:\nnausea\nrash": ["nausea", "rash"],
    "Sure, here is the list: imatinib, dasatinib": ["imatinib", "dasatinib"],
    "proteins that are degraded by ZIR3; lipids": ["proteins that are degraded by ZIR3", "lipids"],
    "inhibition of mitochondrial fission, loss of cristae": [
        "inhibition of mitochondrial fission", "loss of cristae",
    ],
    "12": ["12"],
    "15-20%": ["15-20%"],
    "three": ["three"],
    "0.4 mg/kg, 1.2 mg/kg": ["0.4 mg/kg", "1.2 mg/kg"],
    "1. aspirin\n2. vitamin K\n3) he-ne laser": ["aspirin", "vitamin K", "he-ne laser"],
    '["lorem"]': ["lorem"],
    "It is rapamycin": ["rapamycin"],
    "The effects of rapamycin include: nausea, rash": ["nausea", "rash"],
    "Group A: rapamycin; group B: placebo": ["Group A: rapamycin", "group B: placebo"],
    "HLA-B*27:05, HLA-A*02:01": ["HLA-B*27:05", "HLA-A*02:01"],
    "the kinase that is blocked": ["the kinase that is blocked"],
    "Trp53 | Mdm2 | Cdkn1a": ["Trp53", "Mdm2", "Cdkn1a"],
    "IκBα, NF-κB": ["IκBα", "NF-κB"],
    "amyotrophic lateral sclerosis or frontotemporal dementia": [
        "amyotrophic lateral sclerosis", "frontotemporal dementia",
    ],
}  # fmt: skip
ASKED = """
    Which? rapamycin nausea rash toll glucagon collagen kinase imatinib inhibition advance sclerosis
    proteins lipids directives syndrome unwanted vitamin ZIR3"""
PROSE = [
    "lorem ipsum, I like turtles",
    "I like turtles",
    "lorem ipsum dolor sit amet, consectetur",
    "Hello, world",
    "As far as I know, nothing",
    "Well, I'd say nausea",
    "nausea, and I think rash",
    "We found nausea, rash",
    "They found nausea and rash",
    "It is not known which gene this is, sorry",
    "The answer is not in the snippets",
    "The answer is unclear, sadly",
    "Several effects were reported with rapamycin",
    "Rapamycin does not have any, it seems",
    "Nausea can be one, rash another",
    "Do you mean rapamycin?",
    "Great question, nausea!",
    "Patients on rapamycin had nausea, rash",
    "There is no evidence for rapamycin. More studies, please.",
    "rapamycin was given, then nausea and rash",
    "- I like turtles\n- lorem ipsum",
    '["I don\'t know"]',
    "...",
    "- -\n- ...",
    "",
]


@pytest.mark.parametrize("text", LISTS)
def test_a_list_is_read_whatever_its_names_are(text):
    found = NamesReply.from_words(text, ASKED)
    assert found is not None
    assert found.names == LISTS[text]
    assert read_names(text) == LISTS[text]


@pytest.mark.parametrize("text", PROSE)
def test_prose_has_no_names(text):
    assert NamesReply.from_words(text, ASKED) is None


@pytest.mark.parametrize("names", [["three"], ["lorem"], ["a protein that is cut"]])
def test_names_in_json_are_read_whatever_their_words(names):
    assert NamesReply.model_validate({"names": names}).names == names


def test_a_sentence_of_the_writer_among_names_is_none_of_them_and_not_lost_silently():
    with pytest.raises(ValueError, match="an item is a sentence"):
        read_names(["nausea", "I like turtles"])


def test_what_repeats_no_word_of_the_question_is_asked_for_again():
    with pytest.raises(ValueError, match="no name in it has a word"):
        read_list("lorem ipsum, dolor sit", ASKED)
    assert read_list("lorem ipsum, rash", ASKED) == ["lorem ipsum", "rash"]
    assert IdealReply.from_words("lorem ipsum dolor, sit amet", ASKED) is None
    assert IdealReply.from_words("Most patients had nausea", ASKED) is not None
