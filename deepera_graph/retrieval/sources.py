"""Passages out of files: JSON lines, CSV, plain text, or a folder of these."""

from collections.abc import Iterator
from pathlib import Path

from langchain_core.documents import Document

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.parts import MAX_WORDS, cut_text
from deepera_graph.retrieval.records import Record, read_csv, read_json_lines, read_text

_READERS = {".jsonl": read_json_lines, ".csv": read_csv, ".txt": read_text, ".md": read_text}


def read_passages(path: str | Path, *, max_words: int = MAX_WORDS) -> Iterator[Document]:
    """Read passages one by one, in order; a folder's files in order of their names, nested too.

    - ``.jsonl``: one object a line; ``.csv``: a header, then one row a passage. Fields: `text` (or
      `page_content`, `contents`, `abstract`), and if known `id` (or `_id`), `title`, `metadata`;
      others become metadata.
    - ``.txt``, ``.md``: one file is one text; a Markdown file's first heading is its title.

    A text above *max_words* is cut between sentences into parts ``ID#1``, ``ID#2``, ... numbered
    in the metadata as `part`. Without an id it is ``FILE:LINE`` or the file. The metadata names
    the file as `source` unless it has one. In a folder, hidden files and other suffixes are
    passed over.

    Args:
        path: A file, or a folder.
        max_words: Most words in a passage, >= 1; the default is 200.

    Raises:
        InputError: The file is missing, empty or of another kind; or while reading: a line, named
            by its number, is no JSON, no UTF-8, has no text, or repeats an id.
        SettingsError: *max_words* is out of range.
    """
    if max_words < 1:
        raise SettingsError(f"max_words must be >= 1, got {max_words!r}")
    path = Path(path)
    return _read(_files(path), max_words)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return _files_below(path)
    if not path.exists():
        raise InputError(f"there is no file {str(path)!r}")
    if path.suffix.lower() not in _READERS:
        raise InputError(f"{path}: cannot read this kind of file; known are {', '.join(_READERS)}")
    return [path]


def _files_below(folder: Path) -> list[Path]:
    files = [
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _READERS
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
        and file.is_file()
    ]
    if not files:
        raise InputError(f"the folder {str(folder)!r} holds no {', '.join(_READERS)} file")
    return sorted(files)


def _read(files: list[Path], max_words: int) -> Iterator[Document]:
    seen: set[str] = set()
    for file in files:
        n_before = len(seen)
        try:
            for record in _READERS[file.suffix.lower()](file):
                if record.id in seen:
                    raise InputError(f"{record.place}: id {record.id!r} is used twice")
                seen.add(record.id)
                yield from _passages(record, file, max_words)
        except OSError as error:
            raise InputError(f"{file}: cannot be read: {error.strerror}") from error
        if len(seen) == n_before:
            raise InputError(f"{file}: the file is empty")


def _passages(record: Record, file: Path, max_words: int) -> Iterator[Document]:
    metadata = {"source": file.as_posix(), **record.metadata}
    if record.title:
        metadata["title"] = record.title
    parts = cut_text(record.text, max_words=max_words)
    if len(parts) == 1:
        yield Document(id=record.id, page_content=parts[0], metadata=metadata)
        return
    for number, part in enumerate(parts, start=1):
        yield Document(
            id=f"{record.id}#{number}", page_content=part, metadata={**metadata, "part": number}
        )
