"""Gates that a written distractor must pass before it enters a pool."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from deepera_graph.bench.build.answer_words import holds_answer
from deepera_graph.bench.build.overlap import containment, likeness
from deepera_graph.bench.build.tells import TELLS
from deepera_graph.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """How strict the gates are.

    Attributes:
        min_percentile: Similarity to the question must reach this percentile of the natural
            contexts', in [0, 100].
        min_length: Least length, as a multiple of the median natural context, >= 0.
        max_length: Most length, likewise, > `min_length`.
        max_likeness: Shingles shared with another distractor, as a share of all shingles of the
            two, must stay below this; in (0, 1].
        max_copied: Share of its shingles that may also be in a golden passage, numbers and
            negations aside; in (0, 1].

    Raises:
        SettingsError: A limit is out of range.

    Source:
        Ours. The two shares lie between what sections of one abstract have in common (2 of 1 152
        reach 0.4) and what a copy with a few words changed keeps (0.6 and more).
    """

    min_percentile: float = 10.0
    min_length: float = 0.5
    max_length: float = 2.0
    max_likeness: float = 0.4
    max_copied: float = 0.4

    def __post_init__(self) -> None:
        if not 0 <= self.min_percentile <= 100:
            raise SettingsError(f"min_percentile must be in [0, 100], got {self.min_percentile}")
        if not 0 <= self.min_length < self.max_length:
            raise SettingsError(
                f"min_length must be in [0, max_length), got {self.min_length} "
                f"and max_length {self.max_length}"
            )
        for name in ("max_likeness", "max_copied"):
            if not 0 < getattr(self, name) <= 1:
                raise SettingsError(f"{name} must be in (0, 1], got {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A distractor somebody wrote, with what it is held against.

    Attributes:
        text: The distractor.
        gold_answer: Answer it must not give; may be long, or blank if there is none.
        synonyms: Other ways to say that answer.
        question_similarity: Of the distractor to its question, e.g. a cosine; any scale, higher is
            closer.
        natural_similarities: The same of the natural contexts of the pool, on the same scale;
            without any the similarity is not judged.
        natural_lengths: Words of each natural context of the pool, as `str.split` counts them;
            without any the length is not judged.
        others: Texts of the distractors already accepted for the question.
        golden: Texts of the golden passages.
        question: What is asked; a distractor must not repeat it. Blank leaves this out.
    """

    text: str
    gold_answer: str
    synonyms: Sequence[str] = ()
    question_similarity: float = 0.0
    natural_similarities: Sequence[float] = ()
    natural_lengths: Sequence[int] = ()
    others: Sequence[str] = ()
    golden: Sequence[str] = ()
    question: str = ""


_Gate = Callable[[Candidate, Gates], bool]


def failed_gates(candidate: Candidate, gates: Gates | None = None) -> list[str]:
    """Return the names of the gates that reject it, in the order of `GATES`; empty if it passes."""
    limits = gates or Gates()
    return [name for name, rejects in GATES.items() if rejects(candidate, limits)]


def _is_blank(candidate: Candidate, gates: Gates) -> bool:
    return not candidate.text.strip()


def _answers(candidate: Candidate, gates: Gates) -> bool:
    answers = (candidate.gold_answer, *candidate.synonyms)
    return any(holds_answer(candidate.text, answer, candidate.question) for answer in answers)


def _is_far(candidate: Candidate, gates: Gates) -> bool:
    natural = candidate.natural_similarities
    if not len(natural):
        return False
    return candidate.question_similarity < float(np.percentile(natural, gates.min_percentile))


def _is_short(candidate: Candidate, gates: Gates) -> bool:
    return _relative_length(candidate) < gates.min_length


def _is_long(candidate: Candidate, gates: Gates) -> bool:
    return _relative_length(candidate) > gates.max_length


def _relative_length(candidate: Candidate) -> float:
    """Words as a multiple of the median natural context; the middle of the limits without any."""
    if not len(candidate.natural_lengths):
        return 1.0
    return len(candidate.text.split()) / max(1.0, float(np.median(candidate.natural_lengths)))


def _is_duplicate(candidate: Candidate, gates: Gates) -> bool:
    return any(likeness(candidate.text, other) >= gates.max_likeness for other in candidate.others)


def _copies_golden(candidate: Candidate, gates: Gates) -> bool:
    return any(containment(candidate.text, one) >= gates.max_copied for one in candidate.golden)


def _repeats_question(candidate: Candidate, gates: Gates) -> bool:
    question = " ".join(candidate.question.casefold().split()).rstrip("?. ")
    return bool(question) and question in " ".join(candidate.text.casefold().split())


def _tells(pattern_holds: Callable[[str], bool]) -> _Gate:
    return lambda candidate, gates: pattern_holds(candidate.text)


GATES: dict[str, _Gate] = {
    "blank": _is_blank,
    "contains-answer": _answers,
    "far-from-question": _is_far,
    "too-short": _is_short,
    "too-long": _is_long,
    "duplicate": _is_duplicate,
    "copies-golden": _copies_golden,
    "repeats-question": _repeats_question,
    **{name: _tells(holds) for name, holds in TELLS.items()},
}
