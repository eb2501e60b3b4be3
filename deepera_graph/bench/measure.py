"""Measure rankers on one data set."""

from collections.abc import Sequence
from dataclasses import dataclass

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.kept import rankings
from deepera_graph.bench.metrics.judged import Judged
from deepera_graph.bench.metrics.named import compute
from deepera_graph.bench.metrics.spread import average, spread
from deepera_graph.bench.metrics.values import Values
from deepera_graph.bench.plan import ORACLE, Plan, Step, Watch
from deepera_graph.bench.rank import Ranked
from deepera_graph.bench.rankers.ranker import Ranker, RepeatedRanker
from deepera_graph.bench.survey import Survey
from deepera_graph.bench.table import Missing
from deepera_graph.errors import BackendError


@dataclass(frozen=True, slots=True)
class Measured:
    """One ranker on one data set.

    Attributes:
        ranker: Its name.
        n_repeats: How many runs are averaged, >= 1.
        values: One a metric, each over questions, the mean of all runs.
        stds: Standard deviation of each metric over the runs.
        costs: Seconds, calls and tokens a question.
        failed: Passages a question that could not be judged.
        problem: Why the last of them failed.
    """

    ranker: str
    n_repeats: int
    values: list[Values]
    stds: list[float]
    costs: tuple[float, float, float]
    failed: float = 0.0
    problem: str = ""


def measure_all(
    rankers: Sequence[Ranker], dataset: Dataset, found: Survey, plan: Plan, watch: Watch
) -> tuple[list[Measured], list[Missing]]:
    """Return what was measured of each ranker, and which could not run.

    Raises:
        UnavailableError, BackendError: No ranker could run, or one could not and the plan is
            strict.
        RankingError: A ranker gave back no ranking.
        BudgetError: The budget of a chat model is spent.
    """
    measured: list[Measured] = []
    missing: list[Missing] = []
    first_error: UnavailableError | BackendError | None = None
    for one in rankers:
        try:
            measured.append(_measure(one, dataset, found, plan, watch))
        except (UnavailableError, BackendError) as error:
            if plan.strict:
                raise
            first_error = first_error or error
            missing.append(Missing(found.name, one.name, " ".join(str(error).split())))
    if first_error is not None and not measured:
        raise first_error
    return measured, missing


def _measure(ranker: Ranker, dataset: Dataset, found: Survey, plan: Plan, watch: Watch) -> Measured:
    repeats = [ranker]
    if isinstance(ranker, RepeatedRanker):
        repeats = [ranker.repeat(number) for number in range(plan.n_repeats)]
    runs: list[list[Ranked]] = []
    n_questions = len(repeats) * found.n_questions
    watch(Step(found.name, ranker.name, 0, n_questions))
    for number, one in enumerate(repeats):
        runs.append([])
        for ranked in rankings(one, dataset, found, plan.keep, retry_failed=plan.retry_failed):
            runs[-1].append(ranked)
            n_done = number * found.n_questions + len(runs[-1])
            watch(Step(found.name, ranker.name, n_done, n_questions))
    everything = [one for ranked in runs for one in ranked]
    failed = sum(one.failed for one in everything) / len(everything)
    problem = next((one.problem for one in reversed(everything) if one.problem), "")
    if failed and failed > found.n_candidates - 1e-9:
        raise UnavailableError(f"no passage could be judged: {problem}")
    by_metric = list(zip(*(_values(found, ranked, plan) for ranked in runs), strict=True))
    return Measured(
        ranker=ranker.name,
        n_repeats=len(runs),
        values=[average(values) for values in by_metric],
        stds=[spread([one.mean() for one in values]).std for values in by_metric],
        costs=_costs(everything),
        failed=failed,
        problem=problem,
    )


def oracle(found: Survey, plan: Plan) -> Measured:
    """Return what the best possible order of the candidates is worth."""
    best = [labels.ideal() for labels in found.labels]
    values = [compute(metric, best) for metric in plan.metrics]
    return Measured(ORACLE, 1, values, [0.0] * len(values), (0.0, 0.0, 0.0))


def _values(found: Survey, ranked: Sequence[Ranked], plan: Plan) -> list[Values]:
    judged = joined(found, ranked)
    return [compute(metric, judged) for metric in plan.metrics]


def joined(found: Survey, ranked: Sequence[Ranked]) -> list[Judged]:
    """Return every ranking with its labels."""
    return [labels.reordered(one.places) for labels, one in zip(found.labels, ranked, strict=True)]


def _costs(ranked: Sequence[Ranked]) -> tuple[float, float, float]:
    n = len(ranked)
    tokens = sum(one.input_tokens + one.output_tokens for one in ranked)
    return sum(one.seconds for one in ranked) / n, sum(one.calls for one in ranked) / n, tokens / n
