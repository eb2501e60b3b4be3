"""What wrong passages are like, and other pools made of the same passages."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from deepera_graph.training.data import OTHER_PAPER, LabelledPassage, Pool, hash_question


def pool_rng(seed: int, pool: Pool, what: str = "") -> np.random.Generator:
    """Return a generator for a pool; the same seed, set, id and purpose give the same numbers."""
    name = f"{pool.set}\n{pool.id}\n{what}"
    return np.random.default_rng([seed, int.from_bytes(name.encode("utf-8", "surrogatepass"))])


MIN_TRUNCATED, MAX_TRUNCATED = (
    2,
    16,
)  # passages; retrievers of LangChain give 4 unless told otherwise
N_DRAWS = 2
TRUNCATED_WEIGHT = 0.3  # of what the whole pool counts, a draw


def truncate_pools(pools: Sequence[Pool], seed: int = 0) -> Iterator[Pool]:
    """Yield the first passages of each pool, twice: from 2 to 16, small numbers as often as large.

    The evidence may be among them or not, as the first stage had it.

    Args:
        pools: Passages in first-stage order; pools of one paper, which have none, are left out.
        seed: The same seed and pool give the same numbers, whatever the other pools.
    """
    for pool in pools:
        random = pool_rng(seed, pool, "few")
        for draw in range(N_DRAWS):
            n_passages = round(MIN_TRUNCATED * (MAX_TRUNCATED / MIN_TRUNCATED) ** random.random())
            if n_passages < len(pool.passages):
                for one in take_first([pool], n_passages):
                    yield replace(
                        one, id=f"{pool.id} ({draw})", weight=pool.weight * TRUNCATED_WEIGHT
                    )


def take_first(pools: Sequence[Pool], n_passages: int) -> Iterator[Pool]:
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


MERGED_WEIGHT = 0.5  # of what the pool counts by itself


def merge_evidence(pools: Sequence[Pool]) -> list[Pool]:
    """Return those pools for whose question others hold more evidence, with that evidence in them.

    Most questions that can be trained on have one golden passage. A judge that knows nothing else
    takes a second one for a look-alike of the first. (In the sets of the shipped weights the
    evidence that is joined is a passage and a paraphrase of it, not two studies.)

    The evidence comes right after the pool's own, as a first stage finds near what is alike.

    Args:
        pools: Of any sets. Those of one paper, and those whose evidence is not all there, are left
            out.
    """
    whole = [one for one in pools if not (one.of_one_paper or one.golden_outside)]
    known: dict[str, dict[str, LabelledPassage]] = {}
    for pool in whole:
        golden = {one.text: one for one in pool.passages if one.label}
        known.setdefault(hash_question(pool.question), {}).update(golden)
    found = []
    for pool in whole:
        here = {one.text for one in pool.passages}
        more = known[hash_question(pool.question)]
        added = [one for text, one in more.items() if text not in here]
        if added:
            found.append(_add_evidence(pool, added))
    return found


def _add_evidence(pool: Pool, added: Sequence[LabelledPassage]) -> Pool:
    labels = pool.labels
    place = labels.index(1) + 1 if 1 in labels else len(labels)
    passages = (*pool.passages[:place], *added, *pool.passages[place:])
    return replace(
        pool, id=f"{pool.id} (joined)", passages=passages, weight=pool.weight * MERGED_WEIGHT
    )


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


def classify_negative(kind: str) -> str:
    """Return the type of a passage that is no evidence, one of `NEGATIVE_TYPES`, by its kind.

    Results of the same paper are about another outcome: otherwise they would be golden.
    """
    if kind == OTHER_PAPER:
        return OTHER_PAPER
    heading = _PREFIX.sub("", _PREFIX.sub("", kind.strip()))
    return next((name for name, rule in _RULES.items() if rule.match(heading)), OTHER_PART)


def remove_negatives(pools: Sequence[Pool], name: str) -> list[Pool]:
    """Return the pools without the negatives of one type; those left with nothing are left out."""
    return _filter_passages(
        pools, lambda one: one.label == 1 or classify_negative(one.kind) != name
    )


def remove_siblings(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool without other parts of the paper that answers, as retrieval may find it.

    None if there are none of them, or nothing else.
    """
    kept = [one for one in pool.passages if one.label or one.kind == OTHER_PAPER]
    others = len(kept) - sum(pool.labels)
    if len(kept) == len(pool.passages) or not others:
        return None
    return pool.with_passages(tuple(kept))


def sample_negatives(pool: Pool, rng: np.random.Generator) -> Pool | None:
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


def remove_evidence(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool without its evidence: a question that nothing found answers.

    None if nothing else is there.
    """
    kept = tuple(one for one in pool.passages if not one.label)
    return replace(pool, passages=kept, golden_outside=pool.n_golden) if kept else None


VARIANTS = {
    "without siblings": remove_siblings,
    "sub-pool": sample_negatives,
    "without evidence": remove_evidence,
}


def add_variants(
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
            variant = VARIANTS[kind](pool, pool_rng(seed, pool, kind))
            if variant is not None:
                yield replace(variant, id=f"{pool.id} ({kind})", weight=pool.weight * weight)


def _filter_passages(pools: Sequence[Pool], keep: Callable[[LabelledPassage], bool]) -> list[Pool]:
    left = [(pool, tuple(one for one in pool.passages if keep(one))) for pool in pools]
    return [pool.with_passages(kept) for pool, kept in left if kept]


ARTICLE_WEIGHT = 0.3  # of article sections in the results role, beside labelled passages
_NO_RESULTS = frozenset(("aims", "methods", "background"))
_SIBLINGS = frozenset((*_NO_RESULTS, "speculation", "other part"))
_WRITTEN = frozenset(("misleading_outcome", "misleading_scope", "speculative"))


def has_natural_negatives(pool: Pool) -> bool:
    """Tell whether every look-alike is a part of a paper, none written to deceive."""
    return not _WRITTEN & {one.kind for one in pool.passages}


def label_own_paper(pool: Pool) -> NDArray[np.bool_] | None:
    """Tell which passages are of the paper that answers; None if that cannot be learned here.

    It can where parts of that paper are in the pool beside the evidence, and other papers too.
    """
    if pool.of_one_paper:
        return None
    siblings = [not one.label and classify_negative(one.kind) in _SIBLINGS for one in pool.passages]
    if not any(siblings):
        return None
    own = np.array(siblings, np.bool_) | np.array(pool.labels, np.bool_)
    return None if own.all() else np.asarray(own, np.bool_)


def label_results(pool: Pool, kind: str, label: int) -> tuple[int, float] | None:
    """Return whether a passage reports results, 1 or 0, and how much that counts.

    None if its kind does not tell, or the pool has no other part of the paper beside its evidence:
    its labels then speak of the topic.
    """
    type_ = classify_negative(kind)
    if pool.of_one_paper:
        if label or type_ == "other outcome":
            return 1, ARTICLE_WEIGHT
        return (0, ARTICLE_WEIGHT) if type_ in _NO_RESULTS else None
    if label_own_paper(pool) is None:
        return None
    if label:
        return 1, 1.0
    return (0, 1.0) if type_ in _NO_RESULTS | {"other part"} else None
