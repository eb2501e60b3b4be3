"""Fits the head of the judge: everything above the encoder.

One after the other: background counts; the results role; whether a passage is on topic; whether
two passages are of one study; and from all of it the rank of a passage among those of its question:
for questions over several papers, for questions over one paper, and for claims; at last, what
probability a rank stands for. Truncated pools teach probabilities alone. What a
later model is fitted on never comes from a model that saw the same group: groups are cut in parts,
and each part is read by models fitted on the others.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import InputError
from deepera_graph.judges.heuristic.intent import recognize_intent
from deepera_graph.judges.trained.features import ResultsClassifier
from deepera_graph.judges.trained.model import DIGITS, Encodes, EvidenceModel
from deepera_graph.judges.trained.pool_features import compute_context_features
from deepera_graph.judges.trained.scorer import (
    N_POOL,
    EvidenceScorer,
    SameDocumentModel,
    list_same_document_inputs,
)
from deepera_graph.judges.trained.similarity import TokenCounts, sigmoid, tokenize
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.schema import PassageText, intent_fields
from deepera_graph.training.augment import (
    has_natural_negatives,
    label_own_paper,
    label_results,
    merge_evidence,
    truncate_pools,
)
from deepera_graph.training.data import LabelledPassage, Pool
from deepera_graph.training.evaluate import FitJudge, PoolScorer
from deepera_graph.training.features import (
    N_SPLITS,
    ContextPool,
    FeaturedPool,
    FeatureExtractor,
    MatchedPool,
    assign_split,
    exclude_split,
)
from deepera_graph.training.fit_ranking import (
    ARTICLE,
    CLAIM,
    ONE_CLAIM,
    ONE_OF_ARTICLE,
    ONE_QUESTION,
    QUESTION,
    fit_ranker,
    fit_scaled_logistic,
    fit_single_passage,
    fit_trees,
)
from deepera_graph.training.log import Log, log_nothing, needed

FEWEST_PASSAGES = 3  # a token in fewer background passages is not counted
LARGE = 3000  # distinct passages of a set from which its words are counted


def fit_counts(pools: Sequence[Pool], fewest: int = LARGE) -> TokenCounts | None:
    """Count in how many passages of the large sets each token is; None if no set is large."""
    by_set: dict[str, set[str]] = {}
    for pool in pools:
        by_set.setdefault(pool.set, set()).update(f"{x.title} {x.text}" for x in pool.passages)
    texts = sorted({text for its in by_set.values() if len(its) >= fewest for text in its})
    if not texts:
        return None
    found = Counter(token for text in texts for token in set(tokenize(text)))
    kept = {token: n for token, n in sorted(found.items()) if n >= FEWEST_PASSAGES}
    return TokenCounts(len(texts), kept)


NEVER_SAME_DOCUMENT = SameDocumentModel((0.0,) * N_POOL, -20.0)


def fit_same_document(pools: Sequence[ContextPool]) -> SameDocumentModel | None:
    """Fit it to questions; None if those over one paper or those over several are missing.

    Both kinds count the same in all, however many there are of each.
    """
    asked = [one for one in pools if not one.row.looked.is_claim and one.has_others]
    kinds = [one.row.pool.of_one_paper for one in asked]
    if len(set(kinds)) < 2:
        return None
    numbers = np.stack([list_same_document_inputs(one.around) for one in asked])
    return SameDocumentModel(*fit_scaled_logistic(numbers, kinds, balanced=True))


_DIGITS = 6


def fit_results_classifiers(
    looked: Sequence[MatchedPool], whole: ResultsClassifier
) -> list[ResultsClassifier]:
    """Return, for each part, what was fitted on the others; *whole* where they teach nothing."""
    return [
        fit_results_classifier(exclude_split(looked, part, lambda one: assign_split(one.pool)))
        or whole
        for part in range(N_SPLITS)
    ]


def fit_results_classifier(
    looked: Sequence[MatchedPool], log: Log = log_nothing
) -> ResultsClassifier | None:
    """Fit what tells results from aims, methods and background; None if nothing teaches it.

    Evidence of questions that have other parts of the same paper beside it, against those parts;
    and, at less weight, results sections of articles against their other sections.
    """
    vectors: dict[str, tuple[Any, Any, int, float]] = {}
    for one in looked:
        for passage, seen in zip(one.pool.passages, one.looks, strict=True):
            taught = label_results(one.pool, passage.kind, passage.label)
            if taught is not None:
                label, weight = taught
                vectors.setdefault(passage.text, (seen.body, seen.sentences, label, weight))
    labels = {label for *_, label, _ in vectors.values()}
    if len(labels) < 2:
        return None
    linear = needed("sklearn.linear_model")
    rows = list(vectors.values())
    y, w = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    passages = linear.LogisticRegression(C=3.0, max_iter=2000).fit(
        np.stack([row[0] for row in rows]), y, w
    )
    n_sentences = [len(row[1]) for row in rows]
    sentences = linear.LogisticRegression(C=1.0, max_iter=2000).fit(
        np.concatenate([row[1] for row in rows]),
        np.repeat(y, n_sentences),
        np.repeat(w, n_sentences),
    )
    log({"step": "role", "passages": len(rows), "results": int(y.sum())})
    return ResultsClassifier(
        _rounded(passages.coef_[0]),
        float(passages.intercept_[0]),
        _rounded(sentences.coef_[0]),
        float(sentences.intercept_[0]),
    )


def _rounded(values: Any) -> NDArray[np.float64]:
    return np.asarray(np.round(values, _DIGITS), np.float64)


Floats = NDArray[np.float64]
TOP_CLAIM = 20  # passages of a claim that teach what is on topic
TOPIC_ROUNDS, LINK_ROUNDS = 150, 100
N_ENSEMBLES = 3  # whose mean says so: one alone changes with the order of its pools
_Taught = tuple[int, Floats, Any]  # part, numbers, labels


def fit_topics(
    rows: Sequence[FeaturedPool], seed: int, log: Log, base: EvidenceScorer | None
) -> tuple[Sequence[Trees], Trees]:
    """Return models of whether a passage is on topic: for each part, and of all."""
    if base is not None:
        return [base.topic] * N_SPLITS, base.topic
    taught = []
    for row in rows:
        own = label_own_paper(row.pool) if has_natural_negatives(row.pool) else None
        if own is not None:
            taught.append((row.part, row.company.topic(), own))
        elif row.looked.is_claim and not row.pool.of_one_paper:
            golden_first = np.argsort(-row.looked.labels, kind="stable")[:TOP_CLAIM]
            taught.append(
                (
                    row.part,
                    row.company.topic()[golden_first],
                    row.looked.labels[golden_first] > 0,
                )
            )
    log({"step": "topic", "pools": len(taught), "passages": sum(len(x) for _, x, _ in taught)})
    return _by_part(taught, TOPIC_ROUNDS, seed), _binary(taught, TOPIC_ROUNDS, seed)


def fit_links(
    rows: Sequence[FeaturedPool], seed: int, log: Log, base: EvidenceScorer | None
) -> tuple[Sequence[Trees], Trees]:
    """Return models of whether two passages are of one study: for each part, and of all."""
    if base is not None:
        return [base.link] * N_SPLITS, base.link
    taught = []
    for row in rows:
        own = label_own_paper(row.pool) if has_natural_negatives(row.pool) else None
        if own is None:
            continue
        n = len(own)
        pairs = row.company.links(np.arange(n))
        either = (own[:, None] | own[None]) & ~np.eye(n, dtype=np.bool_)
        both = own[:, None] & own[None]
        taught.append((row.part, pairs[either], both[either]))
    log({"step": "link", "pools": len(taught), "pairs": sum(len(x) for _, x, _ in taught)})
    return _by_part(taught, LINK_ROUNDS, seed), _binary(taught, LINK_ROUNDS, seed)


def _by_part(taught: Sequence[_Taught], rounds: int, seed: int) -> list[Trees]:
    return [
        _binary(exclude_split(taught, part, itemgetter(0)), rounds, seed)
        for part in range(N_SPLITS)
    ]


def _binary(taught: Sequence[_Taught], rounds: int, seed: int) -> Trees:
    if not taught:
        raise InputError(
            "no pool tells the paper that answers from others, as each has look-alikes that were "
            "written to mislead"
        )
    return fit_trees(
        np.concatenate([x for _, x, _ in taught]),
        np.concatenate([y for *_, y in taught]).astype(np.int64),
        rounds=rounds,
        seed=seed,
        n_ensembles=N_ENSEMBLES,
    )


def fit_scorer(
    pools: Sequence[Pool],
    encoder: Encodes | FeatureExtractor,
    *,
    seed: int = 0,
    log: Log = log_nothing,
    without: Collection[str] = (),
    base: EvidenceScorer | None = None,
    tells_course: bool = False,
) -> EvidenceScorer:
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
    material = encoder if isinstance(encoder, FeatureExtractor) else FeatureExtractor(encoder)
    own = [pool for pool in pools if pool.weight]
    more = merge_evidence(own)
    short = list(truncate_pools([*own, *more], seed))
    looked = material.look([*own, *more], log)
    counts = fit_counts(own) or (base.counts if base else fit_counts(own, fewest=0))
    role = fit_results_classifier(looked, log) or (base.results if base else None)
    if counts is None or role is None:
        raise InputError(
            "no pool tells results from aims, methods or background of the same paper, and there "
            "is no judge to take that from"
        )
    roles = fit_results_classifiers(looked, role)

    def compared(some: Sequence[MatchedPool]) -> list[FeaturedPool]:
        places = [assign_split(one.pool) for one in some]
        return [
            FeaturedPool(one, material.company(one, counts, roles[part]), part)
            for one, part in zip(some, places, strict=True)
        ]

    rows = compared(looked)
    learns = any(label_own_paper(row.pool) is not None for row in rows)
    if not learns and base is None:
        raise InputError("no pool holds other parts of the paper that answers its question")
    topics, topic = fit_topics(rows, seed, log, base if not learns else None)
    links, link = fit_links(rows, seed, log, base if not learns else None)

    def near(some: Sequence[FeaturedPool]) -> list[ContextPool]:
        return [
            ContextPool(
                row,
                compute_context_features(
                    row.company,
                    sigmoid(topics[row.part].predict(row.company.topic())),
                    links[row.part],
                ),
            )
            for row in some
        ]

    def found(pools: Sequence[Pool]) -> list[ContextPool]:
        return near(compared(material.look(pools)))

    beside = near(rows)
    rank = partial(
        fit_ranker,
        beside[: len(own)],
        joined=beside[len(own) :],
        few=found(short),
        bare=found(_without_evidence([*own, *short])),
        seed=seed,
        log=log,
        without=without,
        tells_course=tells_course,
    )
    alone = partial(fit_single_passage, rows, seed=seed, log=log, without=without)
    question, article, claim = rank(QUESTION), rank(ARTICLE), rank(CLAIM)
    one_question, one_claim = alone(ONE_QUESTION) or alone(ONE_OF_ARTICLE), alone(ONE_CLAIM)
    any_of_them, one = question or article or claim, one_question or one_claim
    if any_of_them is None or one is None:
        raise InputError("no question has both evidence and something else among its passages")
    return EvidenceScorer(
        counts=counts,
        results=role,
        topic=topic,
        link=link,
        question=question or (base.question if base else any_of_them),
        article=article or (base.article if base else any_of_them),
        claim=claim or (base.claim if base else any_of_them),
        question_alone=one_question or (base.question_alone if base else one),
        claim_alone=one_claim or (base.claim_alone if base else one),
        same_document=fit_same_document(beside)
        or (base.same_document if base else NEVER_SAME_DOCUMENT),
        about={"questions": dict(Counter(pool.set for pool in own)), "seed": seed},
    )


def _without_evidence(pools: Sequence[Pool]) -> list[Pool]:
    """Return the pools that have evidence and two other passages or more, without the evidence."""
    kept = [(pool, tuple(one for one in pool.passages if not one.label)) for pool in pools]
    return [pool.with_passages(rest) for pool, rest in kept if 1 < len(rest) < len(pool.passages)]


def build_learner(material: FeatureExtractor, base: EvidenceScorer | None = None) -> FitJudge:
    """Return what fits the judge of this package to pools that are looked at.

    Args:
        material: Looks at pools.
        base: Gives what some pools cannot teach, see `fit_scorer`; not trained on what is measured.
    """

    def learn(
        pools: Sequence[Pool], *, seed: int, log: Log, without: Collection[str] = ()
    ) -> PoolScorer:
        head = fit_scorer(pools, material, seed=seed, log=log, without=without, base=base)
        return build_scorer(head, material)

    return learn


def build_scorer(head: EvidenceScorer, material: FeatureExtractor) -> PoolScorer:
    """Return what scores a pool by a head that is in no folder yet, as a run would."""

    def score(pool: Pool) -> list[float]:
        unlike = pool.with_passages(tuple(dict(_by_text(pool)).values()))
        [looked] = material.look([unlike])
        company = material.company(looked, head.counts, head.results)
        found = np.round(head.score_pool(pool.question, company).evidence, DIGITS)
        scores = dict(zip(map(_bare, unlike.passages), found.tolist(), strict=True))
        return [scores[_bare(one)] for one in pool.passages]

    return score


def build_model_scorer(model: EvidenceModel) -> PoolScorer:
    """Return what scores a pool by loaded weights, as a run does: a survey, then each passage.

    Passages that are alike are judged once, as in a run.
    """

    def score(pool: Pool) -> list[float]:
        intent = intent_fields(recognize_intent({"question": pool.question, "problem": ""}))
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


def _by_text(pool: Pool) -> list[tuple[tuple[str, str], LabelledPassage]]:
    return [(_bare(one), one) for one in pool.passages]


def _bare(passage: LabelledPassage) -> tuple[str, str]:
    return passage.text, passage.title
