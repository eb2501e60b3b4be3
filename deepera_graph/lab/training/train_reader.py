"""The work of `deepera-lab judge reader`: adds a reader to a trained judge.

One fold of the questions is held out. On the others the reader is trained, and the judge's trees
are fitted anew; on the fold held out, which neither knows, is found what each of the two weighs.
The judge whose weights are written keeps its own trees.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.errors import InputError
from deepera_graph.judges.trained.features import sigmoid
from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
from deepera_graph.judges.trained.scorer import (
    PoolScores,
    SecondOpinion,
    choose_read,
    list_opinions,
)
from deepera_graph.lab.training.fitting.direction import read_labelled
from deepera_graph.lab.training.fitting.features import open_extractor
from deepera_graph.lab.training.fitting.ranking import find_operating_point
from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining
from deepera_graph.lab.training.fitting.scorer import fit_scorer, score_pool
from deepera_graph.lab.training.fitting.sentences import read_marked
from deepera_graph.lab.training.held_out import HELD_OUT, describe_held_out, score_halves
from deepera_graph.lab.training.lessons.abstracts import read_abstracts
from deepera_graph.lab.training.lessons.augment import draw_few, take_out_evidence
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
from deepera_graph.lab.training.measure import assign_folds
from deepera_graph.lab.training.weights import (
    HEAD,
    TRAINED_ON,
    Log,
    copy_encoder,
    find_encoder,
    load_scorer,
    log_nothing,
    replace_weights,
    write_sums,
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
        weighed = weigh_reader(held_out, score, training, plan.seed)
    with replace_weights(plan.out) as fresh:
        copy_encoder(source, fresh)
        training.export(fresh / READER)
        opinion = weighed.opinion
        replace(judge, opinion=opinion, operating_point=weighed.point).save(fresh / HEAD)
        figures = json.dumps(weighed.figures, indent=1) + "\n"
        (fresh / HELD_OUT).write_text(figures, encoding="utf-8", newline="\n")
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


class Weighed(NamedTuple):
    """What trees and reader weigh beside each other."""

    opinion: SecondOpinion
    point: float  # the operating point, see `find_operating_point`
    figures: Mapping[str, Any]  # of the questions held out, see `describe_held_out`


def weigh_reader(
    held_out: Sequence[Pool], trees: ScorePool, training: ReaderTraining, seed: int = 0
) -> Weighed:
    """Find what trees and reader weigh, on questions neither knows, and how good both are.

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
        judged = trees(pool)
        if not judged.may_be_read:
            continue
        read = np.full(len(judged.evidence), np.nan)
        places = choose_read(judged.evidence)
        read[places] = training.read([(pool.question, pool.passages[n].text) for n in places])
        rows.append(list_opinions(judged.evidence, read))
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
    found = score_halves(used, rows, labels, weights)[:n_whole]
    return Weighed(opinion, point, describe_held_out(used[:n_whole], found, point))
