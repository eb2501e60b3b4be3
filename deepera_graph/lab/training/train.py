"""The work of `deepera-lab judge train`: data in, a folder of weights out."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.model import SHIPPED
from deepera_graph.judges.trained.scorer import EvidenceScorer
from deepera_graph.lab.training.fitting.features import FeatureExtractor, open_extractor
from deepera_graph.lab.training.fitting.ranking import LEAF
from deepera_graph.lab.training.fitting.scorer import build_scorer, fit_scorer
from deepera_graph.lab.training.fitting.sentences import read_marked
from deepera_graph.lab.training.lessons.abstracts import pool_abstracts
from deepera_graph.lab.training.lessons.augment import VARIANTS, add_variants
from deepera_graph.lab.training.lessons.pools import DataPlan, Pool, select_trainable
from deepera_graph.lab.training.measure import (
    PoolScorer,
    mean_average_precision,
    score_pools,
    split_held_out,
)
from deepera_graph.lab.training.weights import (
    DONE,
    HEAD,
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
    abstracts: tuple[Path, ...] = ()  # labels on abstracts that the first path of *data* holds
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
    asked = pool_abstracts(plan.abstracts, plan.data[0])
    pools = select_trainable([*plan.read_pools(to_train=True), *asked])
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
        raise SettingsError("no judge is given to choose from")
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
