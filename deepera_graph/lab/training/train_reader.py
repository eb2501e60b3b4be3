"""The work of `deepera-lab judge reader`: adds a reader to a trained judge.

One fold of the questions is held out: the one that `held_out.json` of the judge names, so that a
reader that is trained further is never measured on what it was taught before; by chance where it
names none. On the others the reader is trained, and the judge's trees are fitted anew; on the fold
held out, which neither knows, is found what each of the two weighs, and how good both are, which
`held_out.json` tells; the pages that show figures are held to it. The judge whose weights are
written keeps its own trees.
"""

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.features import join_title
from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
from deepera_graph.judges.trained.reading.vectors import sigmoid
from deepera_graph.judges.trained.scorer import (
    PoolScores,
    SecondOpinion,
    choose_read,
    list_opinions,
)
from deepera_graph.lab.training.fitting.direction import read_labelled
from deepera_graph.lab.training.fitting.features import assign_split, open_extractor
from deepera_graph.lab.training.fitting.ranking import find_operating_point
from deepera_graph.lab.training.fitting.reader import (
    ReaderPlan,
    ReaderTraining,
    ReadPairs,
    open_reader,
)
from deepera_graph.lab.training.fitting.scorer import fit_scorer, score_pool
from deepera_graph.lab.training.fitting.sentences import read_marked
from deepera_graph.lab.training.lessons.abstracts import name_group, pool_abstracts
from deepera_graph.lab.training.lessons.augment import draw_few, take_out_evidence
from deepera_graph.lab.training.lessons.counterfactuals import teach_counterfactuals
from deepera_graph.lab.training.lessons.groups import (
    Group,
    know_directions,
    leave_out,
    read_abstracts,
    teach_abstracts,
    teach_papers,
    teach_pools,
)
from deepera_graph.lab.training.lessons.pools import DataPlan, Pool, hash_question, select_trainable
from deepera_graph.lab.training.lessons.pretrain import measure_relevance, teach_relevance
from deepera_graph.lab.training.measure import assign_folds
from deepera_graph.lab.training.weights import (
    DONE,
    HEAD,
    TRAINED_ON,
    Log,
    copy_encoder,
    find_encoder,
    load_scorer,
    log_nothing,
    replace_weights,
    write_log,
    write_sums,
)

ScorePool = Callable[[Pool], PoolScores]
Floats = NDArray[np.float64]
HELD_OUT: Final = "held_out.json"
LOG: Final = "reader.jsonl"
THRESHOLDS: Final = (0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8)
N_FOLDS = 4  # one of which is held out
FEW_WEIGHT = 0.5  # of a pool of few passages beside the whole ones, in what trees and reader weigh
PAPERS = 16_000  # whose titles teach before any label does
WEAK_EPOCHS, WEAK_RATE = 1.0, 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainingPlan(DataPlan):
    """What the reader learns from, and what judge it is added to."""

    out: Path  # folder for the weights; it is made
    weights: Path | None = None  # folder of a trained judge; the shipped one if None
    abstracts: tuple[Path, ...] = ()  # labels on abstracts that the first path of *data* holds
    relevance: Path | None = None  # folder of public pairs, see `teach_relevance`
    reader: ReaderPlan = field(default_factory=ReaderPlan)


class ReaderOutcome(NamedTuple):
    """What came out of it."""

    out: Path
    n_questions: int  # taught
    n_held_out: int  # questions by which it is weighed
    weights: tuple[float, ...]  # of trees and reader, see `list_opinions`
    map: float  # with the reader, the mean MAP of the sets held out, in [0, 100]
    map_before: float | None  # the same with the reader that it goes on from

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**self._asdict(), "out": str(self.out)}


def train_reader(plan: ReaderTrainingPlan, log: Log = log_nothing) -> ReaderOutcome:
    """Train a reader, and write the judge with it into a folder that `EvidenceModel.load` reads.

    Beside the weights there is a log (``reader.jsonl``, until the end ``reader.jsonl.part``). An
    `InputError` says that the folder of weights holds no trained judge, or that there is nothing to
    learn from; a `SettingsError` that a package is missing.
    """
    with TemporaryDirectory() as scratch:
        return _train_reader(plan, Path(scratch, READER), log)


def _train_reader(plan: ReaderTrainingPlan, target: Path, log: Log) -> ReaderOutcome:
    source = plan.weights or SHIPPED
    judge = load_scorer(source)
    if judge is None:
        raise InputError(f"{str(source)!r} holds no trained judge to add a reader to")
    asked = pool_abstracts(plan.abstracts, plan.data[0])
    pools = select_trainable([*plan.read_pools(to_train=True), *asked])
    taught, held_out = hold_out(pools, read_held_out(source), plan.seed)
    plan.out.mkdir(parents=True, exist_ok=True)
    start, files = plan.reader.start, find_encoder(source)
    with write_log(plan.out / LOG, log) as told:
        told({"step": "data", "taught": len(taught), "held out": len(held_out)})
        groups: list[Group] = []
        if plan.reader.epochs:
            unseen = {hash_question(one.question) for one in held_out}
            groups = list_lessons(plan, taught, unseen | {one.group for one in held_out})
        trained = target
        if start is not None and not plan.reader.epochs:
            trained = start
        else:
            training = ReaderTraining(plan.reader, told)
            if plan.reader.epochs:
                _teach(plan, training, groups, told)
            training.export(target)
        read = open_reader(trained, files)
        with open_extractor(files, plan.keep, told) as extractor:
            known = fit_scorer(taught, extractor, seed=plan.seed, log=told)
            judged = judge_held_out(held_out, partial(score_pool, known, extractor), plan.seed)
        weighed = weigh_reader(judged, read)
        before = None
        if groups and start is not None:
            before = weigh_reader(judged, open_reader(start, files)).mean_map
        told({"step": DONE, "MAP": weighed.mean_map, "MAP before": before})
    with replace_weights(plan.out) as fresh:
        copy_encoder(source, fresh)
        shutil.copyfile(trained, fresh / READER)
        opinion = weighed.opinion
        replace(judge, opinion=opinion, operating_point=weighed.point).save(fresh / HEAD)
        figures = json.dumps(weighed.figures, indent=1) + "\n"
        (fresh / HELD_OUT).write_text(figures, encoding="utf-8", newline="\n")
        if (source / TRAINED_ON).is_file():
            shutil.copyfile(source / TRAINED_ON, fresh / TRAINED_ON)
        write_sums(fresh)
    sizes = len(groups), len(held_out)
    return ReaderOutcome(plan.out, *sizes, tuple(opinion.weights), weighed.mean_map, before)


def _teach(
    plan: ReaderTrainingPlan, training: ReaderTraining, groups: Sequence[Group], log: Log
) -> None:
    prepare_reader(plan, training, log)
    embed = EvidenceModel.load(plan.weights or SHIPPED).embed
    exchanged = list(teach_counterfactuals(groups, embed, Random(plan.seed)))
    log({"step": "lessons", "groups": len(groups), "counterfactual": len(exchanged)})
    training.learn([*groups, *exchanged], epochs=plan.reader.epochs, rate=plan.reader.rate)


def prepare_reader(plan: ReaderTrainingPlan, training: ReaderTraining, log: Log) -> None:
    """Teach by public pairs if there are any; else by titles what has only seen the base."""
    if plan.relevance is not None:
        public = teach_relevance(plan.relevance, Random(plan.seed))
        training.learn(public, epochs=1.0, rate=plan.reader.rate, in_order=True)
        reached = measure_relevance(plan.relevance, training.read)
        log({"step": "relevance", "groups": len(public), **reached._asdict()})
    elif plan.reader.start is None and (plan.data[0] / "papers").is_dir():
        weak = list(teach_papers(plan.data[0], PAPERS, Random(plan.seed)))
        training.learn(weak, epochs=WEAK_EPOCHS, rate=WEAK_RATE)


def read_held_out(folder: Path) -> frozenset[str]:
    """Return the hashes of the questions that the reader of a folder was not taught, if told."""
    path = folder / HELD_OUT
    if not path.is_file():
        return frozenset()
    try:
        return frozenset(json.loads(path.read_text(encoding="utf-8")).get("held_out", ()))
    except (ValueError, AttributeError, TypeError) as error:
        raise SettingsError(f"{str(path)!r} is no record of what was held out") from error


def hold_out(
    pools: Sequence[Pool], known: frozenset[str], seed: int = 0
) -> tuple[list[Pool], list[Pool]]:
    """Return the pools to teach, and those held out: the groups of *known*, or a fold by chance.

    Pools of sets without a known question are dealt by chance, too.
    """
    folds = assign_folds(pools, n_folds=N_FOLDS, seed=seed)
    named = [hash_question(pool.question) in known for pool in pools]
    groups = {pool.group for pool, is_known in zip(pools, named, strict=True) if is_known}
    told = {pool.set for pool, is_known in zip(pools, named, strict=True) if is_known}
    taught: list[Pool] = []
    held_out: list[Pool] = []
    for pool, fold in zip(pools, folds, strict=True):
        is_out = pool.group in groups or (pool.set not in told and not fold)
        (held_out if is_out else taught).append(pool)
    if not (taught and held_out):
        raise InputError(f"of {len(pools)} questions {len(held_out)} would be held out")
    return taught, held_out


def list_lessons(
    plan: ReaderTrainingPlan, pools: Sequence[Pool], held_out: set[str]
) -> list[Group]:
    """Return all that is taught: pools, labelled abstracts, marked sentences of claims and titles.

    *held_out* has hashes of questions and names of groups. Whoever held out a question has held out
    the abstract that it is the title of, or that it is on, too.
    """
    chance, folder = Random(plan.seed), plan.data[0]
    known = know_directions(read_labelled(folder)) if (folder / "pubmedqa_dev").exists() else {}
    asked = [one for path in plan.abstracts for one in read_abstracts(path, folder)]
    asked = [
        one for one in asked if held_out.isdisjoint((hash_question(one.title), name_group(one)))
    ]
    marked = list(chain.from_iterable(map(partial(read_marked, claims="train"), plan.data)))
    together = [pool for pool in pools if not pool.set.startswith("scifact")]
    groups = [*teach_pools(together, known, chance), *teach_abstracts(asked, chance)]
    return leave_out([*groups, *teach_abstracts(marked, chance)], held_out)


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
        pairs = [(pool.question, join_title(one.title, one.text)) for one in chosen]
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
