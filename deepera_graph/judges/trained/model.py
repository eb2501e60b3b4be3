"""The trained judge: encoder and head, with the weights that this package ships."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from deepera_graph.errors import SettingsError
from deepera_graph.judges.trained.encoder import Encoded, Encoder
from deepera_graph.judges.trained.features import (
    PassageMatch,
    complete_features,
    join_title,
    match_passage,
    vectorize_passage,
)
from deepera_graph.judges.trained.scorer import EvidenceScorer
from deepera_graph.schema import Judgement, PassageTask, PassageText, SurveyTask
from deepera_graph.text.sentences import split_sentences
from deepera_graph.usage import Usage

_LIKELY = 0.5
_SIGNS = {  # what a note at or above one half says, and what it says below
    "results": ("reports results", "hardly reports results"),
    "topic": ("on topic", "hardly on topic"),
    "support": ("same study as an on-topic passage", "no related passage is on topic"),
}


def reason(notes: Mapping[str, float]) -> str:
    """Say what speaks for a passage of score 0.5 or more, and what against another.

    Each is followed by its probability, for instance ``for it: reports results (0.93), on topic
    (0.81)`` or ``against it: hardly reports results (0.12)``. Notes that point the other way are
    left out: the score weighs more than these three, and a reason explains it.
    """
    likely = notes["evidence"] >= _LIKELY
    told = [
        f"{words[0] if likely else words[1]} ({notes[name]:.2f})"
        for name, words in _SIGNS.items()
        if name in notes and (notes[name] >= _LIKELY) == likely and not _excused(name, notes)
    ]
    if told:
        return f"{'for' if likely else 'against'} it: {', '.join(told)}"
    if likely:
        return "for it: how its sentences match the question, beside the other passages"
    return "against it: reports results and is on topic, but hardly on this very question"


def _excused(name: str, notes: Mapping[str, float]) -> bool:
    """Tell whether a low note is no fault: one study is as good as one's own words on topic."""
    other = {"topic": "support", "support": "topic"}.get(name)
    low = notes[name] < _LIKELY
    return low and other is not None and notes.get(other, 0.0) >= _LIKELY


SHIPPED = Path(__file__).parent / "weights"
FILES = ("encoder.onnx", "tokenizer.json", "head.json")
SUMS = "SHA256SUMS"
DIGITS = 4
UsedT = TypeVar("UsedT")


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


def encode_once(encoder: Encodes, texts: Iterable[str]) -> dict[str, Encoded]:
    """Return the vectors of each distinct text."""
    distinct = list(dict.fromkeys(texts))
    return dict(zip(distinct, encoder.encode(distinct), strict=True))


class EvidenceModel:
    """Tells how likely a passage is evidence on a question.

    It may be used from several threads at once, and in forked children.

    Args:
        encoder: Makes vectors of texts.
        head: What training found, for this encoder.
        version: Names the weights.
    """

    def __init__(self, encoder: Encodes, head: EvidenceScorer, version: str = "unsaved") -> None:
        self._encoder, self.head, self.version = encoder, head, version

    @classmethod
    def load(cls, folder: Path | None = None, *, threads: int | None = None) -> Self:
        """Read weights from a folder, and check them.

        Args:
            folder: Holds ``encoder.onnx``, ``tokenizer.json``, ``head.json`` and ``SHA256SUMS``;
                those of this package if None.
            threads: Texts encoded at once, >= 1; one a core if None.

        Raises:
            SettingsError: A file is missing, is not what its checksum says, or cannot be used.
            ImportError: onnxruntime or tokenizers cannot be imported.
        """
        place = SHIPPED if folder is None else folder
        version = check(place)
        encoder, tokenizer, head = (place / name for name in FILES)
        try:
            trained = EvidenceScorer.load(head)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise SettingsError(f"{head} is no head of a judge of this version: {error}") from error
        return cls(opened(Encoder(encoder, tokenizer, threads=threads), place), trained, version)

    def survey(self, task: SurveyTask) -> list[dict[str, float]]:
        """Judge all passages of a question together.

        Returns:
            Notes for each passage: `evidence`, the probability that it is evidence; `topic`, how
            likely it is on topic by its own words; `results`, the probability that it reports
            results; `support`, how likely it is of one study with another passage on topic, left
            out where there is no other; `sentence`, the place of its best sentence.
        """
        passages = task["passages"]
        if not passages:
            return []
        looks = self._looks(task, passages)
        reads = [complete_features(one, self.head.results) for one in looks]
        texts = [join_title(one["title"], one["text"]) for one in passages]
        found = self.head.score_passages(task["question"], texts, reads)
        rows = zip(found.evidence, found.topic, found.results, found.support, reads, strict=True)
        return [
            {
                "evidence": round(float(evidence), DIGITS),
                "topic": round(float(topic), DIGITS),
                "results": round(float(results), DIGITS),
                **({} if np.isnan(support) else {"support": round(float(support), DIGITS)}),
                "sentence": float(one.best),
            }
            for evidence, topic, results, support, one in rows
        ]

    def read_ahead(self, passages: Sequence[PassageText]) -> None:
        """Begin to encode passages of which a survey will be asked for soon; return at once."""
        texts = (text for one in passages for text in (one["title"], one["text"]) if text)
        self._encoder.read_ahead(list(dict.fromkeys(texts)))

    def judge(self, task: PassageTask) -> Judgement:
        """Judge one passage: from the notes of its survey, or, without, as if it were alone.

        A blank text scores 0.
        """
        if not task["text"].strip():
            return Judgement(score=0.0, reason="the passage has no text", usage=Usage())
        notes = task.get("notes") or self._alone(task)
        sentences = [one.text for one in split_sentences(task["text"])]
        place = int(notes["sentence"])
        return Judgement(
            score=notes["evidence"],
            reason=reason(notes),
            quote=sentences[place] if place < len(sentences) else "",
            usage=Usage(),
        )

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of length 1, shape (n_texts, 384); the more alike, the closer."""
        found = [one.mean for one in self._encoder.encode(texts)]
        return np.stack(found) if found else np.zeros((0, 384), np.float32)

    def _alone(self, task: PassageTask) -> dict[str, float]:
        return self.survey(
            {
                "question": task["question"],
                "intent": task["intent"],
                "passages": [
                    {"text": task["text"], "title": task["title"], "section": task["section"]}
                ],
            }
        )[0]

    def _looks(self, task: SurveyTask, passages: Sequence[PassageText]) -> list[PassageMatch]:
        """Encode passages, and compare each with the question at once: its vectors are large."""
        named = (one["title"] for one in passages if one["title"])
        encoded = encode_once(self._encoder, [task["question"], *named])
        question = encoded[task["question"]]

        def compare(place: int, vectors: Encoded) -> PassageMatch:
            one = passages[place]
            asked: PassageTask = {
                "question": task["question"],
                "intent": task["intent"],
                "text": one["text"],
                "title": one["title"],
                "section": one["section"],
            }
            title = encoded[one["title"]] if one["title"] else None
            return match_passage(question, asked, vectorize_passage(one["text"], vectors, title))

        return self._encoder.encode_each([one["text"] for one in passages], compare)


def check(folder: Path) -> str:
    """Compare the files of a folder with their checksums.

    Returns:
        The first 16 hexadecimal digits of the checksum of the checksums.

    Raises:
        SettingsError: A file is missing, has no checksum, or is not what it says.
    """
    sums = folder / SUMS
    if not sums.is_file():
        raise SettingsError(f"{folder} holds no {SUMS}, so it is no folder of judge weights")
    lines = sums.read_text(encoding="utf-8", errors="replace").splitlines()
    told = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    for name in FILES:
        if name not in told or not (folder / name).is_file():
            raise SettingsError(f"{folder} lacks {name}, or its checksum in {SUMS}")
    for name, digest in told.items():
        if name in FILES and sha256_of(folder / name) != digest:
            raise SettingsError(f"{folder / name} is damaged: it does not match {SUMS}")
    return sha256_of(sums)[:16]


def opened(encoder: Encoder, folder: Path) -> Encoder:
    """Have an encoder read its files.

    Raises:
        SettingsError: It cannot use them.
        ImportError: onnxruntime or tokenizers cannot be imported.
    """
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
