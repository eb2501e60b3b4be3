"""Metrics of information retrieval, computed by ir-measures.

ir-measures sorts a run again by score and breaks ties by document id, and it leaves out questions
that the run does not have. So the scores handed over are the negative ranks, which never tie, and
the questions of run and judgements are compared first.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf, isinf, nan
from typing import Self

import ir_measures
from ir_measures import RR, Measure, R, Success, nDCG

from deepera_graph.bioasq.measures import EPSILON, average_precision
from deepera_graph.calibration.instance import Dataset, DatasetError, Instance, MetricError
from deepera_graph.calibration.statistics import Values

Run = dict[str, dict[str, float]]
Judgements = dict[str, dict[str, int]]
_CUT = re.compile(r"[1-9]\d*")


@dataclass(frozen=True, slots=True)
class JudgedRanking:
    """One question's ranking and labels."""

    id: str
    ranked: tuple[str, ...]  # best first, each once; those that were dropped are missing
    n_candidates: int  # how many passages were to be ranked, >= 1
    # id to grade >= 1, also of those outside the candidates; empty where nothing answers
    golden: Mapping[str, int]
    parents: Mapping[str, str | None]  # distractor to its golden passage, None if not known
    question: str = ""
    setting: str = ""
    subject: str = ""
    types: Mapping[str, str] = field(default_factory=dict)  # distractor to its type

    @classmethod
    def of(cls, instance: Instance, ranked: Sequence[str]) -> Self:
        """Join an instance with a ranking of its passages, or of some of them."""
        golden = {one.id: one.grade for one in instance.contexts if one.is_golden}
        return cls(
            id=instance.id,
            ranked=tuple(ranked),
            n_candidates=len(instance.contexts),
            golden={**golden, **instance.golden_outside},
            parents={one.id: one.parent_id for one in instance.contexts if one.is_distractor},
            question=instance.question,
            setting=instance.setting,
            subject=instance.subject,
            types={
                one.id: one.distractor_type or "distractor"
                for one in instance.contexts
                if one.is_distractor
            },
        )

    def reorder(self, places: Sequence[int]) -> Self:
        """Return the same labels with another ranking, given as places from 1 in this one."""
        return replace(self, ranked=tuple(self.ranked[place - 1] for place in places))

    def ideal(self) -> Self:
        """Return the same labels with these passages in the best order: by falling grade."""
        best = sorted(self.ranked, key=lambda id: -self.golden.get(id, 0))
        return replace(self, ranked=tuple(best))

    def rank(self, passage: str) -> float:
        """Return the rank of a passage, >= 1; infinity if it was not returned."""
        try:
            return self.ranked.index(passage) + 1
        except ValueError:
            return inf

    def golden_rank(self) -> float:
        """Return the rank of the best golden passage, >= 1; infinity if none was returned."""
        return next((rank for rank, id in enumerate(self.ranked, 1) if id in self.golden), inf)


def non_distractor_share(judged: Sequence[JudgedRanking], k: int) -> Values:
    """Share of the first *k* places that hold a passage which is no distractor (NRS@k)."""
    # In [0, 1]. A pool smaller than *k* has as many places as candidates; an empty place holds
    # none.
    # Source: DeepEra, section on embedding models: the proportion of non-distractor passages
    # retrieved.
    good = [sum(passage not in one.parents for passage in one.ranked[:k]) for one in judged]
    return Values.of([n / min(k, one.n_candidates) for n, one in zip(good, judged, strict=True)])


def distractor_discrimination(judged: Sequence[JudgedRanking]) -> Values:
    """Share of pairs of golden passage and own distractor in the right order (CDR), in [0, 1]."""
    # Neither returned counts one half; returned comes before not returned; every pair weighs the
    # same.
    # Source: DeepEra, section on embedding models: telling original passages from their
    # distractors.
    pairs = [_order_pairs(one) for one in judged]
    values = [sum(right) / len(right) if right else 0.0 for right in pairs]
    return Values.of(values, [len(right) for right in pairs])


def _order_pairs(one: JudgedRanking) -> list[float]:
    ranks = [(one.rank(p), one.rank(d)) for d, p in one.parents.items() if p is not None]
    return [0.5 if golden == other else float(golden < other) for golden, other in ranks]


def hit_rate(judged: Sequence[JudgedRanking], k: int) -> Values:
    """1 where any golden passage is among the first *k* returned, else 0 (HitRate@K)."""
    return _measure(Success @ k, judged)


def reciprocal_rank(judged: Sequence[JudgedRanking]) -> Values:
    """Reciprocal rank of the best golden passage, in [0, 1]; 0 if none was returned (MRR)."""
    # Source: DeepEra names an RP without its formula; the reciprocal rank is the reading that fits
    # the bounds which its printed HitRate@1 and HitRate@3 set. Tables show it times 100.
    return _measure(RR, judged)


def ndcg(judged: Sequence[JudgedRanking], k: int) -> Values:
    """NDCG of the first *k*, in [0, 1], gain = grade; golden passages outside the pool count."""
    # Source: Jarvelin and Kekalainen (2002), in the form of trec_eval.
    return _measure(nDCG @ k, judged)


def recall(judged: Sequence[JudgedRanking], k: int) -> Values:
    """Share of the golden passages found in the first *k*, in [0, 1]."""
    return _measure(R @ k, judged)


def precision_of_golden(judged: Sequence[JudgedRanking], k: int) -> Values:
    """Average precision of the first *k*, in [0, 1], over the most that they could hold (AP@K)."""
    # Divided by min(k, golden), where trec_eval and ir-measures divide by all golden passages.
    # Source: BioASQ task B, k = 10; see `average_precision` in `deepera_graph.bioasq.measures`.
    return _over_answered(
        judged,
        [average_precision(one.ranked, one.golden, k) if one.golden else 0.0 for one in judged],
    )


def geometric_precision(judged: Sequence[JudgedRanking], k: int) -> Values:
    """The same, of which the mean is geometric, so that what fails weighs more (GMAP@K)."""
    # exp(mean(log(AP + 0.00001))), in (0, 1.00001].
    # Source: BioASQ task B; Robertson (2006), On GMAP: and other transformations, CIKM.
    return replace(precision_of_golden(judged, k), added=EPSILON)


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
    """Return the value of every question."""
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


def _measure(measure: Measure, judged: Sequence[JudgedRanking]) -> Values:
    named = {str(place): one for place, one in enumerate(judged) if one.golden}
    run = to_run({name: one.ranked for name, one in named.items()})
    judgements = {name: dict(one.golden) for name, one in named.items()}
    found = evaluate_run(measure, judgements, run)
    return _over_answered(judged, [found.get(str(place), 0.0) for place in range(len(judged))])


def _over_answered(judged: Sequence[JudgedRanking], values: Sequence[float]) -> Values:
    """Return a metric in which questions count that have a golden passage, and no others."""
    return Values.of(values, [float(bool(one.golden)) for one in judged])


def linear_position(judged: Sequence[JudgedRanking]) -> Values:
    """1 - (rank - 1) / (N - 1) of the best golden passage among N, in [0, 1]; 0 for none."""
    # 1 when the only candidate is golden.
    best = [(one.golden_rank(), max(one.n_candidates - 1, 1)) for one in judged]
    return _over_answered(
        judged, [0.0 if isinf(rank) else 1.0 - (rank - 1) / n for rank, n in best]
    )


def abstention(judged: Sequence[JudgedRanking]) -> Values:
    """1 where nothing is returned, of the questions that have no golden passage; else 0."""
    return Values.of(
        [float(not one.ranked) for one in judged], [float(not one.golden) for one in judged]
    )


def false_keeps(judged: Sequence[JudgedRanking]) -> Values:
    """Share of the candidates that is returned, of questions without a golden passage."""
    return Values.of(
        [len(one.ranked) / one.n_candidates for one in judged],
        [float(not one.golden) for one in judged],
    )


_WITH_CUT: Mapping[str, Callable[[Sequence[JudgedRanking], int], Values]] = {
    "HitRate": hit_rate,
    "NRS": non_distractor_share,
    "nDCG": ndcg,
    "Recall": recall,
    "AP": precision_of_golden,
    "GMAP": geometric_precision,
}
_WHOLE: Mapping[str, Callable[[Sequence[JudgedRanking]], Values]] = {
    "MRR": reciprocal_rank,
    "RP-linear": linear_position,
    "CDR": distractor_discrimination,
    "Abstention": abstention,
    "FalseKeeps": false_keeps,
}
UNANSWERED_METRICS = frozenset({"Abstention", "FalseKeeps"})
_RENAMED = {"RP": "MRR"}
_BY_LOWER = {one.lower(): one for one in (*_WHOLE, *_RENAMED, *_WITH_CUT)}
METRIC_NAMES = (*_WHOLE, *(f"{name}@K" for name in _WITH_CUT))


def compute(metric: str, judged: Sequence[JudgedRanking]) -> Values:
    """Return the values of a metric, each in [0, 1]; MRR is also known by its old name, RP."""
    metric = name_metric(metric)
    metric = _RENAMED.get(metric, metric)
    if metric in _WHOLE:
        return _WHOLE[metric](judged)
    name, _, k = metric.partition("@")
    return _WITH_CUT[name](judged, int(k))


def name_metric(metric: str) -> str:
    """Return the name of a metric as it is written here; `MetricError` if there is none."""
    given, cut, k = metric.partition("@")
    known = _BY_LOWER.get(given.lower())
    if (
        known is None
        or bool(cut) != (known in _WITH_CUT)
        or not (_CUT.fullmatch(k) if cut else True)
    ):
        raise MetricError(f"metric must be one of {', '.join(METRIC_NAMES)}, got {metric!r}")
    return f"{known}{cut}{k}"


@dataclass(frozen=True, slots=True)
class DatasetSummary:
    """A data set that was read: the labels of its questions, and what tells it from others."""

    dataset: Dataset  # to be read again, for its texts
    labels: tuple[JudgedRanking, ...]  # of each question, the candidates in first-stage order
    fingerprint: str
    n_pools: int  # different sets of candidates, by their texts; fewer than questions if shared

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.dataset.name

    @property
    def n_questions(self) -> int:
        """How many questions there are, >= 1."""
        return len(self.labels)

    @property
    def n_candidates(self) -> float:
        """Candidates a question, on average."""
        return sum(one.n_candidates for one in self.labels) / self.n_questions

    @property
    def n_distractors(self) -> float:
        """Labelled distractors a question, on average."""
        return sum(len(one.parents) for one in self.labels) / self.n_questions

    @property
    def ceiling(self) -> float:
        """Share of the answered questions with a golden candidate, in [0, 1]: the best HitRate."""
        # Not a number if none is answered.
        reachable = sum(not one.golden.keys().isdisjoint(one.ranked) for one in self.labels)
        n_answered = self.n_questions - self.n_unanswered
        return reachable / n_answered if n_answered else nan

    @property
    def n_unanswered(self) -> int:
        """How many questions have no golden passage; rank metrics are over the others."""
        return sum(not one.golden for one in self.labels)


def summarize_dataset(dataset: Dataset) -> DatasetSummary:
    """Read a data set once."""
    digest = sha256()
    labels = []
    pools = set()
    for instance in dataset:
        pools.add(sha256(repr(sorted({one.text for one in instance.contexts})).encode()).digest())
        digest.update(instance.model_dump_json().encode() + b"\n")
        labels.append(JudgedRanking.of(instance, [one.id for one in instance.contexts]))
    if not labels:
        raise DatasetError(f"data set {dataset.name!r} has no question")
    return DatasetSummary(dataset, tuple(labels), digest.hexdigest(), len(pools))
