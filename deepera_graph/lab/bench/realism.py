"""Can distractors be told from other passages of their pools by length, opening words or style?"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]  # has no stubs
from scipy.stats import rankdata  # type: ignore[import-untyped]  # has no stubs
from sklearn.feature_extraction.text import (  # type: ignore[import-untyped]  # has no stubs
    CountVectorizer,
    TfidfVectorizer,
)
from sklearn.model_selection import GroupKFold  # type: ignore[import-untyped]  # has no stubs
from sklearn.preprocessing import normalize  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.calibration.instance import Context, Dataset, DatasetError, Instance
from deepera_graph.calibration.statistics import Floats, Interval, Values, bootstrap, fit_logistic
from deepera_graph.text.words import STOP_WORDS, split_sentences, stems

LENGTH = "length"
OPENING = "opening"
STYLE = "style"
WORDS = "words"
ALL = "all"
FAMILIES = (LENGTH, OPENING, STYLE, WORDS, ALL)
_PIECE = re.compile(r"\w+|[^\w\s]")
_CAPITALS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_LEAST_TEXTS = 3
UNNAMED = "no type"
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_LEAST_POOLS = 2
_LEAST_SHARE = 0.5  # of pools, in [0, 1], whose others must have enough texts to learn from
_Pool = tuple[str, list[tuple[Context, str]]]  # a question, and passages with their type or ""
N_FOLDS = 5
_N_RESAMPLES = 2_000
N_HARDEST = 5
PERCENTILE = 10.0


class Features(NamedTuple):
    """One family over texts; `matrix` is sparse, shape (n_texts, len(names))."""

    matrix: Any
    names: tuple[str, ...]


def extract_features(texts: Sequence[str]) -> dict[str, Features]:
    """Return the families of features, as `FAMILIES` names them.

    - `length`: words, sentences, words a sentence and letters a word, each as a logarithm and its
      square, as a length that never varies is a mark too.
    - `opening`: the first word, the first two and the first three, with punctuation.
    - `style`: how often each function word occurs, and the shapes of the text: runs of one to four
      signs with every word written as ``a`` or ``A`` and every number as ``0``. Neither knows what
      a text is about, only how it is put together: hedges, punctuation, how numbers are given.
    - `words`: every word. It knows the topic, so it says less about style, and is no reason to
      call a set unrealistic.
    - `all`: the four together.
    """
    least = min(_LEAST_TEXTS, len(texts))  # a feature that is in few texts cannot be learnt
    opening = CountVectorizer(analyzer=_first_words, binary=True, min_df=least)
    shapes = TfidfVectorizer(
        analyzer="char", ngram_range=(1, 4), preprocessor=shape, min_df=least, sublinear_tf=True
    )
    words = TfidfVectorizer(token_pattern=r"(?u)\b\w+\b", min_df=least, sublinear_tf=True)
    families = {
        LENGTH: _measure_lengths(texts),
        OPENING: _count(opening, texts, "opens with "),
        STYLE: _stack([_count_function_words(texts), _count(shapes, texts, "shape ")]),
        WORDS: _count(words, texts, "word "),
    }
    return {**families, ALL: _stack(list(families.values()))}


def shape(text: str) -> str:
    """Return a text with words as ``a`` or ``A``, numbers as ``0``, and all else as it is."""
    worded = _CAPITALS.sub(lambda found: "A" if found.group()[0].isupper() else "a", text)
    return _DIGITS.sub("0", worded)


def _measure_lengths(texts: Sequence[str]) -> Features:
    rows = []
    for text in texts:
        n_words = max(1, len(text.split()))
        n_sentences = max(1, len(split_sentences(text)))
        rows.append([n_words, n_sentences, n_words / n_sentences, len(text) / n_words])
    plain = np.log(np.array(rows, dtype=np.float64))
    spread = plain.std(axis=0)
    scaled = (plain - plain.mean(axis=0)) / np.where(spread > 0, spread, 1)
    names = ("many words", "many sentences", "many words a sentence", "many letters a word")
    squared = tuple(name.replace("many", "far from the mean:") for name in names)
    return Features(csr_matrix(np.hstack([scaled, scaled**2])), (*names, *squared))


def _first_words(text: str) -> list[str]:
    pieces = _PIECE.findall(text[:200].lower())[:3]
    return [" ".join(pieces[:n]) for n in range(1, len(pieces) + 1)]


def _count_function_words(texts: Sequence[str]) -> Features:
    counts = CountVectorizer(vocabulary=sorted(STOP_WORDS), token_pattern=r"[a-z]+")
    found = _count(counts, texts, "word ")
    return Features(normalize(found.matrix.sqrt()), found.names)


def _count(counts: Any, texts: Sequence[str], prefix: str) -> Features:
    try:
        matrix = counts.fit_transform(texts)
    except ValueError:  # no feature is frequent enough
        return Features(csr_matrix((len(texts), 1)), ("nothing frequent",))
    return Features(matrix, tuple(f"{prefix}`{name}`" for name in counts.get_feature_names_out()))


def _stack(parts: Sequence[Features]) -> Features:
    matrix = hstack([part.matrix for part in parts]).tocsr()
    return Features(matrix, tuple(name for part in parts for name in part.names))


@dataclass(frozen=True, slots=True, eq=False)
class PassageSample:
    """Passages of pools that have both kinds; golden passages are left out."""

    questions: tuple[str, ...]  # texts of the questions, shape (n_questions,)
    texts: tuple[str, ...]  # distinct texts, shape (n_texts,)
    pool: Ints  # which question a passage is a candidate of, shape (n_passages,)
    text: Ints  # which text it is, shape (n_passages,)
    is_distractor: Bools  # shape (n_passages,)
    kind: tuple[str, ...]  # type of a distractor; blank for another passage; shape (n_passages,)
    first_stage: Floats  # its score, not a number where there is none; shape (n_passages,)

    @property
    def n_questions(self) -> int:
        """How many pools there are."""
        return len(self.questions)

    def of_kind(self, kind: str) -> Bools:
        """Return which passages stay if this is the only kind of distractor."""
        return np.array([one in ("", kind) for one in self.kind])

    def kinds(self) -> Counter[str]:
        """Return how many distractors of each type there are."""
        return Counter(one for one in self.kind if one)


def sample_passages(dataset: Dataset, *, kinds: Collection[str] | None = None) -> PassageSample:
    """Read a data set once; pools without both a distractor and another passage are left out."""
    known: dict[str, None] = {}
    found = _collect(_label_distractors(one, kinds, known) for one in dataset)
    missing = [kind for kind in kinds or () if kind not in known]
    if missing:
        raise DatasetError(
            f"data set {dataset.name!r} has no distractor of type {missing[0]!r}; "
            f"it has {', '.join(map(repr, known)) or 'none'}"
        )
    if found.n_questions < _LEAST_POOLS:
        raise DatasetError(
            f"data set {dataset.name!r} has {found.n_questions} pools with distractors beside "
            f"other passages; at least {_LEAST_POOLS} are needed"
        )
    return found


def sample_golden(dataset: Dataset) -> PassageSample | None:
    """Return the same with golden passages for distractors; None for fewer than two pools."""
    found = _collect(_label_golden(one) for one in dataset)
    return found if found.n_questions >= _LEAST_POOLS else None


def _collect(pools: Iterable[_Pool]) -> PassageSample:
    texts: dict[str, int] = {}
    questions: list[str] = []
    rows: list[tuple[int, int, float]] = []
    kinds: list[str] = []
    for question, chosen in pools:
        if len({bool(kind) for _, kind in chosen}) < 2:
            continue
        for context, kind in chosen:
            place = texts.setdefault(context.text, len(texts))
            score = context.first_stage_score
            rows.append((len(questions), place, np.nan if score is None else score))
            kinds.append(kind)
        questions.append(question)
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return PassageSample(
        questions=tuple(questions),
        texts=tuple(texts),
        pool=table[:, 0].astype(np.int64),
        text=table[:, 1].astype(np.int64),
        is_distractor=np.array([bool(one) for one in kinds]),
        kind=tuple(kinds),
        first_stage=table[:, 2],
    )


def _label_distractors(
    instance: Instance, kinds: Collection[str] | None, known: dict[str, None]
) -> _Pool:
    """Return the passages that are not golden; the types of distractors go to *known*."""
    named = [
        (one, (one.distractor_type or UNNAMED) if one.is_distractor else "")
        for one in instance.contexts
        if not one.is_golden
    ]
    known.update((kind, None) for _, kind in named if kind)
    chosen = [(one, kind) for one, kind in named if not kind or kinds is None or kind in kinds]
    return instance.question, chosen


def _label_golden(instance: Instance) -> _Pool:
    chosen = [
        (one, "golden" if one.is_golden else "")
        for one in instance.contexts
        if not one.is_distractor
    ]
    return instance.question, chosen


class FeatureWeight(NamedTuple):
    """One feature and its weight; above 0 it marks a distractor, below 0 another passage."""

    name: str
    weight: float


def measure_separability(
    sample: PassageSample, family: Features, *, kept: Bools | None = None
) -> Interval:
    """Return the mean AUC within pools, in [0, 1], and its 95 % interval over questions.

    All three are NaN where pools share so many texts that the others have nothing to learn from.
    """
    # A pool is scored by who has seen neither it nor its texts elsewhere. AUC: the chance that a
    # distractor scores above another passage of its pool; 0.5 if they cannot be told apart. Pools
    # for which too few texts are left to learn from do not count.
    # Source: Fawcett (2006), An introduction to ROC analysis, section 7.
    rows = np.flatnonzero(np.ones(len(sample.pool), bool) if kept is None else kept)
    pool, text, labels = sample.pool[rows], sample.text[rows], sample.is_distractor[rows]
    scores = np.full(len(rows), np.nan)
    folds = GroupKFold(min(N_FOLDS, len(np.unique(pool))))
    for train, test in folds.split(rows, groups=pool):
        unseen = train[~np.isin(text[train], text[test])]
        if _can_learn(text[unseen], labels[unseen]):
            scores[test] = _score_unseen(family, text[unseen], labels[unseen], text[test])
    scored = np.isfinite(scores)
    if len(np.unique(pool[scored])) < _LEAST_SHARE * len(np.unique(pool)):
        return Interval(np.nan, np.nan, np.nan)
    return auc_within_pools(pool[scored], labels[scored], scores[scored])


def _can_learn(texts: Ints, labels: Bools) -> bool:
    return all(len(np.unique(texts[labels == one])) >= _LEAST_TEXTS for one in (True, False))


def auc_within_pools(pool: Ints, labels: Bools, scores: Floats) -> Interval:
    """Return the mean AUC of scores within pools that have both kinds, and its 95 % interval."""
    by_pool = np.argsort(pool, kind="stable")
    starts = np.flatnonzero(np.diff(pool[by_pool])) + 1
    pairs = [(labels[one], scores[one]) for one in np.split(by_pool, starts)]
    values = [_auc(*pair) for pair in pairs if 0 < pair[0].sum() < len(pair[0])]
    return bootstrap(Values.of(values), n_resamples=_N_RESAMPLES)


def _auc(labels: Bools, scores: Floats) -> float:
    """The chance that a labelled one has the higher score; half for a tie (Mann and Whitney)."""
    n_labelled = int(labels.sum())
    ranks = float(rankdata(scores)[labels].sum())
    return (ranks - n_labelled * (n_labelled + 1) / 2) / (n_labelled * (len(labels) - n_labelled))


def strongest_features(
    sample: PassageSample, family: Features, *, n: int = 10
) -> list[FeatureWeight]:
    """Return the features that tell most, in log odds for one standard deviation of each."""
    rows, labels, weights = _weigh_distinct(sample.text, sample.is_distractor)
    matrix = family.matrix[rows]
    slope = fit_logistic(matrix, labels, weights, max_iter=1000).weights
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    spread = np.sqrt(
        np.maximum(np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel() - mean**2, 0)
    )
    strength = slope * spread
    strongest = np.argsort(-np.abs(strength), kind="stable")[:n]
    return [
        FeatureWeight(family.names[one], float(strength[one])) for one in strongest if strength[one]
    ]


def _score_unseen(family: Features, texts: Ints, labels: Bools, wanted: Ints) -> Floats:
    rows, distinct, weights = _weigh_distinct(texts, labels)
    model = fit_logistic(family.matrix[rows], distinct, weights, max_iter=1000)
    return np.asarray(family.matrix[wanted] @ model.weights + model.intercept, dtype=np.float64)


def _weigh_distinct(texts: Ints, labels: Bools) -> tuple[Ints, Bools, Floats]:
    """Return each (text, label) once, weighted by how often it comes; both labels weigh alike."""
    pairs, counts = np.unique(np.stack([texts, labels]), axis=1, return_counts=True)
    found = pairs[1].astype(bool)
    share = np.where(found, counts[found].sum(), counts[~found].sum())
    return pairs[0], found, len(counts) * counts / (2 * share)


class Similarity(NamedTuple):
    """Distractors and others under one measure of similarity to the question."""

    measure: str
    distractors: float  # mean of the distractors, on the measure's scale
    hardest: float  # mean of the best five other passages of each pool, likewise
    others: float  # mean of all other passages, likewise
    near: float  # share that reach the 10th percentile of the others of their pool; see the gates
    closer: Interval  # chance that one is closer than another passage of its pool, in [0, 1]


def measure_similarities(sample: PassageSample) -> list[Similarity]:
    """Return the cosine over words, and the scores of the first stage where all have one."""
    found = [_compare_similarity("words in common (cosine, tf-idf)", sample, _word_cosines(sample))]
    if np.isfinite(sample.first_stage).all():
        found.append(_compare_similarity("first-stage score", sample, sample.first_stage))
    return found


def _compare_similarity(measure: str, sample: PassageSample, scores: Floats) -> Similarity:
    hardest, near = [], []
    for one in range(sample.n_questions):
        here = sample.pool == one
        others = scores[here & ~sample.is_distractor]
        hardest.append(float(np.sort(others)[-N_HARDEST:].mean()))
        least = np.percentile(others, PERCENTILE)
        near.extend(scores[here & sample.is_distractor] >= least)
    return Similarity(
        measure=measure,
        distractors=float(scores[sample.is_distractor].mean()),
        hardest=float(np.mean(hardest)),
        others=float(scores[~sample.is_distractor].mean()),
        near=float(np.mean(near)),
        closer=auc_within_pools(sample.pool, sample.is_distractor, scores),
    )


def _word_cosines(sample: PassageSample) -> Floats:
    weigh = TfidfVectorizer(analyzer=stems, sublinear_tf=True)
    texts = weigh.fit_transform(sample.texts)
    questions = weigh.transform(sample.questions)
    products = questions[sample.pool].multiply(texts[sample.text]).sum(axis=1)
    return np.asarray(products, dtype=np.float64).ravel()
