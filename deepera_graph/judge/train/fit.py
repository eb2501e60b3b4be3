"""Fits the head of the judge: everything above the encoder.

One after the other: background counts; the results role; whether a passage is on topic; whether
two passages are of one study; and from all of it the rank of a passage among those of its question,
for questions and for claims. What a later model is fitted on never comes from a model that saw the
same group: groups are cut in two halves, and each half is read by models fitted on the other.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError
from deepera_graph.judge.head import Head
from deepera_graph.judge.model import Encodes
from deepera_graph.judge.odds import probability
from deepera_graph.judge.surroundings import surroundings
from deepera_graph.judge.train.fit_counts import fit_counts
from deepera_graph.judge.train.fit_ranking import fit_ranking
from deepera_graph.judge.train.fit_role import fit_role
from deepera_graph.judge.train.fit_studies import fit_links, fit_topics
from deepera_graph.judge.train.lessons import own_parts
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.material import Material
from deepera_graph.judge.train.packages import needed
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.row import Row

Floats = NDArray[np.float64]


def fit(
    pools: Sequence[Pool],
    encoder: Encodes | Material,
    *,
    seed: int = 0,
    log: Log = silent,
    without: Collection[str] = (),
    base: Head | None = None,
) -> Head:
    """Fit a head to pools.

    Args:
        pools: What is trained on; those of weight 0 are left out.
        encoder: Makes vectors of texts, or what has looked at the pools already.
        seed: The same pools, seed and machine give the same head.
        log: Told of each step.
        without: Signals that the ranking does without, out of the values of `SIGNALS`.
        base: Gives what the pools cannot teach: counts, role, topic and link where no pool says
            which passages are aims, methods or background of the same paper.

    Raises:
        InputError: The pools cannot teach something, and there is no *base* to take it from.
        SettingsError: A package of the extra ``train`` is missing.
    """
    needed("lightgbm")
    material = encoder if isinstance(encoder, Material) else Material(encoder)
    used = [pool for pool in pools if pool.weight]
    looked = material.look(used, log)
    counts = fit_counts(used) or (base.counts if base else fit_counts(used, fewest=0))
    role = fit_role(looked, log) or (base.role if base else None)
    if counts is None or role is None:
        raise InputError(
            "no pool tells results from aims, methods or background of the same paper, and there "
            "is no judge to take that from"
        )
    rows = [Row(one, material.company(one, counts, role), _half(one.pool)) for one in looked]
    bare = [
        Row(one, material.company(one, counts, role), _half(one.pool))
        for one in material.look(_without_evidence(used))
    ]
    learns = any(own_parts(row.pool) is not None for row in rows)
    if not learns and base is None:
        raise InputError("no pool holds other parts of the paper that answers its question")
    topics, topic = fit_topics(rows, seed, log, base if not learns else None)
    links, link = fit_links(rows, seed, log, base if not learns else None)

    def around(some: Sequence[Row]) -> list[Floats]:
        return [
            surroundings(
                row.company,
                probability(topics[row.half].log_odds(row.company.topic())),
                links[row.half],
            )
            for row in some
        ]

    rank = partial(
        fit_ranking, rows, around(rows), bare, around(bare), seed=seed, log=log, without=without
    )
    question, claim = rank(claims=False), rank(claims=True)
    either = question or claim
    if either is None:
        raise InputError("no question has both evidence and something else among its passages")
    return Head(
        counts=counts,
        role=role,
        topic=topic,
        link=link,
        question=question or (base.question if base else either),
        claim=claim or (base.claim if base else either),
        about={"questions": dict(Counter(pool.set for pool in used)), "seed": seed},
    )


def _half(pool: Pool) -> int:
    return crc32(pool.group.encode()) % 2


def _without_evidence(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools that have evidence and other passages, without the evidence."""
    kept = [(pool, tuple(one for one in pool.passages if not one.label)) for pool in pools]
    return [pool.with_passages(rest) for pool, rest in kept if 1 < len(rest) < len(pool.passages)]
