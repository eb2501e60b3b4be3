"""The work of `deepera judge evaluate`: data in, figures of a judge out."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from deepera_graph.judges.trained.model import SHIPPED, EvidenceModel
from deepera_graph.judges.trained.scorer import EvidenceScorer
from deepera_graph.training.ablate import Ablation, Kind, ablate, tree_curve
from deepera_graph.training.augment import merge_evidence, take_first
from deepera_graph.training.curves import Point, learning_curve
from deepera_graph.training.data import N_CANDIDATES, Pool, read_pools
from deepera_graph.training.evaluate import (
    N_FOLDS,
    TAU,
    Evaluation,
    cross_validate,
    evaluate,
    score_pools,
)
from deepera_graph.training.features import FeatureExtractor, open_extractor
from deepera_graph.training.fit import build_learner, build_model_scorer
from deepera_graph.training.fit_ranking import FEATURE_GROUPS
from deepera_graph.training.log import Log, log_nothing, needed
from deepera_graph.training.train import select_trainable
from deepera_graph.training.weights import (
    count_known,
    encoder_files,
    load_unexposed,
    trained_questions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    """What is measured, and on what.

    Attributes:
        data: See `read_pools`; not empty.
        weights: Folder of weights; the shipped ones if None. Judges that are fitted for the
            measurement use its encoder.
        sets: Only these sets of the data; None takes all.
        split: Judgements of a BEIR folder.
        n_candidates: Documents BM25 finds there for a query, >= 1.
        tau: Threshold, inclusive, in [0, 1].
        n_folds: Of a cross-validation, >= 2.
        seed: Of folds, fits and intervals.
        keep: Where vectors are kept for the next time; None keeps none.
        first: Numbers of passages, >= 1: questions are also measured over their first ones.
        joined: Whether questions that several sets ask are also measured with all their evidence.
    """

    data: tuple[Path, ...]
    weights: Path | None = None
    sets: tuple[str, ...] | None = None
    split: str = "test"
    n_candidates: int = N_CANDIDATES
    tau: float = TAU
    n_folds: int = N_FOLDS
    seed: int = 0
    keep: Path | None = None
    first: tuple[int, ...] = ()
    joined: bool = False

    @property
    def folder(self) -> Path:
        """The folder of the weights."""
        return self.weights or SHIPPED

    def pools(self, *, to_train: bool) -> list[Pool]:
        """Read the data; golden documents that BM25 missed are added only to train on.

        Raises:
            DatasetError: It cannot be read.
            SettingsError: A set is unknown.
            InputError: It is to be trained on, and cannot.
        """
        pools = read_pools(
            self.data,
            split=self.split,
            n_candidates=self.n_candidates,
            adds_golden=to_train,
            sets=self.sets,
        )
        if to_train:
            select_trainable(pools)
        return pools

    def measured(self, pools: Sequence[Pool]) -> list[Pool]:
        """Return the pools and what else they are measured as, in sets of their own."""
        also = [(one, f"first {n}") for n in self.first for one in take_first(pools, n)]
        if self.joined:
            also += [(one, "joined") for one in merge_evidence(pools)]
        return [*pools, *(replace(one, set=f"{one.set}, {how}", weight=0.0) for one, how in also)]

    @contextmanager
    def material(self, log: Log) -> Iterator[FeatureExtractor]:
        """Give what looks at pools with the encoder of the weights.

        Raises:
            SettingsError: There is no encoder, or lightgbm is missing.
        """
        needed("lightgbm")
        with open_extractor(encoder_files(self.folder), self.keep, log) as material:
            yield material

    def base(self, pools: Sequence[Pool]) -> EvidenceScorer | None:
        """Return the judge that gives what the data cannot teach; None if it knows a question."""
        return load_unexposed(self.folder, pools)


def evaluate_weights(subject: EvaluationPlan, log: Log = log_nothing) -> Evaluation:
    """Measure weights as they are; questions they were trained on are counted and told.

    Raises:
        DatasetError, InputError: The data cannot be read, or has no golden passage.
        SettingsError: The weights cannot be loaded, or an option is wrong.
    """
    pools = subject.pools(to_train=False)
    measured = subject.measured(pools)
    model = EvidenceModel.load(subject.weights)
    trained_on = trained_questions(subject.folder)
    known = count_known(measured, trained_on)
    scored = list(score_pools(measured, build_model_scorer(model), log))
    how = f"Weights {model.version}, as they are."
    if known:
        n_known = sum(count_known(pools, trained_on).values())
        how += (
            f" They were trained on {n_known} of the {len(pools)} questions, whose "
            "figures promise nothing: cross-validate instead."
        )
    return evaluate(scored, how=how, tau=subject.tau, trained_on=known, seed=subject.seed)


def evaluate_fits(subject: EvaluationPlan, log: Log = log_nothing) -> Evaluation:
    """Measure judges fitted on the other folds of the same data: no question is trained on.

    Raises:
        DatasetError, InputError: The data cannot be read or trained on.
        SettingsError: There is no encoder, or an option is wrong.
    """
    pools = subject.pools(to_train=True)
    with subject.material(log) as material:
        learn = build_learner(material, subject.base(pools))
        scored = cross_validate(
            subject.measured(pools), learn, n_folds=subject.n_folds, seed=subject.seed, log=log
        )
    how = (
        f"Judges fitted on the other {subject.n_folds - 1} of {subject.n_folds} folds, split by "
        f"groups of questions, seed {subject.seed}."
    )
    return evaluate(scored, how=how, tau=subject.tau, seed=subject.seed)


def assess_parts(
    subject: EvaluationPlan, kinds: Collection[Kind], log: Log = log_nothing
) -> Ablation:
    """Measure what each part is worth, see `ablate`; it takes a cross-validation a part.

    Raises:
        DatasetError, InputError: The data cannot be read or trained on.
        SettingsError: There is no encoder, or an option is wrong.
    """
    pools = subject.pools(to_train=True)
    with subject.material(log) as material:
        return ablate(
            pools,
            build_learner(material, subject.base(pools)),
            signals=FEATURE_GROUPS,
            kinds=kinds,
            n_folds=subject.n_folds,
            seed=subject.seed,
            log=log,
        )


def assess_sizes(
    subject: EvaluationPlan, log: Log = log_nothing
) -> tuple[list[Point], list[Point]]:
    """Measure what more training questions bring, and what more trees bring.

    Raises:
        DatasetError, InputError: The data cannot be read or trained on.
        SettingsError: There is no encoder, or an option is wrong.
    """
    pools = subject.pools(to_train=True)
    with subject.material(log) as material:
        base = subject.base(pools)
        learn = build_learner(material, base)
        n_folds, seed = subject.n_folds, subject.seed
        questions = learning_curve(pools, learn, n_folds=n_folds, seed=seed, log=log)
        trees = tree_curve(pools, material, base=base, n_folds=n_folds, seed=seed, log=log)
    return questions, trees
