"""Retrieval for questions of several hops, compared at one budget."""

from pathlib import Path

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.data.readers import HopQuestion, SubQuestion, read_hop_data
from deepera_graph.lab.studies.multihop.methods import (
    METHODS,
    MULTIHOP,
    OF_STEPS,
    HopBench,
    HopSearch,
    draw_answers,
)
from deepera_graph.lab.studies.run import format_study
from support.hops import PASSAGES, QUESTIONS, CountingEmbeddings, write_hops


@pytest.fixture
def folder(tmp_path):
    return write_hops(tmp_path / "lamps")


@pytest.fixture
def data(folder):
    return read_hop_data(folder)


def study(data, **how):
    bench = HopBench(n_resamples=50, **how)
    return bench.study({data.name: bench.measure(data, HopSearch(data, CountingEmbeddings()))})


def measure(data, **how):
    """The cells of each method by their columns."""
    (grid,) = study(data, **how).grids
    heads = [one.name for one in grid.columns]
    return {row[1]: dict(zip(heads, row, strict=True)) for row in grid.rows}


@pytest.mark.full
def test_every_method_reads_at_most_the_budget_and_each_passage_once(data):
    search = HopSearch(data, CountingEmbeddings())
    for name, method in METHODS.items():
        for budget in (1, 4, 50):
            for question in data.questions:
                found = method(search, question, budget)
                assert len(found) == len(set(found)) <= budget, name
                assert set(found) <= data.passages.keys()


def test_expansion_finds_what_one_search_misses(data):
    rows = measure(data, methods=("bm25", "expansion"), budget=5)
    assert rows["bm25"]["all@5"].mean == 0.5
    assert rows["expansion"]["all@5"].mean == 1.0


def test_recall_and_complete_are_those_counted_by_hand(data):
    row = measure(data, methods=("bm25",), budget=5)["bm25"]
    search = HopSearch(data, CountingEmbeddings())
    hits = [
        len(one.supporting & set(search.by_words(one.text, 5))) / len(one.supporting)
        for one in data.questions
    ]
    assert row["recall@5"].mean == pytest.approx(sum(hits) / len(hits))
    assert row["all@5"].mean == pytest.approx(sum(hit == 1 for hit in hits) / len(hits))


def test_a_baseline_is_compared_with_on_the_same_questions(data):
    rows = measure(data, methods=("bm25", "rrf"), baseline="bm25")
    assert rows["bm25"]["recall@10 minus bm25"] is None
    difference = rows["rrf"]["recall@10 minus bm25"]
    means = {name: row["recall@10"].mean for name, row in rows.items()}
    assert difference.mean == pytest.approx(means["rrf"] - means["bm25"])


@pytest.mark.full
def test_methods_of_steps_are_left_out_where_the_data_has_none(tmp_path):
    plain = [{**one, "subquestions": []} for one in QUESTIONS]
    data = read_hop_data(write_hops(tmp_path / "plain", questions=plain))
    assert measure(data).keys() == METHODS.keys() - set(OF_STEPS)
    with pytest.raises(SettingsError, match="steps-rrf needs sub-questions, and plain has none"):
        measure(data, methods=("steps-rrf",))


def test_what_else_a_sub_question_has_is_passed_over(tmp_path):
    step = {"question": "Who made the lamp?", "answer": "Orr", "passage": PASSAGES[0]["id"]}
    questions = [{**one, "subquestions": [step]} for one in QUESTIONS]
    data = read_hop_data(write_hops(tmp_path / "lamps", questions=questions))
    assert data.questions[0].steps == (SubQuestion("Who made the lamp?", "Orr"),)


def test_the_answer_of_an_earlier_step_takes_the_place_of_its_number():
    steps = (
        SubQuestion("Lamp >> maker", "Orr"),
        *(SubQuestion("x", f"n{n}") for n in range(2, 11)),
        SubQuestion("Who met #1 and #10 at #11?", "nobody"),
    )
    question = HopQuestion("q", "?", frozenset("a"), steps)
    assert question.filled_steps()[0] == "Lamp maker"
    assert question.filled_steps()[-1] == "Who met Orr and n10 at #11?"


def test_vectors_are_kept_and_made_anew_for_other_passages(data, folder, tmp_path):
    first, again, other = CountingEmbeddings(), CountingEmbeddings(), CountingEmbeddings()
    keep = tmp_path / "keep"
    made = HopSearch(data, first, keep=keep)
    assert HopSearch(data, again, keep=keep).by_both("lamp", 5) == made.by_both("lamp", 5)
    assert (len(first.texts), again.texts) == (len(PASSAGES), [])
    changed = [{**PASSAGES[0], "text": "Another text."}, *PASSAGES[1:]]
    HopSearch(read_hop_data(write_hops(folder, passages=changed)), other, keep=keep)
    assert len(other.texts) == len(PASSAGES)


def test_a_damaged_graph_is_made_anew(data, tmp_path):
    HopSearch(data, CountingEmbeddings(), keep=tmp_path)
    (tmp_path / "lamps.graph" / "graph.json").write_text("{", encoding="utf-8")
    again = CountingEmbeddings()
    HopSearch(data, again, keep=tmp_path)
    assert len(again.texts) == len(PASSAGES)


def test_methods_are_explained_above_the_table(data):
    text = format_study(MULTIHOP, study(data, methods=("rrf", "steps-bm25")))
    assert "- rrf: both searches, fused by rank\n- steps-bm25: bm25 for" in text
    assert "right answers of those before them" in text
    assert "right answers" not in format_study(MULTIHOP, study(data, methods=("rrf",)))


def test_a_limit_takes_the_first_questions(folder):
    assert [one.id for one in read_hop_data(folder, limit=1).questions] == ["q1"]


@pytest.mark.parametrize(
    ("file", "lines", "message"),
    [
        pytest.param("passages.jsonl", ['{"id": "a"}'], "record 1: 'text' must be", id="no text"),
        pytest.param("passages.jsonl", ["[]"], "record 1: must be a JSON object", id="list"),
        pytest.param("passages.jsonl", [], "no passages", id="empty"),
        pytest.param("questions.jsonl", [], "no questions", id="no questions"),
        pytest.param(
            "questions.jsonl",
            ['{"id": "q", "question": "Who?", "supporting": ["gone"]}'],
            "record 1: unknown passage 'gone'",
            id="no such passage",
        ),
        pytest.param(
            "questions.jsonl",
            ['{"id": "q", "question": "Who?", "supporting": []}'],
            "record 1: 'supporting' must be a list of ids",
            id="nothing supports",
        ),
    ],
)
def test_data_that_cannot_be_used_is_named(folder, file, lines, message):
    (folder / file).write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_hop_data(folder)


def test_an_id_that_comes_twice_is_refused(tmp_path):
    folder = write_hops(tmp_path, passages=[*PASSAGES, PASSAGES[0]])
    with pytest.raises(InputError, match="'salt' comes twice"):
        read_hop_data(folder)


def test_a_folder_without_the_files_is_refused():
    with pytest.raises(InputError, match="no such file"):
        read_hop_data(Path("nowhere"))


@pytest.mark.parametrize("how", [{"methods": ("bm26",)}, {"baseline": "bm26"}])
def test_an_unknown_method_is_refused(how):
    with pytest.raises(SettingsError, match="got 'bm26'"):
        HopBench(**how)


def test_a_budget_of_zero_is_refused():
    with pytest.raises(SettingsError, match="budget"):
        HopBench(budget=0)


def test_answers_are_drawn_from_halves_of_a_batch_and_are_the_same_again():
    ships = ("Quill", "Marlin", "Osprey", "Tern")
    texts = [f"The ship {name} sank near Port Lenno." for name in ships]
    first = draw_answers("Which ship sank near Port Lenno?", texts)
    assert len(first) == 10
    assert len({*first}) > 1
    assert draw_answers("Which ship sank near Port Lenno?", texts) == first
    one = draw_answers("Which ship sank near Port Lenno?", texts[:1])
    assert len({*one}) == 1


def test_a_judge_is_told_the_answers_before_only_where_the_path_counts(data, monkeypatch):
    search = HopSearch(data, CountingEmbeddings())
    asked, cosines = [], search.cosines

    def spy(question, names):
        asked.append(question)
        return cosines(question, names)

    monkeypatch.setattr(search, "cosines", spy)
    question = data.questions[0]
    METHODS["steps-rerank"](search, question, 10)
    METHODS["steps-path"](search, question, 10)
    second = "Where did Edda Quill grow up?"
    known = "(Known from earlier steps: The Salt Road director: Edda Quill.)"
    assert asked == [
        "The Salt Road director",
        second,
        "The Salt Road director",
        f"{second} {known}",
    ]
