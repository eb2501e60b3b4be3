"""What wrong passages are like, and other pools made of the same passages."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from deepera_graph.judge.train.chance import chance
from deepera_graph.judge.train.pool import OTHER_PAPER, Passage, Pool

FEWEST_LEFT = 5

# Headings of abstracts and articles, and the types of distractors, by the first words that fit.
_TYPES: Mapping[str, str] = {
    "other outcome": r"misleading_outcome|results?\b|findings|outcomes and|main results",
    "other population": r"misleading_scope",
    "speculation": r"speculative|discussion|conclusions?|interpretation|implications",
    "aims": r"aims?\b|objectives?|purposes?|goals?|hypothes[ie]s|study objective|rationale",
    "methods": (
        r"methods?\b|methodology|materials?\b|design|study design|setting|patients?|participants?|"
        r"subjects?|populations?|interventions?|measure|main outcome|outcome measures?|outcomes|"
        r"statistical|sample|data|procedures?|randomi[sz]ation|experimental|study"
    ),
    "background": r"backgrounds?|introduction|context|summary of background|literature|title",
}
_RULES = {name: re.compile(rf"(?:{rule})", re.IGNORECASE) for name, rule in _TYPES.items()}
_PREFIX = re.compile(r"^(?:body|abstract)\.|^[\d.\s]+", re.IGNORECASE)
OTHER_PART = "other part"
NEGATIVE_TYPES = (*_TYPES, OTHER_PART, OTHER_PAPER)


def negative_type(kind: str) -> str:
    """Return the type of a passage that is no evidence, one of `NEGATIVE_TYPES`, by its kind.

    Results of the same paper are about another outcome: otherwise they would be golden.
    """
    if kind == OTHER_PAPER:
        return OTHER_PAPER
    heading = _PREFIX.sub("", _PREFIX.sub("", kind.strip()))
    return next((name for name, rule in _RULES.items() if rule.match(heading)), OTHER_PART)


def without_type(pools: Sequence[Pool], name: str) -> list[Pool]:
    """Return the pools without the negatives of one type; those left with nothing are left out."""
    return _kept(pools, lambda one: one.label == 1 or negative_type(one.kind) != name)


def without_siblings(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool without other parts of the paper that answers, as retrieval may find it.

    None if there are none of them, or nothing else.
    """
    kept = [one for one in pool.passages if one.label or one.kind == OTHER_PAPER]
    others = len(kept) - sum(pool.labels)
    if len(kept) == len(pool.passages) or not others:
        return None
    return pool.with_passages(tuple(kept))


def sub_pool(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool with its evidence and a random part of the rest, in the same order.

    None if fewer than `FEWEST_LEFT` + 1 passages are no evidence.
    """
    others = [place for place, label in enumerate(pool.labels) if not label]
    if len(others) <= FEWEST_LEFT:
        return None
    n_left = int(rng.integers(FEWEST_LEFT, len(others)))
    drawn = {others[place] for place in rng.permutation(len(others))[:n_left]}
    kept = [one for place, one in enumerate(pool.passages) if one.label or place in drawn]
    return pool.with_passages(tuple(kept))


def without_evidence(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool without its evidence: a question that nothing found answers.

    None if nothing else is there.
    """
    kept = tuple(one for one in pool.passages if not one.label)
    return replace(pool, passages=kept, golden_outside=pool.n_golden) if kept else None


VARIANTS = {
    "without siblings": without_siblings,
    "sub-pool": sub_pool,
    "without evidence": without_evidence,
}


def varied(
    pools: Sequence[Pool],
    *,
    kinds: Collection[str] = tuple(VARIANTS),
    weight: float = 0.5,
    seed: int = 0,
) -> list[Pool]:
    """Return the pools, and after them one variant of each kind of each, where there is one.

    Args:
        pools: What is varied, but for pools of weight 0; groups and sets stay, so folds do.
        kinds: Out of `VARIANTS`.
        weight: A variant counts as much of what its pool counts.
        seed: The same seed and pool give the same variant, whatever the other pools.
    """
    return [*pools, *_variants(pools, kinds, weight, seed)]


def _variants(
    pools: Sequence[Pool], kinds: Collection[str], weight: float, seed: int
) -> Iterator[Pool]:
    for kind in kinds:
        for pool in filter(attrgetter("weight"), pools):
            variant = VARIANTS[kind](pool, chance(seed, pool, kind))
            if variant is not None:
                yield replace(variant, id=f"{pool.id} ({kind})", weight=pool.weight * weight)


def _kept(pools: Sequence[Pool], keep: Callable[[Passage], bool]) -> list[Pool]:
    left = [(pool, tuple(one for one in pool.passages if keep(one))) for pool in pools]
    return [pool.with_passages(kept) for pool, kept in left if kept]
