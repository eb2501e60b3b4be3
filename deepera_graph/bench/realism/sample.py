"""What is told apart: the distractors of a data set and the other passages of the same pools."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deepera_graph.bench.dataset import Dataset
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.instance import Context, Instance

UNNAMED = "no type"
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_LEAST_POOLS = 2
_Pool = tuple[str, list[tuple[Context, str]]]  # a question, and passages with their type or ""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Passages of pools that have both kinds; golden passages are left out.

    Attributes:
        questions: Texts of the questions, shape (n_questions,).
        texts: Distinct texts, shape (n_texts,).
        pool: Which question a passage is a candidate of, shape (n_passages,).
        text: Which text it is, shape (n_passages,).
        is_distractor: Shape (n_passages,).
        kind: Type of a distractor; blank for another passage; shape (n_passages,).
        first_stage: Score of the first stage, not a number where there is none;
            shape (n_passages,).
    """

    questions: tuple[str, ...]
    texts: tuple[str, ...]
    pool: Ints
    text: Ints
    is_distractor: Bools
    kind: tuple[str, ...]
    first_stage: NDArray[np.float64]

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


def sample(dataset: Dataset, *, kinds: Collection[str] | None = None) -> Sample:
    """Read a data set once; pools without a distractor, or without another passage, are left out.

    Args:
        dataset: With labelled distractors.
        kinds: Types of distractors to look at; those of other types count as nothing. None takes
            all.

    Raises:
        DatasetError: It cannot be read, has none of a type, or not two pools are left.
    """
    known: dict[str, None] = {}
    found = _sample(_distractors(one, kinds, known) for one in dataset)
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


def golden_sample(dataset: Dataset) -> Sample | None:
    """Return the same with the golden passages in the place of the distractors.

    None where fewer than two pools have a golden passage beside others.
    """
    found = _sample(_golden(one) for one in dataset)
    return found if found.n_questions >= _LEAST_POOLS else None


def _sample(pools: Iterable[_Pool]) -> Sample:
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
    return Sample(
        questions=tuple(questions),
        texts=tuple(texts),
        pool=table[:, 0].astype(np.int64),
        text=table[:, 1].astype(np.int64),
        is_distractor=np.array([bool(one) for one in kinds]),
        kind=tuple(kinds),
        first_stage=table[:, 2],
    )


def _distractors(
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


def _golden(instance: Instance) -> _Pool:
    chosen = [
        (one, "golden" if one.is_golden else "")
        for one in instance.contexts
        if not one.is_distractor
    ]
    return instance.question, chosen
