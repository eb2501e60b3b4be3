"""The works that a manuscript cites: found among passages, in the list itself, or in services."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from langchain_core.documents import Document

from deepera_graph.errors import InputError
from deepera_graph.evidence.check.references import CitedName, Reference
from deepera_graph.evidence.plain import PlainRecord
from deepera_graph.literature.citation import Citation
from deepera_graph.literature.notices import list_named, read_title
from deepera_graph.literature.paper_keys import (
    LEAST_PRINTED,
    PaperStatus,
    gravest,
    main_title,
    may_name_paper,
    title_key,
)
from deepera_graph.literature.same_study import Retractions, find_studies, is_same_study, list_ids
from deepera_graph.literature.versions import choose_version, cite_as
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.stores.words import WordIndex

if TYPE_CHECKING:
    from deepera_graph.evidence.check.manuscript import Manuscript
    from deepera_graph.papers.sources import Literature

Extent = Literal["abstract", "full text"]
_LEAST_LIKENESS = 0.9
_N_FOUND = 5  # papers of each service that a reference is looked for among
_FULL_TEXT = 1000  # words; what is longer is no abstract


class Searches(Protocol):
    """Where passages are searched for, such as a store or an index of words."""

    def search(self, question: str, k: int) -> list[Document]:
        """Return the best *k* passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedWork(PlainRecord):
    """A work and what there is to read of it."""

    passages: tuple[Document, ...]  # not empty
    source: Citation  # where they are from
    status: PaperStatus | None = None  # what became of it
    study: int = 0  # its number in the library; 0 if it is not of the library
    is_whole: bool = False  # whether a service gave all of it, however short it is

    @property
    def extent(self) -> Extent:
        """Whether an abstract was there to read, or more."""
        words = sum(len(one.page_content.split()) for one in self.passages)
        has_pages = any("page" in one.metadata for one in self.passages)
        is_long = has_pages or words > _FULL_TEXT
        return "full text" if self.is_whole or is_long else "abstract"

    @property
    def text(self) -> str:
        """Title and all that there is to read."""
        return " ".join([self.source.title, *(one.page_content for one in self.passages)])


class _Held(NamedTuple):
    passage: Document
    source: Citation
    status: PaperStatus | None


class WorkLibrary:
    """Passages by the works that they are of.

    Args:
        passages: Of papers, with their metadata; read at once.
        search: Where other studies are looked for; an index of the words of *passages* if None.
        retractions: Notices in a file of one's own.
    """

    def __init__(
        self,
        passages: Iterable[Document] = (),
        *,
        search: Searches | None = None,
        retractions: Retractions | None = None,
    ) -> None:
        held = list(passages)
        self._notices = retractions or Retractions()
        self._own = WordIndex() if search is None else None
        if self._own is not None:
            self._own.add(held)
        self._search: Searches = search or self._own  # type: ignore[assignment]  # one of both
        given = ((one.id or "", one.metadata) for one in held)
        found = find_studies(given, [one.page_content for one in held])
        self._groups: dict[int, list[_Held]] = defaultdict(list)
        for one, (study, status) in zip(held, found, strict=True):
            source = Citation.of(one.metadata, one.id or "")
            self._groups[study].append(_Held(one, source, status))
        self._works = {study: self._join(study, Citation(id="")) for study in self._groups}
        self._study_of = {
            one.id: study for one, (study, _) in zip(held, found, strict=True) if one.id
        }
        self._by_id: dict[Any, int] = {}
        self._by_title: dict[str, int] = {}
        self._told: dict[str, PaperStatus | None] = {}  # by titles that notices name
        self._by_year: dict[str, list[tuple[Citation, int]]] = defaultdict(list)
        for study, group in self._groups.items():
            for one, source, _ in group:
                self._name(study, source)
                for id in _list_names(one):
                    self._by_id.setdefault(("id", id), study)

    def __len__(self) -> int:
        """Return how many works there are."""
        return len(self._works)

    def references(self) -> Iterator[Reference]:
        """Yield each work under its citation key, and under the id of each of its records."""
        for one, source, _ in (held for group in self._groups.values() for held in group):
            for key in filter(None, (source.key, *_list_names(one))):
                about = replace(source, title=source.title or key, page="")
                yield Reference(key=key, text=str(about), source=about)

    def find(self, reference: Reference) -> CitedWork | None:
        """Return the work of a reference, with the status that any notice gives it; else None."""
        study = self._find_study(reference)
        found = self._join(study, reference.source) if study else None
        if found is None and reference.abstract.strip():
            metadata = {"title": reference.source.title, "doi": reference.source.doi}
            text = Document(id=reference.key, page_content=reference.abstract, metadata=metadata)
            source = reference.source
            found = CitedWork(passages=(text,), source=source, status=source.status)
        return None if found is None else self.mark(found, reference)

    def mark(self, work: CitedWork, reference: Reference) -> CitedWork:
        """Return a work with the gravest of what it, its reference and notices say of it."""
        told = self.status_of(reference)  # that the entry is a preprint says nothing of an article
        graver = None if told == "preprint" else told
        return replace(work, status=gravest((work.status, graver, self._notices.find(work.source))))

    def status_of(self, reference: Reference) -> PaperStatus | None:
        """Return what became of a work, as its entry or a notice says, also if it is not there."""
        source = reference.source
        told = self._told.get(title_key(read_title(source.title).title))
        return gravest((source.status, self._notices.find(source), told))

    def list_namesakes(self, reference: Reference) -> list[Citation]:
        """List the works that names and a year may stand for, where these are several."""
        studies = self._find_names(reference)
        works = (self._works[study] for study in studies if len(studies) > 1)
        return [replace(one.source, status=one.status) for one in works]

    def search_others(self, statement: str, k: int, *, without: int) -> list[Document]:
        """Return the best *k* passages of other studies."""
        found = self._search.search(statement, k + 10) if self._works else []
        others = [one for one in found if self._study_of.get(one.id or "") != without]
        return others[:k]

    def _join(self, study: int, wanted: Citation) -> CitedWork:
        """Return a study in the version that is wanted, else in another that there is."""
        sources = [one.source for one in self._groups[study]]
        chosen = [self._groups[study][place] for place in choose_version(wanted, sources)]
        first = chosen[0].source
        source = replace(cite_as(first, [one for one in sources if one is not first]), page="")
        notices = (self._notices.find(one) for one in sources)
        status = gravest((*(one.status for one in chosen), source.status, *notices))
        passages = tuple(one.passage for one in chosen)
        return CitedWork(passages=passages, source=source, status=status, study=study)

    def _name(self, study: int, source: Citation) -> None:
        for id in list_ids(source):
            self._by_id.setdefault(id, study)
        if source.key:
            self._by_id.setdefault(("key", source.key), study)
        if key := title_key(read_title(source.title).title):
            self._by_title.setdefault(key, study)
        if source.year and source.authors:
            self._by_year[source.year].append((source, study))
        for named in list_named(source.title):
            key = title_key(named.title)
            if may_name_paper(key, LEAST_PRINTED):
                self._told[key] = gravest((self._told.get(key), named.status))

    def _find_study(self, reference: Reference) -> int | None:
        # A cell of a table may be the id of a record, or a PMID, and nothing else; the number of a
        # printed entry is none.
        key = reference.key
        bare = [("id", key), ("pmid", key.lstrip("0"))] if reference.source.title == key else []
        for id in (*list_ids(reference.source), ("key", key), *bare):
            if id in self._by_id and self._may_be(
                reference, self._by_id[id], by_key=id[0] == "key"
            ):
                return self._by_id[id]
        if study := self._find_title(reference):
            return study
        named = self._find_names(reference)
        return named[0] if len(named) == 1 else None

    def _find_names(self, reference: Reference) -> list[int]:
        """Return the studies that a reference may be of which has names and a year alone."""
        named = None if reference.source.title else CitedName.read(reference.key)
        known = self._by_year[named.year] if named else []
        places = named.choose([source for source, _ in known]) if named else []
        return list(dict.fromkeys(known[place][1] for place in places))

    def _may_be(self, reference: Reference, study: int, *, by_key: bool) -> bool:
        """Tell whether a work fits: of two papers that bear one key by chance, titles differ."""
        # What a table cites by its key alone has no other title than that.
        title, other = reference.source.title, self._works[study].source.title
        is_unknown = not title or not other or title == reference.key
        return not by_key or is_unknown or _are_alike(title, other)

    def _find_title(self, reference: Reference) -> int | None:
        """Find a work by its title: as it was read of the entry, or anywhere within the entry."""
        title = title_key(read_title(reference.source.title).title)
        text = f" {title_key(reference.text)} "
        for key in (title, text.strip()):
            if key in self._by_title:
                return self._by_title[key]
        inside = [
            (len(key), study)
            for key, study in self._by_title.items()
            if may_name_paper(key, LEAST_PRINTED) and f" {key} " in text
        ]
        if inside:
            return max(inside)[1]
        near = [
            (SequenceMatcher(None, title, key).ratio(), study)
            for key, study in self._by_title.items()
            if title and abs(len(key) - len(title)) < len(title) / 5
        ]
        likeness, study = max(near, default=(0.0, 0))
        return study if likeness >= _LEAST_LIKENESS else None


def _list_names(passage: Document) -> list[str]:
    """Return the id of a passage, and that of the record that it is a part of."""
    id = passage.id or ""
    return [*filter(None, (id, id.removesuffix(f"#{passage.metadata.get('part')}")))]


def _are_alike(title: str, other: str) -> bool:
    key, theirs = title_key(title), title_key(other)
    mains = title_key(main_title(title)), title_key(main_title(other))
    same = key == theirs or mains[0] == theirs or mains[1] == key
    return same or SequenceMatcher(None, key, theirs).ratio() >= _LEAST_LIKENESS


def query_of(reference: Reference) -> str:
    """Return what a service of literature is asked for a reference: its title, else its DOI."""
    return reference.source.title or reference.source.doi or reference.text


def choose_found(reference: Reference, found: Sequence[Document]) -> CitedWork | None:
    """Return the work of a reference among what services found; None if it is not there."""
    same = [
        one
        for one in found
        if is_same_study(reference.source, Citation.of(one.metadata, one.id or ""))
        or _are_alike(reference.source.title or "-", str(one.metadata.get("title", "")))
    ]
    if not same:
        return None
    sources = [Citation.of(one.metadata, one.id or "") for one in same]
    places = choose_version(reference.source, sources)
    others = [one for n, one in enumerate(sources) if n != places[0]]
    source = cite_as(sources[places[0]], others)
    passages = tuple(same[place] for place in places)
    told = (one.status for one in sources if one.status != "preprint")
    return CitedWork(passages=passages, source=source, status=gravest((source.status, *told)))


def join_duplicates(
    manuscript: "Manuscript", works: Mapping[str, Mapping[str, Any]]
) -> "Manuscript":
    """Add to the duplicates in the list what was found to be of one study."""
    groups = {frozenset(one): one for one in manuscript.duplicates}
    by_study: dict[int, list[str]] = {}
    for one in manuscript.references:
        if study := works.get(one.key, {}).get("study"):
            by_study.setdefault(study, []).append(one.key)
    for keys in by_study.values():
        if len(keys) > 1 and not any(set(keys) <= known for known in groups):
            groups = {known: one for known, one in groups.items() if not known <= set(keys)}
            groups[frozenset(keys)] = tuple(keys)
    return replace(manuscript, duplicates=tuple(groups.values()))


async def ask_services(
    services: "Literature", reference: Reference, work: CitedWork | None
) -> CitedWork | None:
    """Return what services have of a work, the whole article if that is open."""
    if work is None:
        found = await services.asearch(query_of(reference), _N_FOUND)
        work = choose_found(reference, found.to_documents())
    if work is None or work.extent != "abstract":
        return work
    text = await services.afull_text(doi=work.source.doi, pmid=work.source.pmid)
    whole = _cut_full_text(text)
    return replace(work, passages=whole, is_whole=True) if whole else work


def _cut_full_text(text: str) -> tuple[Document, ...]:
    """Return the passages of an article in JATS; none if there is none, or it cannot be read."""
    if not text:
        return ()
    with TemporaryDirectory(prefix="deepera-") as folder:
        path = Path(folder, "article.xml")
        path.write_text(text, encoding="utf-8", errors="replace")
        with suppress(InputError):
            return tuple(read_passages(path))
    return ()
