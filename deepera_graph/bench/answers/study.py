"""What a ranker is worth to the answer: token overlap and LFS of answers from its best passages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from deepera_graph.bench.answers.generator import Generator
from deepera_graph.bench.answers.judge import LfsJudge, ToJudge, Verdict
from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import DatasetError, MetricError
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.kept import rankings
from deepera_graph.bench.metrics.answers import Overlaps, answer_overlaps
from deepera_graph.bench.metrics.lfs import Lfs, lfs
from deepera_graph.bench.rank import QUESTIONS_AT_ONCE, Ranked
from deepera_graph.bench.rankers.ranker import EvidenceRanker, Ranker, passages_of, texts_of
from deepera_graph.bench.run import Step, Watch
from deepera_graph.bench.survey import survey

N_PASSAGES = 10
_NOT_JUDGED = Verdict(None, "")


class AnswerRow(NamedTuple):
    """One question's answer; `problem` says why there is none.

    `lfs` is None without a judge, or when the answer could not be judged; `reason` then says why.
    """

    id: str
    gold: str
    answer: str
    problem: str
    lfs: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerScores:
    """Answers from the best passages of one ranker on one data set.

    Attributes:
        dataset: Name of the data set.
        ranker: Name of the ranker.
        generator: Who answered.
        judge: Who judged; empty without a judge.
        n: Passages an answer was made from, at most.
        rows: One a question that has a reference answer, in order.
        overlaps: Token precision, recall and F1 a question, each in [0, 1]; the weight is 0 where
            the generator failed.
        lfs: The judge's scores; None without a judge.
        n_failed: Questions on which the generator failed; they are in no mean.
        n_without_gold: Questions left out, as the data holds no reference answer.
    """

    dataset: str
    ranker: str
    generator: str
    judge: str
    n: int
    rows: tuple[AnswerRow, ...]
    overlaps: Overlaps
    lfs: Lfs | None
    n_failed: int
    n_without_gold: int


def answer_scores(
    ranker: Ranker,
    dataset: Dataset,
    generator: Generator,
    judge: LfsJudge | None = None,
    *,
    n: int = N_PASSAGES,
    keep: Path | None = None,
    own_evidence: bool = False,
    watch: Watch = lambda step: None,
) -> AnswerScores:
    """Answer every question from the best passages of a ranker, and compare with the reference.

    Rankings are read back from *keep*; answers and verdicts of chat models come from the cache of
    their `Chat`. So a second run makes no call and gives the same.

    Args:
        ranker: Orders the candidates.
        dataset: Questions with `gold_answer`; those without one are left out.
        generator: Turns question and passages into an answer.
        judge: Scores answers for LFS; None leaves LFS out.
        n: Passages that the generator is given, >= 1; fewer if the ranker returned fewer.
        keep: Folder for rankings, as in `deepera_graph.bench.run.Plan`.
        own_evidence: Whether a ranker that makes evidence of its own, as DeepEra its summaries,
            hands that over in place of the passages; for the ablation without summaries.
        watch: Told whenever a few questions are answered.

    Raises:
        DatasetError: No question has a reference answer.
        MetricError: *n* is less than 1, or *own_evidence* is asked of a ranker that has none.
        BackendError: A chat model cannot be reached.
        BudgetError: A budget is spent.
        UnavailableError: The ranker cannot run here.
    """
    if n < 1:
        raise MetricError(f"n must be >= 1, got {n}")
    rows: list[AnswerRow] = []
    found = survey(dataset)
    pairs = _with_evidence(ranker, dataset, n, keep, own_evidence=own_evidence)
    n_seen = 0
    while chunk := list(islice(pairs, QUESTIONS_AT_ONCE)):
        rows += _answered([pair for pair in chunk if pair[0].gold_answer.strip()], generator, judge)
        n_seen += len(chunk)
        watch(Step(found.name, ranker.name, n_seen, found.n_questions))
    if not rows:
        raise DatasetError(f"no question of {dataset.name!r} has a reference answer")
    return AnswerScores(
        dataset=dataset.name,
        ranker=ranker.name,
        generator=generator.name,
        judge=judge.name if judge else "",
        n=n,
        rows=tuple(rows),
        overlaps=answer_overlaps(
            [(row.answer, row.gold) for row in rows], [float(not row.problem) for row in rows]
        ),
        lfs=lfs([row.lfs for row in rows], low=judge.low, high=judge.high) if judge else None,
        n_failed=sum(bool(row.problem) for row in rows),
        n_without_gold=n_seen - len(rows),
    )


def _with_evidence(
    ranker: Ranker, dataset: Dataset, n: int, keep: Path | None, *, own_evidence: bool
) -> Iterator[tuple[Instance, Sequence[str]]]:
    """Yield each instance with what the generator is to see of it."""
    if not own_evidence:
        ranked = rankings(ranker, dataset, survey(dataset), keep)
        for instance, one in zip(dataset, ranked, strict=True):
            yield instance, _best(instance, one, n)
        return
    if not isinstance(ranker, EvidenceRanker):
        raise MetricError(f"ranker {ranker.name!r} makes no evidence of its own")
    instances = iter(dataset)
    while chunk := list(islice(instances, QUESTIONS_AT_ONCE)):
        jobs = [(one.question, passages_of(one)) for one in chunk]
        yield from zip(chunk, ranker.evidence_many(jobs, n), strict=True)


def _best(instance: Instance, ranked: Ranked, n: int) -> list[str]:
    texts = texts_of(passages_of(instance))
    return [texts[place - 1] for place in ranked.places[:n]]


def _answered(
    pairs: Sequence[tuple[Instance, Sequence[str]]], generator: Generator, judge: LfsJudge | None
) -> Iterator[AnswerRow]:
    answers = generator.answer_many([(one.question, evidence) for one, evidence in pairs])
    verdicts = [_NOT_JUDGED] * len(pairs)
    if judge is not None:
        whole = [place for place, one in enumerate(answers) if not one.problem]
        tasks = [
            ToJudge(pairs[place][0].question, pairs[place][0].gold_answer, answers[place].text)
            for place in whole
        ]
        for place, verdict in zip(whole, judge.judge_many(tasks), strict=True):
            verdicts[place] = verdict
    for (one, _), answer, verdict in zip(pairs, answers, verdicts, strict=True):
        yield AnswerRow(
            one.id, one.gold_answer, answer.text, answer.problem, verdict.score, verdict.reason
        )
