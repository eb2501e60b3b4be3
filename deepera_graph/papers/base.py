"""The front door: a base of papers, in a file or behind an address, asked in the same way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

from langchain_core.documents import Document

from deepera_graph.errors import SettingsError
from deepera_graph.judges.embeddings import LOCAL, EvidenceEmbeddings, find_embeddings
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.same_study import list_ids
from deepera_graph.papers.importing import Form
from deepera_graph.papers.library import read_about
from deepera_graph.papers.library.building import (
    BATCH_SIZE,
    BuildReport,
    embed_papers,
    import_files,
    import_vectors,
)
from deepera_graph.papers.library.vectors import VectorsInfo
from deepera_graph.papers.library.vectors_kept import check_url
from deepera_graph.papers.library.writing import Merge, Writer
from deepera_graph.papers.paper import Paper, ask_notices, mark_papers
from deepera_graph.papers.results import Hits, Neighbours, Scope, SearchMode, TitleMatch, Way
from deepera_graph.papers.search import LocalPapers
from deepera_graph.passages import check_length
from deepera_graph.retrieval.fusion import in_thread
from deepera_graph.settings.ranges import check_at_least, check_choice

if TYPE_CHECKING:
    from deepera_graph.papers.calls import RemotePapers
    from deepera_graph.papers.sources.live import LivePapers

K, K_NEIGHBOURS = 20, 100
CITED = "cited_in_library"  # in the metadata of a passage
_MOST = 10**9
_MOST_NOTICES, _LONGEST_ASKED = 50, 5_000  # papers, and characters of a query for them
_ALL = Scope()


class PaperBase:
    """Papers with their citations, to be searched; `build`, `open` or `connect` make it.

    Safe in many threads at once. The same call on the same base gives the same answer: equal
    scores are ordered by id. What a `Scope` leaves out is in no answer.
    """

    def __init__(self, papers: "LocalPapers | LivePapers | RemotePapers") -> None:
        self._papers = papers

    @classmethod
    def build(
        cls,
        path: str | Path,
        sources: str | Path | Iterable[str | Path] = (),
        *,
        form: Form | None = None,
        embeddings: Any = None,
        vectors: str | Path | None = None,
        vectors_url: str | None = None,
        merge: Merge = "ids",
        overwrite: bool = False,
        batch_size: int = BATCH_SIZE,
        on_progress: Callable[[str, int, int | None], None] | None = None,
    ) -> "PaperBase":
        """Make a base of files of papers, or add them to one that is there, and open it.

        A build that was stopped goes on where it was, if it is called again; a file that was read
        whole is not read again. What became of all records is in `report` of the base.

        Args:
            path: The base's file.
            sources: Files of papers, see `deepera_graph.papers.importing.read_papers`.
            form: Of the files, if it is not to be guessed.
            embeddings: Searches by meaning, too: ``"local"`` for those of the local judge, or any
                LangChain embeddings. A base that has vectors gets them for new papers by itself.
            vectors: A ``.npy`` file of vectors that these embeddings made before, row i of record
                i of the one source; they may be scaled to int8.
            vectors_url: A Qdrant server that keeps the vectors, in place of a file beside the base;
                its key is read from ``QDRANT_API_KEY``. The base knows it from then on. Vectors
                that lie beside the base are moved to it.
            merge: When two records are one paper, see `Writer` in `deepera_graph.papers.library`.
            overwrite: Replace an existing base.
            batch_size: Papers committed together, >= 1.
            on_progress: Called with what is done (``"reading"``, ``"embedding"``), how many, and of
                how many, if that is known.

        Raises:
            InputError: A file cannot be opened.
            SettingsError: A setting is out of range.
            StoreError: The base cannot be written, or the server of its vectors does not answer;
                what was committed stays.
        """
        paths: list[str | Path] = [sources] if isinstance(sources, str | Path) else list(sources)
        check_at_least("batch_size", batch_size, 1)

        def watch(what: str, done: int, of: int | None = None) -> None:
            if on_progress is not None:
                on_progress(what, done, of)

        found = find_embeddings(embeddings)
        _check_vectors(vectors, vectors_url, found, paths)
        with Writer(path, merge=merge, overwrite=overwrite) as writer:
            report = import_files(
                writer,
                paths,
                form=form,
                batch_size=batch_size,
                on_progress=lambda done, _: watch("reading", done),
            )
            found = found or _find_own(writer)
            how: dict[str, Any] = {"embeddings": found, "url": vectors_url}
            n_embedded = 0
            if vectors is not None:
                n_embedded = import_vectors(writer, vectors, paths[0], form=form, **how)
            if found is not None:
                n_embedded += embed_papers(writer, on_progress=partial(watch, "embedding"), **how)
        made = cls.open(path, embeddings=found)
        made.report = replace(report, embedded=n_embedded)
        return made

    report: BuildReport = BuildReport()

    @classmethod
    def open(cls, path: str | Path, *, embeddings: Any = None) -> "PaperBase":
        """Open a base that was built.

        Args:
            path: The base's file.
            embeddings: Those it was built with, unless these are ``"local"``.

        Raises:
            MissingStoreError: There is none.
            StoreError: The file is no base, or of another version.
        """
        return cls(LocalPapers(path, embeddings=embeddings))

    @classmethod
    def connect(cls, url: str, *, timeout: float = 60.0) -> "PaperBase":
        """Ask a base that ``deepera papers serve`` offers; it answers as the base itself does.

        Args:
            url: Its address, e.g. ``http://localhost:8080``; asked for first when it is needed.
            timeout: Seconds to wait for an answer.

        Raises:
            SettingsError: It is no address.
        """
        from deepera_graph.papers.calls import RemotePapers  # noqa: PLC0415 - seldom needed

        return cls(RemotePapers(url, timeout=timeout))

    @property
    def place(self) -> str:
        """The file, or the address."""
        return self._papers.place

    @property
    def has_vectors(self) -> bool:
        """Whether it can be searched by meaning."""
        return self._papers.has_vectors

    @property
    def is_local(self) -> bool:
        """Whether it is a file of this machine."""
        return isinstance(self._papers, LocalPapers)

    def search(
        self,
        query: str,
        *,
        mode: SearchMode | None = None,
        k: int = K,
        scope: Scope | None = None,
        offset: int = 0,
    ) -> Hits:
        """Return the papers that fit a query best, best first.

        Args:
            query: Any text; no character of it is an operator.
            mode: ``sparse``: by words (BM25); ``dense``: by meaning; ``hybrid``: both, joined by
                rank; None: hybrid if the base has vectors, else sparse.
            k: Most papers returned, >= 1.
            scope: What may be found.
            offset: How many of the best are left out, >= 0: page 2 of 20 has offset 20.

        Raises:
            SettingsError: A setting is out of range, the base has no vectors, or it does not know
                a venue of the scope.
            StoreError: The base cannot be read.
        """
        if mode is not None:
            check_choice("mode", mode, get_args(SearchMode))
        _check_text("query", query)
        check_length(query)
        k, offset = _check_page(k, offset)
        found = self._papers.search(query, mode=mode, k=k, scope=scope or _ALL, offset=offset)
        return found.with_papers(mark_papers(found.papers))

    def get(self, id: str, *, scope: Scope | None = None) -> Paper | None:
        """Return the paper with an id of whatever kind, None if there is none in scope.

        Raises:
            SettingsError: The id is no text, or the base does not know a venue of the scope.
            StoreError: The base cannot be read.
        """
        _check_text("id", id)
        return self._papers.get(id, scope=scope or _ALL)

    def title(self, title: str, *, scope: Scope | None = None) -> TitleMatch:
        """Return the paper that a title names, whatever its case, marks, TeX and a few typos.

        Raises:
            SettingsError: The title is no text, or the base does not know a venue of the scope.
            StoreError: The base cannot be read.
        """
        _check_text("title", title)
        return self._papers.title(title, scope=scope or _ALL)

    def references(
        self, id: str, *, k: int = K_NEIGHBOURS, scope: Scope | None = None, offset: int = 0
    ) -> Neighbours:
        """Return what a paper cites, as it lists it: a page of at most *k*.

        Raises:
            SettingsError: A setting is out of range, or the base does not know a venue.
            StoreError: The base cannot be read.
        """
        return self._follow("references", id, k, scope, offset)

    def citations(
        self, id: str, *, k: int = K_NEIGHBOURS, scope: Scope | None = None, offset: int = 0
    ) -> Neighbours:
        """Return what cites a paper, newest first: a page of at most *k*.

        Raises:
            SettingsError: A setting is out of range, or the base does not know a venue.
            StoreError: The base cannot be read.
        """
        return self._follow("citations", id, k, scope, offset)

    def _follow(self, way: Way, id: str, k: int, scope: Scope | None, offset: int) -> Neighbours:
        _check_text("id", id)
        k, offset = _check_page(k, offset)
        found = self._papers.follow(way, id, k=k, scope=scope or _ALL, offset=offset)
        return found.with_papers(mark_papers(found.papers))

    def mark(self, papers: Sequence[Paper], *, scope: Scope | None = None) -> list[Paper]:
        """Return papers with what notices of the base say of them, which are looked for once.

        What answers a call is marked by its own title and those beside it. A base behind an address
        does this itself, and services are not asked for notices. Of *scope* the date of asking and
        what is hidden count: a notice is later than what it is about.

        Raises:
            StoreError: The base cannot be read.
        """
        if not papers or not self.is_local:
            return mark_papers(papers)
        asked, limits = ask_notices(papers)[:_LONGEST_ASKED], scope or _ALL
        known = Scope(as_of=limits.as_of, hide=limits.hide, undated=limits.undated)
        notices = self.search(asked, mode="sparse", k=_MOST_NOTICES, scope=known)
        return mark_papers(papers, notices.papers)

    asearch, aget, atitle = in_thread(search), in_thread(get), in_thread(title)
    areferences, acitations = in_thread(references), in_thread(citations)

    def venues(self) -> list[str]:
        """Return all venues of the base, in alphabetical order."""
        return self._papers.venues()

    def describe(self) -> dict[str, Any]:
        """Return what the base holds, in numbers."""
        return self._papers.describe()

    def close(self) -> None:
        """Let go of the file or the connection."""
        self._papers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def note_cited(base: PaperBase, passages: Iterable[Document]) -> list[Document]:
    """Return passages with `cited_in_library`: how many papers of a base cite the paper of each."""
    # It is found by its ids, or else by its title; where nothing cites it, nothing is noted.
    known: dict[str, int] = {}
    noted = []
    for one in passages:
        key = str(one.metadata.get("doi") or one.metadata.get("title") or one.id)
        if key not in known:
            known[key] = _count_citations(base, one)
        more = {CITED: known[key]} if known[key] else {}
        noted.append(one.model_copy(update={"metadata": {**one.metadata, **more}}))
    return noted


def _count_citations(base: PaperBase, passage: Document) -> int:
    """Return how many papers of a base cite the paper of a passage."""
    about = Citation.of(passage.metadata, str(passage.id))
    for id in (passage.id, *(id for _, id in list_ids(about))):
        if id and (paper := base.get(str(id).partition("#")[0])):
            return base.citations(paper.id, k=1).total
    paper = base.title(about.title).paper if about.title else None
    return base.citations(paper.id, k=1).total if paper else 0


def _check_vectors(vectors: Any, url: str | None, embeddings: Any, paths: Sequence[Any]) -> None:
    if url is not None:
        check_url(url)
        if embeddings is None:
            raise SettingsError("vectors_url goes with the embeddings that make the vectors")
    if vectors is not None and (embeddings is None or len(paths) != 1):
        raise SettingsError(
            "vectors go with one file of papers, and with the embeddings that made them"
        )


def _find_own(writer: Writer) -> Any:
    """Return the embeddings of a base that has vectors, if they need not be given."""
    told = read_about(writer.db, "vectors")
    return (
        EvidenceEmbeddings() if told and VectorsInfo.from_json(told).embeddings == LOCAL else None
    )


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise SettingsError(f"{name} must be a text, got {value!r:.80}")


def _check_page(k: Any, offset: Any) -> tuple[int, int]:
    check_at_least("k", k, 1)
    check_at_least("offset", offset, 0)
    return min(k, _MOST), min(offset, _MOST)
