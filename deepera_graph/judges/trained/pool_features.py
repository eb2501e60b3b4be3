"""What the passages of one question show together.

A results passage need not name what the question asks: it says "the rate fell to 12 %". The aims of
the same study do name it, and the two share abbreviations, numbers and names. So each passage is
asked how far it is *on topic*, each two passages how likely they are *of one study*, and a passage
is supported by those that are both of its study and on topic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepera_graph.judges.trained.features import PassageFeatures, PassageReading
from deepera_graph.judges.trained.reading.vectors import (
    LexicalSimilarity,
    TokenCounts,
    measure_lexical_similarity,
    pairwise_dot,
    sigmoid,
)
from deepera_graph.judges.trained.trees import Trees

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]

COPY_COSINE = 0.985  # passages this alike are taken for copies, and do not support each other
N_TOPICAL = 8  # passages that can support others: the most topical ones
_FAR = -9.0
_ROLE = PassageFeatures._fields.index("role")
N_BEFORE_ROLE = _ROLE  # the features before it do not depend on the results classifier
_TO_TRUST = 5  # passages in a pool at which a distance from its mean counts half
_LEAST = 1e-6  # standard deviation, below which all passages count as equal

CONTEXT_FEATURES = (
    *("near_cosine", "near_words", "wide_cosine", "wide_words"),
    *("topmost_cosine", "topmost_words", "top_cosine", "top_words"),
    *("neighbour_cosine", "neighbour_words", "neighbour_topic"),
    *("lead", "lead_second", "words_lead", "words", "others_best"),
    *("by_topic_cosine", "by_topic_words", "by_words_words"),
    *("by_aims_cosine", "by_aims_words", "others_aims"),
    *("topic", "support", "support_any", "link", "linked_topic"),
    *("topic_lead", "supported_lead", "link_two", "support_aims"),
    *("telling", "telling_near", "telling_z", "telling_near_z"),
    *("telling_sentence", "telling_near_sentence", "telling_least", "telling_least3"),
    *("telling_near_lead", "telling_sentence_lead"),
    *("pool_cosine", "pool_topic_cosine", "pool_spread", "pool_topic", "pool_role"),
)
N_NEAR = 12  # passages, the best matched, among which a token of the question may tell
_LEAST_SPREAD = 0.05  # of cosines, added to their standard deviation
SINGLE_FEATURES = (*PassageFeatures._fields, "words_here", "words")
TOPIC_FEATURES = (*PassageFeatures._fields[:N_BEFORE_ROLE], "words_here", "words", "role")
_ABSOLUTE = (*PassageFeatures._fields, *CONTEXT_FEATURES)
# the same for all passages of a pool, or a distance from the others already
_NOT_COMPARED = frozenset(
    (
        *("is_question", "question_length", "lead", "lead_second", "words_lead"),
        *("topic_lead", "supported_lead", "telling_near_lead", "telling_sentence_lead"),
        *(name for name in CONTEXT_FEATURES if name.startswith("pool_")),
    )
)
COMPARED_FEATURES = tuple(name for name in _ABSOLUTE if name not in _NOT_COMPARED)
_COLUMNS = [_ABSOLUTE.index(name) for name in COMPARED_FEATURES]
Z_SCORE, RANK = "z-score", "rank"
RANKING_FEATURES = (
    *_ABSOLUTE,
    *(f"{name}, {Z_SCORE}" for name in COMPARED_FEATURES),
    *(f"{name}, {RANK}" for name in COMPARED_FEATURES),
)


@dataclass(frozen=True, slots=True)
class PoolFeatures:
    """The passages of one question, compared with each other.

    All of shape (n, n), or (n, n_features) and (n,) for one number a passage.
    """

    features: Floats  # of each passage
    cosines: Floats  # of the passages' vectors
    words: Floats  # similarity of their words
    words_here: Floats  # the same, with weight on what is rare among them
    numbers: Floats  # numbers that two share
    abbreviations: Floats  # how many abbreviations two share, see `measure_shared_abbreviations`
    asked: Floats  # similarity of question and passage
    asked_here: Floats  # the same, with weight on what is rare among the passages
    tokens: Sequence[NDArray[np.float32]]  # of each passage, see `PassageMatch`

    @property
    def results(self) -> Floats:
        """Probability that each passage reports results, shape (n,)."""
        return sigmoid(self.features[:, _ROLE])

    @property
    def others(self) -> Mask:
        """Which passages count as another for each, shape (n, n): not itself and no copy of it."""
        others = self.cosines <= COPY_COSINE
        np.fill_diagonal(others, False)
        return others

    def single_features(self) -> Floats:
        """Return what each passage shows by itself, shape (n, len(SINGLE_FEATURES))."""
        return np.column_stack([self.features, self.asked_here, self.asked])

    def topic_features(self) -> Floats:
        """Return what the topic model asks for, shape (n, len(TOPIC_FEATURES))."""
        plain, role = self.features[:, :N_BEFORE_ROLE], self.features[:, _ROLE]
        return np.column_stack([plain, self.asked_here, self.asked, role])

    def link_features(self, to: Places) -> Floats:
        """Return what the link model asks for of each passage and those at *to*.

        Shape (n, len(to), n_link_features).
        """
        n = len(self.features)
        role = self.features[:, _ROLE]
        apart = ~np.eye(n, dtype=np.bool_)
        nearest = np.where(apart, self.cosines, _FAR).max(axis=1)
        likest = np.where(apart, self.words_here, _FAR).max(axis=1)
        own = np.ones((n, len(to)))
        columns = [
            self.cosines[:, to],
            self.words[:, to],
            self.words_here[:, to],
            self.numbers[:, to],
            self.abbreviations[:, to],
            own * role[:, None],
            own * role[to],
            self.cosines[:, to] - nearest[:, None],
            self.words_here[:, to] - likest[:, None],
            self.cosines[:, to] - nearest[to],
            self.words_here[:, to] - likest[to],
            own * likest[:, None],
            own * nearest[:, None],
        ]
        return np.stack(columns, axis=-1)


def compute_pool_features(
    counts: TokenCounts, question: str, texts: Sequence[str], readings: Sequence[PassageReading]
) -> PoolFeatures:
    """Compare the passages of one question, at least one; *texts* are what is encoded of each."""
    return assemble_pool_features(measure_lexical_similarity(counts, question, texts), readings)


def assemble_pool_features(
    words: LexicalSimilarity, readings: Sequence[PassageReading]
) -> PoolFeatures:
    """Do what `compute_pool_features` does, where the words are compared already."""
    vectors = np.stack([one.vector for one in readings])
    return PoolFeatures(
        features=np.array([one.features for one in readings], np.float64),
        cosines=np.asarray(pairwise_dot(vectors, vectors), np.float64),
        words=words.between,
        words_here=words.between_here,
        numbers=words.numbers,
        abbreviations=words.abbreviations,
        asked=words.asked,
        asked_here=words.asked_here,
        tokens=[one.tokens for one in readings],
    )


def compute_context_features(found: PoolFeatures, topics: Floats, link: Trees) -> Floats:
    """Return what each passage gains from the others, shape (n, len(CONTEXT_FEATURES)).

    A passage that has no other (`PoolFeatures.others`) has no numbers: a row of NaN. *topics*, of
    shape (n,), are in [0, 1]; *link* gives the log odds that two passages are of one study.
    """
    others = found.others
    columns = [
        *_compare_with_topical(found, others),
        *_compare_with_studies(found, topics, link, others),
        *_weigh_tokens(found.tokens),
    ]
    n = len(topics)
    pairs = max(n * (n - 1), 1)
    cosine = found.features[:, 0]
    pool = (
        (found.cosines.sum() - n) / pairs,
        cosine.mean(),
        cosine.std(),
        topics.mean(),
        found.results.mean(),
    )
    rows = np.column_stack([*columns, *(np.full(n, one) for one in pool)])
    rows[~others.any(axis=1)] = np.nan
    return rows


def _compare_with_topical(found: PoolFeatures, others: Mask) -> list[Floats]:
    """Return how like a passage is to those that are like the question."""
    n = len(others)
    cosine = found.features[:, 0]
    near, words, asked = found.cosines, found.words_here, found.asked_here
    columns: list[Floats] = []
    for heat in (0.05, 0.1):
        weights = np.exp((cosine - cosine.max()) / heat)[None] * others
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
        columns += [(weights * near).sum(axis=1), (weights * words).sum(axis=1)]
    topical = np.where(others, cosine[None], _FAR)
    order = np.argsort(-topical, axis=1, kind="stable")[:, : min(3, n)]
    rows = np.arange(n)
    columns += [near[rows, order[:, 0]], words[rows, order[:, 0]]]
    columns += [
        np.take_along_axis(np.where(others, one, _FAR), order, 1).max(axis=1)
        for one in (near, words)
    ]
    closest = np.where(others, near + words, _FAR).argmax(axis=1)
    columns += [near[rows, closest], words[rows, closest], cosine[closest]]
    best = topical.max(axis=1)
    second = np.take_along_axis(topical, order, 1)[:, min(1, order.shape[1] - 1)]
    second = np.where(others.sum(axis=1) > 1, second, best)
    most_asked = _most(np.broadcast_to(asked, (n, n)), others)
    columns += [cosine - best, cosine - second, asked - most_asked, asked, best]
    columns += [
        _most(near * cosine, others),
        _most(words * cosine, others),
        _most(words * asked, others),
    ]
    aims = cosine * (1 - found.results)
    columns += [
        _most(near * aims, others),
        _most(words * aims, others),
        _most(np.broadcast_to(aims, (n, n)), others),
    ]
    return columns


def _compare_with_studies(
    found: PoolFeatures, topics: Floats, link: Trees, others: Mask
) -> list[Floats]:
    """Return how far a passage is of one study with those on topic."""
    n = len(topics)
    to = np.argsort(-topics, kind="stable")[:N_TOPICAL]
    pairs = found.link_features(to)
    links = sigmoid(link.predict(pairs.reshape(n * len(to), -1))).reshape(n, len(to))
    links = np.where(others[:, to], links, 0.0)
    support = links * topics[to][None]
    strongest, any_of_them = support.max(axis=1), 1 - np.prod(1 - support, axis=1)
    supported = 1 - (1 - topics) * (1 - strongest)
    two = np.sort(links, axis=1)[:, -2:].mean(axis=1)
    aims = (support * (1 - found.results[to])[None]).max(axis=1)
    return [
        topics,
        strongest,
        any_of_them,
        links.max(axis=1),
        topics[to][links.argmax(axis=1)],
        topics - _most_of_others(topics),
        supported - _most_of_others(supported),
        two,
        aims,
    ]


def _most(table: Floats, others: Mask) -> Floats:
    return np.asarray(np.where(others, table, _FAR).max(axis=1), np.float64)


def _most_of_others(values: Floats) -> Floats:
    """Return, for each value, the greatest of the others; NaN if there is no other."""
    if len(values) < 2:
        return np.full(len(values), np.nan)
    order = np.argsort(-values, kind="stable")
    greatest = np.full(len(values), values[order[0]])
    greatest[order[0]] = values[order[1]]
    return greatest


def _weigh_tokens(tokens: Sequence[NDArray[np.float32]]) -> list[Floats]:
    """Return how well passages match those tokens of the question that tell the pool apart.

    Look-alikes share the question's subject: its name is matched everywhere. What they lack is the
    relation that is asked for, so a token counts by how much its match varies, once over the pool,
    once over the passages that match best.
    """
    matched = np.stack([one.max(axis=0) for one in tokens]).astype(np.float64)
    near = matched[np.argsort(-matched.mean(axis=1), kind="stable")[:N_NEAR]]
    weights, near_weights = (_spread_weights(one) for one in (matched, near))
    scores, near_scores = (
        (matched - one.mean(axis=0)) / (one.std(axis=0) + _LEAST_SPREAD) for one in (matched, near)
    )
    worst = np.sort(near_scores, axis=1)
    by_sentence, near_by_sentence = (
        np.array([float((one @ its).max()) for one in tokens]) for its in (weights, near_weights)
    )
    near_match = matched @ near_weights
    return [
        matched @ weights,
        near_match,
        scores.mean(axis=1),
        near_scores.mean(axis=1),
        by_sentence,
        near_by_sentence,
        worst[:, 0],
        worst[:, :3].mean(axis=1),
        near_match - _most_of_others(near_match),
        near_by_sentence - _most_of_others(near_by_sentence),
    ]


def _spread_weights(matched: Floats) -> Floats:
    spread = matched.std(axis=0)
    return np.asarray(spread / (spread.sum() + _LEAST), np.float64)


def compute_ranking_features(features: Floats, context: Floats) -> Floats:
    """Return what passages are ranked by, shape (n, len(RANKING_FEATURES)).

    *features* are of each passage, shape (n, n_features); those of its context may be NaN.
    """
    numbers = np.column_stack([features, context])
    return np.column_stack([numbers, compute_relative_features(numbers[:, _COLUMNS])])


def compute_relative_features(numbers: Floats) -> Floats:
    """Return how far each number is from its column's mean, and how many are above it.

    NaN counts as 0. Of shape (n, k), it gives (n, 2 k): first the z-scores times ``n / (n + 5)``,
    as the mean of a few passages says little; then the numbers of passages above, in [0, n).
    """
    known = np.nan_to_num(numbers)
    n = len(known)
    z_scores = (known - known.mean(axis=0)) / np.maximum(known.std(axis=0), _LEAST)
    z_scores *= n / (n + _TO_TRUST)
    ordered = np.sort(known, axis=0)
    ranks = [
        n - np.searchsorted(column, values, side="right")
        for column, values in zip(ordered.T, known.T, strict=True)
    ]
    return np.column_stack([z_scores, *ranks])
