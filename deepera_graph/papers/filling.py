"""Passages and papers of one library: each from the other, and who cites what is found."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.documents import Document

from deepera_graph.literature.citation import Citation
from deepera_graph.literature.same_study import list_ids
from deepera_graph.papers.importing import to_record
from deepera_graph.papers.paper import Paper, PaperRecord

if TYPE_CHECKING:
    from deepera_graph.papers.base import PaperBase
    from deepera_graph.papers.library.writing import Writer

CITED = "cited_in_library"  # in the metadata of a passage


class NamedPapers:
    """Papers that records name, held until they are put into a base.

    A record without a title names none: it is a passage and nothing more.
    """

    def __init__(self) -> None:
        self._held: list[PaperRecord] = []
        self._run = f"records-{uuid4().hex}"
        self.n_put = 0

    def note(self, fields: Mapping[str, Any]) -> None:
        """Take what a record says of its paper; a part of one says nothing new."""
        made = to_record(self.n_put + len(self._held) + 1, fields)
        if isinstance(made, PaperRecord):
            self._held.append(made)

    def put(self, writer: "Writer") -> Counter[str]:
        """Put into a base what was noted since the last time; return what became of it."""
        if not self._held:
            return Counter()
        self.n_put = max(writer.begin(self._run, "records").done, self.n_put) + len(self._held)
        outcomes = Counter[str](writer.put(one) for one in self._held)
        self._held.clear()
        writer.commit(self._run, self.n_put, finished=True, report={})
        return outcomes


def to_passage(paper: Paper, **more: Any) -> Document:
    """Return a paper as a passage: its abstract, or its title where it has none."""
    names = ("title", "year", "venue", "doi", "arxiv", "url")
    metadata = {name: value for name in names if (value := getattr(paper, name))}
    authors = {"authors": list(paper.authors)} if paper.authors else {}
    text = paper.abstract or paper.title
    return Document(id=paper.id, page_content=text, metadata={**metadata, **authors, **more})


def name_papers(passages: Iterable[Document]) -> NamedPapers:
    """Return the papers that passages name in their metadata; of a paper's parts the first."""
    named = NamedPapers()
    for one in passages:
        if one.metadata.get("part") in (None, 1):
            id = str(one.id).removesuffix("#1")
            named.note({**one.metadata, "id": id, "text": one.page_content})
    return named


def note_cited(base: "PaperBase", passages: Iterable[Document]) -> list[Document]:
    """Return passages with `cited_in_library`: how many papers of a base cite the paper of each.

    It is found by its ids, or else by its title; where nothing cites it, nothing is noted.
    """
    known: dict[str, int] = {}
    noted = []
    for one in passages:
        key = str(one.metadata.get("doi") or one.metadata.get("title") or one.id)
        if key not in known:
            known[key] = _count_citations(base, one)
        more = {CITED: known[key]} if known[key] else {}
        noted.append(one.model_copy(update={"metadata": {**one.metadata, **more}}))
    return noted


def _count_citations(base: "PaperBase", passage: Document) -> int:
    """Return how many papers of a base cite the paper of a passage."""
    about = Citation.of(passage.metadata, str(passage.id))
    for id in (passage.id, *(id for _, id in list_ids(about))):
        if id and (paper := base.get(str(id).partition("#")[0])):
            return base.citations(paper.id, k=1).total
    paper = base.title(about.title).paper if about.title else None
    return base.citations(paper.id, k=1).total if paper else 0
