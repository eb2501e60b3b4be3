"""The trained judge: encoder and head, with the weights that this package ships."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from hashlib import file_digest
from pathlib import Path
from typing import NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import SettingsError
from deepera_graph.judges.heuristic.analysis import explain_quote
from deepera_graph.judges.trained.direction.model import WEIGHTS, read_direction
from deepera_graph.judges.trained.features import (
    PassageMatch,
    complete_features,
    join_title,
    match_passage,
    vectorize_passage,
)
from deepera_graph.judges.trained.kept import KeptVectors, name_weights
from deepera_graph.judges.trained.reading.encoder import Encoder, KeepsVectors
from deepera_graph.judges.trained.reading.reader import Reader, Reading
from deepera_graph.judges.trained.reading.vectors import (
    Alignment,
    Encoded,
    align_passage,
    pairwise_dot,
)
from deepera_graph.judges.trained.scorer import EvidenceScorer, PoolScores, choose_read
from deepera_graph.judges.trained.sentences import Sentences, choose_sentences, weigh_sentences
from deepera_graph.schema import (
    IntentFields,
    Judgement,
    Window,
    passage_task,
)
from deepera_graph.text.questions import ask_claim
from deepera_graph.text.words import split_sentences
from deepera_graph.usage import Usage

LEAST_READ = 0.05  # the lowest score of a passage whose direction is read: it takes milliseconds


class Signs(NamedTuple):
    """What the judge finds of a window beside the others of its question."""

    evidence: float  # probability that it is evidence
    quote: str  # the sentence that answers best
    reading: Reading | None = None  # what the reader found, if it read the window


SHIPPED = Path(__file__).parent / "weights"
FILES = ("encoder.onnx", "tokenizer.json", "head.json")
READER = "reader.onnx"  # weights may do without
DIRECTION = WEIGHTS.name  # only those that come with the package are read
SUMS = "SHA256SUMS"
DIGITS = 4
UsedT = TypeVar("UsedT")
OpensT = TypeVar("OpensT", Encoder, Reader)


class Encodes(Protocol):
    """What the judge asks of an encoder."""

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """Return the vectors of each text."""

    def encode_each(
        self, texts: Sequence[str], use: Callable[[int, Encoded], UsedT]
    ) -> list[UsedT]:
        """Use the vectors of each text as soon as they are there; see `Encoder.encode_each`."""

    def read_ahead(self, texts: Sequence[str]) -> None:
        """Begin to encode texts; see `Encoder.read_ahead`."""

    def keeping(self, store: KeepsVectors) -> Self:
        """Return an encoder that keeps vectors; see `Encoder.keeping`."""

    def keep_held(self, texts: Sequence[str]) -> None:
        """Keep what is in memory; see `Encoder.keep_held`."""


def encode_once(encoder: Encodes, texts: Iterable[str]) -> dict[str, Encoded]:
    """Return the vectors of each distinct text."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, encoder.encode(distinct), strict=True))


class EvidenceModel:
    """Tells how likely a passage is evidence; for threads at once, and for forked children."""

    def __init__(
        self,
        encoder: Encodes,
        head: EvidenceScorer,
        version: str = "unsaved",
        reader: Reader | None = None,
    ) -> None:
        self.encoder, self.head, self.version, self.reader = encoder, head, version, reader

    @classmethod
    def load(cls, folder: Path | None = None, *, threads: int | None = None) -> Self:
        """Read weights from a folder, those of this package if None, and check them.

        Up to *threads* texts are encoded at once, one a core if None. An `ImportError` says that
        onnxruntime or tokenizers is missing; what is wrong with the folder is a `SettingsError`.
        """
        place = SHIPPED if folder is None else folder
        version = check(place)
        check_directions()
        encoder, tokenizer, head = (place / name for name in FILES)
        try:
            trained = EvidenceScorer.load(head)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SettingsError(f"{head} is no head of a judge of this version: {error}") from error
        reads = opened(Encoder(encoder, tokenizer, threads=threads), place)
        reader = None
        if (place / READER).is_file():
            reader = opened(Reader(place / READER, reads), place)
        return cls(reads, trained, version, reader)

    def keeping(self, folder: Path, *, max_mb: float, weights: Path) -> Self:
        """Return this judge with an encoder that keeps vectors in a folder; they share all else.

        *weights* is the folder that this judge was read from.
        """
        version = name_weights(read_sums(weights), FILES[:2])
        twin = copy(self)
        twin.encoder = self.encoder.keeping(KeptVectors(folder, version, max_mb=max_mb))
        return twin

    def judge(
        self, question: str, intent: IntentFields, windows: Sequence[Window]
    ) -> list[Judgement]:
        """Judge the windows of a question together, each beside the others; a blank one scores 0.

        The score is the probability that a window is evidence, the quote its best sentence, the
        direction what it says to a yes/no question, from a score of `LEAST_READ` on. A short claim
        is judged as the question that it answers, see `ask_claim`.
        """
        question = ask_claim(question) or question
        filled = [one for one in windows if one["text"].strip()]
        signs = iter(self.read_signs(question, intent, filled))
        return [
            self._judge(question, one, next(signs)) if one["text"].strip() else _BLANK
            for one in windows
        ]

    def read_signs(
        self, question: str, intent: IntentFields, windows: Sequence[Window]
    ) -> list[Signs]:
        """Return what speaks for each window beside the others; none of them is blank."""
        if not windows:
            return []
        matches = self._match(question, intent, windows)
        features = [complete_features(one, self.head.results) for one in matches]
        texts = [join_title(one["title"], one["text"]) for one in windows]
        titles = {title for one in windows if (title := one["title"].strip())}
        of_several = len(titles) > 1
        found = self.head.score_passages(question, texts, features, of_several=of_several)
        evidence, readings = self._read(question, texts, found)
        quotes = self._quote(question, windows, matches, readings)
        return [
            Signs(round(float(likely), DIGITS), quote, readings.get(place))
            for place, (likely, quote) in enumerate(zip(evidence, quotes, strict=True))
        ]

    def _read(
        self, question: str, texts: Sequence[str], found: PoolScores
    ) -> tuple[NDArray[np.float64], dict[int, Reading]]:
        """Return the probabilities of evidence, and what the reader found in the likeliest.

        It reads where passages of several papers are beside each other, for a question; for the
        passages of one paper, for claims and for one passage alone, the trees are as good.
        """
        if self.reader is None or self.head.opinion is None or not found.may_be_read:
            return found.evidence, {}
        places = choose_read(found.evidence)
        readings = self.reader.read(question, [texts[place] for place in places])
        read = np.full(len(texts), np.nan)
        read[places] = [one.evidence for one in readings]
        evidence = self.head.opinion.probabilities(found.evidence, read)
        return evidence, dict(zip(places, readings, strict=True))

    def weigh_sentences(
        self, question: str, intent: IntentFields, windows: Sequence[Window]
    ) -> list[list[float]]:
        """Return how well each sentence of each window answers: those of `split_sentences`.

        They are log odds but for a scale, comparable over windows. Every window is read by the
        reader, if there is one, so give it few; one without a text has no sentence.
        """
        places = [place for place, one in enumerate(windows) if one["text"].strip()]
        filled = [windows[place] for place in places]
        weighed: list[list[float]] = [[] for _ in windows]
        if not filled:
            return weighed
        matches = self._match(question, intent, filled)
        readings: list[Reading] | list[None] = [None] * len(filled)
        if self.reader is not None:
            texts = [join_title(one["title"], one["text"]) for one in filled]
            readings = self.reader.read(question, texts)
        passages = list(map(_list_sentences, filled, matches, readings))
        found = weigh_sentences(question, passages, self.head.results, self.head.sentence)
        for place, weights in zip(places, found, strict=True):
            weighed[place] = weights.tolist()
        return weighed

    def align(self, question: str, windows: Sequence[Window]) -> list[Alignment]:
        """Return how closely each window follows a question; all 0 for one without a text.

        What was judged before is not encoded again while it is held.
        """
        filled = [one for one in windows if one["text"].strip()]
        titles = (one["title"] for one in filled if one["title"])
        encoded = encode_once(self.encoder, [question, *titles])

        def compare(place: int, body: Encoded) -> Alignment:
            one = filled[place]
            title = encoded[one["title"]] if one["title"] else None
            return align_passage(encoded[question], one["text"], body, title)

        found = iter(self.encoder.encode_each([one["text"] for one in filled], compare))
        nothing = Alignment(0.0, 0.0, 0.0)
        return [next(found) if one["text"].strip() else nothing for one in windows]

    def find_unlike(
        self, question: str, windows: Sequence[Window], words: Mapping[str, float]
    ) -> list[str]:
        """Return those of some words of a question that no token is like.

        A token of a window is like a word from the cosine on that stands with it; a word that the
        question does not spell so is left out.
        """
        [asked] = self.encoder.encode([question])
        vectors = {word: asked.find_word(question, word.lower()) for word in words}
        named = {word: vector for word, vector in vectors.items() if vector is not None}
        texts = [text for one in windows for text in (one["title"], one["text"]) if text.strip()]
        if not named or not texts:
            return []
        wanted = np.stack(list(named.values()))

        def compare(place: int, body: Encoded) -> NDArray[np.float32]:
            return np.asarray(pairwise_dot(wanted, body.units).max(axis=1), np.float32)

        nearest = np.stack(self.encoder.encode_each(texts, compare)).max(axis=0)
        return [word for word, cosine in zip(named, nearest, strict=True) if cosine < words[word]]

    def read_ahead(self, windows: Sequence[Window]) -> None:
        """Begin to encode windows that will be judged soon; return at once."""
        texts = (text for one in windows for text in (one["title"], one["text"]) if text)
        self.encoder.read_ahead(list(dict.fromkeys(texts)))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (n_texts, 384); the more alike, the closer."""
        found = [one.mean for one in self.encoder.encode(texts)]
        return np.stack(found) if found else np.zeros((0, 384), np.float32)

    def _judge(self, question: str, window: Window, signs: Signs) -> Judgement:
        direction = None
        if signs.evidence >= LEAST_READ:
            read = None if signs.reading is None else signs.reading.directions.tolist()
            direction = read_direction(question, window["text"], signs.quote, read)
        return Judgement(
            score=signs.evidence,
            reason=explain_quote(question, window, signs.quote),
            quote=signs.quote,
            direction=direction,
            usage=Usage(),
        )

    def _quote(
        self,
        question: str,
        windows: Sequence[Window],
        matches: Sequence[PassageMatch],
        readings: Mapping[int, Reading],
    ) -> list[str]:
        read = [readings.get(place) for place in range(len(windows))]
        passages = list(map(_list_sentences, windows, matches, read))
        chosen = choose_sentences(question, passages, self.head.results, self.head.sentence)
        return [
            one.texts[place] if one.texts else ""
            for one, place in zip(passages, chosen, strict=True)
        ]

    def _match(
        self, question: str, intent: IntentFields, windows: Sequence[Window]
    ) -> list[PassageMatch]:
        """Encode windows, and compare each with the question at once: its vectors are large."""
        named = (one["title"] for one in windows if one["title"])
        encoded = encode_once(self.encoder, [question, *named])

        def compare(place: int, vectors: Encoded) -> PassageMatch:
            one = windows[place]
            title = encoded[one["title"]] if one["title"] else None
            vectorized = vectorize_passage(one["text"], vectors, title)
            return match_passage(encoded[question], passage_task(question, intent, one), vectorized)

        return self.encoder.encode_each([one["text"] for one in windows], compare)


def _list_sentences(window: Window, match: PassageMatch, reading: Reading | None) -> Sentences:
    """Return the sentences of a window; the reader read the title, too, whose come first."""
    texts = [one.text for one in split_sentences(window["text"])]
    read = None if reading is None or not texts else reading.sentences[-len(texts) :]
    return Sentences(texts, match, read)


_BLANK = Judgement(score=0.0, reason="the passage has no text", usage=Usage())


def check(folder: Path) -> str:
    """Compare files with their checksums; return 16 hex digits of the checksum of these."""
    sums = folder / SUMS
    if not sums.is_file():
        raise SettingsError(f"{folder} holds no {SUMS}, so it is no folder of judge weights")
    told = read_sums(folder)
    for name in FILES:
        if name not in told or not (folder / name).is_file():
            raise SettingsError(f"{folder} lacks {name}, or its checksum in {SUMS}")
    untold = [one for one in (READER, DIRECTION) if one not in told and (folder / one).is_file()]
    if untold:
        raise SettingsError(f"{folder} holds {untold[0]}, but not its checksum in {SUMS}")
    for name, digest in told.items():
        if name in (*FILES, READER, DIRECTION) and not _is_whole(folder / name, digest):
            raise SettingsError(f"{folder / name} is damaged: it does not match {SUMS}")
    return sha256_of(sums)[:16]


def check_directions() -> None:
    """Compare the weights of directions, which come with the package, with their checksum."""
    if not _is_whole(SHIPPED / DIRECTION, read_sums(SHIPPED).get(DIRECTION, "")):
        raise SettingsError(f"{SHIPPED / DIRECTION} is damaged: it does not match {SUMS}")


def _is_whole(file: Path, digest: str) -> bool:
    return file.is_file() and sha256_of(file) == digest


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums that a folder of weights tells, by the names of its files."""
    lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def opened(encoder: OpensT, folder: Path) -> OpensT:
    """Have an encoder or a reader read its files."""
    try:
        encoder.open()
    except (ImportError, OSError):
        raise
    except Exception as error:  # both libraries raise kinds of their own
        raise SettingsError(f"{folder} holds no encoder that can be used: {error}") from error
    return encoder


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, 64 hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
