"""What natural look-alikes are made of: documents with sections, and questions about them."""

import logging
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from deepera_graph.bench.build.document import Document
from deepera_graph.bench.build.natural import natural_instances
from deepera_graph.bench.build.sections import SectionQuestion
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.instance import Instance
from deepera_graph.bench.jsonl import read_rows
from deepera_graph.bench.readers.articles import read_article_documents, read_article_questions
from deepera_graph.bench.readers.documents import read_documents
from deepera_graph.bench.readers.pubmedqa_json import (
    read_pubmedqa_documents,
    read_pubmedqa_questions,
)

_log = logging.getLogger(__name__)


class NaturalSource(NamedTuple):
    """Documents and questions about their sections; each call reads them anew."""

    name: str
    documents: Callable[[], Iterator[Document]]
    questions: Callable[[], Iterator[SectionQuestion]]


def open_natural(path: Path, *, questions: Path | None = None) -> NaturalSource:
    """Return what is at a path: PubMedQA's JSON, a folder of articles, or documents.

    Args:
        path: Read when it is asked for.
        questions: JSON lines of `id`, `document`, `question`, `golden` and perhaps `gold_answer`,
            `decision` and `subject`; for documents that come without questions.

    Raises:
        DatasetError: It is none of these, or questions are missing or given twice.
    """
    if questions is not None:
        read = partial(read_rows, questions, SectionQuestion)
        return NaturalSource(path.stem, partial(read_documents, path), read)
    if path.suffix == ".json" and path.is_file():
        return NaturalSource(
            path.stem,
            partial(read_pubmedqa_documents, path),
            partial(read_pubmedqa_questions, path),
        )
    if (path / "questions.jsonl").exists() and (path / "passages.jsonl").exists():
        return NaturalSource(
            path.stem,
            partial(read_article_documents, path),
            partial(read_article_questions, path),
        )
    if not path.exists():
        raise DatasetError(f"there is no file or folder {str(path)!r}")
    raise DatasetError(
        f"{path} holds no questions about its documents; expected PubMedQA's JSON, a folder with "
        "passages.jsonl and questions.jsonl, or a file of questions beside it"
    )


def read_natural(path: Path) -> Iterator[Instance]:
    """Yield one instance a question that has natural look-alikes; see `open_natural`.

    How many questions have none is logged, once.

    Raises:
        DatasetError: The data cannot be read.
    """
    source = open_natural(path)
    left_out: dict[str, str] = {}
    yield from natural_instances(
        source.documents(), source.questions(), dataset=source.name, left_out=left_out
    )
    if left_out:
        _tell(path, len(left_out))


@cache
def _tell(path: Path, n: int) -> None:
    _log.warning("%s: %d questions have no natural look-alikes and are left out", path, n)
