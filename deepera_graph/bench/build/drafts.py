"""Questions with their answers: what makes them, and which of them can be used."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from deepera_graph.bench.build.corpus import Chunk, Document, Found
from deepera_graph.bench.build.gates import holds_answer
from deepera_graph.bench.build.model import DistractorType
from deepera_graph.bench.build.plan import Rejected
from deepera_graph.bench.data.instance import read_rows
from deepera_graph.errors import AnswerError

MAX_ANSWER_WORDS = 30
MIN_QUESTION_WORDS = 3
_WORD = re.compile(r"[^\W\d_]{2,}")
_POINTS_AT_SOURCE = re.compile(
    r"\b(?:this|these|the present|the current|the above|our)\s+"
    r"(?:paper|stud(?:y|ies)|passage|article|abstract|document|text|work|research|experiments?"
    r"|trial|findings?|results?)\b"
    r"|\bthe (?:passage|authors?|abstract|text|document|notes)\b",
    re.IGNORECASE,
)


class NoPairsError(AnswerError):
    """A document gives no questions."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Pair:
    """A question, its answer, and the chunk that answers it."""

    question: str
    answer: str
    golden: Chunk


class QAGenerator(Protocol):
    """Makes questions from one document; a file of pairs made elsewhere can be one, too."""

    name: str

    def about(self) -> dict[str, str]:
        """Return what the manifest says of it."""
        ...

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return questions on a document, the best first; none if it gives none."""
        ...


def problem_of(pair: Pair) -> str:
    """Return why a pair cannot be used, as a short, stable name; empty if it can."""
    return next((name for name, applies in PROBLEMS.items() if applies(pair)), "")


def folded(text: str) -> str:
    """Return a text to compare: its case, its spaces and a full stop at its end do not count."""
    return " ".join(text.casefold().split()).rstrip(". ")


PROBLEMS: dict[str, Callable[[Pair], bool]] = {
    "blank-pair": lambda pair: not pair.question.strip() or not pair.answer.strip(),
    "not-a-question": lambda pair: len(_WORD.findall(pair.question)) < MIN_QUESTION_WORDS,
    "answer-not-in-passage": lambda pair: folded(pair.answer) not in folded(pair.golden.text),
    "long-answer": lambda pair: len(pair.answer.split()) > MAX_ANSWER_WORDS,
    "question-holds-answer": lambda pair: holds_answer(pair.question, pair.answer),
    "question-points-at-source": lambda pair: bool(_POINTS_AT_SOURCE.search(pair.question)),
}


@dataclass(frozen=True, slots=True)
class Distractor:
    """A passage that passed the gates."""

    text: str
    type: DistractorType


@dataclass(frozen=True, slots=True)
class Draft:
    """All that the instances of one question are made of."""

    id: str
    dataset: str
    subject: str
    pair: Pair
    pool: tuple[Found, ...]
    n_left_out: int
    was_found: bool
    distractors: tuple[Distractor, ...] = ()
    rejected: tuple[Rejected, ...] = ()


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    document: str = Field(min_length=1)
    pairs: list[tuple[str, str]]


class PairsFile:
    """Pairs from JSON lines ``{"document": id, "pairs": [[question, answer], ...]}``."""

    def __init__(self, path: Path) -> None:
        self.name = path.stem
        self._pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for row in read_rows(path, _Row):
            self._pairs[row.document].extend(row.pairs)
        self._digest = sha256(path.read_bytes()).hexdigest()

    def about(self) -> dict[str, str]:
        """Return its name and the hash of the file."""
        return {"name": self.name, "sha256": self._digest}

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return the pairs of a document, each with the first chunk that holds its answer."""
        return [
            Pair(question.strip(), answer.strip(), _holder(answer, chunks))
            for question, answer in self._pairs.get(document.id, [])
        ]


def _holder(answer: str, chunks: Sequence[Chunk]) -> Chunk:
    wanted = folded(answer)
    return next((one for one in chunks if wanted in folded(one.text)), chunks[0])
