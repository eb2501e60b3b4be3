"""The pool of a question: what retrieval found, with or without distractors."""

from collections.abc import Iterable, Sequence
from random import Random

from deepera_graph.bench.build.corpus import Chunk
from deepera_graph.bench.build.draft import Distractor, Draft
from deepera_graph.bench.build.pairs import Pair, folded
from deepera_graph.bench.build.plan import BuildPlan, Golden, Setting
from deepera_graph.bench.build.search import Found
from deepera_graph.bench.instance import Context, Instance


def with_golden(
    found: Sequence[Found], pair: Pair, *, n: int, golden: Golden
) -> tuple[tuple[Found, ...], bool]:
    """Return the pool, and whether retrieval found the golden chunk.

    Args:
        found: What retrieval found, best first.
        pair: Has the golden chunk.
        n: Passages in the pool.
        golden: What to do if it is missing.
    """
    pool = tuple(found[:n])
    was_found = any(one.chunk == pair.golden for one in pool)
    if was_found or golden == "record":
        return pool, was_found
    return (*pool[: n - 1], Found(pair.golden, None, None)), False


def ambiguous(chunks: Iterable[Chunk], pair: Pair) -> frozenset[str]:
    """Return the other chunks of the golden document that have the answer's words.

    Whether they answer the question nobody has said, so they belong in no pool.
    """
    wanted = folded(pair.answer)
    return frozenset(one.id for one in chunks if one != pair.golden and wanted in folded(one.text))


def instance_of(draft: Draft, setting: Setting, plan: BuildPlan) -> Instance:
    """Return the instance of a draft in one setting."""
    natural = [_context(one, draft) for one in draft.pool]
    contexts = natural if setting == "base" else _with_distractors(natural, draft, plan)
    golden = draft.pair.golden.id
    outside = {} if any(one.id == golden for one in contexts) else {golden: 1}
    return Instance(
        id=draft.id,
        dataset=draft.dataset,
        setting=setting,
        subject=draft.subject,
        question=draft.pair.question,
        gold_answer=draft.pair.answer,
        contexts=tuple(contexts),
        golden_outside=outside,
    )


def _with_distractors(natural: list[Context], draft: Draft, plan: BuildPlan) -> list[Context]:
    """Put distractors at random places, in the room of the last passages that are not golden."""
    room = max(0, len(natural) + len(draft.distractors) - plan.n_contexts)
    leaving = [one for one in reversed(natural) if not one.is_golden][:room]
    pool = [one for one in natural if one not in leaving]
    chance = Random(f"{plan.seed} places {draft.id}")
    n_places = len(pool) + len(draft.distractors)
    places = chance.sample(range(n_places), len(draft.distractors))
    for place, number in sorted(zip(places, range(len(places)), strict=True)):
        pool.insert(place, _written(draft, number, draft.distractors[number]))
    return pool


def _context(found: Found, draft: Draft) -> Context:
    chunk = found.chunk
    return Context(
        id=chunk.id,
        text=chunk.text,
        is_golden=chunk == draft.pair.golden,
        first_stage_rank=found.rank,
        first_stage_score=found.score,
    )


def _written(draft: Draft, number: int, distractor: Distractor) -> Context:
    return Context(
        id=f"{draft.id}~{number + 1}",
        text=distractor.text,
        is_distractor=True,
        distractor_type=distractor.type,
        parent_id=draft.pair.golden.id,
    )
