"""Fits the scorer of the judge: everything above the encoder.

One after the other: background counts; what tells results; whether a passage is on topic; whether
two passages are of one study; and from all of it the rank of a passage among those of its question:
for questions over several papers, for questions over one paper, and for claims; at last, what
probability a rank stands for. Truncated pools teach probabilities alone. What a later model is
fitted on never comes from a model that saw the same group: groups are split, and each split is read
by models fitted on the others.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deepera_graph.calibration.statistics import fit_logistic
from deepera_graph.errors import InputError
from deepera_graph.judges.heuristic.roles import recognize_intent
from deepera_graph.judges.trained.features import ResultsClassifier
from deepera_graph.judges.trained.model import DIGITS, Encodes, EvidenceModel
from deepera_graph.judges.trained.pool_features import compute_context_features
from deepera_graph.judges.trained.reading.vectors import TokenCounts, sigmoid, tokenize
from deepera_graph.judges.trained.scorer import (
    N_SAME_DOCUMENT,
    EvidenceScorer,
    PoolScores,
    SameDocumentModel,
    list_same_document_inputs,
)
from deepera_graph.judges.trained.trees import Trees
from deepera_graph.lab.training.fitting.features import (
    N_SPLITS,
    ContextPool,
    FeaturedPool,
    FeatureExtractor,
    MatchedPool,
    assign_split,
    exclude_split,
)
from deepera_graph.lab.training.fitting.ranking import (
    ARTICLE,
    CLAIM,
    ONE_CLAIM,
    ONE_OF_ARTICLE,
    ONE_QUESTION,
    QUESTION,
    convert_trees,
    fit_ranker,
    fit_scaled_logistic,
    fit_single_passage,
    fit_trees,
)
from deepera_graph.lab.training.fitting.sentences import MarkedText, fit_sentences, match_marked
from deepera_graph.lab.training.lessons.augment import (
    exchange_passages,
    has_natural_negatives,
    label_own_paper,
    label_results,
    match_sizes,
    merge_evidence,
    mix_passages,
    replace_evidence,
    sample_pools,
    take_out_evidence,
    truncate_pools,
)
from deepera_graph.lab.training.lessons.pools import LabelledPassage, Pool
from deepera_graph.lab.training.measure import FitJudge, PoolScorer
from deepera_graph.lab.training.weights import Log, import_package, log_nothing
from deepera_graph.schema import Window, intent_fields
from deepera_graph.settings.thresholds import OPERATING_POINT

Floats = NDArray[np.float64]
MIN_COUNTED = 3  # a token in fewer background passages is not counted
LARGE = 3000  # distinct passages of a set from which its words are counted
TOP_CLAIM = 20  # passages of a claim that teach what is on topic
TOPIC_ROUNDS, LINK_ROUNDS = 150, 100
# Of all that pools are made into: more of it teaches what pools are like, not what evidence is.
MAX_TRUNCATED, MAX_MIXED = 1500, 600  # pools
SHARE_TAKEN_OUT = 0.5  # of the pools that stand without their evidence, too
N_ENSEMBLES = 3  # whose mean says so: one alone changes with the order of its pools
# one leaf: the first sentence is as good as any
UNDECIDED = convert_trees({"tree_info": [{"tree_structure": {"leaf_value": 0.0}}]}, n_trees=1)
NEVER_SAME_DOCUMENT = SameDocumentModel((0.0,) * N_SAME_DOCUMENT, -20.0)
_DIGITS = 6
_Taught = tuple[int, Floats, Any]  # split, numbers, labels


def fit_scorer(
    pools: Sequence[Pool],  # those of weight 0 are left out
    encoder: Encodes | FeatureExtractor,  # or what has matched the pools already
    *,
    seed: int = 0,
    log: Log = log_nothing,
    marked: Sequence[MarkedText] = (),  # teach which sentence answers
    without: Collection[str] = (),  # features that the ranking does without
    # gives what the pools cannot teach, e.g. counts where no set is large
    base: EvidenceScorer | None = None,
) -> EvidenceScorer:
    """Fit a scorer to pools; the same pools, seed and machine give the same one."""
    import_package("lightgbm")
    extractor = encoder if isinstance(encoder, FeatureExtractor) else FeatureExtractor(encoder)
    own = [pool for pool in pools if pool.weight]
    merged = merge_evidence(own)
    mixed = mix_passages(sample_pools(own, MAX_MIXED, seed), seed)
    truncated = [
        *sample_pools(list(truncate_pools([*own, *merged], seed)), MAX_TRUNCATED, seed),
        *sample_pools(list(truncate_pools(mixed, seed)), MAX_MIXED, seed),
    ]
    n_taken_out = round(SHARE_TAKEN_OUT * (len(own) + len(truncated)))
    taken_out = sample_pools([*own, *truncated], n_taken_out, seed)
    matched = extractor.match([*own, *merged], log)
    counts = count_tokens(own) or (base.counts if base else count_tokens(own, fewest=0))
    results = fit_results_classifier(matched, log) or (base.results if base else None)
    if counts is None or results is None:
        raise InputError(
            "no pool tells results from aims, methods or background of the same paper, and no "
            "judge is given to take that from"
        )
    classifiers = fit_results_classifiers(matched, results)

    def compare(some: Sequence[MatchedPool]) -> list[FeaturedPool]:
        splits = [assign_split(one.pool) for one in some]
        return [
            FeaturedPool(one, extractor.compare(one, counts, classifiers[split]), split)
            for one, split in zip(some, splits, strict=True)
        ]

    rows = compare(matched)
    learns = any(label_own_paper(row.pool) is not None for row in rows)
    if not learns and base is None:
        raise InputError("no pool holds other parts of the paper that answers its question")
    topics, topic = fit_topics(rows, seed, log, base if not learns else None)
    links, link = fit_links(rows, seed, log, base if not learns else None)

    def extract(pools: Sequence[Pool]) -> list[ContextPool]:
        return _add_context(compare(extractor.match(pools)), topics, links)

    beside = _add_context(rows, topics, links)
    exchanged = extract(list(exchange_passages(own, seed)))
    bare = extract([*take_out_evidence(taken_out), *replace_evidence(mixed, seed)])
    altered = extract([*truncated, *mixed, *match_sizes(taken_out, seed)])
    rank = partial(
        fit_ranker,
        beside[: len(own)],
        merged=beside[len(own) :],
        altered=altered,
        bare=[*bare, *exchanged],
        seed=seed,
        log=log,
        without=without,
    )
    alone = partial(fit_single_passage, rows, seed=seed, log=log, without=without)
    fitted = [rank(kind) for kind in (QUESTION, ARTICLE, CLAIM)]
    question, article, claim = (None if one is None else one.ranker for one in fitted)
    points = [one.operating_point for one in fitted if one is not None]
    one_question, one_claim = alone(ONE_QUESTION) or alone(ONE_OF_ARTICLE), alone(ONE_CLAIM)
    sentence = fit_sentences(match_marked(marked, extractor.encoder), results)
    sentence = sentence or (base.sentence if base else UNDECIDED)
    any_of_them, one = question or article or claim, one_question or one_claim
    if any_of_them is None or one is None:
        raise InputError("no question has both evidence and something else among its passages")
    same_document = base.same_document if base else NEVER_SAME_DOCUMENT
    return EvidenceScorer(
        counts=counts,
        results=results,
        topic=topic,
        link=link,
        question=question or (base.question if base else any_of_them),
        article=article or (base.article if base else any_of_them),
        claim=claim or (base.claim if base else any_of_them),
        question_alone=one_question or (base.question_alone if base else one),
        claim_alone=one_claim or (base.claim_alone if base else one),
        same_document=fit_same_document([*beside, *exchanged]) or same_document,
        sentence=sentence,
        operating_point=points[0] if points else OPERATING_POINT,
        about={"questions": dict(Counter(pool.set for pool in own)), "seed": seed},
    )


def _add_context(
    rows: Sequence[FeaturedPool], topics: Sequence[Trees], links: Sequence[Trees]
) -> list[ContextPool]:
    found = []
    for row in rows:
        on_topic = sigmoid(topics[row.split].predict(row.features.topic_features()))
        context = compute_context_features(row.features, on_topic, links[row.split])
        found.append(ContextPool(row, context))
    return found


def count_tokens(pools: Sequence[Pool], fewest: int = LARGE) -> TokenCounts | None:
    """Count in how many passages of the large sets each token is; None if no set is large."""
    by_set: dict[str, set[str]] = {}
    for pool in pools:
        by_set.setdefault(pool.set, set()).update(f"{x.title} {x.text}" for x in pool.passages)
    texts = sorted({text for its in by_set.values() if len(its) >= fewest for text in its})
    if not texts:
        return None
    found = Counter(token for text in texts for token in set(tokenize(text)))
    kept = {token: n for token, n in sorted(found.items()) if n >= MIN_COUNTED}
    return TokenCounts(len(texts), kept)


def fit_same_document(pools: Sequence[ContextPool]) -> SameDocumentModel | None:
    """Fit it to questions; None if those over one paper or those over several are missing.

    Some should be over passages that were found for another question, which says nothing of it.
    """
    asked = [one for one in pools if not one.row.matched.is_claim and one.has_others]
    kinds = [one.row.pool.of_one_paper for one in asked]
    if len(set(kinds)) < 2:
        return None
    numbers = np.stack([list_same_document_inputs(one.context) for one in asked])
    return SameDocumentModel(*fit_scaled_logistic(numbers, kinds, balanced=True))


def fit_results_classifiers(
    matched: Sequence[MatchedPool], whole: ResultsClassifier
) -> list[ResultsClassifier]:
    """Return, for each split, what was fitted on the others; *whole* where they teach nothing."""
    return [
        fit_results_classifier(exclude_split(matched, split, lambda one: assign_split(one.pool)))
        or whole
        for split in range(N_SPLITS)
    ]


def fit_results_classifier(
    matched: Sequence[MatchedPool], log: Log = log_nothing
) -> ResultsClassifier | None:
    """Fit what tells results from aims, methods and background; None if nothing teaches it."""
    # From evidence against other parts of its paper. Sections of articles teach only where nothing
    # else does: a section named results may hold anything, and thousands of them outweigh the rest.
    several = [one for one in matched if not one.pool.of_one_paper]
    return _fit_results(several, log) or _fit_results(matched, log)


def _fit_results(matched: Sequence[MatchedPool], log: Log) -> ResultsClassifier | None:
    taught: dict[str, tuple[Any, Any, int, float]] = {}
    for one in matched:
        for passage, match in zip(one.pool.passages, one.matches, strict=True):
            label = label_results(one.pool, passage.kind, passage.label)
            if label is not None:
                taught.setdefault(passage.text, (match.body, match.sentences, *label))
    if len({label for *_, label, _ in taught.values()}) < 2:
        return None
    bodies, sentences, labels, weights = zip(*taught.values(), strict=True)
    n_sentences = [len(one) for one in sentences]
    of_passage = fit_logistic(np.stack(bodies), np.array(labels), np.array(weights), C=3.0)
    of_sentence = fit_logistic(
        np.concatenate(sentences),
        np.repeat(labels, n_sentences),
        np.repeat(weights, n_sentences),
        C=1.0,
    )
    log({"step": "role", "passages": len(labels), "results": sum(labels)})
    return ResultsClassifier(
        np.round(of_passage.weights, _DIGITS).astype(np.float64),
        of_passage.intercept,
        np.round(of_sentence.weights, _DIGITS).astype(np.float64),
        of_sentence.intercept,
    )


def fit_topics(
    rows: Sequence[FeaturedPool], seed: int, log: Log, base: EvidenceScorer | None
) -> tuple[Sequence[Trees], Trees]:
    """Return models of whether a passage is on topic: for each split, and of all."""
    if base is not None:
        return [base.topic] * N_SPLITS, base.topic
    taught: list[_Taught] = []
    for row in rows:
        own = label_own_paper(row.pool) if has_natural_negatives(row.pool) else None
        features = row.features.topic_features()
        if own is not None:
            taught.append((row.split, features, own))
        elif row.matched.is_claim and not row.pool.of_one_paper:
            golden_first = np.argsort(-row.labels, kind="stable")[:TOP_CLAIM]
            taught.append((row.split, features[golden_first], row.labels[golden_first] > 0))
    log({"step": "topic", "pools": len(taught), "passages": sum(len(x) for _, x, _ in taught)})
    return _fit_splits(taught, TOPIC_ROUNDS, seed)


def fit_links(
    rows: Sequence[FeaturedPool], seed: int, log: Log, base: EvidenceScorer | None
) -> tuple[Sequence[Trees], Trees]:
    """Return models of whether two passages are of one study: for each split, and of all."""
    if base is not None:
        return [base.link] * N_SPLITS, base.link
    taught: list[_Taught] = []
    for row in rows:
        own = label_own_paper(row.pool) if has_natural_negatives(row.pool) else None
        if own is None:
            continue
        n = len(own)
        pairs = row.features.link_features(np.arange(n))
        either = (own[:, None] | own[None]) & ~np.eye(n, dtype=np.bool_)
        both = own[:, None] & own[None]
        taught.append((row.split, pairs[either], both[either]))
    log({"step": "link", "pools": len(taught), "pairs": sum(len(x) for _, x, _ in taught)})
    return _fit_splits(taught, LINK_ROUNDS, seed)


def _fit_splits(taught: Sequence[_Taught], rounds: int, seed: int) -> tuple[list[Trees], Trees]:
    fit = partial(_fit_binary, rounds=rounds, seed=seed)
    splits = [fit(exclude_split(taught, split, itemgetter(0))) for split in range(N_SPLITS)]
    return splits, fit(taught)


def _fit_binary(taught: Sequence[_Taught], rounds: int, seed: int) -> Trees:
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


def build_learner(extractor: FeatureExtractor, base: EvidenceScorer | None = None) -> FitJudge:
    """Return what fits the judge of this package; *base* must not know what is measured."""

    def learn(
        pools: Sequence[Pool], *, seed: int, log: Log, without: Collection[str] = ()
    ) -> PoolScorer:
        scorer = fit_scorer(pools, extractor, seed=seed, log=log, without=without, base=base)
        return build_scorer(scorer, extractor)

    return learn


def build_scorer(scorer: EvidenceScorer, extractor: FeatureExtractor) -> PoolScorer:
    """Return what scores a pool by a scorer that is in no folder yet, as a run would."""

    def score(pool: Pool) -> list[float]:
        distinct = {_text_and_title(one): one for one in pool.passages}
        whole = pool.with_passages(tuple(distinct.values()))
        found = np.round(score_pool(scorer, extractor, whole).evidence, DIGITS)
        scores = dict(zip(distinct, found.tolist(), strict=True))
        return [scores[_text_and_title(one)] for one in pool.passages]

    return score


def score_pool(scorer: EvidenceScorer, extractor: FeatureExtractor, pool: Pool) -> PoolScores:
    """Return what the trees say of the passages of a pool."""
    [matched] = extractor.match([pool])
    features = extractor.compare(matched, scorer.counts, scorer.results)
    return scorer.score_pool(pool.question, features)


def build_model_scorer(model: EvidenceModel) -> PoolScorer:
    """Return what scores a pool by loaded weights, as a run does: equal passages once."""

    def score(pool: Pool) -> list[float]:
        intent = intent_fields(recognize_intent({"question": pool.question, "problem": ""}))
        windows: dict[tuple[str, str], Window] = {
            _text_and_title(one): {"text": one.text, "title": one.title, "section": ""}
            for one in pool.passages
        }
        judged = model.judge(pool.question, intent, list(windows.values()))
        scores = {key: one.score for key, one in zip(windows, judged, strict=True)}
        return [scores[_text_and_title(one)] for one in pool.passages]

    return score


def _text_and_title(passage: LabelledPassage) -> tuple[str, str]:
    return passage.text, passage.title
