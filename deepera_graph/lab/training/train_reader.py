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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
from deepera_graph.lab.training.fitting.features import open_extractor
from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining, open_reader
from deepera_graph.lab.training.fitting.scorer import fit_scorer, score_pool
from deepera_graph.lab.training.fitting.sentences import MarkedText, read_marked
from deepera_graph.lab.training.lessons.abstracts import ABSTRACTS, name_group, pool_abstracts
from deepera_graph.lab.training.lessons.counterfactuals import teach_counterfactuals
from deepera_graph.lab.training.lessons.groups import (
    Group,
    draw,
    leave_out,
    list_directions,
    read_abstracts,
    read_directions,
    teach_abstracts,
    teach_papers,
    teach_pools,
)
from deepera_graph.lab.training.lessons.libraries import (
    is_libraries,
    read_library_directions,
    read_library_proofs,
)
from deepera_graph.lab.training.lessons.pools import DataPlan, Pool, hash_question, select_trainable
from deepera_graph.lab.training.lessons.pretrain import measure_relevance, teach_relevance
from deepera_graph.lab.training.measure import assign_folds
from deepera_graph.lab.training.weigh import format_held_out, judge_held_out, weigh_reader
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

HELD_OUT: Final = "held_out.json"
LOG: Final = "reader.jsonl"
N_FOLDS = 4  # one of which is held out
PAPERS = 16_000  # whose titles teach before any label does
WEAK_EPOCHS, WEAK_RATE = 1.0, 1e-4
READ_WHOLE = 320  # questions over whole abstracts, by chance: each costs as much as four others


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTrainingPlan(DataPlan):
    """What the reader learns from, and what judge it is added to."""

    out: Path  # folder for the weights; it is made
    weights: Path | None = None  # folder of a trained judge; the shipped one if None
    abstracts: tuple[Path, ...] = ()  # labels on abstracts that the first path of *data* holds
    relevance: Path | None = None  # folder of public pairs, see `teach_relevance`
    reader: ReaderPlan = field(default_factory=ReaderPlan)

    def divide(self) -> tuple[list[Pool], list[Pool]]:
        """Return the pools to teach, and those that are held out, see `hold_out`."""
        asked = pool_abstracts(self.abstracts, self.data[0])
        pools = select_trainable([*self.read_pools(to_train=True), *asked])
        return hold_out(pools, read_held_out(self.weights or SHIPPED), self.seed)


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
    taught, held_out = plan.divide()
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
        figures = format_held_out(weighed.figures)
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
    """Return all that is taught: pools, labelled abstracts, marked sentences of claims and others.

    Titles and libraries have them, too; of questions over whole abstracts `READ_WHOLE` are taken.
    *held_out* has hashes of questions and names of groups. Whoever held out a question has held out
    the abstract that it is the title of, or that it is on, too.
    """
    chance, folder = Random(plan.seed), plan.data[0]
    said = read_directions(folder / "pubmedqa_dev")
    known = {(one.question, one.text): list_directions(one.directions) for one in said}
    libraries = list(filter(is_libraries, plan.data))
    for one in chain.from_iterable(map(read_library_directions, libraries)):
        known[one.question, one.text] = list_directions([one.said])
    asked = [one for path in plan.abstracts for one in read_abstracts(path, folder)]
    asked = [
        one for one in asked if held_out.isdisjoint((hash_question(one.title), name_group(one)))
    ]
    marked = list(chain.from_iterable(map(partial(read_marked, claims="train"), plan.data)))
    marked += starmap(MarkedText, chain.from_iterable(map(read_library_proofs, libraries)))
    marked = [one for one in marked if hash_question(one.question) not in held_out]
    together = [
        pool for pool in pools if not (pool.set == ABSTRACTS or pool.set.startswith("scifact"))
    ]
    whole = draw([pool for pool in pools if pool.set == ABSTRACTS], READ_WHOLE, chance)
    groups = [*teach_pools([*together, *whole], known, chance), *teach_abstracts(asked, chance)]
    return leave_out([*groups, *teach_abstracts(marked, chance)], held_out)
