"""How we measure: the rules of the challenge, without the slips of its evaluator."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.bioasq.measures import (
    average_precision,
    evaluate_answers,
    evaluate_documents,
    evaluate_ideal,
    evaluate_snippets,
    match_entities,
)
from deepera_graph.bioasq.official import evaluate_officially
from deepera_graph.bioasq.questions import parse_question
from support.bioasq import docs, draw_sets, piece, question, write_set


def values(evaluate, golden, given):
    """Measure questions given as they stand in files; the names without their first part."""
    found = evaluate([*map(parse_question, golden)], [*map(parse_question, given)]).values()
    return {name.partition("_")[2]: one for name, one in found.items()}


def documents(golden, given):
    return values(
        evaluate_documents, [question("q", documents=golden)], [question("q", documents=given)]
    )


def snippets(golden, given):
    return values(
        evaluate_snippets, [question("q", snippets=golden)], [question("q", snippets=given)]
    )


def answers(kind, golden, given):
    asked, said = question("q", kind, exact=golden), question("q", kind, exact=given)
    found = evaluate_answers([parse_question(asked)], [parse_question(said)]).values()
    return {
        name.removeprefix(f"{kind}_"): one for name, one in found.items() if name.startswith(kind)
    }


def test_average_precision_is_divided_by_ten_of_fifteen_golden_documents():
    ranked = ["0", "91", "2", "93", "4", "95", "6", "97", "8", "99"]
    golden = [str(number) for number in range(15)]
    found = average_precision(ranked, golden, 10)
    assert found == pytest.approx(0.3393650794)
    assert found * 10 / 15 == pytest.approx(0.2262433862)  # as others divide, by all golden ones


@pytest.mark.full
@given(
    ranked=st.lists(st.integers(0, 30), unique=True, max_size=20),
    golden=st.sets(st.integers(0, 30), min_size=1),
    k=st.integers(1, 25),
)
def test_average_precision_lies_between_0_and_1(ranked, golden, k):
    found = average_precision([*map(str, ranked)], {*map(str, golden)}, k)
    assert 0 <= found <= 1
    best = sorted(ranked, key=lambda one: one not in golden)
    assert found <= average_precision([*map(str, best)], {*map(str, golden)}, k)


@pytest.mark.parametrize(
    ("golden", "given", "expected"),
    [
        pytest.param(docs(*range(20)), docs(*range(20)), (1, 0.5, 1), id="cut-at-10"),
        pytest.param(docs(1), docs(9, 1, 1), (0.5, 1, 0.5), id="repeats-dropped"),
        pytest.param(docs(1), docs(1, scheme="https"), (1, 1, 1), id="any-scheme"),
        pytest.param(docs(1) + docs(1, scheme="https"), docs(1), (1, 1, 1), id="both-schemes"),
        pytest.param(docs(1, 2), ["1", f"{docs(2)[0]}/ "], (1, 1, 1), id="any-spelling"),
        pytest.param(docs(1, 2), docs(1, *range(50, 59), 2), (0.1, 0.5, 0.5), id="not-rank-11"),
        pytest.param(docs(1), [], (0, 0, 0), id="nothing-returned"),
    ],
)
def test_documents_are_counted_by_pmid_and_up_to_the_tenth(golden, given, expected):
    found = documents(golden, given)
    assert (found["precision"], found["recall"], found["map"]) == pytest.approx(expected)


def test_an_unanswered_question_counts_0():
    golden = [question("q1", documents=docs(1)), question("q2", documents=docs(2))]
    found = values(evaluate_documents, golden, golden[:1])
    assert (found["map"], found["f1"]) == (0.5, 0.5)
    assert found["gmap"] == pytest.approx(math.sqrt(1.00001 * 0.00001))


def test_unanswered_questions_are_named():
    golden = [*map(parse_question, (question("q1", documents=docs(1)), question("q2")))]
    assert evaluate_documents(golden, []).missing == ("q1",)


def test_a_question_without_golden_documents_is_left_out():
    golden = [question("q1", documents=docs(1)), question("q2")]
    given = [question("q1", documents=docs(1)), question("q2", documents=docs(2))]
    assert values(evaluate_documents, golden, given)["map"] == 1


def test_no_question_is_no_number():
    found = evaluate_documents([], []).values()
    assert all(map(math.isnan, found.values()))


@pytest.mark.parametrize(
    ("golden", "given", "expected"),
    [
        pytest.param([piece(1, 0, 100)], [piece(1, 50, 150)], (0.5, 0.5, 0.5), id="half"),
        pytest.param(
            [piece(1, 0, 100)],
            [piece(1, 0, 100), piece(1, 0, 100, "sections.0")],
            (1, 1, 1),
            id="one-section-by-two-names",
        ),
        pytest.param(
            [piece(1, 0, 50, "title")], [piece(1, 0, 50)], (0, 0, 0), id="title-is-not-abstract"
        ),
        pytest.param(
            [piece(1, 0, 100)], [piece(1, 0, 100, scheme="https")], (1, 1, 1), id="any-scheme"
        ),
        pytest.param(
            [piece(1, 0, 100)],
            [piece(1, 500, 600), piece(1, 0, 100)],
            (0.5, 1, 2 / 3),
            id="only-what-overlaps-is-relevant",
        ),
        pytest.param(
            [piece(1, 0, 60), piece(1, 40, 100)], [piece(1, 0, 100)], (1, 1, 1), id="overlaps-once"
        ),
        pytest.param([piece(1, 0, 100)], [piece(1, 50, 20)], (0, 0, 0), id="end-before-begin"),
        pytest.param(
            [piece(1, 0, 10)], [piece(2, 0, 10)] * 10 + [piece(1, 0, 10)], (0, 0, 0), id="cut-at-10"
        ),
    ],
)
def test_snippets_are_counted_by_their_characters(golden, given, expected):
    found = snippets(golden, given)
    assert (found["precision"], found["recall"], found["f1"]) == pytest.approx(expected)


def test_a_snippet_from_title_to_abstract_has_a_part_in_each():
    both = {**piece(1, 10, 20, "title", "abstract"), "text": "x" * 50}  # 30 of the title
    assert snippets([both], [piece(1, 10, 40, "title"), piece(1, 0, 20)])["f1"] == 1


def test_a_golden_snippet_is_found_once():
    found = snippets(
        [piece(1, 0, 1200), piece(2, 0, 90)], [piece(1, 100 * i, 100 * i + 80) for i in range(10)]
    )
    assert found["map"] == 0.5


@pytest.mark.parametrize(
    ("golden", "given", "expected"),
    [
        ("yes", "Yes.", 1), ("yes", ["yes"], 1), ("no", "No", 1), ("no", "not known", 0),
        ("no", "unknown", 0), ("yes", "Eyes only", 0), ("no", "maybe", 0),
        ("no", [["a"], ["no"]], 0),
    ],
)  # fmt: skip
def test_yes_and_no_are_whole_answers(golden, given, expected):
    assert answers("yesno", golden, given)["accuracy"] == expected


def test_neither_yes_nor_no_is_wrong_for_its_own_class_alone():
    golden = [question(f"q{n}", "yesno", exact=said) for n, said in enumerate(("yes", "no", "no"))]
    given = [
        question(f"q{n}", "yesno", exact=said) for n, said in enumerate(("yes", "maybe", "no"))
    ]
    found = values(evaluate_answers, golden, given)
    assert (found["f1_yes"], found["f1_no"]) == pytest.approx((1, 2 / 3))
    assert found["macro_f1"] == pytest.approx(5 / 6)


def test_a_class_without_golden_answers_does_not_halve_macro_f1():
    assert answers("yesno", "yes", "yes")["macro_f1"] == 1


@pytest.mark.parametrize(
    ("given", "strict", "lenient", "mrr"),
    [
        ([["amber"]], 1, 1, 1),
        ([["x"], [" Fossil  RESIN "]], 0, 1, 0.5),
        ([["x"], ["X"], ["amber"]], 0, 1, 0.5),
        ([[f"x{n}"] for n in range(5)] + [["amber"]], 0, 0, 0),
        ([["x", "amber"]], 0, 0, 0),
        ([], 0, 0, 0),
        ("amber", 1, 1, 1),
    ],
)
def test_factoids(given, strict, lenient, mrr):
    found = answers("factoid", [["amber", "fossil resin"]], given)
    assert found == pytest.approx({"strict": strict, "lenient": lenient, "mrr": mrr})


SHARED_NAME = [["p53", "TP53"], ["TP53", "LFS1"]]


@pytest.mark.parametrize(
    ("golden", "given", "precision", "recall"),
    [
        pytest.param([["EGF"], ["TGF"]], [["EGF"], ["egf "]], 1, 0.5, id="repeats-dropped"),
        pytest.param([["EGF", "a"], ["TGF"]], [["EGF"], ["a"], ["TGF"]], 2 / 3, 1, id="synonyms"),
        pytest.param(SHARED_NAME, [["TP53"], ["p53"]], 1, 1, id="a-shared-name-goes-where-needed"),
        pytest.param([["EGF"]], [[f"x{n}"] for n in range(100)] + [["EGF"]], 0, 0, id="cut-at-100"),
        pytest.param([["EGF"]], [], 0, 0, id="nothing-returned"),
    ],
)
def test_lists(golden, given, precision, recall):
    found = answers("list", golden, given)
    assert (found["precision"], found["recall"]) == pytest.approx((precision, recall))


@pytest.mark.full
@given(
    found=st.lists(st.sampled_from("abcdef"), unique=True),
    right=st.lists(st.sets(st.sampled_from("abcdef"), min_size=1), max_size=5),
)
def test_entities_are_matched_as_well_as_they_can_be(found, right):
    def best(names, entities):
        if not names or not entities:
            return 0
        rest = best(names, entities[1:])
        hits = [
            1 + best([*names[:i], *names[i + 1 :]], entities[1:])
            for i, name in enumerate(names)
            if name in entities[0]
        ]
        return max([rest, *hits])

    assert match_entities(found, right) == best(found, right)


def test_ideal_answers_are_measured_by_rouge():
    golden = [question("q1", ideal="the cat sat"), question("q2", ideal="a moss"), question("q3")]
    found = values(evaluate_ideal, golden, [question("q1", ideal="the cat lay")])
    assert (found["rouge-2_f1"], found["rouge-su4_f1"]) == pytest.approx((0.25, 0.3))


@pytest.mark.parametrize("seed", range(20))
def test_random_measures_lie_between_0_and_1(seed):
    golden, given = ([*map(parse_question, one)] for one in draw_sets(seed))
    for evaluate in (evaluate_documents, evaluate_snippets, evaluate_answers):
        found = evaluate(golden, given).values()
        assert not any(one < 0 or one > 1.00001 for one in found.values()), found
        assert evaluate(golden[::-1], given[::-1]).values() == pytest.approx(found, nan_ok=True)
        perfect = evaluate(golden, golden).values()
        for name in ("snippets_f1", "factoid_mrr", "yesno_macro_f1"):
            assert perfect.get(name, 1) == pytest.approx(1)


@pytest.mark.parametrize("seed", range(20))
def test_clean_submissions_have_the_official_values(tmp_path, seed):
    golden, given = draw_sets(seed)
    clean = [clean_documents(one) for one in golden], [clean_documents(one) for one in given]
    files = (
        write_set(tmp_path / "golden.json", *clean[0]),
        write_set(tmp_path / "in.json", *clean[1]),
    )
    official = evaluate_officially(*files, "a").values()
    ours = evaluate_documents(*([*map(parse_question, one)] for one in clean)).values()
    assert ours == pytest.approx({name: official[name] for name in ours}, abs=1e-9)


def clean_documents(one):
    found = [url.replace("https", "http") for url in one["documents"]]
    return {**one, "documents": [*dict.fromkeys(found)][:10], "snippets": []}
