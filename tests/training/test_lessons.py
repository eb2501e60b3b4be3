"""What the reader learns from."""

import gzip
import json
from dataclasses import replace
from random import Random

import pytest

from deepera_graph.calibration.instance import DatasetError
from deepera_graph.judges.trained.reading.encoder import count_pieces
from deepera_graph.judges.trained.reading.reader import MAX_TOKENS
from deepera_graph.lab.training.fitting.reader import _find_marks, _open_tokenizer
from deepera_graph.lab.training.fitting.sentences import MarkedText
from deepera_graph.lab.training.fitting.steps import plan_steps
from deepera_graph.lab.training.lessons.abstracts import name_group, pool_abstracts
from deepera_graph.lab.training.lessons.groups import (
    Lesson,
    leave_out,
    list_directions,
    mark,
    read_abstracts,
    split_abstract,
    teach_abstracts,
    teach_papers,
    teach_pools,
)
from deepera_graph.lab.training.lessons.pools import (
    GOLDEN,
    OTHER_PAPER,
    LabelledPassage,
    Pool,
    hash_question,
)
from deepera_graph.lab.training.train_reader import ReaderTrainingPlan, list_lessons
from support.pools import write_lines
from support.tiny_encoder import make_tokenizer

ABSTRACT = (
    "Copper roofs are common by the sea. We weighed crusts on forty roofs. Crusts grew faster "
    "where rain was salt. Colour did not depend on age. Repairs are discussed."
)
ROW = {
    "paper": "papers:p1",
    "sentences": 5,
    "labels": "BMRRO",
    "questions": [
        {"question": "Do crusts grow faster by the sea?", "answer": [2], "direction": "supports"},
        {"question": "What does the colour of a roof depend on?", "answer": [3]},
    ],
    "unanswered": ["Do crusts protect the copper?"],
}


@pytest.fixture
def data(tmp_path):
    """A folder of data sets that holds one paper."""
    (tmp_path / "papers").mkdir()
    papers = [
        {"id": "p1", "title": "Crusts on roofs", "abstract": ABSTRACT},
        {"id": "p2", "title": "A paper without an abstract", "abstract": ""},
        *(
            {
                "id": f"q{n}",
                "title": f"Lamp {n} of the harbour",
                "abstract": " ".join(f"Lamp {n} was seen on day {day}." for day in range(8)),
            }
            for n in range(12)
        ),
    ]
    with gzip.open(tmp_path / "papers/papers.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in papers)
    return tmp_path


@pytest.fixture
def labels(tmp_path):
    """A file of labels on its abstract."""
    return write_lines(tmp_path / "abstracts.jsonl", [ROW])


def test_abstracts_give_their_questions_with_the_sentences_that_answer(labels, data):
    grown, coloured, unanswered = read_abstracts(labels, data)
    assert grown.sentences == split_abstract(ABSTRACT)
    assert [grown.sentences[place] for place in grown.answering] == [
        "Crusts grew faster where rain was salt."
    ]
    assert grown.directions == ("supports",)
    assert coloured.directions == ()
    assert unanswered.answering == frozenset()


def test_an_abstract_in_another_wording_is_refused_by_name(tmp_path, data):
    other = write_lines(tmp_path / "other.jsonl", [{**ROW, "sentences": 6}])
    with pytest.raises(DatasetError, match="papers:p1 has 6 sentences, but 5 in"):
        list(read_abstracts(other, data))
    missing = write_lines(tmp_path / "gone.jsonl", [{**ROW, "paper": "papers:p9"}])
    with pytest.raises(DatasetError, match="papers:p9 has 5 sentences, but 0 in"):
        list(read_abstracts(missing, data))


def test_an_answer_that_is_no_sentence_is_refused(tmp_path, data):
    wrong = {**ROW, "questions": [{"question": "Do crusts grow?", "answer": [7]}]}
    path = write_lines(tmp_path / "wrong.jsonl", [wrong])
    with pytest.raises(DatasetError, match=r"no sentence \[7\] for 'Do crusts grow\?'"):
        list(read_abstracts(path, data))


def test_a_run_is_evidence_if_and_only_if_a_sentence_of_it_answers(labels, data):
    asked = list(read_abstracts(labels, data))
    for seed in range(20):
        for one, group in zip(asked, teach_abstracts(asked, Random(seed)), strict=True):
            answers = [one.sentences[place] for place in one.answering]
            own = [lesson for lesson in group if lesson.text in " ".join(one.sentences)]
            assert own
            for lesson in own:
                assert lesson.label == any(text in lesson.text for text in answers)
                assert bool(lesson.directions) == (lesson.label == 1 and bool(one.directions))
                for start, end, label in lesson.marks:
                    sentence = lesson.text[start:end]
                    assert sentence in one.sentences
                    assert label == (sentence in answers)


def test_a_pool_has_a_whole_abstract_with_its_title_among_others(data, tmp_path):
    lamp = "When was lamp {} of the harbour seen?"
    lamps = [
        {"paper": f"papers:q{n}", "sentences": 8, "labels": "R" * 8,
         "questions": [{"question": lamp.format(n), "answer": [0]}]}
        for n in range(6)
    ]  # fmt: skip
    pools = pool_abstracts([write_lines(tmp_path / "labels.jsonl", [ROW, *lamps])], data)
    assert len(pools) == 9
    for pool in pools:
        answered = pool.question not in ROW["unanswered"]
        assert sum(pool.labels) == answered
        assert 4 < len(pool.passages) == len({one.text for one in pool.passages})
        for one in pool.passages:
            assert one.title.startswith("Crusts" if one.text == ABSTRACT else "Lamp")
            assert one.kind == (GOLDEN if one.label else OTHER_PAPER)
    [grown] = [pool for pool in pools if pool.question.startswith("Do crusts grow")]
    assert [one.text for one in grown.passages if one.label] == [ABSTRACT]
    [second] = [pool for pool in pools if pool.question == lamp.format(2)]
    assert [one.title for one in second.passages if one.label] == ["Lamp 2 of the harbour"]
    assert len({pool.group for pool in pools}) == 7
    again = pool_abstracts([tmp_path / "labels.jsonl"], data)
    assert again == pools


def test_no_question_on_an_abstract_of_which_one_is_held_out_is_taught(labels, data, tmp_path):
    plan = ReaderTrainingPlan(data=(data,), out=tmp_path / "out", abstracts=(labels,))
    assert len(list_lessons(plan, [], set())) == len(ROW["questions"]) + len(ROW["unanswered"])
    [one, *_] = read_abstracts(labels, data)
    assert list_lessons(plan, [], {name_group(one)}) == []


def test_a_group_ends_with_runs_of_other_abstracts():
    asked = [MarkedText("Do roofs turn green?", split_abstract(ABSTRACT), frozenset([2]))]
    asked += [
        MarkedText(f"Is lamp {n} on?", (f"Lamp {n} is on.", "It glows."), frozenset([0]))
        for n in range(5)
    ]
    for seed in range(10):
        for one, group in zip(asked, teach_abstracts(asked, Random(seed)), strict=True):
            own = " ".join(one.sentences)
            others = [lesson for lesson in group if lesson.text not in own]
            assert len(others) == 2
            assert not any(lesson.label for lesson in others)


def test_marks_stand_where_sentences_do():
    sentences = ["Roofs are green.", "Rain fell.", "Lamps glow."]
    text = " ".join(sentences)
    assert [text[start:end] for start, end, _ in mark(sentences, {1})] == sentences
    assert [label for *_, label in mark(sentences, {1})] == [0, 1, 0]


def pool(**changes):
    passages = [
        LabelledPassage(text=f"{kind} {n}", label=int(kind == "golden"), kind=kind)
        for kind, count in (("golden", 6), ("sibling", 12), ("other paper", 20))
        for n in range(count)
    ]
    given = {"id": "1", "question": "Do roofs turn green?", "set": "s", "group": "g"}
    return Pool(**given, passages=tuple(passages), **changes)


def test_a_group_holds_some_of_each_sort_and_the_nearest_of_other_papers():
    known = {("Do roofs turn green?", "golden 2"): list_directions(["supports"])}
    [group] = teach_pools([pool()], known, Random(0))
    by_sort = [one.text.rpartition(" ")[0] for one in group]
    assert [by_sort.count(one) for one in ("golden", "sibling", "other paper")] == [4, 8, 3]
    assert all(one.label == (one.text.startswith("golden")) for one in group)
    nearest = {f"other paper {n}" for n in range(10)}
    assert {one.text for one in group if one.text.startswith("other")} <= nearest
    assert {one.directions for one in group if one.text == "golden 2"} <= {(0,)}


def small_pool(n_passages, kind="other paper"):
    passages = tuple(
        LabelledPassage(text=f"text {n}", title=f"Title {n}", label=int(n == 3), kind="other paper")
        for n in range(n_passages - 1)
    )
    last = LabelledPassage(text="text last", title="Title last", label=0, kind=kind)
    return replace(pool(), passages=(*passages, last))


def test_of_a_small_pool_others_count_as_look_alikes_and_are_taught_with_their_titles():
    known = {("Do roofs turn green?", "text 3"): list_directions(["supports"])}
    [group] = teach_pools([small_pool(8)], known, Random(0))
    names = [*range(7), "last"]
    assert {one.text for one in group} == {f"Title {n}. text {n}" for n in names}
    assert [(one.label, one.directions) for one in group if one.label] == [(1, (0,))]


@pytest.mark.parametrize(
    ("given", "n_others"),
    [(small_pool(15), 8), (small_pool(16), 3), (small_pool(15, kind="near miss"), 4)],
)
def test_other_papers_count_as_look_alikes_only_where_few_stand_alone(given, n_others):
    [group] = teach_pools([given], {}, Random(0))
    assert sum(not one.label for one in group) == n_others


def test_questions_held_out_are_not_taught():
    groups = list(teach_pools([pool()], {}, Random(0)))
    assert leave_out(groups, {hash_question("something else")}) == groups
    assert leave_out(groups, {hash_question("do roofs  turn GREEN?")}) == []


def test_papers_teach_that_the_end_of_an_abstract_answers_its_title(data):
    groups = list(teach_papers(data, 6, Random(1)))
    assert len(groups) == 6
    for group in groups:
        assert next(one.label for one in group) == 1
        assert {one.label for one in group[1:]} == {0}
        assert len({one.question for one in group}) == 1


def test_a_step_holds_whole_groups_and_every_group_is_read_each_epoch():
    groups = [
        tuple(Lesson(f"q{n}", "text " * (n % 7 + 1), int(k == 0)) for k in range(n % 5 + 2))
        for n in range(300)
    ]
    steps = plan_steps(groups, 2, Random(0))
    read = [group for step in steps for group in step]
    assert sorted(read) == sorted(groups * 2)
    assert max(sum(map(len, step)) for step in steps) < 30 + 7
    assert len(plan_steps(groups, 0.5, Random(0))) < len(steps) / 3


def test_marks_are_found_among_the_tokens_of_the_passage(tmp_path):
    make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    sentences = ["Copper roofs turn green.", "The lamps were cleaned."]
    lesson = Lesson("Do roofs turn green?", " ".join(sentences), 1, (), mark(sentences, {1}))
    [(ids, first_inside, offsets)] = _open_tokenizer(tmp_path)(lesson)
    assert len(ids) == first_inside + len(offsets) + 1
    (_, middle, no), (begin, last, yes) = _find_marks(lesson, offsets)
    assert (no, yes) == (0, 1)
    assert middle <= begin
    start, end = offsets[begin][0], offsets[last - 1][1]
    assert lesson.text[start:end] == sentences[1]


def test_a_long_passage_is_cut_into_pieces_none_too_long_and_no_token_is_lost(tmp_path):
    make_tokenizer().save(str(tmp_path / "tokenizer.json"))
    sentences = ["Copper roofs turn green in rain. " * 13, "Lamps glow. " * 40, "Bells ring. " * 40]
    sentences = [one.strip() for one in sentences]
    lesson = Lesson("Do roofs turn green?", " ".join(sentences), 1, (), mark(sentences, {1}))
    pieces = _open_tokenizer(tmp_path)(lesson)
    sizes = [len(one.ids) for one in pieces]
    assert max(sizes) <= MAX_TOKENS
    assert max(sizes) - min(sizes) <= 1 < len(pieces)
    assert len({tuple(one.ids[: one.first]) for one in pieces}) == 1
    places = [place for one in pieces for place in one.offsets]
    assert places == sorted(set(places))
    assert (places[0][0], places[-1][1]) == (0, len(lesson.text))
    found = _find_marks(lesson, places)
    assert [label for *_, label in found] == [0, 1, 0]
    spans = [(places[first][0], places[last - 1][1]) for first, last, _ in found]
    assert [lesson.text[start:end] for start, end in spans] == sentences


@pytest.mark.parametrize(("n_tokens", "n_pieces"), [(0, 1), (10, 1), (11, 2), (30, 3), (31, 4)])
def test_a_text_is_read_in_as_few_pieces_as_are_short_enough(n_tokens, n_pieces):
    assert count_pieces(n_tokens, 10) == n_pieces
