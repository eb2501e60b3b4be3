"""Weighs trees and reader beside each other, on questions that neither knows."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.reading.vectors import sigmoid
from deepera_graph.judges.trained.scorer import (
    PoolScores,
    SecondOpinion,
    choose_read,
    list_opinions,
)
from deepera_graph.lab.training.fitting.features import assign_split
from deepera_graph.lab.training.fitting.ranking import find_operating_point
from deepera_graph.lab.training.fitting.reader import ReadPairs
from deepera_graph.lab.training.lessons.augment import draw_few, take_out_evidence
from deepera_graph.lab.training.lessons.pools import Pool, hash_question

ScorePool = Callable[[Pool], PoolScores]
Floats = NDArray[np.float64]
THRESHOLDS: Final = (0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8)
FEW_WEIGHT = 0.5  # of a pool of few passages beside the whole ones, in what trees and reader weigh


class JudgedPool(NamedTuple):
    """A pool held out that is read, and the trees' log odds of evidence, shape (n,)."""

    pool: Pool
    evidence: Floats
    is_whole: bool  # not a draw of few passages of it


class Weighed(NamedTuple):
    """What trees and reader weigh beside each other."""

    opinion: SecondOpinion
    point: float  # the operating point, see `find_operating_point`
    figures: Mapping[str, Any]  # of the questions held out, see `describe_held_out`

    @property
    def mean_map(self) -> float:
        """The mean MAP of the sets held out, in [0, 100]."""
        return round(float(np.mean([one["MAP"] for one in self.figures["sets"].values()])), 2)


def judge_held_out(held_out: Sequence[Pool], trees: ScorePool, seed: int = 0) -> list[JudgedPool]:
    """Let trees judge what is weighed: only questions over passages of several papers are read.

    Half of it is pools that their evidence was taken out of, with nothing in its place; a draw of
    few passages of each pool stands beside it. An `InputError` says that nothing is read.
    """
    whole = [*held_out, *take_out_evidence(held_out)]
    judged: list[JudgedPool] = []
    for place, pool in enumerate([*whole, *draw_few(whole, seed)]):
        scores = trees(pool)
        if scores.may_be_read:
            judged.append(JudgedPool(pool, scores.evidence, place < len(whole)))
    if not any(one.is_whole for one in judged):
        raise InputError("no question that is held out has passages of several papers")
    return judged


def weigh_reader(judged: Sequence[JudgedPool], read: ReadPairs) -> Weighed:
    """Find what trees and reader weigh, on questions neither knows, and how good both are.

    The operating point and the figures do not go by draws of few passages.
    """
    rows: list[Any] = []
    known: dict[tuple[str, str], float] = {}  # pools without their evidence hold the same passages
    for pool, evidence, _ in judged:
        found = np.full(len(evidence), np.nan)
        places = choose_read(evidence)
        chosen = [pool.passages[place] for place in places]
        pairs = [(pool.question, one.read_text) for one in chosen]
        new = [one for one in dict.fromkeys(pairs) if one not in known]
        known.update(zip(new, read(new) if new else (), strict=True))
        found[places] = [known[one] for one in pairs]
        rows.append(list_opinions(evidence, found))
    used = [one.pool for one in judged]
    n_whole = sum(one.is_whole for one in judged)  # they come first
    labels = [np.array(pool.labels) for pool in used]
    weights = [np.full(len(one.evidence), 1.0 if one.is_whole else FEW_WEIGHT) for one in judged]
    fitted = fit_logistic(*map(np.concatenate, (rows, labels, weights)), C=10.0)
    opinion = SecondOpinion(fitted.weights.tolist(), fitted.intercept)
    point = find_operating_point(
        [pool.set for pool in used[:n_whole]],
        labels[:n_whole],
        [sigmoid(row @ fitted.weights + fitted.intercept) for row in rows[:n_whole]],
    )
    scores = score_halves(used, rows, labels, weights)[:n_whole]
    return Weighed(opinion, point, describe_held_out(used[:n_whole], scores, point))


def score_halves(
    pools: Sequence[Pool],
    rows: Sequence[Floats],  # what is weighed, of each passage of a pool, shape (n, k)
    labels: Sequence[Floats],
    weights: Sequence[Floats],
) -> list[Floats]:
    """Return the probabilities of each pool by what was fitted on the other half of the groups."""
    halves = [assign_split(pool) % 2 for pool in pools]
    fitted = {}
    for half in (0, 1):
        others = [place for place, its in enumerate(halves) if its != half]
        if not len({bool(one) for place in others for one in labels[place]}) > 1:
            others = list(range(len(pools)))
        fitted[half] = fit_logistic(
            *(np.concatenate([some[n] for n in others]) for some in (rows, labels, weights)),
            C=10.0,
        )
    return [
        np.asarray(sigmoid(row @ fitted[half].weights + fitted[half].intercept), np.float64)
        for row, half in zip(rows, halves, strict=True)
    ]


def describe_held_out(
    pools: Sequence[Pool], scores: Sequence[Floats], operating_point: float
) -> dict[str, Any]:
    """Return the figures of each set as JSON values.

    Pools without evidence, which are those of a set that it was taken out of, tell in how many
    something is kept. `thresholds` has precision, recall and the share of pools nothing is kept of;
    `held_out` has the hashes of the questions.
    """
    sets: dict[str, list[tuple[NDArray[np.bool_], Floats]]] = defaultdict(list)
    for pool, found in zip(pools, scores, strict=True):
        sets[pool.set].append((np.array(pool.labels, np.bool_), found))
    told = {name: _describe_set(its, operating_point) for name, its in sets.items()}
    names = sorted({hash_question(pool.question) for pool in pools})
    return {"operating_point": operating_point, "sets": told, "held_out": names}


def format_held_out(figures: Mapping[str, Any]) -> str:
    """Return what `describe_held_out` gave as JSON: a threshold a line, and six hashes."""
    text = _NUMBERS.sub(lambda its: " ".join(its[0].split()), json.dumps(figures, indent=1))
    head, mark, hashes = text.partition('"held_out": [')
    rows = _SIX.findall(hashes)
    return "\n  ".join([head + mark, *map(" ".join, map(str.split, rows))]) + "\n ]\n}\n"


_NUMBERS = re.compile(r"(?<=\[)\s+(?:(?:[\d.]+|null),?\s+)+(?=\])")
_SIX = re.compile(r'(?:"\w+",?\s+){1,6}')


def _describe_set(
    judged: Sequence[tuple[NDArray[np.bool_], Floats]], point: float
) -> dict[str, Any]:
    asked = [one for one in judged if one[0].any()]
    without = [found for golden, found in judged if not golden.any()]
    ranked = [golden[np.argsort(-found, kind="stable")] for golden, found in asked]
    first = np.array([int(its.argmax()) for its in ranked])
    kept = _describe_kept(asked, point)
    return {
        "questions": len(asked),
        "MAP": _percent([_average_precision(its) for its in ranked]),
        "HitRate@1": _percent(first < 1),
        "HitRate@3": _percent(first < 3),
        "MRR": _percent(1 / (1 + first)),
        **dict(zip(("precision", "recall", "empty"), kept, strict=True)),
        "kept without": _percent([bool((found >= point).any()) for found in without], None),
        "thresholds": {
            str(one): _describe_kept(asked, one) for one in sorted({*THRESHOLDS, point})
        },
    }


def _describe_kept(
    asked: Sequence[tuple[NDArray[np.bool_], Floats]], point: float
) -> list[float | None]:
    """Return precision, recall, and the share of pools of which nothing is kept."""
    kept = [found >= point for _, found in asked]
    right = sum(int((golden & its).sum()) for (golden, _), its in zip(asked, kept, strict=True))
    n_kept = sum(int(its.sum()) for its in kept)
    return [
        _percent([right / n_kept] if n_kept else [], None),
        _percent([right / sum(int(golden.sum()) for golden, _ in asked)] if asked else [], None),
        _percent([not its.any() for its in kept], None),
    ]


def _average_precision(golden: NDArray[np.bool_]) -> float:
    """Return the mean precision at the ranks of the golden passages, in (0, 1]."""
    places = np.flatnonzero(golden)
    return float(np.mean(np.arange(1, len(places) + 1) / (places + 1)))


def _percent(shares: Any, digits: int | None = 1) -> float | None:
    """Return their mean, a whole number unless *digits* is given; None without any."""
    found = np.asarray(shares, np.float64)
    return round(100 * float(found.mean()), digits) if found.size else None
