"""JSON lines, read and written one at a time; a bad line is named with its file and number."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from deepera_graph.bench.errors import DatasetError

RowT = TypeVar("RowT", bound=BaseModel)


def read_rows(path: Path, kind: type[RowT]) -> Iterator[RowT]:
    """Yield the rows of a file, one line in memory at a time; blank lines are skipped.

    Raises:
        DatasetError: The file cannot be opened, or a line is not a *kind*.
    """
    for number, line in read_lines(path):
        try:
            yield kind.model_validate_json(line)
        except ValidationError as error:
            raise DatasetError(f"{path}, line {number}: {first_problem(error)}") from error


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line) of the lines that are not blank.

    Raises:
        DatasetError: The file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror}") from error


def write_rows(path: Path, rows: Iterable[BaseModel]) -> int:
    """Write rows as JSON lines and return how many; the same rows give the same bytes.

    The file appears when it is complete; until then it has the suffix ``.part``. Of rows that
    fail nothing is left.
    """
    part = path.with_name(f"{path.name}.part")
    count = 0
    try:
        with part.open("wb") as file:
            for row in rows:
                file.write(row.model_dump_json(exclude_defaults=True).encode() + b"\n")
                count += 1
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count


def first_problem(error: ValidationError) -> str:
    """Return the first thing wrong with a row, after the place it is at."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
