"""The scores of systems that search for papers: a query each, a system each, and groups of them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from random import Random

from deepera_graph.calibration.instance import MetricError
from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.studies.experiment import Resampling
from deepera_graph.lab.studies.papers.runs import Call, PaperQuery, QueryRun, Run
from deepera_graph.settings.ranges import check_at_least

Ids = frozenset[str] | set[str]
TOP = 50
CUTOFFS = (25, 100)
CANDIDATES = 100  # observed candidates that R@100 is counted by
BUCKETS = (1, 5, 26, 51, 101, 151, 201)
MEASURES = (*(f"R@{k}" for k in CUTOFFS), "R@All", f"nDCG@{TOP}", f"P@{TOP}")


def recall_of(found: Collection[str], gold: Ids) -> float:
    """Return the share of *gold* that was found, in [0, 1]; `MetricError` if there is no gold."""
    if not gold:
        raise MetricError("recall needs at least one answer")
    return len(gold.intersection(found)) / len(gold)


def ndcg(ranked: Sequence[str], gold: Ids, k: int = TOP) -> float:
    """Return binary nDCG of the first *k*, in [0, 1]; the ideal is all the gold, up to *k*."""
    # Source: https://github.com/pty12345/ScholarQuest-LeaderBoard, README: gains of 1 discounted by
    # 1 / log2(rank + 1), the ideal from the whole gold set, found or not, up to 50.
    if not gold:
        raise MetricError("nDCG needs at least one answer")
    gain = sum(1 / log2(rank + 1) for rank, one in enumerate(ranked[:k], start=1) if one in gold)
    return gain / sum(1 / log2(rank + 1) for rank in range(1, min(len(gold), k) + 1))


def precision(ranked: Sequence[str], gold: Ids, k: int = TOP) -> float:
    """Return the share of gold in what was returned of the first *k*, in [0, 1]; 0 for nothing."""
    # Source: https://github.com/pty12345/ScholarQuest-LeaderBoard, README: a shorter list is
    # divided by its own length, not by 50.
    first = ranked[:k]
    return len(gold.intersection(first)) / len(first) if first else 0.0


def recall_per_candidates(recall: float, n_observed: float) -> float:
    """Return the recall that 100 observed candidates are worth, >= 0; 0 if none was observed."""
    # The figure of a system is the mean of these ratios over queries, not the ratio of the means:
    # ScholarQuest prints .120 where the ratio of its means is .077.
    return recall * CANDIDATES / n_observed if n_observed else 0.0


@dataclass(frozen=True, slots=True)
class LimitScores:
    """How a search kept to the limits of a query, by papers that are known to break them."""

    # share of the first #gold papers returned that break a limit, in [0, 1]; 0 for none
    first: float
    # how probably an answer stands above a paper that breaks a limit, in [0, 1]; what was not
    # returned is below all that was, and two of one place count half
    auc: float
    precision: float  # of what was kept, among the papers known either way
    recall: float  # the same
    f1: float  # their harmonic mean


def score_limits(
    ranked: Sequence[str], kept: Collection[str], gold: Ids, violating: Ids
) -> LimitScores:
    """Measure how well limits were kept; papers in neither set are not judged."""
    if not gold or not violating or gold & violating:
        raise MetricError(
            f"limits need answers and papers that break them, apart from each other, got "
            f"{len(gold)}, {len(violating)}, {len(gold & violating)} in both"
        )
    first = ranked[: len(gold)]
    right, wrong = len(gold.intersection(kept)), len(violating.intersection(kept))
    share, recall = right / (right + wrong) if right else 0.0, right / len(gold)
    return LimitScores(
        first=len(violating.intersection(first)) / len(first) if first else 0.0,
        auc=_auc(ranked, gold, violating),
        precision=share,
        recall=recall,
        f1=2 * share * recall / (share + recall) if right else 0.0,
    )


def _auc(ranked: Sequence[str], gold: Ids, violating: Ids) -> float:
    # Mann and Whitney (1947): the share of pairs in the right order, ties half.
    below, above, wins = len(violating), 0, 0.0
    n_gold = 0
    for one in ranked:
        if one in violating:
            below -= 1
            above += 1
        elif one in gold:
            wins += below
            n_gold += 1
    wins += (len(gold) - n_gold) * below / 2
    return wins / (len(gold) * len(violating))


def by_intents(values: Sequence[float], intents: Sequence[str]) -> Values:
    """Return values weighted so that their mean is that of the means of the intents."""
    sizes = {one: intents.count(one) for one in dict.fromkeys(intents)}
    return Values.of(values, [1 / (sizes[one] * len(sizes)) for one in intents])


def bucket_of(n: int, starts: Sequence[int] = BUCKETS) -> str:
    """Name the bucket of a number of answers, ``26-50``; the last has no end, ``201+``."""
    # Source of the default: the answer sizes of ScholarQuest, 5-25 to 151-200; what lies outside of
    # them has buckets of its own.
    place = sum(n >= one for one in starts) - 1
    if place < 0:
        return f"0-{starts[0] - 1}"
    if place == len(starts) - 1:
        return f"{starts[-1]}+"
    end = starts[place + 1] - 1
    return f"{starts[place]}-{end}" if end > starts[place] else str(end)


MISSING = "missing from the run"


def draw_queries(queries: Sequence[PaperQuery], n: int, *, seed: int = 0) -> tuple[PaperQuery, ...]:
    """Return *n* queries of each intent in their order, all where there are no more."""
    # The draw of an intent depends on the seed and the ids of its queries alone, not on their order
    # or on other intents.
    # Source: The leaderboard of ScholarQuest, whose smaller set has 25 queries of each intent.
    # Raises `SettingsError` if *n* is below 1.
    check_at_least("draw", n, 1)
    ids: dict[str, list[str]] = {}
    for one in queries:
        ids.setdefault(one.intent, []).append(one.id)
    drawn: set[str] = set()
    for intent, names in ids.items():
        chance = Random(f"{seed}\0{intent}")
        drawn.update(chance.sample(sorted(names), min(n, len(names))))
    return tuple(one for one in queries if one.id in drawn)


@dataclass(frozen=True, kw_only=True)
class PaperBench(Resampling):
    """Queries, and how they are measured.

    Raises:
        InputError: There is no query.
        SettingsError: A number is out of range, or there is no query of an id.
    """

    queries: tuple[PaperQuery, ...]  # at least one, each with answers
    buckets: tuple[int, ...] = BUCKETS  # where buckets of answer sizes begin, rising, >= 1
    baseline: str = ""  # system that others are compared with; the first if empty
    # ids of queries whose calls are shown; that with the most telling calls if empty
    shown: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.queries:
            raise InputError("no queries were given to measure with")
        starts = self.buckets
        if not starts or starts[0] < 1 or sorted({*starts}) != [*starts]:
            raise SettingsError(f"buckets must be rising numbers from 1, got {starts}")
        known = {one.id for one in self.queries}
        for name in self.shown:
            if name not in known:
                raise SettingsError(f"unknown query {name!r}, so its calls cannot be shown")

    @property
    def intents(self) -> dict[str, list[int]]:
        """Places of the queries of each intent."""
        found: dict[str, list[int]] = {}
        for place, one in enumerate(self.queries):
            found.setdefault(one.intent, []).append(place)
        return found

    @property
    def sizes(self) -> dict[str, list[int]]:
        """Places of the queries of each bucket of answer sizes that has any, small ones first."""
        found: dict[str, list[int]] = {}
        for place in sorted(range(len(self.queries)), key=lambda one: len(self.queries[one].gold)):
            name = bucket_of(len(self.queries[place].gold), self.buckets)
            found.setdefault(name, []).append(place)
        return {name: sorted(places) for name, places in found.items()}


@dataclass(frozen=True, slots=True)
class QueryScores:
    """All that is measured of a system on a query."""

    recall: Mapping[int, float]  # by cut-off
    recall_all: float  # of everything that was returned or observed
    recall_returned: float
    ndcg: float
    precision: float
    returned: int  # papers returned, which is how deep the ranking goes
    observed: int
    run: QueryRun
    problem: str = ""  # why the query counts 0, or empty

    @property
    def calls(self) -> tuple[Call, ...]:
        """What was done, nothing if that is not known."""
        return self.run.calls or ()

    @property
    def kept(self) -> tuple[str, ...]:
        """What a selector left standing, all that was returned if it does not say."""
        return self.run.ranked if self.run.kept is None else self.run.kept


_NO_RECALL: Mapping[int, float] = dict.fromkeys(CUTOFFS, 0.0)


def score_query(query: PaperQuery, run: QueryRun | None) -> QueryScores:
    """Measure a system on a query; None and a run with an error count 0."""
    if run is None or run.error:
        problem = MISSING if run is None else run.error
        found = QueryRun() if run is None else run
        n = len(found.observed)
        return QueryScores(_NO_RECALL, 0.0, 0.0, 0.0, 0.0, len(found.ranked), n, found, problem)
    seen = run.observed
    return QueryScores(
        recall={k: recall_of(run.ranked[:k], query.gold) for k in CUTOFFS},
        recall_all=recall_of(seen, query.gold),
        recall_returned=recall_of(run.ranked, query.gold),
        ndcg=ndcg(run.ranked, query.gold),
        precision=precision(run.ranked, query.gold),
        returned=len(run.ranked),
        observed=len(seen),
        run=run,
    )


@dataclass(frozen=True)
class SystemScores:
    """A system on all queries, in their order."""

    name: str
    scores: tuple[QueryScores, ...]
    strangers: tuple[str, ...] = ()  # queries of its run that nobody asked for

    @classmethod
    def of(cls, name: str, run: Run, bench: PaperBench) -> "SystemScores":
        """Measure a run; `InputError` if it has none of the queries."""
        known = {one.id for one in bench.queries}
        if not known & run.keys():
            raise InputError(f"run {name!r} has none of the {len(known)} queries")
        scores = tuple(score_query(one, run.get(one.id)) for one in bench.queries)
        return cls(name, scores, tuple(one for one in run if one not in known))

    def column(self, take: Callable[[QueryScores], float | None]) -> Values:
        """Return a number a query; a query without one does not count."""
        found = [take(one) for one in self.scores]
        weights = [0.0 if one is None else 1.0 for one in found]
        return Values.of([one or 0.0 for one in found], weights)

    @property
    def values(self) -> dict[str, Values]:
        """The columns of the main table, by `MEASURES`."""
        rows = [
            (*one.recall.values(), one.recall_all, one.ndcg, one.precision) for one in self.scores
        ]
        return dict(zip(MEASURES, map(Values.of, zip(*rows, strict=True)), strict=True))


def recalls_by_intent(
    bench: PaperBench, systems: Sequence[SystemScores]
) -> Iterator[tuple[str, str, list[float]]]:
    """Yield intent, system and the recall of all it saw, a number a query; all intents last."""
    intents = bench.intents
    groups = {**intents, "all": [*range(len(bench.queries))]} if len(intents) > 1 else intents
    for intent, places in groups.items():
        for system in systems:
            yield intent, system.name, [system.scores[place].recall_all for place in places]


def find_zero_recall(bench: PaperBench, systems: Sequence[SystemScores]) -> list[int]:
    """Return the places of the queries of which no system has seen an answer."""
    return [
        place
        for place in range(len(bench.queries))
        if not any(one.scores[place].recall_all for one in systems)
    ]


def limit_scores(bench: PaperBench, system: SystemScores) -> dict[int, LimitScores]:
    """Return how limits were kept, by the place of each query that names what breaks them."""
    nothing = LimitScores(0.0, 0.0, 0.0, 0.0, 0.0)
    return {
        place: nothing
        if one.problem
        else score_limits(one.run.ranked, one.kept, query.gold, query.violating)
        for place, (query, one) in enumerate(zip(bench.queries, system.scores, strict=True))
        if query.violating
    }
