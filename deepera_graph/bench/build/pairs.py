"""Questions with their answers: what makes them, and which of them can be used."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from deepera_graph.bench.build.answer_words import holds_answer
from deepera_graph.bench.build.corpus import Chunk
from deepera_graph.bench.build.document import Document
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
    """A document gives no questions.

    Attributes:
        reason: A short, stable name.
    """

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
    """Makes questions from one document; a file of pairs made elsewhere can be one, too.

    Attributes:
        name: Names the data set.
    """

    name: str

    def about(self) -> dict[str, str]:
        """Return what the manifest says of it."""
        ...

    async def pairs(self, document: Document, chunks: Sequence[Chunk]) -> list[Pair]:
        """Return questions on a document, the best first; none if it gives none.

        Raises:
            RoleError: They could not be made.
        """
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
