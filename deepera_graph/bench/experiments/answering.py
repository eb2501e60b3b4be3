"""Answers from what was handed on, compared with the reference; only where there is a generator."""

from collections.abc import Iterator, Sequence
from itertools import islice

from deepera_graph.bench.answers.judge import ToJudge
from deepera_graph.bench.experiments.experiment import Column
from deepera_graph.bench.experiments.lab import Lab, Material
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.metrics.answers import answer_overlaps
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.lfs import lfs
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE
from deepera_graph.bench.rankers.ranker import passages_of, texts_of

_OVERLAPS = ("F1", "P", "R")
_Given = tuple[Instance, Sequence[str]]


def answer_columns(lab: Lab) -> tuple[Column, ...]:
    """Return F1, precision and recall of the answers, and LFS if there is a judge of answers."""
    if lab.setup.generator is None:
        return ()
    scored = (Column("LFS", "number"),) if lab.setup.answer_judge else ()
    return (*(Column(name, "percent") for name in _OVERLAPS), *scored)


def answer_values(lab: Lab, material: Material, kept: Sequence[Judged]) -> list[Values]:
    """Answer every question from its kept passages; a value a column of `answer_columns`.

    A question without a reference answer, or without an answer because the generator failed, has
    weight 0.
    """
    if lab.setup.generator is None:
        return []
    return values_of(lab, _passages(material, kept))


def values_of(lab: Lab, given: Iterator[_Given]) -> list[Values]:
    """Answer every question from the texts it comes with; see `answer_values`."""
    pairs: list[tuple[str, str]] = []
    weights: list[float] = []
    scores: list[int | None] = []
    while chunk := list(islice(given, QUESTIONS_AT_ONCE)):
        golds = [instance.gold_answer for instance, _ in chunk]
        answers, problems, marks = _answered(lab, chunk)
        pairs += zip(answers, golds, strict=True)
        weights += [
            float(bool(gold.strip()) and not problem)
            for gold, problem in zip(golds, problems, strict=True)
        ]
        scores += marks
    overlaps = answer_overlaps(pairs, weights)
    found = [overlaps.f1, overlaps.precision, overlaps.recall]
    judge = lab.setup.answer_judge
    if judge is not None:
        found.append(lfs(scores, low=judge.low, high=judge.high).values)
    return found


def _passages(material: Material, kept: Sequence[Judged]) -> Iterator[_Given]:
    for instance, one in zip(material.dataset, kept, strict=True):
        texts = texts_of(passages_of(instance))
        of = {context.id: text for context, text in zip(instance.contexts, texts, strict=True)}
        yield instance, [of[id] for id in one.ranked]


def _answered(lab: Lab, chunk: list[_Given]) -> tuple[list[str], list[str], list[int | None]]:
    generator, judge = lab.setup.generator, lab.setup.answer_judge
    if generator is None:
        raise AssertionError("values are asked for only where there is a generator")
    produced = generator.answer_many([(instance.question, given) for instance, given in chunk])
    marks: list[int | None] = [None] * len(chunk)
    if judge is not None:
        places = [
            place
            for place, one in enumerate(produced)
            if not one.problem and chunk[place][0].gold_answer.strip()
        ]
        tasks = [
            ToJudge(chunk[at][0].question, chunk[at][0].gold_answer, produced[at].text)
            for at in places
        ]
        for place, verdict in zip(places, judge.judge_many(tasks), strict=True):
            marks[place] = verdict.score
    return [one.text for one in produced], [one.problem for one in produced], marks
