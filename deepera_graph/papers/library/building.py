"""A base from files: resumable, a batch at a time, with all that was wrong counted by kind."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b, file_digest
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from langchain_core.documents import Document
from numpy.typing import NDArray

from deepera_graph.errors import InputError
from deepera_graph.papers import importing
from deepera_graph.papers.importing import Form, ImportProblem
from deepera_graph.papers.library import (
    count_papers,
    count_vectors,
    find_number,
    find_numbers,
    list_without_vectors,
)
from deepera_graph.papers.library import read_papers as read_papers_of
from deepera_graph.papers.library.vectors import VectorsInfo, embed_rows, name_of
from deepera_graph.papers.library.vectors_kept import open_vectors
from deepera_graph.papers.library.writing import Writer
from deepera_graph.papers.paper import PaperRecord
from deepera_graph.stores.embeddings import check_units

BATCH_SIZE = 2_000
MOST_TOLD = 20  # problems of a kind that are named
EMBEDDED_AT_ONCE = 256
_N_SAMPLE = 5
_LEAST_ALIKE = 0.98  # one byte a dimension costs .001
_LARGE_SHARE = 0.2  # of the base that is new: then its index of words is put in one piece
_RECORDS = "records-"  # begins what a base knows sources by that are no files of its own
_OUTCOMES = ("added", "updated", "unchanged", "merged")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What became of all records; every one is in one of the counts, or among the problems.
    Records of earlier runs that were stopped are read, too.
    """

    read: int = 0
    added: int = 0
    updated: int = 0  # papers that a later source says something new of
    unchanged: int = 0
    merged: int = 0  # records of papers that are there under another id
    problems: dict[str, int] = field(default_factory=dict)  # records not used, by kind
    told: tuple[str, ...] = ()  # the first problems of each kind
    papers: int = 0  # in the base now
    embedded: int = 0  # vectors made in this run

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {**asdict(self), "told": list(self.told)}


class _Tally:
    """Counts that are kept with a source, so that a run that was stopped goes on counting."""

    def __init__(self, name: str, plain: dict[str, Any]) -> None:
        self._name = name
        self.outcomes = Counter[str](plain.get("outcomes", {}))
        self.problems = Counter[str](plain.get("problems", {}))
        self.told: list[str] = list(plain.get("told", ()))

    def note(self, problem: ImportProblem) -> None:
        self.problems[problem.kind] += 1
        if self.problems[problem.kind] <= MOST_TOLD:
            self.told.append(f"{self._name}, {problem}")

    def to_dict(self) -> dict[str, Any]:
        return {"outcomes": self.outcomes, "problems": self.problems, "told": self.told}


def import_files(
    writer: Writer,
    sources: Iterable[str | Path],
    *,
    form: Form | None = None,
    batch_size: int = BATCH_SIZE,
    on_progress: Callable[[int, int], None] | None = None,
) -> BuildReport:
    """Read files into a base; a file that was read whole before is not read again."""
    importing.check_form(form)
    paths = [Path(one) for one in sources]
    identities = [identify(path, form) for path in paths]
    tallies = [
        _import_file(writer, *one, form=form, batch_size=batch_size, on_progress=on_progress)
        for one in zip(paths, identities, strict=True)
    ]
    outcomes = sum((one.outcomes for one in tallies), Counter[str]())
    problems = sum((one.problems for one in tallies), Counter[str]())
    n_papers = count_papers(writer.db)
    if outcomes["added"] > _LARGE_SHARE * n_papers:
        writer.optimize()
    return BuildReport(
        read=outcomes.total() + problems.total() - problems[importing.DAMAGED],
        **{name: outcomes[name] for name in _OUTCOMES},
        problems=dict(sorted(problems.items())),
        told=tuple(line for one in tallies for line in one.told),
        papers=n_papers,
    )


def _import_file(
    writer: Writer,
    path: Path,
    identity: str,
    *,
    form: Form | None,
    batch_size: int,
    on_progress: Callable[[int, int], None] | None,
) -> _Tally:
    known = writer.begin(identity, path.name)
    tally = _Tally(path.name, known.report)
    if known.finished:
        return _Tally(
            path.name,
            {
                "outcomes": {"unchanged": known.done - tally.problems.total()},
                "problems": tally.problems,
                "told": tally.told,
            },
        )
    done = known.done
    records = islice(importing.read_papers(path, form), done, None)
    while batch := list(islice(records, batch_size)):
        for place, one in enumerate(batch, start=done + 1):
            _put(writer, one, place, tally)
        done += len(batch)
        writer.commit(identity, done, finished=False, report=tally.to_dict())
        if on_progress is not None:
            on_progress(done, tally.outcomes["added"])
    is_whole = not tally.problems[importing.DAMAGED]
    writer.commit(identity, done, finished=is_whole, report=tally.to_dict())
    return tally


def _put(writer: Writer, one: PaperRecord | ImportProblem, place: int, tally: _Tally) -> None:
    if isinstance(one, ImportProblem):
        tally.note(one)
        return
    outcome = writer.put(one)
    if outcome == "duplicate":
        detail = f"the id {one.paper.id!r:.80} is used twice; the first counts"
        tally.note(ImportProblem(importing.DUPLICATE, place, detail))
    else:
        tally.outcomes[outcome] += 1


def identify(path: Path, form: Form | None) -> str:
    """Return what a file is known by again: the hash of all it holds, and a form that is named."""
    try:
        with path.open("rb") as file:
            known = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    return known if form is None else f"{known}-{form}"


def embed_papers(
    writer: Writer,
    embeddings: Any,
    *,
    url: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> int:
    """Make the vectors of papers that have none, a batch at a time; return how many were made."""
    n_papers, n_made = count_papers(writer.db), 0
    with open_vectors(writer, embeddings, url) as vectors:
        while batch := list_without_vectors(writer.db, EMBEDDED_AT_ONCE):
            texts, names = [one.text for _, one in batch], [one.id for _, one in batch]
            vectors.put(embed_rows(embeddings, texts, names), [number for number, _ in batch])
            n_made += len(batch)
            if on_progress is not None:
                on_progress(count_vectors(writer.db), n_papers)
    return n_made


def import_vectors(
    writer: Writer,
    vectors: str | Path,
    source: str | Path,
    *,
    embeddings: Any,
    form: Form | None,
    url: str | None = None,
) -> int:
    """Take vectors that were made before: row i is of record i of a file; return how many."""
    # Rows may be of any length and number type, such as int8. A few papers are embedded, to see
    # that the vectors are by the same embeddings. Papers that have a vector keep it.
    with open_vectors(writer, embeddings, url) as given:
        rows = _load_rows(Path(vectors), given.info)
        places = _find_places(writer, source, form, n_rows=len(rows), name=str(vectors))
        _check_sample(writer, rows, places, embeddings, Path(vectors))
        wanted = list(places.items())
        for start in range(0, len(wanted), BATCH_SIZE):
            some = wanted[start : start + BATCH_SIZE]
            numbers = [number for number, _ in some]
            names = [f"number {one}" for one in numbers]
            given.put(check_units(rows[[place for _, place in some]], names, "paper"), numbers)
    return len(wanted)


def _find_places(
    writer: Writer, source: str | Path, form: Form | None, *, n_rows: int, name: str
) -> dict[int, int]:
    """Return the row of each paper of a file that has no vector yet."""
    have = {n for (n,) in writer.db.execute("SELECT n FROM vectors")}
    places: dict[int, int] = {}
    n_records = 0
    for one in importing.read_papers(source, form):
        if isinstance(one, PaperRecord):
            number = find_number(writer.db, one.paper.id)
            if number is not None and number not in have:
                places.setdefault(number, n_records)
        n_records += not (isinstance(one, ImportProblem) and one.kind == importing.DAMAGED)
    if n_records != n_rows:
        raise InputError(
            f"{name} has {n_rows} vectors, and {source} {n_records} records: they do not "
            "belong together"
        )
    return places


def _load_rows(path: Path, info: VectorsInfo) -> NDArray[Any]:
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as an array: {error}") from error
    if rows.ndim != 2 or rows.shape[1] != info.dimensions:
        raise InputError(
            f"{path} must have vectors of {info.dimensions} dimensions, as {info.embeddings!r} "
            f"makes them, got an array of shape {rows.shape}"
        )
    return np.asarray(rows)


def _check_sample(
    writer: Writer, rows: NDArray[Any], places: dict[int, int], embeddings: Any, path: Path
) -> None:
    step = max(1, len(places) // _N_SAMPLE)
    numbers = list(places)[::step][:_N_SAMPLE]
    papers = read_papers_of(writer.db, numbers)
    if not papers:
        return
    made = embed_rows(embeddings, [one.text for one in papers], [one.id for one in papers])
    given = check_units(
        rows[[places[number] for number in numbers]], [one.id for one in papers], "paper"
    )
    alike = np.sum(made * given, axis=1)
    if float(alike.min()) < _LEAST_ALIKE:
        worst = int(alike.argmin())
        raise InputError(
            f"{path} is by other embeddings than {name_of(embeddings)!r}, or in another "
            f"order: for the paper {papers[worst].id!r} the cosine is {alike[worst]:.2f}"
        )


class NamedPapers:
    """Papers that records name, held until they are put into a base.

    A record without a title names none: it is a passage and nothing more.
    """

    def __init__(self) -> None:
        self._held: list[PaperRecord] = []
        self._run = f"{_RECORDS}{uuid4().hex}"
        self.n_put = 0

    def note(self, fields: Mapping[str, Any]) -> None:
        """Take what a record says of its paper; a part of one says nothing new."""
        made = importing.to_record(self.n_put + len(self._held) + 1, fields)
        if isinstance(made, PaperRecord):
            self._held.append(made)

    def put(self, writer: Writer) -> Counter[str]:
        """Put into a base what was noted since the last time; return what became of it."""
        if not self._held:
            return Counter()
        self.n_put = max(writer.begin(self._run, "records").done, self.n_put) + len(self._held)
        outcomes = Counter[str](writer.put(one) for one in self._held)
        self._held.clear()
        writer.commit(self._run, self.n_put, finished=True, report={})
        return outcomes

    def ids(self) -> set[str]:
        """Return all ids of the papers that were noted since the last time."""
        return {id for one in self._held for id in one.ids}


def remove_papers(
    writer: Writer,
    gone: Iterable[Document],
    left: Iterable[Document],
    noted: Iterable[str] = (),
) -> int:
    """Remove the papers of passages that are gone, unless others name them; return how many.

    What `papers build` put into a base stays, as do papers whose ids were *noted* just now.
    """
    known = find_numbers(writer.db, name_papers(gone).ids()) - find_numbers(writer.db, noted)
    rows = writer.db.execute(
        "SELECT papers.n FROM papers JOIN sources USING (run) "
        "WHERE papers.n IN (SELECT value FROM json_each(?)) AND identity LIKE ?",
        (json.dumps([*known]), f"{_RECORDS}%"),
    ).fetchall()
    numbers = {n for (n,) in rows}
    if numbers:
        numbers -= find_numbers(writer.db, name_papers(left).ids())
        writer.remove(numbers)
    return len(numbers)


def name_papers(passages: Iterable[Document]) -> NamedPapers:
    """Return the papers that passages name in their metadata; of a paper's parts the first."""
    named = NamedPapers()
    for one in passages:
        if one.metadata.get("part") in (None, 1):
            id = str(one.id).removesuffix("#1")
            named.note({**one.metadata, "id": id, "text": one.page_content})
    return named
