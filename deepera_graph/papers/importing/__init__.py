"""Files of papers, in the forms that papers are given away in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from deepera_graph.errors import InputError
from deepera_graph.literature.paper_keys import clean_text, normalize_id
from deepera_graph.papers.paper import Paper, PaperRecord, read_date, read_year
from deepera_graph.retrieval.documents.article import to_utf8
from deepera_graph.settings.ranges import check_choice
from deepera_graph.text.jsonl import open_records, suffix_of
from deepera_graph.text.plain import read_lists
from deepera_graph.text.records import read_records
from deepera_graph.text.references import NO_ABSTRACT

Form = Literal["jsonl", "s2", "openalex", "arxiv", "acl", "bibtex"]
_READERS: Mapping[str, str] = {  # imported with the first file
    "jsonl": "from_plain",
    "s2": "from_semantic_scholar",
    "openalex": "from_openalex",
    "arxiv": "from_arxiv",
    "acl": "read_acl",
    "bibtex": "read_bibtex",
}
_SUFFIXES: dict[str, Form] = {".bib": "bibtex", ".xml": "acl"}
FIELDS = read_lists(__file__, "fields.toml")
_MARKS: Mapping[Form, Sequence[str]] = FIELDS["marks"]
_N_LOOKED_AT = 20


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


def read_papers(
    path: str | Path, form: Form | None = None
) -> Iterator[PaperRecord | ImportProblem]:
    """Yield the papers of a file in order, and in place of one that cannot be used its problem.

    Args:
        path: A file, compressed if it ends in ``.gz``.
        form: ``jsonl``: JSON lines or a table with the fields of `Paper` and `references`, under
            the names of exports, too; ``s2``: Semantic Scholar's or S2ORC; ``openalex``: works;
            ``arxiv``: arXiv's metadata; ``acl``: XML of the ACL Anthology; ``bibtex``. If None,
            what its name and its first records look like.

    Raises:
        InputError: The file cannot be opened, or is a folder.
        SettingsError: There is no such form.
    """
    check_form(form)
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder: name its files, e.g. {path / '*.bib'}")
    form = form or _SUFFIXES.get(suffix_of(path))
    if form is not None and form in _SUFFIXES.values():
        yield from _load(form)(path)
        return
    raw = read_raw(path)
    first = list(islice(raw, _N_LOOKED_AT))
    read = _load(form or _guess(first))
    for one in chain(first, raw):
        yield one if isinstance(one, ImportProblem) else read(*one)


def to_record(place: int, fields: Mapping[str, Any]) -> PaperRecord | ImportProblem:
    """Return the paper of the fields of one record, in whatever form they look like."""
    made: PaperRecord | ImportProblem = _load(_guess([(place, fields)]))(place, fields)
    return made


def check_form(form: str | None) -> None:
    """Raise `SettingsError` if there is no such form."""
    if form is not None:
        check_choice("form", form, get_args(Form))


def _load(form: str) -> Any:
    return getattr(import_module(f"{__name__}.forms"), _READERS[form])


def _guess(first: Sequence[tuple[int, Mapping[str, Any]] | ImportProblem]) -> Form:
    fields = {name for one in first if not isinstance(one, ImportProblem) for name in one[1]}
    for form, marks in _MARKS.items():
        if fields.intersection(marks):
            return form
    return "jsonl"


def read_raw(path: Path) -> Iterator[tuple[int, dict[str, Any]] | ImportProblem]:
    """Yield the JSON objects or references of a file with their places."""
    # A damaged file ends in a problem. A reference without an abstract is a paper all the same.
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
    """Return the object that a field holds; an empty one if it holds nothing."""
    value = fields.get(name) or {}
    if not isinstance(value, Mapping):
        raise InputError(f"{name} must be an object, got {value!r:.60}")
    return value


def list_in(fields: Mapping[str, Any], *names: str) -> list[Any]:
    """Return the list that the first of some fields that holds anything has, without nulls."""
    name = next((one for one in names if fields.get(one)), "")
    value = fields[name] if name else []
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list, got {value!r:.60}")
    return [one for one in value if one is not None]


def objects_in(fields: Mapping[str, Any], *names: str) -> list[Mapping[str, Any]]:
    """Return the list of objects that the first of some fields that holds anything has."""
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
    """Return a record of what a form has found, *more* fields too, or what is wrong with it."""
    # The first id that is not empty is the main one. A number such as 20210315 is a date, too; the
    # year is that of the date if there is no other.
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
