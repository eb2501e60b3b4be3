"""What a labelled pool can teach, by the kinds of its passages."""

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judge.train.look_alikes import negative_type
from deepera_graph.judge.train.pool import Pool

ARTICLE_WEIGHT = 0.3  # of article sections in the results role, beside labelled passages
_NO_RESULTS = frozenset(("aims", "methods", "background"))
_SIBLINGS = frozenset((*_NO_RESULTS, "speculation", "other part"))
_WRITTEN = frozenset(("misleading_outcome", "misleading_scope", "speculative"))


def is_plain(pool: Pool) -> bool:
    """Tell whether every look-alike is a part of a paper, none written to deceive."""
    return not _WRITTEN & {one.kind for one in pool.passages}


def own_parts(pool: Pool) -> NDArray[np.bool_] | None:
    """Tell which passages are of the paper that answers; None if that cannot be learned here.

    It can where parts of that paper are in the pool beside the evidence, and other papers too.
    """
    if pool.of_one_paper:
        return None
    siblings = [not one.label and negative_type(one.kind) in _SIBLINGS for one in pool.passages]
    if not any(siblings):
        return None
    own = np.array(siblings, np.bool_) | np.array(pool.labels, np.bool_)
    return None if own.all() else np.asarray(own, np.bool_)


def role_of(pool: Pool, kind: str, label: int) -> tuple[int, float] | None:
    """Return whether a passage reports results, 1 or 0, and how much that counts.

    None if its kind does not tell, or the pool has no other part of the paper beside its evidence:
    its labels then speak of the topic.
    """
    type_ = negative_type(kind)
    if pool.of_one_paper:
        if label or type_ == "other outcome":
            return 1, ARTICLE_WEIGHT
        return (0, ARTICLE_WEIGHT) if type_ in _NO_RESULTS else None
    if own_parts(pool) is None:
        return None
    if label:
        return 1, 1.0
    return (0, 1.0) if type_ in _NO_RESULTS | {"other part"} else None
