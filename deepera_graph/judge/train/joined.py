"""Pools with several pieces of evidence, made of pools that share a question."""

from collections.abc import Sequence
from dataclasses import replace

from deepera_graph.judge.train.groups import question_key
from deepera_graph.judge.train.pool import Passage, Pool

JOINED_WEIGHT = 0.5  # of what the pool counts by itself


def joined(pools: Sequence[Pool]) -> list[Pool]:
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
    known: dict[str, dict[str, Passage]] = {}
    for pool in whole:
        golden = {one.text: one for one in pool.passages if one.label}
        known.setdefault(question_key(pool.question), {}).update(golden)
    found = []
    for pool in whole:
        here = {one.text for one in pool.passages}
        more = known[question_key(pool.question)]
        added = [one for text, one in more.items() if text not in here]
        if added:
            found.append(_with(pool, added))
    return found


def _with(pool: Pool, added: Sequence[Passage]) -> Pool:
    labels = pool.labels
    place = labels.index(1) + 1 if 1 in labels else len(labels)
    passages = (*pool.passages[:place], *added, *pool.passages[place:])
    return replace(
        pool, id=f"{pool.id} (joined)", passages=passages, weight=pool.weight * JOINED_WEIGHT
    )
