"""Documents of a corpus, whatever kind of file or folder holds them."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue

from deepera_graph.bench.build.document import Document, Section
from deepera_graph.bench.errors import DatasetError
from deepera_graph.bench.jsonl import read_lines, read_rows
from deepera_graph.bench.readers.articles import read_article_documents
from deepera_graph.bench.readers.openalex import Work
from deepera_graph.bench.readers.pubmedqa_json import read_pubmedqa_documents


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str = Field(min_length=1, validation_alias=AliasChoices("id", "_id"))
    title: str = ""
    text: str
    subject: str = ""
    metadata: dict[str, JsonValue] = {}
    sections: tuple[Section, ...] = ()


def read_documents(path: Path) -> Iterator[Document]:
    """Yield the documents of a corpus, one in memory at a time except for a folder of articles.

    - A folder with ``corpus.jsonl``, or such a file: BEIR, lines of `_id`, `title` and `text`.
    - A folder with ``passages.jsonl``: articles cut into passages.
    - JSON lines of OpenAlex works: the abstract is put together from its inverted index.
    - PubMedQA's JSON, one object of PubMed id to abstract.
    - Any other JSON lines: `id`, `text`, and perhaps `title`, `subject`, `metadata`, `sections`.

    A document without an abstract is given with a blank text. That no id comes twice is for the
    caller to see to: a corpus may be too large to remember its ids.

    Raises:
        DatasetError: It is none of these, or a line cannot be read; it is named with its file.
    """
    if (path / "corpus.jsonl").exists():
        yield from _rows(path / "corpus.jsonl")
    elif (path / "passages.jsonl").exists():
        yield from read_article_documents(path)
    elif path.is_dir():
        raise DatasetError(
            f"{path} holds no documents: expected corpus.jsonl or passages.jsonl in the folder"
        )
    elif path.suffix == ".json":
        yield from read_pubmedqa_documents(path)
    elif _is_openalex(path):
        yield from (work.document() for work in read_rows(path, Work))
    else:
        yield from _rows(path)


def _rows(path: Path) -> Iterator[Document]:
    for row in read_rows(path, _Row):
        yield Document(**dict(row))


def _is_openalex(path: Path) -> bool:
    _, line = next(read_lines(path), (1, b"{}"))
    try:
        row = json.loads(line)
    except ValueError:
        return False  # reading the rows says what is wrong with the line
    return isinstance(row, dict) and (
        "abstract_inverted_index" in row or "openalex.org/" in str(row.get("id"))
    )
