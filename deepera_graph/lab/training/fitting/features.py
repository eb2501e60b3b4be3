"""Training pools as numbers: each passage is matched once and kept, whatever is fitted to it."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.errors import SettingsError
from deepera_graph.judges.heuristic.roles import recognize_intent
from deepera_graph.judges.trained.features import (
    PassageMatch,
    PassageVectors,
    ResultsClassifier,
    complete_features,
    match_passage,
    vectorize_passage,
)
from deepera_graph.judges.trained.model import Encodes, encode_once, opened, sha256_of
from deepera_graph.judges.trained.pool_features import (
    PoolFeatures,
    assemble_pool_features,
    compute_ranking_features,
)
from deepera_graph.judges.trained.reading.encoder import ON_CPU, Encoder
from deepera_graph.judges.trained.reading.vectors import (
    Encoded,
    LexicalSimilarity,
    TokenCounts,
    measure_lexical_similarity,
)
from deepera_graph.lab.training.lessons.pools import LabelledPassage, Pool, hash_question
from deepera_graph.lab.training.weights import Log, find_halves, log_nothing, read_known_questions
from deepera_graph.packages import send_nothing
from deepera_graph.schema import IntentFields, PassageTask, intent_fields
from deepera_graph.stores.sqlite import FileKind, connect
from deepera_graph.text.questions import looks_like_claim

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]
Key = tuple[str, str, str]  # question, title, text
OneT = TypeVar("OneT")

_GPU = "CUDAExecutionProvider"  # of the package onnxruntime-gpu
N_SPLITS = 4
_TIMEOUT_SECONDS = 5.0
_FEATURES = FileKind(
    name="cache of features",
    advice="name another folder, or delete it",
    tables=(
        "CREATE TABLE pairs (key BLOB PRIMARY KEY, plain BLOB, cosines BLOB, tokens BLOB)",
        "CREATE TABLE texts (key BLOB PRIMARY KEY, vector BLOB, body BLOB, sentences BLOB)",
    ),
    error=SettingsError,
)
_FIND = (
    "SELECT plain, cosines, tokens, vector, body, sentences FROM pairs, texts "
    "WHERE pairs.key = ? AND texts.key = ?"
)
_FORMAT = "7"  # to be raised whenever `match_passage` gives other numbers
_LOG_EVERY = 50  # pools
_MAX_HELD = 2**30  # bytes of token vectors held, as questions of one set share passages


def choose_providers(available: Collection[str]) -> tuple[str, ...]:
    """Return the providers to ask for, the first that works being used."""
    return (_GPU, *ON_CPU) if _GPU in available else ON_CPU


def assign_split(pool: Pool) -> int:
    """Return the split of a pool, in [0, N_SPLITS); pools of one group are in one split."""
    return crc32(pool.group.encode()) % N_SPLITS


def exclude_split(some: Sequence[OneT], split: int, of: Callable[[OneT], int]) -> Sequence[OneT]:
    """Return those of the other splits, or all if there is none."""
    return [one for one in some if of(one) != split] or some


class FeatureCache:
    """Matches in an SQLite file of one encoder's weights: about 10 KB a text, 1 KB a pair."""

    def __init__(self, file: Path) -> None:
        self._rows = connect(file, _FEATURES, timeout=_TIMEOUT_SECONDS)
        self._rows.execute("PRAGMA synchronous = OFF")

    def find(self, keys: Sequence[Key]) -> dict[Key, PassageMatch]:
        """Return those matches that are kept; none of texts that were cut otherwise then."""
        rows = ((key, self._rows.execute(_FIND, _name_rows(key)).fetchone()) for key in keys)
        found = {key: _decode(*row) for key, row in rows if row is not None}
        return {key: one for key, one in found.items() if len(one.cosines) == len(one.sentences)}

    def add(self, matches: Mapping[Key, PassageMatch]) -> None:
        """Keep matches."""
        pairs, texts = [], []
        for key, one in matches.items():
            pair, text = _name_rows(key)
            plain = np.array(one.plain, np.float64).tobytes()
            pairs.append((pair, plain, one.cosines.tobytes(), one.tokens.tobytes()))
            texts.append((text, *(x.tobytes() for x in (one.vector, one.body, one.sentences))))
        self._rows.execute("BEGIN IMMEDIATE")
        with self._rows:
            self._rows.executemany("INSERT OR REPLACE INTO pairs VALUES (?, ?, ?, ?)", pairs)
            self._rows.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?, ?, ?)", texts)

    def close(self) -> None:
        """Let go of the file."""
        self._rows.close()


@contextmanager
def open_feature_cache(
    folder: Path | None, weights: Sequence[Path]
) -> Iterator[FeatureCache | None]:
    """Give the cache of an encoder's files in a folder, which other weights never find; or none."""
    if folder is None:
        yield None
        return
    name = sha256("".join([_FORMAT, *map(sha256_of, weights)]).encode()).hexdigest()[:16]
    with closing(FeatureCache(folder / f"looks-{name}.sqlite")) as cache:
        yield cache


def _name_rows(key: Key) -> tuple[bytes, bytes]:
    """Return what names question and text, and what names the text."""
    question, title, text = key
    name = _digest(f"{len(title)}\n{title}\n{text}")
    return _digest(question) + name, name


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _decode(plain: bytes, *arrays: bytes) -> PassageMatch:
    """Return the match of a row, its columns in the order of `_FIND`."""
    cosines, tokens, vector, body, sentences = (np.frombuffer(one, np.float32) for one in arrays)
    return PassageMatch(
        plain=tuple(np.frombuffer(plain, np.float64).tolist()),
        vector=vector,
        body=body,
        sentences=sentences.reshape(-1, len(vector)),
        cosines=cosines,
        tokens=tokens.reshape(len(cosines), -1),
    )


@dataclass(frozen=True, slots=True, eq=False)
class MatchedPool:
    """A pool whose passages are matched with the question; labels of shape (n,), 1 for evidence."""

    pool: Pool
    matches: Sequence[PassageMatch]
    labels: NDArray[np.int64]

    @property
    def is_claim(self) -> bool:
        """Whether the question is a claim."""
        return looks_like_claim(self.pool.question)


@dataclass(frozen=True, slots=True, eq=False)
class FeaturedPool:
    """A pool whose passages are compared with each other; its split is that of `assign_split`."""

    matched: MatchedPool
    features: PoolFeatures
    split: int

    @property
    def half(self) -> int:
        """0 or 1: what is fitted on one half of the groups reads the other."""
        return self.split % 2

    @property
    def pool(self) -> Pool:
        """The pool itself."""
        return self.matched.pool

    @property
    def labels(self) -> NDArray[np.int64]:
        """1 for evidence, shape (n,)."""
        return self.matched.labels

    @property
    def weights(self) -> Floats:
        """What each passage counts in training, shape (n,)."""
        return np.full(len(self.labels), self.pool.weight)


@dataclass(frozen=True, slots=True, eq=False)
class ContextPool:
    """A pool with the context features of its passages, see `compute_context_features`."""

    row: FeaturedPool
    context: Floats

    @property
    def ranking_features(self) -> Floats:
        """What its passages are ranked by."""
        return compute_ranking_features(self.row.features.features, self.context)

    @property
    def has_others(self) -> bool:
        """Whether any passage has another beside it."""
        return not bool(np.isnan(self.context).all())


class Half(NamedTuple):
    """An encoder that was taught a part of the questions, and the hashes of these."""

    encoder: Encodes
    known: frozenset[str]


class FeatureExtractor:
    """Matches the passages of pools with their questions; *cache* keeps that for the next time.

    An encoder finds the evidence of a question that it was taught more easily than it will that of
    others. So a question that some of the *halves* know is read by one of them that does not.
    """

    def __init__(
        self, encoder: Encodes, cache: FeatureCache | None = None, halves: Sequence[Half] = ()
    ) -> None:
        self.encoder, self._cache, self._halves = encoder, cache, halves
        self._matches: dict[Key, PassageMatch] = {}
        self._vectors: OrderedDict[tuple[Encodes, str, str], PassageVectors] = OrderedDict()
        self._held = 0  # bytes
        self._texts: dict[tuple[str, str], tuple[Vectors, Vectors, Vectors]] = {}
        self._questions: dict[str, tuple[Encoded, IntentFields]] = {}
        self._counts: TokenCounts | None = None  # that `_words` were weighed by
        self._words: dict[tuple[str, tuple[LabelledPassage, ...]], LexicalSimilarity] = {}

    def match(self, pools: Sequence[Pool], log: Log = log_nothing) -> list[MatchedPool]:
        """Return the pools with their passages matched."""
        found = []
        for n_done, pool in enumerate(pools, start=1):
            found.append(MatchedPool(pool, self._match_pool(pool), np.array(pool.labels)))
            if n_done % _LOG_EVERY == 0 or n_done == len(pools):
                log({"step": "look", "done": n_done, "of": len(pools)})
        return found

    def compare(
        self, matched: MatchedPool, counts: TokenCounts, classifier: ResultsClassifier
    ) -> PoolFeatures:
        """Return the passages of a pool compared with each other, as the judge compares them."""
        readings = [complete_features(one, classifier) for one in matched.matches]
        return assemble_pool_features(self._compare_words(matched.pool, counts), readings)

    def _match_pool(self, pool: Pool) -> list[PassageMatch]:
        missing = self._find_missing(pool)
        if missing and self._cache is not None:
            self._remember(self._cache.find(list(missing)))
            missing = self._find_missing(pool)
        if missing:
            found = self._match_passages(pool.question, missing)
            self._remember(found)
            if self._cache is not None:
                self._cache.add(found)
        return [self._matches[_key(pool, one)] for one in pool.passages]

    def _find_missing(self, pool: Pool) -> dict[Key, LabelledPassage]:
        keys = {_key(pool, one): one for one in pool.passages}
        return {key: one for key, one in keys.items() if key not in self._matches}

    def _match_passages(
        self, text: str, passages: Mapping[Key, LabelledPassage]
    ) -> dict[Key, PassageMatch]:
        encoder = self._choose_encoder(text)
        question, intent = self._read_question(text, encoder)
        vectors = self._vectorize(list(passages.values()), encoder)
        matches = {}
        for (key, one), its in zip(passages.items(), vectors, strict=True):
            task: PassageTask = {
                "question": text,
                "intent": intent,
                "text": one.text,
                "title": one.title,
                "section": "",
            }
            matches[key] = match_passage(question, task, its)
        return matches

    def _choose_encoder(self, question: str) -> Encodes:
        name = hash_question(question)
        strange = [one.encoder for one in self._halves if name not in one.known]
        return strange[0] if 0 < len(strange) < len(self._halves) else self.encoder

    def _vectorize(
        self, passages: Sequence[LabelledPassage], encoder: Encodes
    ) -> list[PassageVectors]:
        """Return what passages are whatever the question; the latest are held for the next one."""
        keys = [(encoder, one.title, one.text) for one in passages]
        new = [key for key in keys if key not in self._vectors]
        titles = encode_once(encoder, (title for _, title, _ in new if title))
        encoded = encoder.encode([text for *_, text in new])
        for key, body in zip(new, encoded, strict=True):
            _, title, text = key
            vectors = vectorize_passage(text, body, titles.get(title))
            self._vectors[key] = vectors
            self._held += vectors.tokens.nbytes
        found = [self._vectors[key] for key in keys]
        for key in keys:
            self._vectors.move_to_end(key)
        while self._held > _MAX_HELD:
            self._held -= self._vectors.popitem(last=False)[1].tokens.nbytes
        return found

    def _remember(self, matches: Mapping[Key, PassageMatch]) -> None:
        for key, one in matches.items():
            own = (one.vector, one.body, one.sentences)
            vector, body, sentences = self._texts.setdefault(key[1:], own)
            self._matches[key] = replace(one, vector=vector, body=body, sentences=sentences)

    def _read_question(self, question: str, encoder: Encodes) -> tuple[Encoded, IntentFields]:
        if question not in self._questions:
            intent = intent_fields(recognize_intent({"question": question, "problem": ""}))
            self._questions[question] = (encoder.encode([question])[0], intent)
        return self._questions[question]

    def _compare_words(self, pool: Pool, counts: TokenCounts) -> LexicalSimilarity:
        if counts is not self._counts:
            self._counts, self._words = counts, {}
        key = pool.question, pool.passages
        if key not in self._words:
            texts = [one.read_text for one in pool.passages]
            self._words[key] = measure_lexical_similarity(counts, pool.question, texts)
        return self._words[key]


def _key(pool: Pool, passage: LabelledPassage) -> Key:
    return pool.question, passage.title, passage.text


@contextmanager
def open_extractor(
    weights: tuple[Path, Path], keep: Path | None, log: Log = log_nothing
) -> Iterator[FeatureExtractor]:
    """Give what extracts features with an encoder; linear algebra takes one thread meanwhile."""
    # With more threads small products take longer, and last digits differ with the threads at work.
    # Matches of a GPU are kept elsewhere than those of a CPU, as last digits differ, too.
    send_nothing()
    asked = choose_providers(import_module("onnxruntime").get_available_providers())
    model, tokenizer = weights
    encoder = opened(Encoder(*weights, providers=asked), model.parent)
    runs_on = encoder.provider
    in_vain = {"failed": _GPU} if _GPU in asked and runs_on != _GPU else {}
    log({"step": "encoder", "runs on": runs_on, **in_vain})
    folder = keep if keep is None or runs_on in ON_CPU else keep / runs_on
    beside = find_halves(model.parent)
    halves = [
        Half(Encoder(one, tokenizer, providers=asked), read_known_questions(record))
        for one, record in beside
    ]
    files = [*weights, *(one for one, _ in beside)]
    with open_feature_cache(folder, files) as cache, threadpool_limits(1, user_api="blas"):
        yield FeatureExtractor(encoder, cache, halves)
