"""Metrics of information retrieval, computed by ir-measures.

ir-measures sorts a run again by score and breaks ties by document id, and it leaves out questions
that the run does not have. So the scores handed over are the negative ranks, which never tie, and
the questions of run and judgements are compared first.
"""

from collections.abc import Iterable, Mapping, Sequence

import ir_measures
from ir_measures import RR, Measure, R, Success, nDCG

from deepera_graph.bench.errors import MetricError
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.values import Values

Run = dict[str, dict[str, float]]
Judgements = dict[str, dict[str, int]]


def hit_rate(judged: Sequence[Judged], k: int) -> Values:
    """1 where a golden passage is among the first *k* returned, else 0 (HitRate@K).

    Several golden passages: any counts. A golden passage that was filtered out is a miss.
    """
    return _measure(Success @ k, judged)


def relative_position(judged: Sequence[Judged]) -> Values:
    """Reciprocal rank of the best golden passage, in [0, 1]; 0 if none was returned (RP).

    Source:
        DeepEra names RP without its formula; the reciprocal rank is the reading that fits the
        bounds which its printed HitRate@1 and HitRate@3 set. Tables show it times 100.
    """
    return _measure(RR, judged)


def ndcg(judged: Sequence[Judged], k: int) -> Values:
    """NDCG of the first *k*, in [0, 1], gain = grade; golden passages outside the pool count.

    Source:
        Jarvelin and Kekalainen (2002), in the form of trec_eval.
    """
    return _measure(nDCG @ k, judged)


def recall(judged: Sequence[Judged], k: int) -> Values:
    """Share of the golden passages found in the first *k*, in [0, 1]."""
    return _measure(R @ k, judged)


def to_run(rankings: Mapping[str, Sequence[str]]) -> Run:
    """Return rankings in the form of ir-measures: question to passage to negative rank."""
    return {
        question: {passage: -float(rank) for rank, passage in enumerate(ranked, start=1)}
        for question, ranked in rankings.items()
    }


def check_same_questions(run: Iterable[str], judgements: Iterable[str]) -> None:
    """Raise `MetricError` unless both have the same questions."""
    ran, known = set(run), set(judgements)
    if ran != known:
        missing, extra = sorted(known - ran)[:3], sorted(ran - known)[:3]
        raise MetricError(
            f"run and judgements must have the same questions; missing {missing}, extra {extra}"
        )


def evaluate_run(measure: Measure, judgements: Judgements, run: Run) -> dict[str, float]:
    """Return the value of every question.

    Args:
        measure: A measure of ir-measures.
        judgements: Question to passage to grade >= 0.
        run: See `to_run`; the scores of one question must differ.

    Raises:
        MetricError: The questions differ, or two scores of a question tie.
    """
    check_same_questions(run, judgements)
    for question, scores in run.items():
        if len(set(scores.values())) < len(scores):
            raise MetricError(f"question {question!r}: two passages have the same score")
    found = {question: 0.0 for question, scores in run.items() if not scores}
    rest = {question: scores for question, scores in run.items() if scores}
    if rest:
        wanted = {question: judgements[question] for question in rest}
        for metric in ir_measures.iter_calc([measure], wanted, rest):
            found[metric.query_id] = metric.value
    return found


def _measure(measure: Measure, judged: Sequence[Judged]) -> Values:
    names = [str(place) for place in range(len(judged))]
    run = to_run({name: one.ranked for name, one in zip(names, judged, strict=True)})
    judgements = {name: dict(one.golden) for name, one in zip(names, judged, strict=True)}
    found = evaluate_run(measure, judgements, run)
    return Values.of([found[name] for name in names])
