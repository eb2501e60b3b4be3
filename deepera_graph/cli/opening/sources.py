"""Where passages are read from: files, and the services of the world's literature."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from deepera_graph.cli.opening.judges import default_cache
from deepera_graph.cli.shared import places
from deepera_graph.cli.shared.bars import progress_bar
from deepera_graph.cli.shared.console import MOST_TOLD, OK, SOME_FAILED, say
from deepera_graph.cli.shared.values import read_max_words
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.text.plain import count
from deepera_graph.text.records import BIBTEX, NBIB, RIS

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from langchain_core.documents import Document

    from deepera_graph.doctor.checks import Finding
    from deepera_graph.papers.results import Scope
    from deepera_graph.papers.sources import Literature, LiteratureAnswer
    from deepera_graph.retrieval.collections.passage_store import PassageStore
    from deepera_graph.retrieval.files import Skipped, SkippedKind
    from deepera_graph.retrieval.kept_files import KeptFiles, Origin
    from deepera_graph.stores.words import WordIndex

_BATCH_OF_EMBEDDINGS, _BATCH_OF_IDS = 32, 256
_MOST_KEPT = 1000  # records that could not be used


class PassageSource:
    """The passages of a file or folder, read as they are asked for, and what could not be used."""

    def __init__(
        self,
        *paths: str,
        reading: places.ReadOptions,
        verbose: bool,
        on_record: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        from deepera_graph.retrieval.sources import read_passages

        self._paths, self._verbose = paths, verbose
        self._on_record = on_record
        self._files: KeptFiles | None = None  # of the library that is filled
        self._path = Path()  # of the file that is read
        self._begun: list[str] = []
        self._ended: list[str] = []
        self._early: list[tuple[Path, Mapping[str, Any]]] = []  # records, before that was known
        self.origins: dict[str, Origin] = {}  # of passages, by their ids in the library
        self.forms = Counter[str]()  # files that have passages, as far as read, such as ``.pdf``
        self.replaced = Counter[str]()  # passages of other files that had the ids of those read
        self._failed = False
        self._kinds: dict[str, SkippedKind] = {}
        self._n_skipped = 0
        self.skipped: list[Skipped] = []  # the first 1000
        self.passages = read_passages(
            paths,
            max_words=read_max_words(reading.max_words),
            pdf_reader=reading.pdf_reader,
            on_skip=self._note,
            on_read=self._note_bytes,
            on_file=self._note_file,
            on_record=None if on_record is None else self._note_record,
            on_begin=self._note_begin,
            on_end=lambda path: self._ended.append(os.path.realpath(path)),
        )
        self._n_read: int | None = None  # bytes
        self._n_bytes: int | None = None  # of all files

    @property
    def exit_code(self) -> int:
        """What a command that was done otherwise ends with."""
        # Files of other kinds are no failure, nor are papers without an abstract.
        return SOME_FAILED if self._failed else OK

    def fill(
        self,
        store: PassageStore | WordIndex,
        *,
        quiet: bool,
        embedded: Callable[[list[str]], None] | None = None,
        **how: Any,
    ) -> int:
        """Index all passages under a progress bar, as *how* says; return how many."""
        # *embedded* is told of each batch the texts that were embedded as the local judge reads
        # them: those of passages without a title, with which they would be embedded together.
        texts: list[str] = []
        passages = self.passages if embedded is None else self._collect_plain(texts)
        with progress_bar("indexing", hidden=quiet) as bar:

            def watch(n: int) -> None:
                bar.move(to=self._n_read, total=self._n_bytes, count=n)
                if embedded is not None:
                    embedded(texts)
                    texts.clear()

            return store.add(passages, on_progress=watch, **how)

    def compare(self, store: PassageStore) -> None:
        """Name files as a library knows them, and note what it has that is read no more."""
        # Passages of other files that those read replace, as they have their ids, are counted.
        from deepera_graph.retrieval.kept_files import KeptFiles

        self._files = KeptFiles(() if store.is_new else store.scan_files())
        for path, fields in self._early:
            self._tell_record(path, fields)
        self.passages = self._name_passages(iter(self.passages))
        if not store.is_new:
            self.passages = self._compare_ids(store, self.passages)

    def list_stale(self) -> list[str]:
        """Return the passages of the library that are in files no more which were read whole."""
        return [] if self._files is None else self._files.list_stale(self._ended)

    def list_missing(self) -> list[str]:
        """Return the files of the library that are gone from the folders that were read."""
        return [] if self._files is None else self._files.list_missing(self._paths, self._begun)

    def _name_passages(self, passages: Iterator[Document]) -> Iterator[Document]:
        assert self._files is not None
        for one in passages:
            origin, given = self._files.find(self._path), self._path.as_posix()
            if one.metadata.get("source") == given:
                one.metadata["source"] = origin.name
            one.id = _rename(one.id or "", given, origin.name)
            self.origins[one.id] = origin
            self._files.note_written(one.id)
            yield one

    def _note_begin(self, path: Path) -> None:
        self._path = path
        self._begun.append(os.path.realpath(path))

    def _note_record(self, fields: Mapping[str, Any]) -> None:
        if self._files is None:
            self._early.append((self._path, fields))
        else:
            self._tell_record(self._path, fields)

    def _tell_record(self, path: Path, fields: Mapping[str, Any]) -> None:
        """Tell of a record by the name that the library has for its file."""
        if self._files is not None and self._on_record is not None:
            given, name = path.as_posix(), self._files.find(path).name
            id = fields.get("id")
            known = {"id": _rename(id, given, name)} if isinstance(id, str) else {}
            self._on_record({**fields, **known})

    def _compare_ids(self, store: PassageStore, passages: Iterator[Document]) -> Iterator[Document]:
        while batch := list(islice(passages, _BATCH_OF_IDS)):
            known = {one.id: one for one in store.fetch([one.id or "" for one in batch])}
            for one in batch:
                old = known.get(one.id, one)
                source = old.metadata.get("source")
                is_other = source != one.metadata.get("source")
                self.replaced[str(source)] += is_other and old.page_content != one.page_content
            yield from batch

    def _note_file(self, form: str) -> None:
        self.forms[form] += 1

    def describe_files(self) -> str:
        """Return ``, from 3 .pdf, 1 .bib and 1 .ris``; nothing of one file."""
        *others, last = [f"{n} {form}" for form, n in self.forms.most_common()] or [""]
        named = f"{', '.join(others)} and {last}" if others else last
        return f", from {named}" if self.forms.total() > 1 else ""

    def _note_bytes(self, n_read: int, n_bytes: int) -> None:
        self._n_read, self._n_bytes = n_read, n_bytes

    def tell(self) -> None:
        """Say on stderr what was left out: a line a reason, or a line each."""
        from deepera_graph.retrieval.files import describe_left_out

        others = [one for one in self.skipped if one.other_kind or one.is_written]
        bad = [one for one in self.skipped if not (one.other_kind or one.is_written)]
        for line in describe_left_out(others, most=len(others) if self._verbose else MOST_TOLD):
            say(line)
        told: list[Any] = bad if self._verbose else [*self._kinds.values()][:MOST_TOLD]
        for one in told:
            say(f"skipped {one}")
        n_told = len(others) + (len(bad) if self._verbose else sum(one.n for one in told))
        if self._n_skipped > n_told:
            hint = "" if self._verbose else "; -v names them"
            say(f"skipped {self._n_skipped - n_told} more{hint}")
        for source, n in (+self.replaced).items():
            say(
                f"replaced {count(n, 'passage')} of {source} by others with the same ids; to have "
                "both, give the records of one file other ids"
            )
        if not self._verbose and any(one.n > len(one.first) for one in told):
            say("-v names each of them, and why")

    def check(self) -> None:
        """Read the first passage, and put it back; if there is none, say why and leave."""
        first = next(self.passages, None)
        if first is None:
            self.tell()
            bare = all(one.without_text for one in self.skipped) and bool(self.skipped)
            records = {Path(one.place.rpartition(":")[0]).suffix for one in self.skipped}
            is_list = bare and records <= {NBIB, RIS, BIBTEX}
            hint = ": its references have no abstracts; export them with abstracts"
            say(f"no passages in {', '.join(map(repr, self._paths))}{hint if is_list else ''}")
            raise typer.Exit(SOME_FAILED)
        self.passages = chain([first], self.passages)

    def _collect_plain(self, texts: list[str]) -> Iterator[Document]:
        for passage in self.passages:
            if not passage.metadata.get("title"):
                texts.append(passage.page_content)
            yield passage

    def _note(self, skipped: Skipped) -> None:
        from deepera_graph.retrieval.files import SkippedKind, kind_of

        self._n_skipped += 1
        if len(self.skipped) < _MOST_KEPT:
            self.skipped.append(skipped)
        if skipped.other_kind or skipped.is_written:
            return
        self._failed |= skipped.is_lost
        kind = kind_of(skipped)
        if kind in self._kinds or len(self._kinds) < _MOST_KEPT:
            self._kinds.setdefault(kind, SkippedKind()).add(skipped)


def _rename(id: str, given: str, name: str) -> str:
    """Return an id that begins with the name of a file with another name for it."""
    is_named_so = id == given or id.startswith((f"{given}#", f"{given}:"))
    return f"{name}{id.removeprefix(given)}" if is_named_so else id


def batches(embeddings: str | None) -> dict[str, Any]:
    """Return how passages are added: embedding them takes long, and the bar is to move on."""
    return {} if not embeddings else {"batch_size": _BATCH_OF_EMBEDDINGS}


_TRIED = "Does green tea lower fasting glucose?"


def check_literature(chosen: places.LiteratureOptions) -> None:
    """Raise `SettingsError` unless the options on services can be; it loads none of them."""
    if chosen.sources is not None:
        from deepera_graph.papers.sources import read_names
        from deepera_graph.papers.sources.http import read_contact

        read_names(chosen.sources)
        read_contact(chosen.contact)
        return
    for name in ("contact", "source_seconds"):
        if getattr(chosen, name) is not None and name not in chosen.configured:
            raise SettingsError(f"--{name.replace('_', '-')} goes with --source")


def find_scope(
    literature: places.LiteratureOptions,
    conditions: Mapping[str, Any],
    **others: bool,
) -> Scope | None:
    """Return the limits within which the literature is searched; None if it is not."""
    # *others* are options that do not go with it, and whether they were given.
    if literature.sources is None:
        return None
    for option, is_given in others.items():
        if is_given:
            raise SettingsError(f"--{option} goes with a SOURCE or --library, not with --source")
    from deepera_graph.papers.results import Scope

    return Scope.of(conditions)


@contextmanager
def open_literature(chosen: places.LiteratureOptions, cache: str | None) -> Iterator[Literature]:
    """Open the services of a command, with the cache that it names."""
    from deepera_graph.papers.sources import open_sources
    from deepera_graph.stores.judgements import open_cache

    kept = default_cache() if cache is None else open_cache(cache)
    held: AbstractContextManager[Any] = nullcontext() if kept is None else closing(kept)
    with held:
        yield open_sources(
            chosen.sources or "",
            seconds=chosen.source_seconds,
            contact=chosen.contact,
            cache=kept,
        )


def search_literature(
    chosen: places.LiteratureOptions,
    question: str,
    *,
    k: int,
    scope: Scope,
    cache: str | None,
    quiet: bool,
) -> LiteratureAnswer:
    """Ask the services, and say on stderr what is missing."""
    with (
        open_literature(chosen, cache) as literature,
        progress_bar(f"asking {literature.name.replace('+', ', ')}", hidden=quiet),
    ):
        found = literature.search(question, k, scope)
    if found.has_failed:
        raise BackendError(f"the literature could not be searched: {found.cause}")
    for problem in found.problems:
        say(problem)
    return found


def check_sources(names: str, seconds: float) -> Iterator[Finding]:
    """Ask each service for one paper, and say how it went and what would help."""
    from deepera_graph.doctor.checks import Finding
    from deepera_graph.papers.sources import open_sources
    from deepera_graph.papers.sources.http import CONTACT_VARIABLE, read_contact

    literature = open_sources(names, seconds=seconds)
    services = {one.name: one for one in literature.sources}
    for answer in literature.search(_TRIED, k=1).answers:
        variable = getattr(services[answer.source], "key_variable", "")
        lacks = bool(variable and not os.environ.get(variable))
        found = f"{str(answer).partition(': ')[2]}, in {answer.seconds:.1f} s"
        advice = f"set {variable}, a key is free; without one there are few requests"
        well = {"ok": "ok", "failed": "fail"}.get(answer.status, "warn")
        yield Finding(
            f"source {answer.source}",
            well,  # type: ignore[arg-type]  # one of its values
            f"{found}{', without a key' * lacks}",
            advice * (lacks and answer.status != "ok"),
        )
    if not read_contact():
        yield Finding(
            "contact of sources",
            "skipped",
            "none: services cannot write to you before they shut you out",
            f"set {CONTACT_VARIABLE} to your address of mail",
        )
