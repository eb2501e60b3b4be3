"""Fits the head of the judge: everything above the encoder.

One after the other: background counts; the results role; whether a passage is on topic; whether
two passages are of one study; and from all of it the rank of a passage among those of its question:
for questions over several papers, for questions over one paper, and for claims; at last, what
probability a rank stands for. Pools of few passages (`few`) teach probabilities alone. What a
later model is fitted on never comes from a model that saw the same group: groups are cut in parts,
and each part is read by models fitted on the others.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial

from deepera_graph.errors import InputError
from deepera_graph.judge.head import Head
from deepera_graph.judge.model import Encodes
from deepera_graph.judge.odds import probability
from deepera_graph.judge.surroundings import surroundings
from deepera_graph.judge.train.few import few
from deepera_graph.judge.train.fit_counts import fit_counts
from deepera_graph.judge.train.fit_one_paper import NEVER, fit_one_paper
from deepera_graph.judge.train.fit_ranking import (
    ARTICLE,
    CLAIM,
    ONE_CLAIM,
    ONE_OF_ARTICLE,
    ONE_QUESTION,
    QUESTION,
    fit_alone,
    fit_ranking,
)
from deepera_graph.judge.train.fit_role import fit_role, fit_roles
from deepera_graph.judge.train.fit_studies import fit_links, fit_topics
from deepera_graph.judge.train.joined import joined
from deepera_graph.judge.train.lessons import own_parts
from deepera_graph.judge.train.log import Log, silent
from deepera_graph.judge.train.material import Looked, Material
from deepera_graph.judge.train.near import Near
from deepera_graph.judge.train.packages import needed
from deepera_graph.judge.train.parts import part_of
from deepera_graph.judge.train.pool import Pool
from deepera_graph.judge.train.row import Row


def fit(
    pools: Sequence[Pool],
    encoder: Encodes | Material,
    *,
    seed: int = 0,
    log: Log = silent,
    without: Collection[str] = (),
    base: Head | None = None,
    tells_course: bool = False,
) -> Head:
    """Fit a head to pools.

    Args:
        pools: What is trained on; those of weight 0 are left out.
        encoder: Makes vectors of texts, or what has looked at the pools already.
        seed: The same pools, seed and machine give the same head.
        log: Told of each step.
        without: Signals that the ranking does without, out of the values of `SIGNALS`.
        base: Gives what the pools cannot teach: counts where no set is large; role, topic and link
            where no pool says which passages are aims, methods or background of the same paper;
            rankings of kinds of questions that are not among the pools. Without it a ranking of
            another kind stands in.
        tells_course: Whether the log is told how good the rankings are with fewer trees.

    Raises:
        InputError: The pools cannot teach something, and there is no *base* to take it from.
        SettingsError: A package of the extra ``train`` is missing.
    """
    needed("lightgbm")
    material = encoder if isinstance(encoder, Material) else Material(encoder)
    own = [pool for pool in pools if pool.weight]
    more = joined(own)
    short = list(few([*own, *more], seed))
    looked = material.look([*own, *more], log)
    counts = fit_counts(own) or (base.counts if base else fit_counts(own, fewest=0))
    role = fit_role(looked, log) or (base.role if base else None)
    if counts is None or role is None:
        raise InputError(
            "no pool tells results from aims, methods or background of the same paper, and there "
            "is no judge to take that from"
        )
    roles = fit_roles(looked, role)

    def compared(some: Sequence[Looked]) -> list[Row]:
        places = [part_of(one.pool) for one in some]
        return [
            Row(one, material.company(one, counts, roles[part]), part)
            for one, part in zip(some, places, strict=True)
        ]

    rows = compared(looked)
    learns = any(own_parts(row.pool) is not None for row in rows)
    if not learns and base is None:
        raise InputError("no pool holds other parts of the paper that answers its question")
    topics, topic = fit_topics(rows, seed, log, base if not learns else None)
    links, link = fit_links(rows, seed, log, base if not learns else None)

    def near(some: Sequence[Row]) -> list[Near]:
        return [
            Near(
                row,
                surroundings(
                    row.company,
                    probability(topics[row.part].log_odds(row.company.topic())),
                    links[row.part],
                ),
            )
            for row in some
        ]

    def found(pools: Sequence[Pool]) -> list[Near]:
        return near(compared(material.look(pools)))

    beside = near(rows)
    rank = partial(
        fit_ranking,
        beside[: len(own)],
        joined=beside[len(own) :],
        few=found(short),
        bare=found(_without_evidence([*own, *short])),
        seed=seed,
        log=log,
        without=without,
        tells_course=tells_course,
    )
    alone = partial(fit_alone, rows, seed=seed, log=log, without=without)
    question, article, claim = rank(QUESTION), rank(ARTICLE), rank(CLAIM)
    one_question, one_claim = alone(ONE_QUESTION) or alone(ONE_OF_ARTICLE), alone(ONE_CLAIM)
    any_of_them, one = question or article or claim, one_question or one_claim
    if any_of_them is None or one is None:
        raise InputError("no question has both evidence and something else among its passages")
    return Head(
        counts=counts,
        role=role,
        topic=topic,
        link=link,
        question=question or (base.question if base else any_of_them),
        article=article or (base.article if base else any_of_them),
        claim=claim or (base.claim if base else any_of_them),
        question_alone=one_question or (base.question_alone if base else one),
        claim_alone=one_claim or (base.claim_alone if base else one),
        one_paper=fit_one_paper(beside) or (base.one_paper if base else NEVER),
        about={"questions": dict(Counter(pool.set for pool in own)), "seed": seed},
    )


def _without_evidence(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools that have evidence and two other passages or more, without the evidence."""
    kept = [(pool, tuple(one for one in pool.passages if not one.label)) for pool in pools]
    return [pool.with_passages(rest) for pool, rest in kept if 1 < len(rest) < len(pool.passages)]
