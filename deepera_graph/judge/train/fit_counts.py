"""Counts background words: in how many passages each is."""

from collections import Counter
from collections.abc import Sequence

from deepera_graph.judge.likeness import Counts, tokens_of
from deepera_graph.judge.train.pool import Pool

FEWEST_PASSAGES = 3  # a token in fewer background passages is not counted
LARGE = 3000  # distinct passages of a set from which its words are counted


def fit_counts(pools: Sequence[Pool], fewest: int = LARGE) -> Counts | None:
    """Count in how many passages of the large sets each token is; None if no set is large."""
    by_set: dict[str, set[str]] = {}
    for pool in pools:
        by_set.setdefault(pool.set, set()).update(f"{x.title} {x.text}" for x in pool.passages)
    texts = sorted({text for its in by_set.values() if len(its) >= fewest for text in its})
    if not texts:
        return None
    found = Counter(token for text in texts for token in set(tokens_of(text)))
    kept = {token: n for token, n in sorted(found.items()) if n >= FEWEST_PASSAGES}
    return Counts(len(texts), kept)
