"""Threshold study, cut-off study and filtering."""

import pytest

from bench.study_lakes import Judge, column, fixed, lab, lakes
from deepera_graph import EvidenceReranker
from deepera_graph.errors import SettingsError
from deepera_graph.lab.metrics.answers import Extractive
from deepera_graph.lab.rankers.base import FirstStage, UnavailableRanker
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.base import NoFilterError
from deepera_graph.lab.studies.rerank import filtering
from deepera_graph.settings.thresholds import Gap, Quantile
from support.scripted import Script

SCORES = fixed(0.65, 0.85, 0.95, 0.1, 0.75)  # the second is golden


def deepera(**scores):
    script = Script({**scores, "water was": 0.9}, default=0.1)
    return DeepEra(EvidenceReranker(script.backend({"kind": "test"}), content="passage")), script


def test_thresholds_are_applied_to_one_set_of_scores():
    judge = Judge(SCORES)
    made = lab([judge], [lakes(3)], thresholds=(0.6, 0.7, 0.8, 0.9), rules={})
    found = filtering.study_threshold(made)
    (grid,) = found.grids
    assert len(judge.asked) == 3
    assert column(grid, "threshold") == [0.6, 0.7, 0.8, 0.9]
    assert column(grid, "kept") == [4, 3, 2, 1]
    assert column(grid, "precision of the kept") == pytest.approx([1 / 4, 1 / 3, 1 / 2, 0])
    assert column(grid, "MRR") == [0.5, 0.5, 0.5, 0]
    assert column(grid, "HitRate@3") == column(grid, "golden kept") == [1, 1, 1, 0]
    assert column(grid, "nothing kept") == [0, 0, 0, 0]


def test_a_rule_sets_the_threshold_of_each_question():
    rules = {"gap": Gap(), "quantile:0.4": Quantile(share=0.4)}
    setup = {"thresholds": (0.7,), "rules": rules}
    (grid,) = filtering.study_threshold(lab([Judge(SCORES)], [lakes(2)], **setup)).grids
    assert column(grid, "threshold") == [0.7, "gap", "quantile:0.4"]
    assert column(grid, "kept") == [3, 4, 2]


def test_the_precision_of_nothing_is_not_a_number():
    (grid,) = filtering.study_threshold(
        lab([Judge(fixed(0, 0, 0))], [lakes(n=3)], thresholds=(0.9,), rules={})
    ).grids
    (precision,) = column(grid, "precision of the kept")
    assert precision != precision
    assert column(grid, "nothing kept") == [1]


def test_questions_that_nothing_answers_lose_no_golden_passage():
    data = list(lakes(4))
    bare = [
        one.model_copy(
            update={
                "contexts": tuple(
                    each.model_copy(update={"is_golden": False, "parent_id": None})
                    for each in one.contexts
                )
            }
        )
        for one in data[:1]
    ]
    some = type(lakes(1))("lakes", lambda: [*bare, *data[1:]])
    made = lab([Judge(SCORES)], [some], thresholds=(0.7,), rules={}, cutoffs=(5,))
    for study in (filtering.study_threshold, filtering.study_cutoff):
        found = study(made)
        assert column(found.grids[0], "golden kept")[0] == 1
        assert found.findings[0].startswith("lakes: nothing answers 1 of the 4 questions, ")


def test_answers_are_measured_where_there_is_a_generator():
    data = lakes(2)
    gold = "Passage 3 of lake 1: its water was 3 degrees warm."
    answered = [one.model_copy(update={"gold_answer": gold}) for one in data]
    data = type(data)("lakes", lambda: answered)
    setup = {"thresholds": (0.5, 0.97), "rules": {}, "generator": Extractive()}
    (grid,) = filtering.study_threshold(lab([Judge(SCORES)], [data], **setup)).grids
    assert column(grid, "F1")[0] > 0.9
    assert column(grid, "F1")[1] == 0


def test_more_passages_hold_more_and_the_filter_stops_it():
    found = filtering.study_cutoff(lab([Judge(SCORES)], [lakes(2)], cutoffs=(1, 2, 5)))
    (grid,) = found.grids
    assert column(grid, "filter") == ["with"] * 3 + ["without"] * 3
    assert column(grid, "golden kept") == [0, 1, 1, 0, 1, 1]
    assert column(grid, "kept") == [1, 2, 2, 1, 2, 5]
    assert "no HitRate@K and no MRR can rise" in found.findings[0]
    assert [one.name for one in found.drawings] == ["cutoff-1"]


def test_cut_offs_end_with_the_first_that_holds_all_candidates():
    data = lakes(2)
    n = max(len(one.contexts) for one in data)
    for tried, kept in (((1, n, n + 1), [1, n]), ((1, n + 2, n + 9), [1, n + 2]), ((2,), [2])):
        (grid,) = filtering.study_cutoff(lab([Judge(SCORES)], [data], cutoffs=tried)).grids
        assert column(grid, "n") == [*kept, *kept]


def test_studies_of_the_filter_say_what_few_questions_leave_open():
    setup = lab([Judge(SCORES)], [lakes(6)], thresholds=(0.7,), rules={})
    few = "ssli: Where all 6 come out alike, up to 50 % of other questions may still not."
    for study in (filtering.study_threshold, filtering.study_cutoff):
        assert study(setup).findings[-1] == few


@pytest.mark.full
def test_every_part_of_deepera_is_taken_away_in_turn():
    ranker, _ = deepera()
    found = filtering.study_ablations(lab([ranker], [lakes(2, n=3)]))
    (grid,) = found.grids
    kept = dict(zip(column(grid, "variant"), column(grid, "kept"), strict=True))
    assert kept[filtering.WHOLE] == kept[filtering.NO_SUMMARY] == 3
    assert set(kept) == {
        filtering.WHOLE, filtering.NO_INTENT, filtering.NO_FILTER, filtering.NEITHER,
        filtering.NO_SUMMARY, filtering.RETRIEVAL, filtering.NO_FILTER_RETRIEVAL,
    }  # fmt: skip


def test_without_intent_the_judge_is_told_none():
    seen = []
    ranker, script = deepera()
    judge = script._judge
    script._judge = lambda task: (seen.append(task["intent"]["topic"]), judge(task))[1]
    ranker = DeepEra(EvidenceReranker(script.backend({"kind": "test"}), content="passage"))
    blind = ranker.without_intent()
    passages = [{"id": "1", "text": "Its water was warm.", "title": "", "section": ""}]
    ranker.rank("How warm is it?", passages)
    blind.rank("How warm is it?", passages)
    assert seen[0]
    assert seen[1] == ""
    assert blind.fingerprint != ranker.fingerprint


@pytest.mark.full
def test_answers_from_summaries_differ_from_answers_from_passages():
    ranker, _ = deepera()
    (grid,) = filtering.study_ablations(
        lab([ranker], [lakes(2, n=3)], generator=Extractive())
    ).grids
    assert "F1" in [one.name for one in grid.columns]


@pytest.mark.parametrize(
    "run", [filtering.study_threshold, filtering.study_cutoff, filtering.study_ablations]
)
def test_without_a_ranker_that_filters_nothing_can_be_studied(run):
    with pytest.raises(NoFilterError, match="needs a ranker that filters"):
        run(lab([FirstStage()], [lakes()]))


@pytest.mark.parametrize("run", [filtering.study_threshold, filtering.study_cutoff])
def test_a_ranker_that_does_not_filter_is_named_beside_one_that_does(run):
    ranker, _ = deepera()
    gone = UnavailableRanker("dense", "needs a package")
    found = run(lab([FirstStage(), gone, ranker], [lakes(2)])).findings
    assert found[:2] == (
        "first stage: left out, as its scores do not say what to keep.",
        "dense: left out, as it is not available: needs a package",
    )
    assert not any("left out, as" in one for one in run(lab([ranker], [lakes(2)])).findings)


def test_a_ranker_that_drops_passages_itself_is_refused():
    _, script = deepera(**{"Passage 1": 0.1})
    kept = DeepEra(EvidenceReranker(script.backend()), kept_only=True)
    with pytest.raises(SettingsError, match="drops passages itself"):
        filtering.study_threshold(lab([kept], [lakes(2)]))
