"""The work of `deepera judge train`: data in, a folder of weights out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.model import SHIPPED
from deepera_graph.judges.trained.scorer import EvidenceScorer
from deepera_graph.training.ablate import save_figures, training_figures
from deepera_graph.training.augment import VARIANTS, add_variants
from deepera_graph.training.curves import LEARNING_CURVE, learning_curve
from deepera_graph.training.data import N_NEGATIVES, Pool, read_pools
from deepera_graph.training.evaluate import (
    PoolScorer,
    mean_average_precision,
    score_pools,
    split_held_out,
)
from deepera_graph.training.features import FeatureExtractor, open_extractor
from deepera_graph.training.fit import build_learner, build_scorer, fit_scorer
from deepera_graph.training.fit_ranking import LEAF
from deepera_graph.training.log import DONE, Log, log_nothing, needed, write_log
from deepera_graph.training.weights import (
    HEAD,
    copy_encoder,
    encoder_files,
    load_scorer,
    load_unexposed,
    replace_weights,
    write_sums,
    write_trained_on,
)


def choose_recipe(
    candidates: Mapping[str, PoolScorer], validation: Sequence[Pool]
) -> tuple[str, dict[str, float]]:
    """Return the name of the candidate with the highest MAP@10, and the MAP@10 of all.

    Of equals the first is kept.

    Args:
        candidates: By name, not empty.
        validation: Pools that none of them was trained on.

    Raises:
        SettingsError: There is no candidate.
        InputError: No question has a golden passage.
    """
    if not candidates:
        raise SettingsError("there is no judge to choose from")
    found = {
        name: mean_average_precision(list(score_pools(validation, one)))
        for name, one in candidates.items()
    }
    return max(found, key=lambda name: found[name]), found


LOG = "train.jsonl"
_FOLDS = 3  # of the learning curve: twelve fits, as much work as four trainings
OURS = "plain"  # what the shipped weights are trained with
RECIPES: Mapping[str, tuple[str, ...]] = {
    OURS: (),
    **{f"with {name}": (name,) for name in VARIANTS},
    "with all variants": tuple(VARIANTS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What to train on, and how.

    Attributes:
        data: See `read_pools`; not empty.
        out: Folder for the weights; it is made.
        encoder: Folder whose encoder and tokenizer are used; that of the shipped weights if None.
        sets: Only these sets of the data; None takes all.
        split: Judgements of a BEIR folder.
        n_candidates: Documents BM25 finds there for a query, >= 1.
        validation: Share of the groups of questions that decides between recipes, in (0, 1); None
            asks for no decision.
        seed: Of the fit; the same data, seed and machine give the same weights.
        keep: Where vectors are kept for the next time; None keeps none.
        learning_curve: Whether judges are fitted on parts of the questions, too, for a figure.
    """

    data: tuple[Path, ...]
    out: Path
    encoder: Path | None = None
    sets: tuple[str, ...] | None = None
    split: str = "train"
    n_candidates: int = N_NEGATIVES
    validation: float | None = None
    seed: int = 0
    keep: Path | None = None
    learning_curve: bool = False


class TrainingOutcome(NamedTuple):
    """What came out of a training.

    Attributes:
        out: The folder.
        sets: Questions trained on, by set.
        recipe: Variants of pools that were trained on, too.
        found: MAP@10 on the questions held out, in [0, 1], by recipe; empty if none were.
    """

    out: Path
    sets: Mapping[str, int]
    recipe: str
    found: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {**self._asdict(), "out": str(self.out)}


def train_judge(plan: TrainingPlan, log: Log = log_nothing) -> TrainingOutcome:
    """Train a judge and write it into a folder that `EvidenceModel.load` reads.

    Beside the weights there are a log (``train.jsonl``), its figures, and a record of what was
    trained on. Until all is fitted, nothing is written but ``train.jsonl.part``, and then the
    weights are put in place together (`replace_weights`): an interrupted training leaves older ones
    as they are. What the data cannot teach is taken from the judge whose encoder is used, if there
    is one.

    Raises:
        DatasetError: The data cannot be read.
        InputError: Nothing in it can be trained on.
        SettingsError: An option is wrong, a package is missing, or there is no encoder.
    """
    needed("lightgbm")
    source = plan.encoder or SHIPPED
    files = encoder_files(source)
    pools = select_trainable(
        read_pools(plan.data, split=plan.split, n_candidates=plan.n_candidates, sets=plan.sets)
    )
    sides = (
        None if plan.validation is None else split_held_out(pools, plan.validation, seed=plan.seed)
    )
    base = load_scorer(source)
    plan.out.mkdir(parents=True, exist_ok=True)
    with write_log(plan.out / LOG, log) as told, open_extractor(files, plan.keep, told) as material:
        sets = Counter(pool.set for pool in pools)
        told({"step": "data", "questions": sets, "passages": sum(len(p.passages) for p in pools)})
        learn = partial(fit_scorer, encoder=material, seed=plan.seed, log=told, base=base)
        recipe, found = (
            (OURS, {}) if sides is None else _choose_by_held_out(*sides, learn, material, told)
        )
        head = learn(add_variants(pools, kinds=RECIPES[recipe], seed=plan.seed), tells_course=True)
        _check_splits(head, len(pools))
        told({"step": DONE, "recipe": recipe})
        if plan.learning_curve:
            _log_curve(plan, pools, material, told)
    with replace_weights(plan.out) as fresh:
        copy_encoder(source, fresh)
        head.save(fresh / HEAD)
        write_trained_on(fresh, pools, seed=plan.seed)
        write_sums(fresh)
    save_figures(plan.out, training_figures(plan.out / LOG))
    return TrainingOutcome(plan.out, sets, recipe, found)


def select_trainable(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools that count in training.

    Raises:
        InputError: There are none, or none has evidence and something else.
    """
    found = [pool for pool in pools if pool.weight]
    if not any(0 < sum(pool.labels) < len(pool.labels) for pool in found):
        raise InputError(
            "nothing to train on: no question has both a golden passage and another one among "
            f"its candidates ({len(pools)} questions read)"
        )
    return found


def _check_splits(head: EvidenceScorer, n_questions: int) -> None:
    """Raise `InputError` if the trees of a ranking are bare leaves, and so rank all alike."""
    rankings = (head.question, head.article, head.claim, head.question_alone, head.claim_alone)
    if not all(one.trees.depth for one in rankings):
        raise InputError(
            f"too little to learn from: over {n_questions} questions no measure tells golden "
            f"passages from others often enough (a leaf of a tree needs {LEAF} passages)"
        )


def _log_curve(
    plan: TrainingPlan, pools: Sequence[Pool], material: FeatureExtractor, log: Log
) -> None:
    """Log what judges reach that are fitted on parts of the questions, by cross-validation."""
    learn = build_learner(material, load_unexposed(plan.encoder or SHIPPED, pools))
    points = learning_curve(pools, learn, n_folds=_FOLDS, seed=plan.seed, log=log)
    log({"step": LEARNING_CURVE, "points": [one.to_dict() for one in points]})


def _choose_by_held_out(
    train: Sequence[Pool],
    validation: Sequence[Pool],
    learn: Callable[[Sequence[Pool]], EvidenceScorer],
    material: FeatureExtractor,
    log: Log,
) -> tuple[str, Mapping[str, float]]:
    """Return the recipe whose judge ranks the questions held out best, and what all reach."""
    candidates: dict[str, PoolScorer] = {}
    for recipe, kinds in RECIPES.items():
        log({"step": "recipe", "recipe": recipe, "train": len(train), "held_out": len(validation)})
        candidates[recipe] = build_scorer(learn(add_variants(train, kinds=kinds)), material)
    chosen, found = choose_recipe(candidates, validation)
    log({"step": "chosen", "recipe": chosen, "MAP@10": found})
    return chosen, found
