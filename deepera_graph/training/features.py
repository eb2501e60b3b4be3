"""Training pools as numbers: each passage looked at once, whatever is fitted to it afterwards."""

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # has no stubs

from deepera_graph.errors import SettingsError
from deepera_graph.judges.heuristic.intent import recognize_intent
from deepera_graph.judges.onnx import send_nothing
from deepera_graph.judges.trained.encoder import ON_CPU, Encoded, Encoder
from deepera_graph.judges.trained.features import (
    PassageMatch,
    PassageVectors,
    ResultsClassifier,
    complete_features,
    join_title,
    match_passage,
    vectorize_passage,
)
from deepera_graph.judges.trained.model import Encodes, encode_once, opened, sha256_of
from deepera_graph.judges.trained.pool_features import (
    PoolFeatures,
    assemble_pool_features,
    compute_ranking_features,
)
from deepera_graph.judges.trained.similarity import (
    LexicalSimilarity,
    TokenCounts,
    looks_like_claim,
    measure_lexical_similarity,
)
from deepera_graph.schema import IntentFields, PassageTask, intent_fields
from deepera_graph.training.data import LabelledPassage, Pool
from deepera_graph.training.log import Log, log_nothing

Floats = NDArray[np.float64]

_GPU = "CUDAExecutionProvider"  # of the package onnxruntime-gpu


def choose_providers(available: Collection[str]) -> tuple[str, ...]:
    """Return the providers to ask for, the first that works being used."""
    return (_GPU, *ON_CPU) if _GPU in available else ON_CPU


def list_providers() -> list[str]:
    """Return the providers that the installed onnxruntime has."""
    send_nothing()
    return list(import_module("onnxruntime").get_available_providers())


def log_provider(encoder: Encoder, asked: Collection[str], log: Log) -> None:
    """Log where the encoder runs; and that a GPU was asked for in vain, if so."""
    runs_on = encoder.provider
    in_vain = {"failed": _GPU} if _GPU in asked and runs_on != _GPU else {}
    log({"step": "encoder", "runs on": runs_on, **in_vain})


N_SPLITS = 4
OneT = TypeVar("OneT")


def assign_split(pool: Pool) -> int:
    """Return the part of a pool, in [0, N_PARTS); pools of one group are in one part."""
    return crc32(pool.group.encode()) % N_SPLITS


def exclude_split(some: Sequence[OneT], part: int, of: Callable[[OneT], int]) -> Sequence[OneT]:
    """Return those of the other parts, or all if there is none."""
    return [one for one in some if of(one) != part] or some


_TABLES = (
    "CREATE TABLE IF NOT EXISTS pairs "
    "(key BLOB PRIMARY KEY, plain BLOB, cosines BLOB, matches BLOB)",
    "CREATE TABLE IF NOT EXISTS texts "
    "(key BLOB PRIMARY KEY, vector BLOB, body BLOB, sentences BLOB)",
)
_FIND = (
    "SELECT plain, cosines, matches, vector, body, sentences FROM pairs, texts "
    "WHERE pairs.key = ? AND texts.key = ?"
)

_FORMAT = (
    "4"  # to be raised whenever `deepera_graph.judges.trained.features.look` gives other numbers
)

Key = tuple[str, str, str]  # question, title, text


class FeatureCache:
    """Looks in an SQLite file: about 10 KB a text, and half a KB a text and question.

    Args:
        file: Of one encoder's weights alone; it is made if missing.

    Raises:
        SettingsError: It cannot be opened, or is another kind of file.
    """

    def __init__(self, file: Path) -> None:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._rows = sqlite3.connect(file)
            for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=OFF", *_TABLES):
                self._rows.execute(statement)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(f"{str(file)!r} cannot keep what was read: {error}") from error

    def find(self, keys: Sequence[Key]) -> dict[Key, PassageMatch]:
        """Return those looks that are kept."""
        rows = ((key, self._rows.execute(_FIND, _name_rows(key)).fetchone()) for key in keys)
        return {key: _decode(*row) for key, row in rows if row is not None}

    def keep(self, looks: Mapping[Key, PassageMatch]) -> None:
        """Add looks."""
        pairs, texts = [], []
        for key, one in looks.items():
            pair, text = _name_rows(key)
            plain = np.array(one.plain, np.float64).tobytes()
            pairs.append((pair, plain, one.cosines.tobytes(), one.matches.tobytes()))
            texts.append((text, *(x.tobytes() for x in (one.vector, one.body, one.sentences))))
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
    """Give the shelf of an encoder's weights in a folder; none if there is no folder.

    Args:
        folder: It is made if missing.
        weights: The encoder's files: other weights never find what these have kept.

    Raises:
        SettingsError: The folder cannot be written.
    """
    if folder is None:
        yield None
        return
    name = sha256("".join([_FORMAT, *map(sha256_of, weights)]).encode()).hexdigest()[:16]
    shelf = FeatureCache(folder / f"looks-{name}.sqlite")
    try:
        yield shelf
    finally:
        shelf.close()


def _name_rows(key: Key) -> tuple[bytes, bytes]:
    """Return what names question and text, and what names the text."""
    question, title, text = key
    name = _digest(f"{len(title)}\n{title}\n{text}")
    return _digest(question) + name, name


def _digest(text: str) -> bytes:
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _decode(plain: bytes, *arrays: bytes) -> PassageMatch:
    """Return the look of a row, its columns in the order of `_FIND`."""
    cosines, matches, vector, body, sentences = (np.frombuffer(one, np.float32) for one in arrays)
    return PassageMatch(
        plain=tuple(np.frombuffer(plain, np.float64).tolist()),
        vector=vector,
        body=body,
        sentences=sentences.reshape(-1, len(vector)),
        cosines=cosines,
        matches=matches,
    )


_EVERY = 50
_ROOM = 2**30  # bytes of token vectors held, as questions of one set share passages


@dataclass(frozen=True, slots=True, eq=False)
class MatchedPool:
    """A pool whose passages have been looked at.

    Attributes:
        pool: The pool.
        looks: Each passage.
        labels: 1 for evidence, shape (n,).
    """

    pool: Pool
    looks: Sequence[PassageMatch]
    labels: NDArray[np.int64]

    @property
    def is_claim(self) -> bool:
        """Whether the question is a claim."""
        return looks_like_claim(self.pool.question)


class FeatureExtractor:
    """Looks at pools, and remembers what it saw.

    Args:
        encoder: Makes vectors of texts.
        shelf: Keeps looks for the next time, and gives those of the last; None keeps none.
    """

    def __init__(self, encoder: Encodes, shelf: FeatureCache | None = None) -> None:
        self._encoder, self._shelf = encoder, shelf
        self._looks: dict[Key, PassageMatch] = {}
        self._views: OrderedDict[tuple[str, str], PassageVectors] = OrderedDict()
        self._held = 0  # bytes
        self._texts: dict[
            tuple[str, str], tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]
        ] = {}
        self._questions: dict[str, tuple[Encoded, IntentFields]] = {}
        self._counts: TokenCounts | None = None  # that `_words` were weighed by
        self._words: dict[tuple[str, tuple[LabelledPassage, ...]], LexicalSimilarity] = {}

    def look(self, pools: Sequence[Pool], log: Log = log_nothing) -> list[MatchedPool]:
        """Return the pools with their passages looked at."""
        found = []
        for n_done, pool in enumerate(pools, start=1):
            found.append(MatchedPool(pool, self._of(pool), np.array(pool.labels)))
            if n_done % _EVERY == 0 or n_done == len(pools):
                log({"step": "look", "done": n_done, "of": len(pools)})
        return found

    def company(
        self, looked: MatchedPool, counts: TokenCounts, role: ResultsClassifier
    ) -> PoolFeatures:
        """Return the passages of a pool compared with each other, as the judge compares them."""
        reads = [complete_features(one, role) for one in looked.looks]
        return assemble_pool_features(self._compare_words(looked.pool, counts), reads)

    def _of(self, pool: Pool) -> list[PassageMatch]:
        missing = self._not_yet(pool)
        if missing and self._shelf is not None:
            self._remember(self._shelf.find(list(missing)))
            missing = self._not_yet(pool)
        if missing:
            found = self._look(pool.question, missing)
            self._remember(found)
            if self._shelf is not None:
                self._shelf.keep(found)
        return [self._looks[_key(pool, one)] for one in pool.passages]

    def _not_yet(self, pool: Pool) -> dict[Key, LabelledPassage]:
        keys = {_key(pool, one): one for one in pool.passages}
        return {key: one for key, one in keys.items() if key not in self._looks}

    def _look(self, text: str, passages: Mapping[Key, LabelledPassage]) -> dict[Key, PassageMatch]:
        question, intent = self._question(text)
        views = self._view(list(passages.values()))
        looks = {}
        for (key, one), seen in zip(passages.items(), views, strict=True):
            task: PassageTask = {
                "question": text,
                "intent": intent,
                "text": one.text,
                "title": one.title,
                "section": "",
            }
            looks[key] = match_passage(question, task, seen)
        return looks

    def _view(self, passages: Sequence[LabelledPassage]) -> list[PassageVectors]:
        """Return what passages are whatever the question; the latest are held for the next one."""
        new = [one for one in passages if (one.title, one.text) not in self._views]
        titles = encode_once(self._encoder, (one.title for one in new if one.title))
        encoded = self._encoder.encode([one.text for one in new])
        for one, vectors in zip(new, encoded, strict=True):
            seen = vectorize_passage(one.text, vectors, titles.get(one.title))
            self._views[one.title, one.text] = seen
            self._held += seen.tokens.nbytes
        found = [self._views[one.title, one.text] for one in passages]
        for one in passages:
            self._views.move_to_end((one.title, one.text))
        while self._held > _ROOM:
            self._held -= self._views.popitem(last=False)[1].tokens.nbytes
        return found

    def _remember(self, looks: Mapping[Key, PassageMatch]) -> None:
        for key, one in looks.items():
            own = (one.vector, one.body, one.sentences)
            vector, body, sentences = self._texts.setdefault(key[1:], own)
            self._looks[key] = replace(one, vector=vector, body=body, sentences=sentences)

    def _question(self, question: str) -> tuple[Encoded, IntentFields]:
        if question not in self._questions:
            intent = intent_fields(recognize_intent({"question": question, "problem": ""}))
            self._questions[question] = (self._encoder.encode([question])[0], intent)
        return self._questions[question]

    def _compare_words(self, pool: Pool, counts: TokenCounts) -> LexicalSimilarity:
        if counts is not self._counts:
            self._counts, self._words = counts, {}
        key = pool.question, pool.passages
        if key not in self._words:
            texts = [join_title(one.title, one.text) for one in pool.passages]
            self._words[key] = measure_lexical_similarity(counts, pool.question, texts)
        return self._words[key]


def _key(pool: Pool, passage: LabelledPassage) -> Key:
    return pool.question, passage.title, passage.text


@contextmanager
def open_extractor(
    weights: tuple[Path, Path], keep: Path | None, log: Log = log_nothing
) -> Iterator[FeatureExtractor]:
    """Give what looks at pools with an encoder; linear algebra takes one thread meanwhile.

    With more of them small products take longer, and sums differ in their last digit with the
    threads at work.

    Args:
        weights: The encoder and its tokenizer.
        keep: Folder where looks are kept for the next time; None keeps none.
        log: Told where the encoder runs.

    Raises:
        SettingsError: Nothing can be kept there, or there is no encoder that can be used.
    """
    asked = choose_providers(list_providers())
    encoder = opened(Encoder(*weights, providers=asked), weights[0].parent)
    log_provider(encoder, asked, log)
    with (
        open_feature_cache(_place(keep, encoder), weights) as shelf,
        threadpool_limits(1, user_api="blas"),
    ):
        yield FeatureExtractor(encoder, shelf)


def _place(keep: Path | None, encoder: Encoder) -> Path | None:
    """Return where looks are kept: elsewhere if not of a CPU, as last digits differ."""
    if keep is None or encoder.provider in ON_CPU:
        return keep
    return keep / encoder.provider


@dataclass(frozen=True, slots=True, eq=False)
class FeaturedPool:
    """A pool in numbers.

    Attributes:
        looked: Its passages as looked at.
        company: Its passages compared with each other.
        part: See `deepera_graph.training.features`.
    """

    looked: MatchedPool
    company: PoolFeatures
    part: int

    @property
    def half(self) -> int:
        """0 or 1: what is fitted on one half of the groups reads the other."""
        return self.part % 2

    @property
    def pool(self) -> Pool:
        """The pool itself."""
        return self.looked.pool


@dataclass(frozen=True, slots=True, eq=False)
class ContextPool:
    """A pool and its surroundings.

    Attributes:
        row: The pool in numbers.
        around: What `deepera_graph.judges.trained.pool_features.surroundings` says of each passage.
    """

    row: FeaturedPool
    around: Floats

    @property
    def numbers(self) -> Floats:
        """What its passages are ranked by, see `pool_features.together`."""
        return compute_ranking_features(self.row.company.features, self.around)

    @property
    def has_others(self) -> bool:
        """Whether any passage has another beside it."""
        return not bool(np.isnan(self.around).all())
