"""The judge of this package, as something that learns from pools and scores them."""

from collections.abc import Collection, Sequence

import numpy as np

from deepera_graph.backends.local.intent import recognize
from deepera_graph.judge.head import Head
from deepera_graph.judge.model import DIGITS, EvidenceModel
from deepera_graph.judge.train.fit import fit
from deepera_graph.judge.train.learn import Learn
from deepera_graph.judge.train.log import Log
from deepera_graph.judge.train.material import Material
from deepera_graph.judge.train.pool import Passage, Pool
from deepera_graph.judge.train.scored import Scorer
from deepera_graph.roles import PassageText, intent_fields


def learner(material: Material, base: Head | None = None) -> Learn:
    """Return what fits the judge of this package to pools that are looked at.

    Args:
        material: Looks at pools.
        base: Gives what some pools cannot teach, see `fit`; it must not know what is measured.
    """

    def learn(
        pools: Sequence[Pool], *, seed: int, log: Log, without: Collection[str] = ()
    ) -> Scorer:
        head = fit(pools, material, seed=seed, log=log, without=without, base=base)
        return head_scorer(head, material)

    return learn


def head_scorer(head: Head, material: Material) -> Scorer:
    """Return what scores a pool by a head that is in no folder yet, as a run would."""

    def score(pool: Pool) -> list[float]:
        unlike = pool.with_passages(tuple(dict(_by_text(pool)).values()))
        [looked] = material.look([unlike])
        company = material.company(looked, head.counts, head.role)
        found = np.round(head.weigh(pool.question, company).evidence, DIGITS)
        scores = dict(zip(map(_bare, unlike.passages), found.tolist(), strict=True))
        return [scores[_bare(one)] for one in pool.passages]

    return score


def model_scorer(model: EvidenceModel) -> Scorer:
    """Return what scores a pool by loaded weights, as a run does: a survey, then each passage.

    Passages that are alike are judged once, as in a run.
    """

    def score(pool: Pool) -> list[float]:
        intent = intent_fields(recognize({"question": pool.question, "problem": ""}))
        texts: dict[tuple[str, str], PassageText] = {
            bare: {"text": one.text, "title": one.title, "section": ""}
            for bare, one in _by_text(pool)
        }
        notes = model.survey(
            {"question": pool.question, "intent": intent, "passages": list(texts.values())}
        )
        scores = {
            bare: model.judge(
                {
                    "question": pool.question,
                    "intent": intent,
                    "text": text["text"],
                    "title": text["title"],
                    "section": text["section"],
                    "notes": its,
                }
            ).score
            for (bare, text), its in zip(texts.items(), notes, strict=True)
        }
        return [scores[_bare(one)] for one in pool.passages]

    return score


def _by_text(pool: Pool) -> list[tuple[tuple[str, str], Passage]]:
    return [(_bare(one), one) for one in pool.passages]


def _bare(passage: Passage) -> tuple[str, str]:
    return passage.text, passage.title
