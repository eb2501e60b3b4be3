"""Ensembles of runs: nomination, weighted sums of scores, and the search for the weights.

Wherever documents tie, the first run decides, then the second, and so on. A question has *n*
documents, 10 by default, wherever the runs together have as many.

Source:
    The system of BioASQ 13b that this follows: six documents of the best cross-encoder and four of
    the best language model (nomination), and a weighted combination whose best weights on
    validation data were 1 to 7. What is summed there is not told, and a listwise ranking has no
    scores: see `rank_scores_of`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bioasq.questions import BioasqQuestion, read_pmid
from deepera_graph.bioasq.runs import Ranking, Run, ScoredDocument, rank_scores
from deepera_graph.bioasq.settings import FIRST, MAX_DOCUMENTS, SECOND, check_nominated
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.fusion import CORMACK_K, fuse
from deepera_graph.settings.ranges import check_at_least, check_choice

Doubles = NDArray[np.float64]
How = Literal["rank", "reciprocal", "min-max"]
GRID = tuple(range(11))
_DECIMALS = 9  # of a sum: 7 * 0.1 is to tie with 1 * 0.7


def nominate(
    first: Run,  # the run whose documents come first
    second: Run,  # the run that the others are of
    *,
    n_first: int = FIRST,  # documents that the first nominates, >= 0
    n_second: int = SECOND,  # documents that the second nominates, >= 0
    # documents of a question, wherever both runs together have as many; what is above the nominated
    # ones is filled from the second, then from the first. None is the nominated ones alone.
    n: int | None = None,
) -> dict[str, list[ScoredDocument]]:
    """Take the best of one run, then those of another that are not among them."""
    # Where the second has too few, more of the first follow; where the first has too few, more of
    # the second. A question that only one run has gets that run's documents. A score is that of the
    # place, from 1 down.
    # Raises `SettingsError` if *n_first* or *n_second* is below 0, or both are 0, or more than *n*.
    n = n_first + n_second if n is None else n
    check_nominated(n_first, n_second, n)
    made = {}
    for name in _all_names([first, second]):
        one, other = _pmids(first.get(name, ())), _pmids(second.get(name, ()))
        chosen = dict.fromkeys([*one[:n_first], *other, *one])
        made[name] = rank_places([*chosen][:n])
    return made


def weigh(
    runs: Sequence[Run],  # at least one; the first decides ties
    weights: Sequence[float],  # one a run, each finite and >= 0
    *,
    # what is summed: `rank_scores_of`, `reciprocal_scores_of` or `min_max_scores_of`
    how: How = "rank",
    n: int = MAX_DOCUMENTS,  # most documents of a question, >= 1
) -> dict[str, list[ScoredDocument]]:
    """Sum the weighted scores of documents over runs, and return the best *n*."""
    # Raises `SettingsError` if a number is out of range, or there is not one weight a run.
    check_at_least("n", n, 1)
    score = _find_scores(how)
    _check_weights(runs, weights)
    made = {}
    for name in _all_names(runs):
        total: dict[str, float] = {}
        for run, weight in zip(runs, weights, strict=True):
            for pmid, value in score(run.get(name, ())).items():
                total[pmid] = total.get(pmid, 0.0) + weight * value
        total = {pmid: round(value, _DECIMALS) for pmid, value in total.items()}
        made[name] = rank_scores(total)[:n]  # equal ones in the order of the runs
    return made


def rank_scores_of(ranking: Ranking, *, n: int = MAX_DOCUMENTS) -> dict[str, float]:
    """Return (n + 1 - rank) / n for the best *n*, and 0 for the others, in the order of the run."""
    # So the score is 1 for the first and 1 / n for the last that counts, and a ranking without
    # scores can be weighed. It is what makes the weights 1 to 7 of the paper mean something, as
    # both runs are then on one scale.
    return {pmid: max(0, n - place) / n for place, pmid in enumerate(_pmids(ranking))}


def reciprocal_scores_of(ranking: Ranking, *, k: int = CORMACK_K) -> dict[str, float]:
    """Return 1 / (k + rank) of each document."""
    # Source: Cormack, Clarke and Buettcher (2009), Reciprocal Rank Fusion outperforms Condorcet and
    # individual rank learning methods, section 2.
    return fuse([_pmids(ranking)], k=k)


def min_max_scores_of(ranking: Ranking) -> dict[str, float]:
    """Return the scores of a ranking, its lowest as 0 and its highest as 1; equal ones as 1."""
    # Source: Fox and Shaw (1994), Combination of multiple searches (CombSUM), with the
    # normalisation of Lee (1997), Analyses of multiple evidence combination, section 3.
    values = [one.score for one in ranking]
    low, spread = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
    found: dict[str, float] = {}
    for one in ranking:
        found.setdefault(one.pmid, (one.score - low) / spread if spread else 1.0)
    return found


_SCORES: Mapping[How, Callable[[Ranking], dict[str, float]]] = {
    "rank": rank_scores_of,
    "reciprocal": reciprocal_scores_of,
    "min-max": min_max_scores_of,
}
HOW: tuple[How, ...] = tuple(_SCORES)


class Tried(NamedTuple):
    """A pair of weights, and what it reaches."""

    weights: tuple[float, float]
    map: float  # mean average precision of the first 10, in [0, 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightSearch:
    """What a search for weights found."""

    # the pair with the highest MAP; of equal ones the one that trusts the first run most, and of
    # these the one with the smallest sum
    best: Tried
    tried: tuple[Tried, ...]  # every pair of the grid, in its order
    n_questions: int  # questions with golden documents, over which the mean is taken
    how: How  # what was summed


def search_weights(
    first: Run,  # decides ties
    second: Run,  # the other
    # questions with their documents: of validation, never those that are reported on
    golden: Sequence[BioasqQuestion],
    *,
    grid: Sequence[float] = GRID,  # weights tried for each run, all finite and >= 0
    how: How = "rank",  # as for `weigh`
) -> WeightSearch:
    """Find the weights of two runs that are best for golden questions, by MAP of 10 documents."""
    # The average precision is BioASQ's: it is divided by the number of golden documents, at most
    # 10. A golden question that no run has counts as 0.
    pairs = [(float(one), float(other)) for one, other in product(grid, repeat=2)]
    if not pairs:
        raise SettingsError("the grid of weights is empty")
    for pair in pairs:
        _check_weights([first, second], pair)
    wanted = {one.id: {*map(read_pmid, one.documents)} for one in golden if one.documents}
    if not wanted:
        raise InputError("no golden question has documents, so there is nothing to measure by")
    if not wanted.keys() & (first.keys() | second.keys()):
        raise InputError(f"no run has any of the {len(wanted)} golden questions")
    both = np.array(pairs).T  # (2, n_pairs)
    total = np.zeros(len(pairs))
    for name, pmids in wanted.items():
        total += _precisions([first.get(name, ()), second.get(name, ())], both, pmids, how)
    found = total / len(wanted)
    tried = tuple(Tried(pair, float(value)) for pair, value in zip(pairs, found, strict=True))
    best = max(
        tried, key=lambda one: (round(one.map, 12), share_of_first(one.weights), -sum(one.weights))
    )
    return WeightSearch(best=best, tried=tried, n_questions=len(wanted), how=how)


def _precisions(
    rankings: Sequence[Ranking], weights: Doubles, golden: set[str], how: How
) -> Doubles:
    """Return the average precision of one question for each pair of weights, shape (n_pairs,)."""
    scores = [_find_scores(how)(one) for one in rankings]
    pmids = list(dict.fromkeys(pmid for one in scores for pmid in one))
    if not pmids:
        return np.zeros(weights.shape[1])
    values = np.array([[one.get(pmid, 0.0) for pmid in pmids] for one in scores])  # (2, n)
    sums = np.round(weights[:1].T * values[:1] + weights[1:].T * values[1:], _DECIMALS)
    order = np.argsort(-sums, axis=1, kind="stable")[:, :MAX_DOCUMENTS]
    hits = np.array([read_pmid(pmid) in golden for pmid in pmids], np.float64)[order]
    ranks = np.arange(1, order.shape[1] + 1)
    precision = (hits * hits.cumsum(axis=1) / ranks).sum(axis=1)
    return np.asarray(precision / min(len(golden), MAX_DOCUMENTS), np.float64)


def share_of_first(weights: tuple[float, float]) -> float:
    """Return the share of the first run; of two weights of 0, which rank nothing, -1."""
    total = sum(weights)
    return weights[0] / total if total else -1.0


def _find_scores(how: How) -> Callable[[Ranking], dict[str, float]]:
    check_choice("how", how, HOW)
    return _SCORES[how]


def _check_weights(runs: Sequence[Run], weights: Sequence[float]) -> None:
    if len(runs) != len(weights) or not runs:
        raise SettingsError(f"a weight a run is needed: {len(weights)} for {len(runs)}")
    wrong = [one for one in weights if not (np.isfinite(one) and one >= 0)]
    if wrong:
        raise SettingsError(f"weights must be finite and >= 0, got {wrong[0]!r}")


def _all_names(runs: Sequence[Run]) -> list[str]:
    return list(dict.fromkeys(name for run in runs for name in run))


def _pmids(ranking: Ranking) -> list[str]:
    return list(dict.fromkeys(one.pmid for one in ranking))


def rank_places(pmids: Sequence[str]) -> list[ScoredDocument]:
    """Return documents in this order, with scores from 1 down to 1 / n."""
    n = len(pmids)
    return [ScoredDocument(pmid, (n - place) / n) for place, pmid in enumerate(pmids)]
