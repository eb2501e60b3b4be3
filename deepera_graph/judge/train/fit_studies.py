"""Fits whether a passage is on topic, and whether two passages are of one study."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError
from deepera_graph.judge.head import Head
from deepera_graph.judge.train.grow import grow
from deepera_graph.judge.train.lessons import is_plain, own_parts
from deepera_graph.judge.train.log import Log
from deepera_graph.judge.train.parts import N_PARTS, beside
from deepera_graph.judge.train.row import Row
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
TOP_CLAIM = 20  # passages of a claim that teach what is on topic
TOPIC_ROUNDS, LINK_ROUNDS = 150, 100
N_ENSEMBLES = 3  # whose mean says so: one alone changes with the order of its pools
_Taught = tuple[int, Floats, Any]  # part, numbers, labels


def fit_topics(
    rows: Sequence[Row], seed: int, log: Log, base: Head | None
) -> tuple[Sequence[Trees], Trees]:
    """Return models of whether a passage is on topic: for each part, and of all."""
    if base is not None:
        return [base.topic] * N_PARTS, base.topic
    taught = []
    for row in rows:
        own = own_parts(row.pool) if is_plain(row.pool) else None
        if own is not None:
            taught.append((row.part, row.company.topic(), own))
        elif row.looked.is_claim and not row.pool.of_one_paper:
            golden_first = np.argsort(-row.looked.labels, kind="stable")[:TOP_CLAIM]
            taught.append(
                (
                    row.part,
                    row.company.topic()[golden_first],
                    row.looked.labels[golden_first] > 0,
                )
            )
    log({"step": "topic", "pools": len(taught), "passages": sum(len(x) for _, x, _ in taught)})
    return _by_part(taught, TOPIC_ROUNDS, seed), _binary(taught, TOPIC_ROUNDS, seed)


def fit_links(
    rows: Sequence[Row], seed: int, log: Log, base: Head | None
) -> tuple[Sequence[Trees], Trees]:
    """Return models of whether two passages are of one study: for each part, and of all."""
    if base is not None:
        return [base.link] * N_PARTS, base.link
    taught = []
    for row in rows:
        own = own_parts(row.pool) if is_plain(row.pool) else None
        if own is None:
            continue
        n = len(own)
        pairs = row.company.links(np.arange(n))
        either = (own[:, None] | own[None]) & ~np.eye(n, dtype=np.bool_)
        both = own[:, None] & own[None]
        taught.append((row.part, pairs[either], both[either]))
    log({"step": "link", "pools": len(taught), "pairs": sum(len(x) for _, x, _ in taught)})
    return _by_part(taught, LINK_ROUNDS, seed), _binary(taught, LINK_ROUNDS, seed)


def _by_part(taught: Sequence[_Taught], rounds: int, seed: int) -> list[Trees]:
    return [_binary(beside(taught, part, itemgetter(0)), rounds, seed) for part in range(N_PARTS)]


def _binary(taught: Sequence[_Taught], rounds: int, seed: int) -> Trees:
    if not taught:
        raise InputError(
            "no pool tells the paper that answers from others, as each has look-alikes that were "
            "written to mislead"
        )
    return grow(
        np.concatenate([x for _, x, _ in taught]),
        np.concatenate([y for *_, y in taught]).astype(np.int64),
        rounds=rounds,
        seed=seed,
        n_ensembles=N_ENSEMBLES,
    )
