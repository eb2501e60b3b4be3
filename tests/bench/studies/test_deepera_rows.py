"""Rows of DeepEra are filtered and summarized, with the parts taken away beside them."""

import pytest
from langchain_core.runnables import RunnableLambda

from bench.study_lakes import Judge, Marker, Writer, answered, column, fixed, lab, lakes
from deepera_graph import EvidenceReranker, Summary
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.rerank.filtering import (
    NO_FILTER,
    NO_SUMMARY,
    WHOLE,
    study_ablations,
    study_cutoff,
    study_threshold,
)
from deepera_graph.lab.studies.rerank.main_table import study_main_table
from support.scripted import Script

pytestmark = pytest.mark.full

SCORES = {"Passage 1": 0.95, "Passage 2": 0.85, "Passage 4": 0.5}  # the second is golden


def summarize(task):
    if "Passage 1 " in task["text"]:
        return Summary(text="")  # no answer in it
    return Summary(text=f"Short: {task['text'].split(':')[0].split(' of')[0]}.")


def deepera(summary=summarize, spec=None, **settings):
    script = Script(SCORES, default=0.1)
    backend = script.backend(spec or {"kind": "test"})
    made = type(backend)(
        name="scripted",
        intent=backend.intent,
        judge=backend.judge,
        summarizer=RunnableLambda(summary),
        spec=backend.spec,
    )
    return DeepEra(EvidenceReranker(made, content="passage", **settings)), script


def copy(question, passages):
    return " / ".join(passages)


def data(n=2):
    return answered(lakes(n), lambda one: "Passage 2")


def test_the_generator_reads_summaries_of_what_passed_in_rank_order():
    ranker, script = deepera(summary=lambda task: Summary(text=task["text"].split(":")[0]))
    writer = Writer(copy)
    study_main_table(lab([ranker], [data(1)], generator=writer))
    assert [passages for _, passages in writer.asked] == [
        ["Passage 1 of lake 1", "Passage 2 of lake 1"],
        [f"Passage {n} of lake 1" for n in (1, 2, 4, 3, 5)],
        [f"Passage {n} of lake 1: its water was {n} degrees warm." for n in (1, 2)],
    ]
    assert len(script.judged) == 5  # nothing is judged for its summary again


def test_a_passage_in_which_the_summarizer_finds_no_answer_is_not_handed_on():
    ranker, _ = deepera()
    writer = Writer(copy)
    study_main_table(lab([ranker], [data(1)], generator=writer))
    assert writer.asked[0][1] == ["Short: Passage 2."]


def test_at_most_n_passages_are_handed_on():
    ranker, _ = deepera()
    writer = Writer(copy)
    study_main_table(lab([ranker], [data(1)], generator=writer, top_n=1))
    assert [len(passages) for _, passages in writer.asked] == [0, 0, 1]  # passage 1 has no answer


def test_the_main_table_shows_the_whole_and_its_parts():
    ranker, _ = deepera()
    setup = {"generator": Writer(copy), "answer_judge": Marker(lambda task: 3)}
    grid = study_main_table(lab([FirstStage(), ranker], [data()], **setup)).grids[0]
    name = "DeepEra scripted"
    assert column(grid, "ranker") == [
        "first stage", name, f"{name}, without filter", f"{name}, without summaries",
    ]  # fmt: skip
    assert column(grid, "MRR") == [0.5, 0.5, 0.5, 0.5]
    assert column(grid, "P")[1] == pytest.approx(2 / 3)  # "Short: Passage 2." of the golden one
    assert column(grid, "P")[1] > column(grid, "P")[2] > column(grid, "P")[3]


def test_a_golden_passage_that_is_filtered_out_is_a_miss_of_the_whole_alone():
    ranker, _ = deepera()
    runner = lab([ranker], [lakes(2)], threshold=0.9)
    grid = study_main_table(runner).grids[0]
    assert column(grid, "ranker") == ["DeepEra scripted", "DeepEra scripted, without filter"]
    assert column(grid, "MRR") == [0, 0.5]


def test_without_a_threshold_each_ranker_has_its_own():
    low, _ = deepera(threshold=0.4)
    found = study_cutoff(lab([low], [lakes(2)], cutoffs=(5,))).grids[0]
    assert column(found, "kept") == [3, 5]
    found = study_cutoff(lab([low], [lakes(2)], cutoffs=(5,), threshold=0.9)).grids[0]
    assert column(found, "kept") == [1, 5]


def test_thresholds_and_cutoffs_are_measured_with_summaries_and_without():
    ranker, script = deepera()
    setup = {"generator": Writer(copy), "thresholds": (0.4, 0.9), "rules": {}}
    grid = study_threshold(lab([ranker], [data()], **setup)).grids[0]
    assert column(grid, "threshold") == [0.4, 0.9, "none", 0.4, 0.9]
    assert column(grid, "handed on") == ["summaries"] * 3 + ["passages"] * 2
    assert column(grid, "P")[1] == 0  # nothing is handed on of the only passage kept
    grid = study_cutoff(lab([ranker], [data()], generator=Writer(copy), cutoffs=(2,))).grids[0]
    assert column(grid, "filter") == ["with", "without", "with"]
    assert column(grid, "handed on") == ["summaries", "summaries", "passages"]
    assert len(script.judged) == 2 * 2 * 5


def test_a_ranker_that_makes_no_summaries_hands_on_passages():
    judge = Judge(fixed(0.9, 0.8, 0.7, 0.6, 0.5))
    setup = {"generator": Writer(copy), "cutoffs": (2,)}
    grid = study_cutoff(lab([judge], [data()], **setup)).grids[0]
    assert column(grid, "handed on") == ["passages", "passages"]


def test_only_the_ablation_without_summaries_reads_passages():
    ranker, _ = deepera()
    grid = study_ablations(lab([ranker], [data()], generator=Writer(copy))).grids[0]
    handed = dict(zip(column(grid, "variant"), column(grid, "handed on"), strict=True))
    assert [name for name, what in handed.items() if what == "passages"] == [NO_SUMMARY]
    f1 = dict(zip(column(grid, "variant"), column(grid, "F1"), strict=True))
    assert f1[WHOLE] > f1[NO_FILTER]
    assert set(column(grid, "ranker")) == {"DeepEra scripted"}


def test_figures_have_answers_and_at_most_six_curves():
    ranker, _ = deepera()
    setup = {"generator": Writer(copy), "answer_judge": Marker(lambda task: 3)}
    runner = lab([ranker], [data()], **setup)
    drawn = [*study_threshold(runner).drawings, *study_cutoff(runner).drawings]
    assert [one.name for one in drawn] == [
        "threshold-1", "threshold-answers-1", "threshold-lfs-1",
        "cutoff-1", "cutoff-answers-1", "cutoff-lfs-1",
    ]  # fmt: skip
    for one in drawn:
        assert all(1 <= len(curves) <= 6 for curves in one.panels.values())
    lfs = drawn[2].panels["ssli"]["LFS"]
    assert set(lfs.y) == {3.0, 1.0}  # 1 where nothing is kept
    assert drawn[2].y_label == "LFS 1-5"
    assert set(drawn[4].panels["ssli"]) == {
        f"{name}, {how} filter" for name in ("F1", "P", "R") for how in ("with", "without")
    }


def test_a_summary_that_failed_is_told_and_the_passage_stands_in():
    def summary(task):
        if "Passage 2 " in task["text"]:
            raise ValueError("out of order")
        return Summary(text="Passage 1 of a lake")

    ranker, _ = deepera(summary=summary)
    writer = Writer(copy)
    found = study_main_table(lab([ranker], [data(1)], generator=writer, max_failed_share=0.5))
    assert writer.asked[0][1][1].startswith("Passage 2 of lake 1: its water")
    assert {one.what for one in found.failures} == {"summary failed"}
