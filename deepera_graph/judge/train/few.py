"""The same questions over a few passages, as most retrievers give them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from deepera_graph.judge.train.chance import chance
from deepera_graph.judge.train.pool import Pool

FEWEST, MOST = 2, 16  # passages; retrievers of LangChain give 4 unless told otherwise
N_DRAWS = 2
FEW_WEIGHT = 0.3  # of what the whole pool counts, a draw


def few(pools: Sequence[Pool], seed: int = 0) -> Iterator[Pool]:
    """Yield the first passages of each pool, twice: from 2 to 16, small numbers as often as large.

    The evidence may be among them or not, as the first stage had it.

    Args:
        pools: Passages in first-stage order; pools of one paper, which have none, are left out.
        seed: The same seed and pool give the same numbers, whatever the other pools.
    """
    for pool in pools:
        random = chance(seed, pool, "few")
        for draw in range(N_DRAWS):
            n_passages = round(FEWEST * (MOST / FEWEST) ** random.random())
            if n_passages < len(pool.passages):
                for one in first([pool], n_passages):
                    yield replace(one, id=f"{pool.id} ({draw})", weight=pool.weight * FEW_WEIGHT)


def first(pools: Sequence[Pool], n_passages: int) -> Iterator[Pool]:
    """Yield each pool with its first passages alone, or as it is if it has no more.

    Args:
        pools: Passages in first-stage order; pools of one paper, which have none, are left out.
        n_passages: >= 1.
    """
    for pool in pools:
        if not pool.of_one_paper:
            kept = pool.passages[:n_passages]
            outside = pool.n_golden - sum(one.label for one in kept)
            yield replace(pool, passages=kept, golden_outside=outside)
