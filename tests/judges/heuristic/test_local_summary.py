import pytest

from deepera_graph.judges.heuristic.answer import (
    MAX_SENTENCES,
    NO_ANSWER,
    NO_OUTCOME,
    SAID_BEFORE,
    TOO_MANY,
    answer,
    find_outcome,
)
from deepera_graph.judges.heuristic.roles import MAX_SUMMARY, summarize
from deepera_graph.judges.heuristic.topicality import names_any, read_question_terms
from deepera_graph.text.words import split_sentences


def test_a_summary_is_one_or_two_sentences_of_the_passage_in_its_order(task, question, passages):
    text = " ".join(passages.values())
    summary = summarize(task(question, text)).text
    sentences = [sentence.text for sentence in split_sentences(text)]
    chosen = [sentence for sentence in sentences if sentence in summary]
    assert 1 <= len(chosen) <= 2
    assert summary == " ".join(chosen)


def test_a_summary_holds_the_evidence_and_not_the_aim(task, question, passages):
    summary = summarize(task(question, passages["aim"] + " " + passages["result"])).text
    assert "12%" in summary or "reduced" in summary
    assert "aim" not in summary


def test_two_long_sentences_make_no_summary(task):
    text = ("Rust fell by 12% " + "in leaves " * 30 + ". ") * 2
    assert len(summarize(task("Does rust fall?", text)).text) < MAX_SUMMARY


@pytest.mark.parametrize(("text", "expected"), [("", ""), ("12.5 3", "12.5 3")])
def test_texts_without_words(task, question, text, expected):
    assert summarize(task(question, text)).text == expected


def test_a_summary_has_what_the_judge_quoted_in_the_order_of_the_passage(task, question, passages):
    text = " ".join(passages.values())
    sentences = [one.text for one in split_sentences(text)]
    for quote in sentences:
        found = summarize({**task(question, text), "quote": quote}).text
        assert found.count(quote) == 1
        assert found == " ".join(one for one in sentences if one in found)


def test_a_quote_of_several_sentences_stays_whole(task, question, passages):
    text = " ".join(passages.values())
    quote = text[: split_sentences(text)[1].end]
    assert summarize({**task(question, text), "quote": quote}).text.startswith(quote)


def evidence(*quotes, text=""):
    return [
        {"text": text, "summary": "", "quote": quote, "title": "", "section": ""}
        for quote in quotes
    ]


def ask(task, question, items):
    fields = task(question, "")["intent"]
    return answer({"question": question, "intent": fields, "evidence": items})


def test_an_answer_quotes_the_evidence_with_its_numbers(task, question):
    found = ask(task, question, evidence("Rust fell by\n12%.", "Shade helped.", text="Rust."))
    assert found.text == "Rust fell by 12%. [1] Shade helped. [2]"
    assert found.citations == [1, 2]


def test_an_answer_has_no_label_of_a_part_of_an_abstract(task, question):
    assert ask(task, question, evidence("Conclusions: Rust fell.")).text == "Rust fell. [1]"


def test_an_answer_looks_for_the_sentence_where_no_quote_is_given(task, question, passages):
    text = passages["aim"] + " " + passages["result"]
    found = ask(task, question, evidence("", text=text))
    assert found.text.endswith("[1]")
    assert found.text.removesuffix(" [1]") in text


def test_a_sentence_is_given_once(task, question):
    found = ask(task, question, evidence("Rust fell.", "Rust fell.", "Rust rose."))
    assert (found.citations, found.uncited) == ([1, 3], {2: SAID_BEFORE})


def test_an_answer_has_at_most_five_sentences(task, question):
    found = ask(task, question, evidence(*[f"Rust fell on plot {n}." for n in range(9)]))
    assert found.citations == list(range(1, MAX_SENTENCES + 1))
    assert found.uncited == dict.fromkeys(range(6, 10), TOO_MANY)


def test_a_sentence_that_names_nothing_of_the_question_is_no_answer(task):
    asked = "Does rapamycin prevent seizures?"
    strangers = ("It began after 3 h and peaked at 6 h.", "The effect was reduced (p = 0.01).")
    found = ask(task, asked, evidence(*strangers))
    assert (found.text, found.citations) == (NO_ANSWER, [])
    found = ask(task, asked, evidence("Rapamycin was given at noon."))
    assert (found.text, found.citations) == (NO_OUTCOME, [])
    items = evidence(strangers[0], "Rapamycin cut them by half.", strangers[1], text="Seizures.")
    found = ask(task, asked, items)
    assert (found.text, found.citations) == ("Rapamycin cut them by half. [2]", [2])


def test_a_sentence_on_another_outcome_is_no_answer(task):
    asked = "Does wax coating keep apples firm in storage?"
    glossy = "Waxed apples were 12% glossier after 30 days in storage."
    found = ask(task, asked, evidence(glossy, text=glossy))
    assert (found.text, found.citations) == (NO_OUTCOME, [])
    both = evidence(glossy, text=glossy) + evidence("Waxed apples stayed firm.")
    found = ask(task, asked, both)
    assert found.text == "Waxed apples stayed firm. [2]"
    assert found.uncited == {1: "the passage does not name 'firm'"}


def test_an_answer_says_which_sides_are_not_counted(task):
    asked = "Does wax coating keep apples firm in storage?"
    glossy = "Waxed apples were 12% glossier after 30 days in storage."
    items = [
        {**item, "direction": side}
        for item, side in (
            (*evidence("Waxed apples were no firmer."), "no_difference"),
            (*evidence(glossy, text=glossy), "supports"),
            (*evidence(f"{glossy} So were pears.", text=glossy), "unclear"),
        )
    ]
    found = ask(task, asked, items)
    counted = "(1 no difference; not counted: 1 supports, 1 unclear)"
    assert found.text == f"No difference: Waxed apples were no firmer. [1] {counted}"
    assert [*found.uncited] == [2, 3]


def test_a_study_of_which_another_passage_is_quoted_is_not_left_out(task):
    asked = "Does wax coating keep apples firm in storage?"
    glossy = "Waxed apples were 12% glossier after 30 days in storage."
    items = evidence(glossy, text=glossy) + evidence("Waxed apples stayed firm.")
    found = ask(task, asked, [{**one, "direction": "supports", "study": 1} for one in items])
    assert found.text == "Supports: Waxed apples stayed firm. [2] (1 supports)"


def test_an_answer_is_grouped_by_what_studies_say(task):
    said = ["supports", "no_difference", "supports", None]
    quoted = evidence(*(f"Rust fell or not on plot {n}." for n in range(4)))
    items = [{**one, "direction": side} for one, side in zip(quoted, said, strict=True)]
    found = ask(task, "Does shade lower rust?", items)
    assert found.text == (
        "Rust fell or not on plot 3. [4] "
        "Supports: Rust fell or not on plot 0. [1] Rust fell or not on plot 2. [3] "
        "No difference: Rust fell or not on plot 1. [2] "
        "(2 support, 1 no difference)"
    )


@pytest.mark.parametrize(
    ("question", "outcome"),
    [
        ("Does wax coating keep apples firm in storage?", "firm"),
        ("Does aspirin lower the risk of preeclampsia?", "preeclampsia"),
        ("Does a warm bath shorten sleep onset latency in older adults?", "latency"),
        ("Does supplementation with vitamin D prevent respiratory infections?", "infections"),
        ("Does nitrogen raise the yield of winter wheat?", "yield"),
        ("What is it?", ""),
    ],
)
def test_the_outcome_is_what_the_verb_is_about(question, outcome):
    assert find_outcome(question) == outcome


@pytest.mark.parametrize(
    ("asked", "sentence", "named"),
    [
        ("Does rapamycin prevent seizures?", "Fewer seizures were seen.", True),
        ("Does rapamycin prevent seizures?", "Patients had a lower risk.", False),
        ("Do ACE inhibitors help in CKD?", "Chronic kidney disease progressed slowly.", True),
        ("What are the effects?", "The effects were strong.", True),
        ("Why is it so?", "Nobody knows.", True),
    ],
)
def test_a_sentence_names_something_by_a_telling_word(asked, sentence, named):
    assert names_any(read_question_terms(asked, ""), sentence) is named
