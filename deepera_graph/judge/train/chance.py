"""Random numbers for a pool, whatever the other pools are."""

import numpy as np

from deepera_graph.judge.train.pool import Pool


def chance(seed: int, pool: Pool, what: str = "") -> np.random.Generator:
    """Return a generator for a pool; the same seed, set, id and purpose give the same numbers."""
    name = f"{pool.set}\n{pool.id}\n{what}"
    return np.random.default_rng([seed, int.from_bytes(name.encode("utf-8", "surrogatepass"))])
