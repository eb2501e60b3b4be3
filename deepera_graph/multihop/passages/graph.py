"""The neighbours of every passage: built once, kept in a folder, looked up while searching."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic_core import CoreSchema, core_schema

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.multihop.passages.graph_files import (
    GraphFiles,
    Progress,
    ReadPassage,
    ask_store,
    check_k,
    check_made_with,
    check_store,
    digest_text,
    digests_of,
    embed_passages,
    load_files,
    read_passages,
    read_vectors,
)
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.embeddings import name_embeddings
from deepera_graph.stores.nearest import Array, Floats, Meanings, Nearest, Space, Words, rank_ids
from deepera_graph.stores.words import join_title, name_passage

if TYPE_CHECKING:
    from deepera_graph.retrieval.collections.passage_store import PassageStore

K = 16
Kind = Literal["meaning", "words"]
EXACT = 50_000  # passages, up to which a server's own search would save little
_SPACES: Mapping[str, type[Meanings] | type[Words]] = {"meaning": Meanings, "words": Words}


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourGraph:
    """The *k* nearest other passages of every passage, nearest first.

    Made by `build`, `of_words`, `of_store` or `load`. A graph does not change: `add`, `remove` and
    `limit` return another one. Neighbours are exact, by scores rounded to 6 decimals; of equal ones
    the lower id is nearer. A passage is never its own neighbour, and one that has too few has
    fewer than *k*.

    Take the retriever that complements the first stage: a graph by meaning for a first stage by
    words, and the other way round (SUNAR, section on the neighbourhood graph). For one by both,
    words reach more, see docs/multihop.md.

    Attributes:
        ids: The passages, as `deepera_graph.retrieval` names them: a passage without an id gets one
            from its text.
        k: Most neighbours of a passage.
        made_with: What made the vectors, e.g. ``EvidenceEmbeddings``; empty for a graph by words.
        embeddings: The embeddings themselves, if the graph was built here.
    """

    ids: Sequence[str]
    k: int
    made_with: str
    embeddings: Embeddings | None = field(default=None, repr=False)
    _space: Space = field(repr=False)
    _nearest: Nearest = field(repr=False)
    _digests: Array = field(repr=False)  # of the texts, uint64

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> CoreSchema:
        """Let a model of pydantic's hold a graph as it is, without reading its annotations."""
        return core_schema.is_instance_schema(cls)

    @classmethod
    def build(
        cls,
        passages: Iterable[Document],
        embeddings: Embeddings,
        k: int = K,
        *,
        on_progress: Progress | None = None,
    ) -> Self:
        """Build a graph by meaning: the title and text of every passage are embedded.

        Args:
            passages: More than *k*; an id that comes twice has the same text both times.
            embeddings: Any LangChain embeddings.
            k: Neighbours of a passage, >= 1.
            on_progress: Called with the passages embedded so far.

        Raises:
            SettingsError: *k* is below 1, or not below the number of passages.
            InputError: A passage has no text, two have one id, or a vector is unusable.
        """
        read = read_passages(passages)
        check_k(k, len(read))
        vectors = embed_passages(read, embeddings, on_progress)
        return cls._of(read, Meanings(vectors), k, embeddings)

    @classmethod
    def of_words(cls, passages: Iterable[Document], k: int = K) -> Self:
        """Build a graph by words, by BM25 of the 25 stems of a passage that say most.

        Raises:
            SettingsError: *k* is below 1, or not below the number of passages.
            InputError: A passage has no text, or two have one id.

        Source:
            The number of stems is that of Lucene's MoreLikeThis.
        """
        read = read_passages(passages)
        check_k(k, len(read))
        return cls._of(read, Words.of([one.text for one in read.values()]), k)

    @classmethod
    def of_store(
        cls,
        store: "PassageStore",
        k: int = K,
        *,
        by: Kind | None = None,
        embeddings: Embeddings | None = None,
        own_search: bool | None = None,
        on_progress: Progress | None = None,
    ) -> Self:
        """Build a graph of all passages in a store.

        Args:
            store: Vectors that it has are taken from it; nothing is embedded again.
            k: Neighbours of a passage, >= 1.
            by: ``meaning`` or ``words``; None takes what complements the store: meaning where it
                searches by words alone, else words.
            embeddings: For a graph by meaning of a store that has no vectors.
            own_search: Whether the store looks for the neighbours, which on a server is quick and
                approximate. None asks a server that has more than 50 000 passages.
            on_progress: Called with the passages read or embedded so far.

        Raises:
            SettingsError: *k* or *by* is out of range, embeddings are missing, or *store* is no
                passage store.
            StoreError: The store cannot be reached.
        """
        check_store(store)
        by = by or ("meaning" if store.mode == "sparse" else "words")
        if by not in _SPACES:
            raise SettingsError(f"by must be one of {list(_SPACES)}, got {by!r}")
        own = store.vectorstore.embeddings
        if by == "words" or own is None:
            passages = (one.passage for one in store.scan())
            if by == "words":
                return cls.of_words(passages, k)
            if embeddings is None:
                raise SettingsError("a store without vectors needs embeddings for its graph")
            return cls.build(passages, embeddings, k, on_progress=on_progress)
        read, vectors = read_vectors(store, on_progress)
        check_k(k, len(read))
        if own_search is None:
            own_search = store.is_on_server and len(read) > EXACT
        nearest = ask_store(store, [*read], vectors, k) if own_search else None
        return cls._of(read, Meanings(vectors), k, own, nearest)

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Open a graph that `save` wrote; its arrays are memory-mapped, and read when looked up.

        Raises:
            StoreError: There is no graph in the folder, it is damaged, or of another version.
        """
        place = Path(folder)
        files = load_files(place)
        space = _SPACES[files.kind](**files.space)
        if len(space) != len(files.ids):
            raise StoreError(f"the graph in {str(place)!r} is damaged: it is not what was saved")
        return cls(
            ids=files.ids,
            k=files.k,
            made_with=files.made_with,
            _space=space,
            _nearest=Nearest(files.edges["places"], files.edges["scores"]),
            _digests=files.edges["digests"],
        )

    def save(self, folder: Path | str) -> None:
        """Write the graph into a folder, in the place of one that is there.

        Whoever has that one open keeps it; a write that is cut short leaves it as it was.

        Raises:
            StoreError: The folder cannot be written.
        """
        self._files.save(Path(folder))

    @property
    def fingerprint(self) -> str:
        """What the graph is of: embeddings, k, ids and texts."""
        return self._files.fingerprint

    @cached_property
    def _files(self) -> GraphFiles:
        edges = {**self._nearest._asdict(), "digests": self._digests}
        return GraphFiles(self.kind, self.made_with, self.k, self.ids, self._space.arrays(), edges)

    @property
    def kind(self) -> Kind:
        """Whether neighbours are near by ``meaning`` or by ``words``."""
        return "words" if isinstance(self._space, Words) else "meaning"

    def find_text(self, passage: Document) -> str | None:
        """Return the id of a passage with this title and text; None if there is none."""
        found = self._by_digest.get(digest_text(join_title(passage)))
        return None if found is None else self.ids[found]

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def is_made_with(self, embeddings: Embeddings) -> bool:
        """Whether the graph has vectors, and its embeddings have the name of these."""
        return self.kind == "meaning" and self.made_with == name_embeddings(embeddings)

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Return the ids of the neighbours of a passage, nearest first.

        Raises:
            InputError: The graph has no passage of this id.
        """
        return tuple(self.ids[place] for place in self._nearest.row(self._place(name)).places)

    def scores(self, name: str) -> tuple[float, ...]:
        """Return how near the neighbours are: cosines in [-1, 1], or BM25 > 0.

        Raises:
            InputError: The graph has no passage of this id.
        """
        return tuple(self._nearest.row(self._place(name)).scores.tolist())

    def cosines(self, vector: Sequence[float], names: Sequence[str]) -> list[float]:
        """Return the cosine of a vector and each of some passages, in [-1, 1].

        Raises:
            InputError: The graph has no passage of an id.
            SettingsError: The graph is by words, or of vectors of another size.
        """
        if not isinstance(self._space, Meanings):
            raise SettingsError("a graph by words has no vectors")
        return self._space.cosines(vector, [self._place(name) for name in names])

    def find_vectors(self, texts: Sequence[str]) -> list[Floats | None]:
        """Return the vectors of length 1 of texts, titles before them; None for one not here."""
        assert isinstance(self._space, Meanings)
        places = [self._by_digest.get(digest_text(one)) for one in texts]
        return [None if one is None else self._space.vectors[one] for one in places]

    def word_shares(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how much of the most that BM25 can give for a question each text gets, in [0, 1].

        How rare a word is comes from the passages of the graph.

        Raises:
            SettingsError: The graph is by meaning, and has no words.
        """
        if not isinstance(self._space, Words):
            raise SettingsError("a graph by meaning has no words")
        return self._space.shares(question, texts)

    def limit(self, k: int) -> Self:
        """Return the graph of the nearest *k* neighbours alone.

        Raises:
            SettingsError: *k* is below 1, or above that of the graph.
        """
        check_at_least("k", k, 1)
        if k > self.k:
            raise SettingsError(f"the graph has {self.k} neighbours a passage, {k} were asked for")
        return replace(self, k=k, _nearest=self._nearest.first(k))

    def add(
        self,
        passages: Iterable[Document],
        embeddings: Embeddings | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> Self:
        """Return the graph with passages added, the same as if it was built of all of them.

        A passage that is there with the same text is left alone, one with another text replaced.
        Passages that were there are not embedded again. A graph by words is computed anew, as new
        passages change how rare a word is.

        Args:
            passages: As for `build`.
            embeddings: Those the graph was built with; needed for a graph by meaning that was
                loaded.
            on_progress: Called with the new passages embedded so far.

        Raises:
            SettingsError: Embeddings are missing, or are others.
            InputError: A passage has no text, two have one id, or a vector is unusable.
        """
        known = dict(zip(self.ids, self._digests.tolist(), strict=True))
        read = {
            name: one
            for name, one in read_passages(passages).items()
            if known.get(name) != one.digest
        }
        if not read:
            return self
        more: Space
        if isinstance(self._space, Words):
            using, more = self.embeddings, Words.of([one.text for one in read.values()])
        else:
            own = self.embeddings if embeddings is None else embeddings
            using = check_made_with(own, self.made_with)
            more = Meanings(embed_passages(read, using, on_progress))
        left = self.remove(name for name in read if name in self)
        ids = [*left.ids, *read]
        space, nearest = left._space.extend(left._nearest, more, self.k, rank_ids(ids))
        digests = np.concatenate([left._digests, digests_of(read)])
        return replace(
            left, ids=ids, embeddings=using, _space=space, _nearest=nearest, _digests=digests
        )

    def remove(self, names: Iterable[str]) -> Self:
        """Return the graph without some passages, the same as if it was built without them.

        Raises:
            InputError: The graph has no passage of an id.
        """
        gone = np.zeros(len(self), bool)
        gone[[self._place(name) for name in names]] = True
        if not gone.any():
            return self
        kept = np.flatnonzero(~gone)
        ids = [self.ids[place] for place in kept.tolist()]
        space, nearest = self._space.drop(self._nearest, gone, self.k, rank_ids(ids))
        return replace(self, ids=ids, _space=space, _nearest=nearest, _digests=self._digests[kept])

    def update(
        self,
        store: "PassageStore",
        embeddings: Embeddings | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> Self:
        """Return the graph of what a store holds now: `add` what is new there, `remove` the rest.

        Raises:
            SettingsError: Embeddings are missing, or are others, or *store* is no passage store.
            StoreError: The store cannot be reached.
        """
        check_store(store)
        passages = [one.passage for one in store.scan()]
        held = {name_passage(one) for one in passages}
        left = self.remove([name for name in self.ids if name not in held])
        given = embeddings or store.vectorstore.embeddings
        return left.add(passages, given, on_progress=on_progress)

    @cached_property
    def _by_digest(self) -> dict[int, int]:  # the first place of each text
        return {int(one): n for n, one in reversed([*enumerate(self._digests)])}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ids)}

    def _place(self, name: str) -> int:
        if name not in self._places:
            raise InputError(f"the graph has no passage {name!r}")
        return self._places[name]

    @classmethod
    def _of(
        cls,
        read: dict[str, ReadPassage],
        space: Space,
        k: int,
        embeddings: Embeddings | None = None,
        nearest: Nearest | None = None,
    ) -> Self:
        ids = [*read]
        return cls(
            ids=ids,
            k=k,
            made_with="" if embeddings is None else name_embeddings(embeddings),
            embeddings=embeddings,
            _space=space,
            _nearest=nearest or space.nearest(np.arange(len(ids)), k, rank_ids(ids)),
            _digests=digests_of(read),
        )
