"""Fits whether a passage is on topic, and whether two passages are of one study."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError
from deepera_graph.judge.head import Head
from deepera_graph.judge.train.grow import grow
from deepera_graph.judge.train.lessons import is_article, is_plain, own_parts
from deepera_graph.judge.train.log import Log
from deepera_graph.judge.train.row import Row
from deepera_graph.judge.trees import Trees

Floats = NDArray[np.float64]
TOP_CLAIM = 20  # passages of a claim that teach what is on topic
TOPIC_ROUNDS, LINK_ROUNDS = 150, 100


def fit_topics(
    rows: Sequence[Row], seed: int, log: Log, base: Head | None
) -> tuple[tuple[Trees, Trees], Trees]:
    """Return models of whether a passage is on topic: for either half, and of all."""
    if base is not None:
        return (base.topic, base.topic), base.topic
    taught = []
    for row in rows:
        own = own_parts(row.pool) if is_plain(row.pool) else None
        if own is not None:
            taught.append((row.half, row.company.topic(), own))
        elif row.looked.is_claim and not is_article(row.pool):
            golden_first = np.argsort(-row.looked.labels, kind="stable")[:TOP_CLAIM]
            taught.append(
                (
                    row.half,
                    row.company.topic()[golden_first],
                    row.looked.labels[golden_first] > 0,
                )
            )
    first = _binary([one for one in taught if one[0] != 0] or taught, TOPIC_ROUNDS, seed)
    second = _binary([one for one in taught if one[0] != 1] or taught, TOPIC_ROUNDS, seed)
    log({"step": "topic", "pools": len(taught), "passages": sum(len(x) for _, x, _ in taught)})
    return (first, second), _binary(taught, TOPIC_ROUNDS, seed)


def fit_links(
    rows: Sequence[Row], seed: int, log: Log, base: Head | None
) -> tuple[tuple[Trees, Trees], Trees]:
    """Return models of whether two passages are of one study: for either half, and of all."""
    if base is not None:
        return (base.link, base.link), base.link
    taught = []
    for row in rows:
        own = own_parts(row.pool) if is_plain(row.pool) else None
        if own is None:
            continue
        n = len(own)
        pairs = row.company.links(np.arange(n))
        either = (own[:, None] | own[None]) & ~np.eye(n, dtype=np.bool_)
        both = own[:, None] & own[None]
        taught.append((row.half, pairs[either], both[either]))
    first = _binary([one for one in taught if one[0] != 0] or taught, LINK_ROUNDS, seed)
    second = _binary([one for one in taught if one[0] != 1] or taught, LINK_ROUNDS, seed)
    log({"step": "link", "pools": len(taught), "pairs": sum(len(x) for _, x, _ in taught)})
    return (first, second), _binary(taught, LINK_ROUNDS, seed)


def _binary(taught: Sequence[tuple[int, Floats, Any]], rounds: int, seed: int) -> Trees:
    if not taught:
        raise InputError("no pool tells the paper that answers from others, as none is plain text")
    return grow(
        np.concatenate([x for _, x, _ in taught]),
        np.concatenate([y for *_, y in taught]).astype(np.int64),
        rounds=rounds,
        seed=seed,
    )
