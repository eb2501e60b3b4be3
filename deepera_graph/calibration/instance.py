"""A benchmark question with its candidates and labels, data sets of them, and files of rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from langchain_core.documents import Document
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from deepera_graph.errors import DeepEraError, InputError
from deepera_graph.jobs.lines import BadLine, QuestionLine, open_questions
from deepera_graph.jobs.lines import read_lines as read_question_lines
from deepera_graph.passages import read_passages
from deepera_graph.text.jsonl import open_records, read_raw_lines, replacing

RowT = TypeVar("RowT", bound=BaseModel)
LABEL_FIELDS = ("label", "is_golden")
Labels = dict[str, int]


class DatasetError(DeepEraError, ValueError):
    """A data set cannot be read; the message names the file and the line."""


class RankingError(DeepEraError, ValueError):
    """A ranker gave back something that is not a ranking of what it was given."""


class MetricError(DeepEraError, ValueError):
    """A metric is unknown, or cannot be computed from what it was given."""


class UnavailableError(DeepEraError):
    """A ranker cannot run here: a package, weights or a key is missing; the message says which."""


def _check_not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError(f"must not be blank, got {text!r}")
    return text


NotBlank = Annotated[str, AfterValidator(_check_not_blank)]


class Context(BaseModel):
    """One candidate passage of a question, with its labels; a ranker never sees the labels."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str = Field(min_length=1, description="Names the passage within its question.")
    text: NotBlank = Field(description="What is ranked; not blank.")
    title: str = Field(default="", description="Title of the document the passage is from.")
    section: str = Field(default="", description="Section of the document.")
    is_golden: bool = Field(default=False, description="It answers the question.")
    grade: int = Field(
        default=1, ge=1, description="How well a golden passage answers; 1 unless judged in grades."
    )
    is_distractor: bool = Field(default=False, description="It looks like an answer; it is none.")
    distractor_type: str | None = Field(default=None, description="What kind of look-alike.")
    parent_id: str | None = Field(default=None, description="The golden passage it looks like.")
    first_stage_rank: int | None = Field(default=None, ge=1, description="Place in retrieval.")
    first_stage_score: float | None = Field(default=None, description="On the retriever's scale.")

    @model_validator(mode="after")
    def _one_label(self) -> Self:
        if self.is_golden and self.is_distractor:
            raise ValueError(f"passage {self.id!r} is golden and a distractor at once")
        return self


# Source: DeepEra, section 6.2; several passages may be golden, and golden passages that the first
# stage missed are recorded, because they cap what any reranker can reach.
class Instance(BaseModel):
    """A question, what answers it, and the passages to rank, in first-stage order."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    id: str = Field(min_length=1, description="Names the question within its data set.")
    dataset: str = Field(default="", description="Where it is from.")
    setting: str = Field(default="", description="How the candidates were made, e.g. 'base'.")
    subject: str = Field(default="", description="Field of science.")
    question: NotBlank = Field(description="What is asked; not blank.")
    gold_answer: str = Field(default="", description="The answer, for metrics over answers.")
    decision: str = Field(default="", description="The answer in one word, e.g. 'yes'.")
    contexts: tuple[Context, ...] = Field(min_length=1, description="The candidates.")
    golden_outside: dict[str, int] = Field(
        default_factory=dict,
        description="Golden passages that are not among the candidates: id to grade, each >= 1.",
    )

    @field_validator("contexts")
    @classmethod
    def _in_first_stage_order(cls, contexts: tuple[Context, ...]) -> tuple[Context, ...]:
        """Order the passages by their ranks; what was put in, golden or written, may have none."""
        ranked = sorted(
            (one for one in contexts if one.first_stage_rank is not None),
            key=lambda one: one.first_stage_rank or 0,
        )
        for one, other in pairwise(ranked):
            if one.first_stage_rank == other.first_stage_rank:
                raise ValueError(
                    f"passages {one.id!r} and {other.id!r} both have first_stage_rank "
                    f"{one.first_stage_rank}"
                )
        for one in contexts if ranked else ():
            may_lack = one.is_distractor or one.is_golden  # put there, not found
            if one.first_stage_rank is None and not may_lack:
                raise ValueError(f"passage {one.id!r} has no first_stage_rank, but others have one")
        found = iter(ranked)
        return tuple(one if one.first_stage_rank is None else next(found) for one in contexts)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [context.id for context in self.contexts]
        known = {*ids, *self.golden_outside}
        if len(known) < len(ids) + len(self.golden_outside):
            twice = next(one for one in known if ids.count(one) + (one in self.golden_outside) > 1)
            raise ValueError(f"passage id {twice!r} is used twice")
        if any(grade < 1 for grade in self.golden_outside.values()):
            raise ValueError(f"grades must be >= 1, got {self.golden_outside}")
        for context in self.contexts:
            if context.parent_id is not None and context.parent_id not in known:
                raise ValueError(f"parent_id {context.parent_id!r} names no passage")
        return self

    @property
    def has_golden(self) -> bool:
        """Whether anything answers the question, be it among the candidates or outside them."""
        return bool(self.golden_outside) or any(one.is_golden for one in self.contexts)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Benchmark questions under one name."""

    name: str
    read: Callable[[], Iterable[Instance]]
    first_stage: str = "unknown"
    needs_golden: bool = True  # whether it is an error if nothing answers any question

    def __iter__(self) -> Iterator[Instance]:
        """Yield the questions; nothing may answer some of them, but not all if it needs golden."""
        n_read, any_golden = 0, False
        for one in self.read():
            n_read, any_golden = n_read + 1, any_golden or one.has_golden
            yield one
        if n_read and self.needs_golden and not any_golden:
            raise DatasetError(f"data set {self.name!r}: no question has a golden passage")

    def first(self, n: int) -> "Dataset":
        """Return the first *n* instances under the same name; for a quick look."""
        return replace(self, read=lambda: islice(iter(self), n))


class LenientRow(BaseModel):
    """A line of a file of which we know some fields; others are left alone."""

    model_config = ConfigDict(extra="ignore")


def read_rows(path: Path, kind: type[RowT]) -> Iterator[RowT]:
    """Yield the rows of a file, one line in memory at a time; blank lines are skipped."""
    for number, line in read_lines(path):
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            raise DatasetError(f"{path}, line {number}: {first_problem(error)}") from error


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line) of the lines that are not blank."""
    try:
        with open_records(path) as (file, _):
            for line in read_raw_lines(file):
                yield line.number, line.text
    except InputError as error:
        raise DatasetError(str(error)) from error


def write_rows(path: Path, rows: Iterable[BaseModel]) -> int:
    """Write rows as JSON lines, the file when all are written, and return how many."""
    count = 0
    with replacing(path) as file:
        for row in rows:
            file.write(row.model_dump_json(exclude_defaults=True).encode() + b"\n")
            count += 1
    return count


def first_problem(error: ValidationError) -> str:
    """Return the first thing wrong with a row, after the place it is at."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    said = first["msg"].removeprefix("Value error, ")
    return f"{place}: {said}" if place else said


def read_questions(path: Path, *, limit: int | None = None) -> Iterator[QuestionLine]:
    """Read a file of questions, one at a time; an `InputError` names the file and the line."""
    with open_questions(path) as (source, _):
        for line in islice(read_question_lines(source), limit):
            if isinstance(line, BadLine):
                raise InputError(f"{path}, line {line.number}: {line.error}")
            yield line


def read_labelled(
    path: Path, *, limit: int | None = None
) -> Iterator[tuple[QuestionLine, list[Document], Labels]]:
    """Read questions with their passages and the labels of these, 1 for evidence, by id."""
    for line in read_questions(path, limit=limit):
        try:
            passages = read_passages(line.passages)
            by_id = {str(one.id): one for one in passages}
            golden = _read_golden(line.metadata.get("golden"), by_id.keys())
            labels = {id: _read_label(id, one.metadata, golden) for id, one in by_id.items()}
        except InputError as error:
            raise InputError(f"{path}, line {line.number}: {error}") from error
        yield line, passages, labels


def read_labels(path: Path, *, limit: int | None = None) -> dict[str, Labels]:
    """Return labels by question id and passage id."""
    labels = {line.id: its for line, _, its in read_labelled(path, limit=limit)}
    if not labels:
        raise InputError(f"{path} holds no question")
    return labels


def _read_golden(golden: object, ids: Set[str]) -> set[str] | None:
    if golden is None:
        return None
    if not isinstance(golden, list):
        raise InputError(f"golden must be a list of passage ids, got {golden!r:.80}")
    named = set(map(str, golden))
    if not named <= ids:
        raise InputError(f"golden names no passage: {sorted(named - ids)}")
    return named


def _read_label(id: str, metadata: Mapping[str, Any], golden: set[str] | None) -> int:
    given = {name: metadata[name] for name in LABEL_FIELDS if name in metadata}
    for name, value in given.items():
        if not isinstance(value, int) or value not in (0, 1):
            raise InputError(f"passage {id!r}: {name} must be 0 or 1, got {value!r:.80}")
    if golden is not None:
        given["golden"] = int(id in golden)
    if not given:
        raise InputError(
            f"passage {id!r} has neither a label nor is_golden, and its question no golden"
        )
    if len(set(given.values())) > 1:
        raise InputError(f"passage {id!r}: {' and '.join(given)} disagree, got {given}")
    return int(next(iter(given.values())))
