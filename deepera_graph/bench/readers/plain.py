"""Plain JSON lines: a question, its passages as texts, and which of them answer it."""

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.instance import Context, Instance
from deepera_graph.bench.jsonl import read_rows


class _Passage(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str = ""
    text: str
    title: str = ""
    section: str = ""


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str = ""
    question: str
    answer: str = ""
    subject: str = ""
    passages: list[str | _Passage] = Field(min_length=1)
    golden: list[str] = Field(min_length=1)


def read_plain(path: Path) -> Iterator[Instance]:
    """Yield instances from lines like ``{"question": ..., "passages": [...], "golden": ["1"]}``.

    A passage is a text, or an object with `text` and perhaps `id`, `title` and `section`; without
    an id it is named by its place, from 1. `golden` lists ids of passages. Passages are in
    first-stage order.

    Raises:
        DatasetError: A line cannot be read, or `golden` names no passage.
    """
    for number, row in enumerate(read_rows(path, _Row), start=1):
        name = row.id or str(number)
        try:
            yield _instance(name, row)
        except (ValidationError, ValueError) as error:
            raise DatasetError(f"{path}: question {name!r}: {error}") from error


def _instance(name: str, row: _Row) -> Instance:
    passages = [_Passage(text=one) if isinstance(one, str) else one for one in row.passages]
    golden = set(row.golden)
    contexts = tuple(
        Context(
            id=passage.id or str(place),
            text=passage.text,
            title=passage.title,
            section=passage.section,
            is_golden=(passage.id or str(place)) in golden,
            first_stage_rank=place,
        )
        for place, passage in enumerate(passages, start=1)
    )
    missing = golden - {context.id for context in contexts}
    if missing:
        raise ValueError(f"golden names no passage: {sorted(missing)}")
    return Instance(
        id=name,
        question=row.question,
        gold_answer=row.answer,
        subject=row.subject,
        contexts=contexts,
    )
