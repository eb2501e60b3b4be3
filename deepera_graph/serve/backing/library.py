"""What a server may search, and who judges; each is opened when it is first asked for."""

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from deepera_graph.errors import BackendError, InputError, MissingStoreError, SettingsError
from deepera_graph.retrieval import Where, describe_unknown

if TYPE_CHECKING:
    from langchain_core.documents import Document

    from deepera_graph.evidence.check.library import WorkLibrary
    from deepera_graph.evidence.check.manuscript import Manuscript
    from deepera_graph.papers.base import PaperBase
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.result import RerankResult


_MOST_SCANNED = 20_000  # passages of a library that are read for a manuscript
_FOR_EACH = 20  # passages that are looked for, of a reference or a claim, in a larger one


class LimitedSearch(NamedTuple):
    """What was found in a collection, and what conditions left out."""

    passages: "list[Document]"
    unknown: Mapping[str, int] = MappingProxyType({})  # how many have nothing to compare, by field

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, in words."""
        return tuple(describe_unknown(self.unknown))


class Searched(Protocol):
    """Collections that can be searched by name."""

    def names(self) -> list[str]:
        """Return the names of all that may be searched."""

    def sizes(self) -> dict[str, int | None]:
        """Return how many passages each of them holds, where that is known."""

    def search(self, name: str, question: str, k: int, where: Where | None) -> LimitedSearch:
        """Return the best *k* passages of a collection; it is one of `names`."""

    def scan(self, name: str, most: int) -> "list[Document] | None":
        """Return all passages of a collection; None if it cannot say them, or has over *most*."""


class Holdings:
    """Collections and bases of papers, found by their names; `SettingsError` if a name is blank."""

    def __init__(
        self,
        *,
        # stores, retrievers or functions of the question by name, whatever `AdaptiveRetriever` can
        # search; or an object that knows them (`Searched`)
        collections: Searched | Mapping[str, Any] | None = None,
        # bases of papers by name, or functions that open them
        bases: "Mapping[str, PaperBase | Callable[[], PaperBase]] | None" = None,
    ) -> None:
        self._lock = Lock()
        known = _Given(collections) if isinstance(collections, Mapping) else collections
        self._collections: Searched | None = known
        self._bases: dict[str, Any] = dict(bases or {})
        for name in (*self._bases, *(collections if isinstance(collections, Mapping) else ())):
            if not name.strip():
                raise SettingsError(f"a collection or base needs a name, got {name!r}")

    @property
    def bases(self) -> tuple[str, ...]:
        """The names of all bases of papers."""
        return tuple(self._bases)

    def sizes(self) -> dict[str, int | None]:
        """Return the collections, and how many passages each holds, where that is known."""
        return {} if self._collections is None else self._collections.sizes()

    def search(
        self, collection: str | None, question: str, k: int, where: Where | None = None
    ) -> LimitedSearch:
        """Return the candidates for a question; of the one collection if none is named."""
        # Raises `InputError` if several could be meant, or there are none; `MissingStoreError` if
        # there is none of that name.
        held, name = self._find(collection)
        return held.search(name, question, k, where)

    def find_works(self, collection: str | None, manuscript: "Manuscript") -> "WorkLibrary":
        """Return works of a library that a manuscript may cite, and what else it has of them."""
        # A library of many passages is searched for each reference and each claim, and what is
        # found is taken; of a smaller one all is.
        from deepera_graph.evidence.check.library import WorkLibrary, query_of  # noqa: PLC0415

        held, name = self._find(collection)
        if (whole := held.scan(name, _MOST_SCANNED)) is not None:
            return WorkLibrary(whole)
        asked = [query_of(one) for one in manuscript.references]
        asked += [one.statement for one in manuscript.claims]
        found = {
            one.id: one
            for query in dict.fromkeys(asked)
            for one in held.search(name, query, _FOR_EACH, None).passages
        }
        return WorkLibrary(found.values())

    def _find(self, collection: str | None) -> tuple[Searched, str]:
        """Return what holds a collection, and its name: of the only one, if none is named."""
        names = [] if self._collections is None else self._collections.names()
        if collection is None and not names:
            raise InputError("no library can be searched here; give the passages themselves")
        name = collection if collection is not None else _only(names)
        if self._collections is None or name not in names:
            raise MissingStoreError(f"unknown library {name!r:.80}; {_offer(names)}")
        return self._collections, name

    def base(self, name: str | None = None) -> "PaperBase":
        """Return a base of papers, opened once; the one there is if none is named."""
        # Raises `InputError` if several could be meant; `MissingStoreError` if there is none of
        # that name.
        chosen = name if name is not None else _only(self.bases)
        if chosen not in self.bases:
            raise MissingStoreError(
                f"unknown library of papers {chosen!r:.80}; {_offer(self.bases)}"
            )
        with self._lock:
            if not hasattr(self._bases[chosen], "search"):
                self._bases[chosen] = self._bases[chosen]()
            return self._bases[chosen]  # type: ignore[no-any-return]  # has been opened


class Library(Holdings):
    """Collections, bases of papers, and a reranker, made for the first question, for all calls.

    ``Library(EvidenceReranker("local"), collections={"apples": store})``
    """

    def __init__(
        self, reranker: "EvidenceReranker | Callable[[], EvidenceReranker]", **held: Any
    ) -> None:
        super().__init__(**held)
        self._made: Any = reranker

    def reranker(self) -> "EvidenceReranker":
        """Return who judges; made once."""
        with self._lock:
            if not hasattr(self._made, "rerank"):
                self._made = self._made()
            return self._made  # type: ignore[no-any-return]  # has been made


def check_backend(result: "RerankResult") -> None:
    """Raise `BackendError` if nothing could be judged, and the judge is to blame."""
    if result.backend_failure is not None:
        raise BackendError(f"nothing could be judged: {result.backend_failure}")


class _Given:
    """Things that can be searched, by the names they were given."""

    def __init__(self, sources: Mapping[str, Any]) -> None:
        self._sources = dict(sources)

    def names(self) -> list[str]:
        """Return their names."""
        return list(self._sources)

    def sizes(self) -> dict[str, int | None]:
        """Return the sizes of those that can count."""
        counts = ((name, getattr(one, "count", None)) for name, one in self._sources.items())
        return {name: count() if callable(count) else None for name, count in counts}

    def scan(self, name: str, most: int) -> "list[Document] | None":
        """Return all of one of them, if it can be counted and scanned."""
        count, scan = (getattr(self._sources[name], one, None) for one in ("count", "scan"))
        if count is None or scan is None or count() > most:
            return None
        return [one.passage for one in scan()]

    def search(self, name: str, question: str, k: int, where: Where | None) -> LimitedSearch:
        """Search one of them."""
        from deepera_graph.retrieval.fusion import as_search, named_errors  # noqa: PLC0415

        source = self._sources[name]
        if where is not None and not callable(getattr(source, "search", None)):
            raise InputError(f"library {name!r} cannot be searched by metadata; leave out where")
        how = {} if where is None else {"where": where}
        with named_errors(f"searching {name!r}"):
            found = list(as_search(source, k, **how).invoke(question))[:k]
            counted = getattr(source, "count_unknown", None)
            return LimitedSearch(found, {} if counted is None else counted(question, where))


def _only(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    raise InputError(f"name the library: there are {', '.join(map(repr, names)) or 'none'}")


def _offer(names: Sequence[str]) -> str:
    return f"give one of {', '.join(map(repr, names))}" if names else "none exist"
