"""The work of `deepera-lab judge train` and `judge reader`: data in, a folder of weights out."""

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.features import sigmoid
from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
from deepera_graph.judges.trained.scorer import (
    EvidenceScorer,
    PoolScores,
    SecondOpinion,
    choose_read,
    list_opinions,
)
from deepera_graph.lab.training.fitting.direction import read_labelled
from deepera_graph.lab.training.fitting.features import FeatureExtractor, open_extractor
from deepera_graph.lab.training.fitting.ranking import LEAF, find_operating_point
from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining
from deepera_graph.lab.training.fitting.scorer import build_scorer, fit_scorer, score_pool
from deepera_graph.lab.training.fitting.sentences import read_marked
from deepera_graph.lab.training.lessons.abstracts import read_abstracts
from deepera_graph.lab.training.lessons.augment import (
    VARIANTS,
    add_variants,
    draw_few,
    take_out_evidence,
)
from deepera_graph.lab.training.lessons.counterfactuals import teach_counterfactuals
from deepera_graph.lab.training.lessons.groups import (
    Group,
    know_directions,
    leave_out,
    teach_abstracts,
    teach_papers,
    teach_pools,
)
from deepera_graph.lab.training.lessons.pools import DataPlan, Pool, hash_question, select_trainable
from deepera_graph.lab.training.lessons.pretrain import measure_relevance, teach_relevance
from deepera_graph.lab.training.measure import (
    PoolScorer,
    assign_folds,
    mean_average_precision,
    score_pools,
    split_held_out,
)
from deepera_graph.lab.training.weights import (
    DONE,
    HEAD,
    TRAINED_ON,
    Log,
    copy_encoder,
    find_encoder,
    import_package,
    load_scorer,
    log_nothing,
    replace_weights,
    write_log,
    write_sums,
    write_trained_on,
)

LOG = "train.jsonl"
OURS = "plain"  # what the shipped weights are trained with
RECIPES: Mapping[str, tuple[str, ...]] = {
    OURS: (),
    **{f"with {name}": (name,) for name in VARIANTS},
    "with all variants": tuple(VARIANTS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan(DataPlan):
    """What to train on, and how; the same data, seed and machine give the same weights."""

    out: Path  # folder for the weights; it is made
    encoder: Path | None = None  # folder; that of the shipped weights if None
    validation: float | None = None  # share of groups that decides between recipes, (0, 1)


class TrainingOutcome(NamedTuple):
    """What came out of a training."""

    out: Path
    sets: Mapping[str, int]  # questions trained on, by set
    recipe: str  # variants of pools trained on, too
    found: Mapping[str, float]  # MAP@10 on the questions held out, in [0, 1], by recipe

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**self._asdict(), "out": str(self.out)}


def train_judge(plan: TrainingPlan, log: Log = log_nothing) -> TrainingOutcome:
    """Train a judge and write it into a folder that `EvidenceModel.load` reads.

    Beside the weights there are a log (``train.jsonl``) and a record of what was trained on. Until
    all is fitted, nothing is written but ``train.jsonl.part``; then the weights are put in place
    together (`replace_weights`): an interrupted training leaves older ones as they are. What the
    data cannot teach is taken from the judge whose encoder is used, if there is one.
    """
    import_package("lightgbm")
    source = plan.encoder or SHIPPED
    files = find_encoder(source)
    pools = select_trainable(plan.read_pools(to_train=True))
    held_out = plan.validation
    sides = None if held_out is None else split_held_out(pools, held_out, seed=plan.seed)
    base = load_scorer(source)
    plan.out.mkdir(parents=True, exist_ok=True)
    with (
        write_log(plan.out / LOG, log) as told,
        open_extractor(files, plan.keep, told) as extractor,
    ):
        sets = Counter(pool.set for pool in pools)
        told({"step": "data", "questions": sets, "passages": sum(len(p.passages) for p in pools)})
        marked = [one for path in plan.data for one in read_marked(path)]
        told({"step": "marked", "texts": len(marked)})
        learn = partial(
            fit_scorer, encoder=extractor, seed=plan.seed, log=told, base=base, marked=marked
        )
        recipe, found = (OURS, {}) if sides is None else _decide(*sides, learn, extractor, told)
        scorer = learn(add_variants(pools, kinds=RECIPES[recipe], seed=plan.seed))
        _check_splits(scorer, len(pools))
        told({"step": DONE, "recipe": recipe})
    with replace_weights(plan.out) as fresh:
        copy_encoder(source, fresh)
        scorer.save(fresh / HEAD)
        write_trained_on(fresh, pools, seed=plan.seed)
        write_sums(fresh)
    return TrainingOutcome(plan.out, sets, recipe, found)


def choose_recipe(
    candidates: Mapping[str, PoolScorer], validation: Sequence[Pool]
) -> tuple[str, dict[str, float]]:
    """Return the candidate with the highest MAP@10, of equals the first, and the MAP@10 of all."""
    if not candidates:
        raise SettingsError("there is no judge to choose from")
    found = {
        name: mean_average_precision(list(score_pools(validation, one)))
        for name, one in candidates.items()
    }
    return max(found, key=lambda name: found[name]), found


def _decide(
    train: Sequence[Pool],
    validation: Sequence[Pool],
    learn: Callable[[Sequence[Pool]], EvidenceScorer],
    extractor: FeatureExtractor,
    log: Log,
) -> tuple[str, Mapping[str, float]]:
    """Return the recipe whose judge ranks the questions held out best, and what all reach."""
    candidates: dict[str, PoolScorer] = {}
    for recipe, kinds in RECIPES.items():
        log({"step": "recipe", "recipe": recipe, "train": len(train), "held_out": len(validation)})
        candidates[recipe] = build_scorer(learn(add_variants(train, kinds=kinds)), extractor)
    chosen, found = choose_recipe(candidates, validation)
    log({"step": "chosen", "recipe": chosen, "MAP@10": found})
    return chosen, found


def _check_splits(scorer: EvidenceScorer, n_questions: int) -> None:
    """Raise `InputError` if the trees of a ranking are bare leaves, and so rank all alike."""
    rankers = (scorer.question, scorer.article, scorer.claim)
    singles = (scorer.question_alone, scorer.claim_alone)
    trees = [*(one.order for one in rankers), *(one.trees for one in singles)]
    if not all(one.depth for one in trees):
        raise InputError(
            f"too little to learn from: over {n_questions} questions no measure tells golden "
            f"passages from others often enough (a leaf of a tree needs {LEAF} passages)"
        )


ScorePool = Callable[[Pool], PoolScores]
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

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**self._asdict(), "out": str(self.out)}


def train_reader(plan: ReaderTrainingPlan, log: Log = log_nothing) -> ReaderOutcome:
    """Train a reader, and write the judge with it into a folder that `EvidenceModel.load` reads.

    An `InputError` says that the folder of weights holds no trained judge, or that there is nothing
    to learn from; a `SettingsError` that a package is missing.
    """
    source = plan.weights or SHIPPED
    judge = load_scorer(source)
    if judge is None:
        raise InputError(f"{str(source)!r} holds no trained judge to add a reader to")
    pools = select_trainable(plan.read_pools(to_train=True))
    folds = assign_folds(pools, n_folds=N_FOLDS, seed=plan.seed)
    taught = [pool for pool, fold in zip(pools, folds, strict=True) if fold]
    held_out = [pool for pool, fold in zip(pools, folds, strict=True) if not fold]
    log({"step": "data", "taught": len(taught), "held out": len(held_out)})
    groups = list_lessons(plan, taught, {hash_question(pool.question) for pool in held_out})
    training = ReaderTraining(plan.reader, log)
    if plan.relevance is not None:
        public = teach_relevance(plan.relevance, Random(plan.seed))
        training.learn(public, epochs=1.0, rate=plan.reader.rate, in_order=True)
        reached = measure_relevance(plan.relevance, training.read)
        log({"step": "relevance", "groups": len(public), **reached._asdict()})
    elif (plan.data[0] / "papers").is_dir():
        weak = list(teach_papers(plan.data[0], PAPERS, Random(plan.seed)))
        training.learn(weak, epochs=WEAK_EPOCHS, rate=WEAK_RATE)
    embed = EvidenceModel.load(source).embed
    exchanged = list(teach_counterfactuals(groups, embed, Random(plan.seed)))
    log({"step": "lessons", "groups": len(groups), "counterfactual": len(exchanged)})
    training.learn([*groups, *exchanged], epochs=plan.reader.epochs, rate=plan.reader.rate)
    with open_extractor(find_encoder(source), plan.keep, log) as extractor:
        known = fit_scorer(taught, extractor, seed=plan.seed, log=log)
        score = partial(score_pool, known, extractor)
        opinion, point = weigh_reader(held_out, score, training, plan.seed)
    with replace_weights(plan.out) as fresh:
        copy_encoder(source, fresh)
        training.export(fresh / READER)
        replace(judge, opinion=opinion, operating_point=point).save(fresh / HEAD)
        if (source / TRAINED_ON).is_file():
            shutil.copyfile(source / TRAINED_ON, fresh / TRAINED_ON)
        write_sums(fresh)
    return ReaderOutcome(plan.out, len(groups), len(held_out), tuple(opinion.weights))


def list_lessons(
    plan: ReaderTrainingPlan, pools: Sequence[Pool], held_out: set[str]
) -> list[Group]:
    """Return all that is taught: pools, labelled abstracts, marked sentences of claims and titles.

    Whoever held out a question has held out the abstract that it is the title of, too.
    """
    chance, folder = Random(plan.seed), plan.data[0]
    known = know_directions(read_labelled(folder)) if (folder / "pubmedqa_dev").exists() else {}
    asked = [one for path in plan.abstracts for one in read_abstracts(path, folder)]
    asked = [one for one in asked if hash_question(one.title) not in held_out]
    marked = list(chain.from_iterable(map(partial(read_marked, claims="train"), plan.data)))
    together = [pool for pool in pools if not pool.set.startswith("scifact")]
    groups = [*teach_pools(together, known, chance), *teach_abstracts(asked, chance)]
    return leave_out([*groups, *teach_abstracts(marked, chance)], held_out)


def weigh_reader(
    held_out: Sequence[Pool], trees: ScorePool, training: ReaderTraining, seed: int = 0
) -> tuple[SecondOpinion, float]:
    """Find what trees and reader weigh, on questions neither knows, and the operating point.

    Half of what is weighed is pools that their evidence was taken out of, with nothing in its
    place; a draw of few passages of each pool is weighed beside it, which the operating point does
    not go by. Only questions over passages of several papers are read.
    """
    whole = [*held_out, *take_out_evidence(held_out)]
    few = list(draw_few(whole, seed))
    rows: list[Any] = []
    used: list[Pool] = []
    n_whole = 0
    for place, pool in enumerate([*whole, *few]):
        found = trees(pool)
        if not found.may_be_read:
            continue
        read = np.full(len(found.evidence), np.nan)
        places = choose_read(found.evidence)
        read[places] = training.read([(pool.question, pool.passages[n].text) for n in places])
        rows.append(list_opinions(found.evidence, read))
        used.append(pool)
        n_whole += place < len(whole)
    if not n_whole:
        raise InputError("no question that is held out has passages of several papers")
    labels = [np.array(pool.labels) for pool in used]
    weights = [
        np.full(len(its), 1.0 if place < n_whole else FEW_WEIGHT)
        for place, its in enumerate(labels)
    ]
    fitted = fit_logistic(*map(np.concatenate, (rows, labels, weights)), C=10.0)
    opinion = SecondOpinion(fitted.weights.tolist(), fitted.intercept)
    point = find_operating_point(
        [pool.set for pool in used[:n_whole]],
        labels[:n_whole],
        [sigmoid(row @ fitted.weights + fitted.intercept) for row in rows[:n_whole]],
    )
    return opinion, point
