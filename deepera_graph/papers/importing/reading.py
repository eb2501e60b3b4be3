"""Records of papers out of files: what every form shares, and what can be wrong with one."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from deepera_graph.errors import InputError
from deepera_graph.literature.paper_keys import clean_text, normalize_id
from deepera_graph.papers.paper import Paper, PaperRecord, read_date, read_year
from deepera_graph.retrieval.documents.article import to_utf8
from deepera_graph.text.files.records import open_records, read_records, suffix_of
from deepera_graph.text.files.references import NO_ABSTRACT

BAD_LINE, NO_ID, NO_TITLE = "bad_line", "no_id", "no_title"
DUPLICATE, DAMAGED = "duplicate_id", "damaged_file"


class ImportProblem(NamedTuple):
    """A record that cannot be used, or the place where a file ends too early."""

    kind: str
    place: int  # line, or number of the record, from 1
    detail: str

    def __str__(self) -> str:
        """Return it as a line."""
        return f"record {self.place}: {self.detail} ({self.kind})"


ToRecord = Callable[[int, Mapping[str, Any]], PaperRecord | ImportProblem]


def read_raw(path: Path) -> Iterator[tuple[int, dict[str, Any]] | ImportProblem]:
    """Yield the JSON objects or references of a file with their places.

    A damaged file ends in a problem. A reference without an abstract is a paper all the same.

    Raises:
        InputError: The file cannot be opened.
    """
    number = 0
    with open_records(path) as (stream, _):
        records = read_records(to_utf8(stream, path), suffix_of(path))
        try:
            for one in records:
                number = one.number
                if one.error and one.error != NO_ABSTRACT:
                    yield ImportProblem(BAD_LINE, number, one.error)
                else:
                    yield number, one.fields
        except InputError as error:
            yield ImportProblem(DAMAGED, number + 1, str(error))


def alone(to_record: ToRecord) -> ToRecord:
    """Have a record with an odd field cost itself alone: its problem is returned."""

    @wraps(to_record)
    def make(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
        try:
            return to_record(place, fields)
        except InputError as error:
            return ImportProblem(BAD_LINE, place, str(error))

    return make


def object_in(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object that a field holds; an empty one if it holds nothing.

    Raises:
        InputError: It holds something else.
    """
    value = fields.get(name) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be an object, got {value!r:.60}")
    return value


def list_in(fields: Mapping[str, Any], *names: str) -> list[Any]:
    """Return the list that the first of some fields that holds anything has, without nulls.

    Raises:
        InputError: It holds something else.
    """
    name = next((one for one in names if fields.get(one)), "")
    value = fields[name] if name else []
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list, got {value!r:.60}")
    return [one for one in value if one is not None]


def objects_in(fields: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """Return the list of objects that the first of some fields that holds anything has.

    Raises:
        InputError: It holds something else.
    """
    found = list_in(fields, *names)
    odd = next((one for one in found if not isinstance(one, Mapping)), None)
    if odd is not None:
        raise InputError(f"{' or '.join(names)} must be a list of objects, got {odd!r:.60} in it")
    return found


def text_of(value: Any) -> str:
    """Return a value as one line of text; nothing if it is none."""
    return " ".join(clean_text(value).split()) if isinstance(value, str) else ""


def texts_of(value: Any) -> tuple[str, ...]:
    """Return a list of texts, or of objects with a name; a text is taken apart at ``;``."""
    if isinstance(value, str):
        value = value.split(";")
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        return ()
    names = (one.get("name") if isinstance(one, Mapping) else one for one in value)
    return tuple(filter(None, map(text_of, names)))


def ids_of(values: Iterable[Any]) -> tuple[str, ...]:
    """Return ids in their one form, each once."""
    found = (normalize_id(str(one)) for one in values if isinstance(one, str | int) and one)
    return tuple(dict.fromkeys(filter(None, found)))


def make_record(
    place: int,
    *,
    ids: Iterable[Any],
    title: Any,
    references: Iterable[Any] = (),
    date: Any = None,
    year: Any = None,
    **more: Any,
) -> PaperRecord | ImportProblem:
    """Return a record of what a form has found, or what is wrong with it.

    Args:
        place: Line or number of the record.
        ids: The first that is not empty is the main one.
        title: Of the paper.
        references: Ids of what it cites.
        date: Of publication, if known; a number such as 20210315 is one, too.
        year: Of publication; that of the date if there is none.
        more: Other fields of `Paper`.
    """
    known = ids_of(ids)
    if not known:
        return ImportProblem(NO_ID, place, "the paper has no id")
    name = text_of(title)
    if not name:
        return ImportProblem(NO_TITLE, place, f"the paper {known[0]!r:.80} has no title")
    lists: dict[str, Any] = {one: texts_of(more.pop(one, ())) for one in ("authors", "categories")}
    doi, arxiv = (_id_of(more.pop(one, "")) for one in ("doi", "arxiv"))
    written = str(year or "").strip()
    when = read_date(date) or (read_date(written) if len(written) > len("2021") else "")
    texts: dict[str, Any] = {field: text_of(value) for field, value in more.items()}
    paper = Paper(
        id=known[0],
        title=name,
        year=read_year(year) or read_year(when or None),
        date=when,
        doi=doi or next((one for one in known if one.startswith("10.")), ""),
        arxiv=arxiv,
        **lists,
        **texts,
    )
    cited = ids_of(references)
    return PaperRecord(paper=paper, references=cited, aliases=known[1:])


def _id_of(value: Any) -> str:
    return normalize_id(value) if isinstance(value, str) else ""
