"""Pools: the golden passage, and where distractors go."""

import gc
from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepera_graph.calibration.instance import Instance
from deepera_graph.lab.build.corpus import Chunk
from deepera_graph.lab.build.datasets import DROPPED, DraftedSet, list_files, make_instance
from deepera_graph.lab.build.search import PoolChunk
from deepera_graph.lab.build.writing.distractors import Distractor, Drafts, InstanceDraft, QAPair
from deepera_graph.lab.build.writing.questions import find_ambiguous, insert_golden
from deepera_graph.lab.construction import ReasonLog, RowFile
from deepera_graph.lab.settings import BuildPlan

CHUNKS = [Chunk(f"d{n}#1", f"Lake {n} froze.", f"d{n}") for n in range(12)]
FOUND = tuple(PoolChunk(chunk, n + 1, 1 - n / 20) for n, chunk in enumerate(CHUNKS))
PLAN = BuildPlan(n_contexts=8, n_distractors=3)


def draft(golden=2, *, pool=FOUND[:8], n_distractors=3, id="q"):
    distractors = tuple(Distractor(f"Pond {n} thawed.", "background") for n in range(n_distractors))
    return InstanceDraft(
        id=id,
        dataset="lmqg",
        subject="",
        pair=QAPair("Which lake froze?", f"Lake {golden}", CHUNKS[golden]),
        pool=pool,
        n_left_out=0,
        was_found=True,
        distractors=distractors,
    )


def test_a_golden_passage_that_was_found_stays_where_it_is():
    pool, was_found = insert_golden(FOUND, draft(3).pair, n=8, golden="insert")
    assert was_found
    assert pool == FOUND[:8]


def test_a_golden_passage_that_was_missed_takes_the_last_place_without_a_rank():
    pool, was_found = insert_golden(FOUND, draft(11).pair, n=8, golden="insert")
    assert not was_found
    assert pool == (*FOUND[:7], PoolChunk(CHUNKS[11], None, None))


def test_a_golden_passage_that_was_missed_can_be_recorded_beside_the_pool():
    pool, was_found = insert_golden(FOUND, draft(11).pair, n=8, golden="record")
    made = make_instance(draft(11, pool=pool), "ssli", PLAN)
    assert not was_found
    assert made.golden_outside == {"d11#1": 1}
    assert {one.parent_id for one in made.contexts if one.is_distractor} == {"d11#1"}
    assert len(made.contexts) == 8


def test_other_chunks_of_the_golden_document_with_the_answers_words_are_ambiguous():
    twin, plain = Chunk("d2#2", "As said,  lake 2 froze.", "d2"), Chunk("d2#3", "Ice.", "d2")
    assert find_ambiguous([CHUNKS[2], twin, plain], draft(2).pair) == {"d2#2"}


def test_distractors_take_the_room_of_the_last_passages_that_are_not_golden():
    made = make_instance(draft(7), "ssli", PLAN)
    natural = [one.id for one in made.contexts if not one.is_distractor]
    assert natural == [f"d{n}#1" for n in (0, 1, 2, 3, 7)]


@pytest.mark.parametrize("n_found", [2, 5, 6])
def test_a_small_pool_has_room_for_distractors_without_losing_passages(n_found):
    made = make_instance(draft(1, pool=FOUND[:n_found]), "ssli", PLAN)
    assert len(made.contexts) == min(8, n_found + 3)


@pytest.mark.full
@given(
    golden=st.integers(0, 7), n=st.integers(0, 4), id=st.text(min_size=1), seed=st.integers(0, 99)
)
def test_every_pool_keeps_its_size_its_golden_passage_and_the_order_of_the_others(
    golden, n, id, seed
):
    made = make_instance(
        draft(golden, n_distractors=n, id=id),
        "ssli",
        BuildPlan(n_contexts=8, n_distractors=4, seed=seed),
    )
    ranks = [one.first_stage_rank for one in made.contexts if not one.is_distractor]
    assert len(made.contexts) == 8
    assert sum(one.is_distractor for one in made.contexts) == n
    assert [one.id for one in made.contexts if one.is_golden] == [f"d{golden}#1"]
    assert ranks == sorted(ranks)


def test_places_are_spread_over_the_whole_pool():
    places = {
        place
        for number in range(200)
        for place, one in enumerate(make_instance(draft(id=f"q{number}"), "ssli", PLAN).contexts)
        if one.is_distractor
    }
    assert places == set(range(8))


@pytest.mark.full
def test_a_data_set_keeps_no_draft_once_it_is_written(tmp_path):
    plan = BuildPlan(n_questions=200, n_contexts=8)
    with ExitStack() as files:
        rows = {
            name: files.enter_context(RowFile(tmp_path / name))
            for name in list_files(["lmqg"], plan)
        }
        dataset = DraftedSet("lmqg", plan, rows, ReasonLog(rows[DROPPED]))
        before = _count_alive()
        for number in range(200):
            chunk = Chunk(f"x{number}#1", f"Lake {number} froze.", "x")
            made = draft(pool=(PoolChunk(chunk, 1, 1.1), *FOUND[1:8]), id=f"q{number}")
            asked = QAPair(f"Which lake froze in year {number}?", f"Lake {number}", chunk)
            dataset.add(Drafts(drafts=[replace(made, pair=asked)]))
        assert dataset.describe()["questions"] == 200
        assert _count_alive() - before <= 4


def _count_alive():
    gc.collect()
    return sum(isinstance(one, InstanceDraft | Drafts | Instance) for one in gc.get_objects())
