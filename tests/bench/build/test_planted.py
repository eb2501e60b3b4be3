"""Of 75 planted passages that give an answer nearly all are rejected, and 73 of 75 others kept."""

import json
from functools import lru_cache
from pathlib import Path

import pytest

from deepera_graph.lab.build.writing.distractors import EvidenceCheck
from deepera_graph.lab.build.writing.faults import ProseModel
from deepera_graph.lab.build.writing.gates import (
    CandidateDistractor,
    Gates,
    failed_gates,
)

HERE = Path(__file__).parent
TOPICS = [
    HERE.parents[2] / "benchmarks/judge" / name for name in ("topics.jsonl", "near_misses.jsonl")
]


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rstrip().split("\n")]


PLANTED = read_lines(HERE / "planted.jsonl")
N_MISSED = 5  # of the 75 that give the answer; a chat model has to find them
WRONGED = {("bridge", "other value"), ("music", "methods")}  # rejected, though they do not give it


@lru_cache(maxsize=1)
def prose_model():
    """A model of other texts: 169 topics of 16 sciences."""
    topics = [topic for path in TOPICS for topic in read_lines(path)]
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


def test_there_are_75_of_each_of_many_kinds():
    for side in ("bad", "good"):
        kinds = [one["kind"] for case in PLANTED for one in case[side]]
        assert len(kinds) == 75
        assert len(set(kinds)) >= 12


@pytest.mark.full
def test_nearly_all_that_give_the_answer_are_rejected():
    missed = [
        (case["id"], one["kind"])
        for case in PLANTED
        for one in case["bad"]
        if not gates_failed(case, one["text"])
    ]
    assert len(missed) <= N_MISSED


@pytest.mark.full
def test_hardly_any_that_do_not_give_the_answer_are_rejected():
    rejected = {
        (case["id"], one["kind"])
        for case in PLANTED
        for one in case["good"]
        if gates_failed(case, one["text"])
    }
    assert rejected <= WRONGED


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
    n_bad, n_good = (sum(side == one for side, _ in found) for one in ("bad", "good"))
    assert n_good <= 2
    assert n_bad >= 5
