"""What wrong passages are like, and other pools made of the same passages.

Variants and truncated or merged pools are trained on beside the pools themselves; label rules read
off the kinds of passages what they teach about results, topics and studies.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from deepera_graph.lab.training.lessons.pools import (
    OTHER_PAPER,
    LabelledPassage,
    Pool,
    hash_question,
)

MIN_TRUNCATED, MAX_TRUNCATED = 2, 16  # passages; LangChain's retrievers give 4 by default
MAX_EXCHANGED = 300
_TRIES = 20  # for each passage that is drawn
N_DRAWS = 2  # of few passages; there is one more, of nearly all
TRUNCATED_WEIGHT = 0.3  # of what the whole pool counts, a draw
MERGED_WEIGHT = 0.5  # likewise, of what it counts by itself
VARIANT_WEIGHT = 0.5  # likewise
MIN_NEGATIVES = 5
RESULTS_WEIGHT = 0.3  # of article sections in the results classifier, beside labelled passages
OTHER_PART = "other part"

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
NEGATIVE_TYPES = (*_TYPES, OTHER_PART, OTHER_PAPER)
_NO_RESULTS = frozenset(("aims", "methods", "background"))
_SIBLINGS = frozenset((*_NO_RESULTS, "speculation", OTHER_PART))
_WRITTEN = frozenset(("misleading_outcome", "misleading_scope", "speculative"))
# Results of other studies, or on something else than is asked; among near misses are some aims.
_FINDINGS = re.compile(r"sibling$|(?:natural|written)_other_")
_MIXED = "near miss"


def pool_rng(seed: int, pool: Pool, what: str = "") -> np.random.Generator:
    """Return a generator for a pool; the same seed, set, id and purpose give the same numbers."""
    name = f"{pool.set}\n{pool.id}\n{what}"
    return np.random.default_rng([seed, int.from_bytes(name.encode("utf-8", "surrogatepass"))])


def _draw_size(random: np.random.Generator) -> int:
    """Return 2 to 16, small numbers as often as large."""
    size: float = MIN_TRUNCATED * (MAX_TRUNCATED / MIN_TRUNCATED) ** random.random()
    return round(size)


def truncate_pools(pools: Sequence[Pool], seed: int = 0) -> Iterator[Pool]:
    """Yield the first passages of each pool: twice 2 to 16, small numbers as often as large.

    Once it is any number from 17 on, so that no number of passages is found in one kind of pool
    alone: else a judge takes 29 passages for 30 that the evidence was taken out of.
    """
    for pool in pools:
        random = pool_rng(seed, pool, "few")
        sizes = [_draw_size(random) for _ in range(N_DRAWS)]
        if len(pool.passages) > MAX_TRUNCATED + 1:
            sizes.append(int(random.integers(MAX_TRUNCATED + 1, len(pool.passages))))
        for draw, n_passages in enumerate(sizes):
            if n_passages < len(pool.passages):
                weight = pool.weight * TRUNCATED_WEIGHT
                for one in take_first([pool], n_passages):
                    yield replace(one, id=f"{pool.id} ({draw})", weight=weight)


def take_first(pools: Sequence[Pool], n_passages: int) -> Iterator[Pool]:
    """Yield each pool with its first passages alone; pools of one paper have no order: left out."""
    for pool in pools:
        if not pool.of_one_paper:
            kept = pool.passages[:n_passages]
            outside = pool.n_golden - sum(one.label for one in kept)
            yield replace(pool, passages=kept, golden_outside=outside)


def exchange_passages(pools: Sequence[Pool], seed: int = 0) -> Iterator[Pool]:
    """Yield questions over passages that were found for another, at most `MAX_EXCHANGED`.

    They teach that nothing far from a question is evidence, whatever stands beside it.
    """
    random = np.random.default_rng([seed, len(pools)])
    for number in random.permutation(len(pools))[:MAX_EXCHANGED]:
        pool, other = pools[number], pools[int(random.integers(len(pools)))]
        if other.group == pool.group or other.of_one_paper != pool.of_one_paper:
            continue
        size = len(other.passages)  # half of them whole, as the size must not tell
        if random.random() < 0.5:
            size = min(size, _draw_size(random))
        chosen = random.permutation(len(other.passages))[:size]
        passages = tuple(replace(other.passages[at], label=0, kind=OTHER_PAPER) for at in chosen)
        yield replace(
            pool, id=f"{pool.id} (exchanged)", passages=passages, golden_outside=pool.n_golden
        )


def sample_pools(pools: Sequence[Pool], size: int, seed: int = 0) -> list[Pool]:
    """Return so many of the pools, by chance and in their order; all if there are no more."""
    random = np.random.default_rng([seed, len(pools), size])
    return [pools[place] for place in sorted(random.permutation(len(pools))[:size])]


def take_out_evidence(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools that have evidence and two other passages or more, without the evidence.

    Nothing stands in its place: what is found for a question is all on its subject. What a judge
    keeps where nothing answers is to be measured on these.
    """
    rest = [tuple(one for one in pool.passages if not one.label) for pool in pools]
    return [
        pool.with_passages(its)
        for pool, its in zip(pools, rest, strict=True)
        if 1 < len(its) < len(pool.passages)
    ]


def draw_few(pools: Sequence[Pool], seed: int = 0) -> Iterator[Pool]:
    """Yield 2 to 16 passages of each pool, by chance: wrong ones, and one of the evidence if any.

    Small numbers as often as large; where there are fewer wrong ones, all.
    """
    for pool in pools:
        random = pool_rng(seed, pool, "drawn")
        evidence, wrong = (
            [x for x in pool.passages if bool(x.label) is kind] for kind in (True, False)
        )
        chosen = [evidence[int(random.integers(len(evidence)))]] if evidence else []
        size = min(_draw_size(random) - len(chosen), len(wrong))
        chosen += [wrong[int(place)] for place in random.permutation(len(wrong))[:size]]
        if len(chosen) > 1:
            yield replace(pool, id=f"{pool.id} (few)", passages=tuple(chosen))


def match_sizes(pools: Sequence[Pool], seed: int = 0) -> list[Pool]:
    """Return the pools that have evidence, without as many other passages as there is evidence.

    The mirror image of `take_out_evidence`: else a judge takes 29 passages for 30 that the evidence
    was taken out of.
    """
    found = []
    for pool in pools:
        wrong = np.flatnonzero(~np.array(pool.labels, np.bool_))
        n_evidence = len(pool.passages) - len(wrong)
        if 0 < n_evidence < len(wrong):
            gone = pool_rng(seed, pool, "smaller").permutation(wrong)[:n_evidence]
            found.append(_replace_passages(pool, gone, (), "smaller"))
    return found


def replace_evidence(pools: Sequence[Pool], seed: int = 0) -> list[Pool]:
    """Return the pools that have evidence, with passages found for other questions in its place."""
    random = np.random.default_rng([seed, len(pools), 1])
    found = []
    for pool in pools:
        golden = [place for place, label in enumerate(pool.labels) if label]
        if golden and not pool.of_one_paper:
            others = _draw_others(pool, pools, len(golden), random)
            found.append(_replace_passages(pool, golden, others, "replaced"))
    return found


def mix_passages(pools: Sequence[Pool], seed: int = 0) -> list[Pool]:
    """Return the pools that have evidence, with passages that were found for other questions.

    Any number of wrong passages gives way to them, all numbers as often: else a judge takes such
    passages for a sign that nothing answers, as they stand where `replace_evidence` took it out.
    """
    found = []
    for pool in pools:
        random = pool_rng(seed, pool, "mixed")
        wrong = np.flatnonzero(~np.array(pool.labels, np.bool_))
        if len(wrong) < len(pool.passages) and not pool.of_one_paper:
            gone = random.permutation(wrong)[: int(random.integers(len(wrong) + 1))]
            others = _draw_others(pool, pools, len(gone), random)
            found.append(_replace_passages(pool, gone, others, "mixed"))
    return found


def _replace_passages(
    pool: Pool, places: Iterable[int], others: Iterable[LabelledPassage], what: str
) -> Pool:
    """Return the pool with others at some places; where there are too few, with fewer passages."""
    given = dict(zip_longest(map(int, places), others))
    passages = (given.get(at, one) for at, one in enumerate(pool.passages))
    kept = tuple(one for one in passages if one is not None)
    return replace(pool, id=f"{pool.id} ({what})", passages=kept)


def _draw_others(
    pool: Pool, pools: Sequence[Pool], n_passages: int, random: np.random.Generator
) -> list[LabelledPassage]:
    """Return passages of pools of other groups, none twice; fewer if they are hard to find."""
    known = {one.text for one in pool.passages}
    drawn: list[LabelledPassage] = []
    for _ in range(_TRIES * n_passages):
        other = pools[int(random.integers(len(pools)))]
        one = other.passages[int(random.integers(len(other.passages)))]
        if other.group == pool.group or other.of_one_paper or one.text in known:
            continue
        known.add(one.text)
        drawn.append(replace(one, label=0, kind=OTHER_PAPER))
        if len(drawn) == n_passages:
            break
    return drawn


def merge_evidence(pools: Sequence[Pool]) -> list[Pool]:
    """Return pools for whose question others hold more evidence, with it put after their own."""
    # Most questions have one golden passage: a judge that knows nothing else takes a second one for
    # a look-alike. In the sets of the shipped weights it is a paraphrase, not another study.
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


def remove_siblings(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool without other parts of the answering paper; None if none or all are."""
    kept = [one for one in pool.passages if one.label or one.kind == OTHER_PAPER]
    others = len(kept) - sum(pool.labels)
    if len(kept) == len(pool.passages) or not others:
        return None
    return pool.with_passages(tuple(kept))


def sample_negatives(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the evidence and a random part of the rest, in order; None if there is too little."""
    others = [place for place, label in enumerate(pool.labels) if not label]
    if len(others) <= MIN_NEGATIVES:
        return None
    n_left = int(rng.integers(MIN_NEGATIVES, len(others)))
    drawn = {others[place] for place in rng.permutation(len(others))[:n_left]}
    kept = [one for place, one in enumerate(pool.passages) if one.label or place in drawn]
    return pool.with_passages(tuple(kept))


def remove_evidence(pool: Pool, rng: np.random.Generator) -> Pool | None:
    """Return the pool without its evidence, a question that nothing answers; None if all is."""
    kept = tuple(one for one in pool.passages if not one.label)
    return replace(pool, passages=kept, golden_outside=pool.n_golden) if kept else None


VARIANTS = {
    "without siblings": remove_siblings,
    "sub-pool": sample_negatives,
    "without evidence": remove_evidence,
}


def add_variants(
    pools: Sequence[Pool], *, kinds: Collection[str] = tuple(VARIANTS), seed: int = 0
) -> list[Pool]:
    """Return the pools, and after them one variant of each kind of each that counts in training."""
    found = list(pools)
    for kind in kinds:
        for pool in filter(attrgetter("weight"), pools):
            variant = VARIANTS[kind](pool, pool_rng(seed, pool, kind))
            if variant is not None:
                weight = pool.weight * VARIANT_WEIGHT
                found.append(replace(variant, id=f"{pool.id} ({kind})", weight=weight))
    return found


def classify_negative(kind: str) -> str:
    """Return the type of a passage that is no evidence, one of `NEGATIVE_TYPES`, by its kind."""
    # Results of the same paper are about another outcome: otherwise they would be golden.
    if kind == OTHER_PAPER:
        return OTHER_PAPER
    heading = _PREFIX.sub("", _PREFIX.sub("", kind.strip()))
    return next((name for name, rule in _RULES.items() if rule.match(heading)), OTHER_PART)


def has_natural_negatives(pool: Pool) -> bool:
    """Tell whether every look-alike is a part of a paper, none written to deceive."""
    return not _WRITTEN & {one.kind for one in pool.passages}


def label_own_paper(pool: Pool) -> NDArray[np.bool_] | None:
    """Tell which passages are of the answering paper; None if this pool cannot teach it."""
    if pool.of_one_paper:
        return None
    siblings = [not one.label and classify_negative(one.kind) in _SIBLINGS for one in pool.passages]
    if not any(siblings):
        return None
    own = np.array(siblings, np.bool_) | np.array(pool.labels, np.bool_)
    return None if own.all() else np.asarray(own, np.bool_)


def label_results(pool: Pool, kind: str, label: int) -> tuple[int, float] | None:
    """Return whether a passage reports results, and how much that counts; None if unknown."""
    type_ = classify_negative(kind)
    if pool.of_one_paper:
        if label or type_ == "other outcome":
            return 1, RESULTS_WEIGHT
        return (0, RESULTS_WEIGHT) if type_ in _NO_RESULTS else None
    if label_own_paper(pool) is None:
        return None
    if label or _FINDINGS.match(kind):
        return 1, 1.0
    if kind == _MIXED:
        return None
    return (0, 1.0) if type_ in _NO_RESULTS | {OTHER_PART} else None
