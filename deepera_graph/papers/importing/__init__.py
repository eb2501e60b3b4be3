"""Files of papers, in the forms that papers are given away in."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, get_args

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.papers.importing.reading import ImportProblem, read_raw
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.settings import suggest_value
from deepera_graph.text.files.records import suffix_of

Form = Literal["jsonl", "s2", "openalex", "arxiv", "acl", "bibtex"]
_READERS: Mapping[str, str] = {  # imported with the first file
    "jsonl": "forms.from_plain",
    "s2": "forms.from_semantic_scholar",
    "openalex": "forms.from_openalex",
    "arxiv": "forms.from_arxiv",
    "acl": "files.read_acl",
    "bibtex": "files.read_bibtex",
}
_SUFFIXES: dict[str, Form] = {".bib": "bibtex", ".xml": "acl"}
_MARKS: dict[Form, tuple[str, ...]] = {  # fields that only this form has; the first that fits
    "openalex": ("abstract_inverted_index", "referenced_works", "authorships"),
    "s2": (
        "paperId",
        "corpusid",
        "corpusId",
        "externalids",
        "externalIds",
        "paper_id",
        "outCitations",
    ),
    "arxiv": ("authors_parsed", "update_date", "journal-ref"),
}
_N_LOOKED_AT = 20


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
    if form is not None and form not in get_args(Form):
        hint = suggest_value(form, get_args(Form))
        raise SettingsError(f"form must be one of {', '.join(get_args(Form))}, got {form!r}{hint}")


def _load(form: str) -> Any:
    module, name = _READERS[form].split(".")
    return getattr(import_module(f"{__name__}.{module}"), name)


def _guess(first: Sequence[tuple[int, Mapping[str, Any]] | ImportProblem]) -> Form:
    fields = {name for one in first if not isinstance(one, ImportProblem) for name in one[1]}
    for form, marks in _MARKS.items():
        if fields.intersection(marks):
            return form
    return "jsonl"
