"""Sixty planted passages that give an answer are rejected, and sixty that do not are kept."""

import json
from functools import lru_cache
from pathlib import Path

import pytest

from deepera_graph.bench.build.entailment import EvidenceCheck
from deepera_graph.bench.build.fluency import ProseModel
from deepera_graph.bench.build.gates import CandidateDistractor, Gates, failed_gates

HERE = Path(__file__).parent
TOPICS = HERE.parents[2] / "benchmarks" / "judge" / "topics.jsonl"


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip().split("\n")]


PLANTED = read_lines(HERE / "planted.jsonl")
N_MISSED = 2  # of the 60 that give the answer; a chat model has to find them


@lru_cache(maxsize=1)
def prose_model():
    """A model of other texts: 48 topics of 16 sciences."""
    topics = read_lines(TOPICS)
    return ProseModel.fit(
        one["text"]
        for topic in topics
        for question in topic["questions"]
        for one in question["evidence"]
    )


def gates_failed(case, text):
    """What the gates say that ask no chat model."""
    candidate = CandidateDistractor(
        text=text,
        gold_answer=case["answer"],
        synonyms=case["synonyms"],
        natural_lengths=[30],
        golden=[case["golden"]],
        question=case["question"],
        word_order=prose_model().measure_order(text),
    )
    return failed_gates(candidate)


def test_there_are_sixty_of_each_of_many_kinds():
    for side in ("bad", "good"):
        kinds = [one["kind"] for case in PLANTED for one in case[side]]
        assert len(kinds) == 60
        assert len(set(kinds)) >= 12


def test_nearly_all_that_give_the_answer_are_rejected():
    missed = [
        (case["id"], one["kind"])
        for case in PLANTED
        for one in case["bad"]
        if not gates_failed(case, one["text"])
    ]
    assert len(missed) <= N_MISSED


@pytest.mark.parametrize("case", PLANTED, ids=lambda case: case["id"])
def test_none_that_does_not_give_the_answer_is_rejected(case):
    rejected = {one["text"]: gates_failed(case, one["text"]) for one in case["good"]}
    assert [one for one in rejected.items() if one[1]] == []


@pytest.mark.full
async def test_the_local_judge_takes_a_distractor_for_the_answer_less_often_than_the_answer():
    check, gates = EvidenceCheck(), Gates()
    found = [
        (side, one["kind"])
        for case in PLANTED
        for side in ("bad", "good")
        for one in case[side]
        if await check.entails(
            one["text"],
            question=case["question"],
            answer=case["answer"],
            golden=case["golden"],
            max_evidence=gates.max_evidence,
        )
    ]
    assert [kind for side, kind in found if side == "good"] == ["other outcome"]
    assert sum(side == "bad" for side, _ in found) >= 5
