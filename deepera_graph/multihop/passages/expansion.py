"""Hop expansion: passages that together hold the evidence, found without a language model.

A search with the whole question finds what the question names. What that leads to, such as the
birthplace of a film's director, is named there and not in the question. So the best passages are
followed: each name that a passage adds, and the words of the question that the passage leaves open,
make the next query; and a passage whose title another one names is taken to be what was meant.

This is our own; it is near to multi-hop dense retrieval (Xiong et al. 2021, Answering Complex
Open-Domain Questions with Multi-Hop Dense Retrieval), with words in the place of a trained encoder,
and the title links are those by which HotpotQA and 2WikiMultihopQA were made.
"""

import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from langchain_core.documents import Document

from deepera_graph.agents.twin import TwinCall, Work, ado, do
from deepera_graph.errors import InputError
from deepera_graph.multihop.path import title_words, written_title
from deepera_graph.passages import check_length
from deepera_graph.settings.budget import ado_many
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.words import join_title, name_passage
from deepera_graph.text.questions import (
    as_words,
    contains_words,
    find_names,
    question_names,
)
from deepera_graph.text.words import content_words, stem, stems

Search = Callable[[str, int], Sequence[Document]]
ASearch = Callable[[str, int], Awaitable[Sequence[Document]]]

BUDGET, K, WIDTH = 50, 10, 4
# Chosen on MuSiQue, 2WikiMultihopQA and HotpotQA together; docs/multihop.md says how little hangs
# on them.
_FIRST_SHARE = 0.4  # of the budget, for the search with the question as it is
_RANK_WEIGHT, _TITLE_WEIGHT, _NAME_WEIGHT = 0.4, 0.3, 0.3
_RANK_CONSTANT = 9  # the 10th of the first search counts about half as much as the first
_HOP_WEIGHT, _NAMED_WEIGHT = 0.5, 0.5
_PER_NAME, _PER_HOP, _MOST_NEW = 2, 8, 10
_MOST_NAMES = 8
_BEFORE, _AFTER = 60, 40  # characters around a name in which words of the question count
_LATER = 0.02  # by how much a name counts less than the one before it
_LEAST_TITLE = 4  # characters of a title that another passage names
_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class HopPassage:
    """A passage that was read.

    Attributes:
        passage: As the search gave it.
        score: How much speaks for it, in [0, 1]: no probability.
        hop: Steps from the question: 0 if the question led to it, 1 if a passage of hop 0 did.
        query: The first query that found it, or the one that was made from the passage *via*.
        via: The id of the passage that led to it, if one did.
    """

    passage: Document
    score: float
    hop: int
    query: str
    via: str | None

    @property
    def id(self) -> str:
        """The passage's id, or one made from its text."""
        return name_passage(self.passage)


@dataclass(frozen=True, slots=True)
class HopResult:
    """What was found for a question.

    Attributes:
        question: As it was asked.
        passages: The best *k* in path order: each one after the passage that led to it.
        ranked: All that were read, best first; equal scores in the order of reading.
        followed: Ids of the passages that made queries, in order.
        n_searches: How often was searched.
    """

    question: str
    passages: tuple[HopPassage, ...]
    ranked: tuple[HopPassage, ...]
    followed: tuple[str, ...]
    n_searches: int


def expand_hops(
    question: str,
    search: Search,
    *,
    budget: int = BUDGET,
    k: int = K,
    width: int = WIDTH,
    look_up: Search | None = None,
) -> HopResult:
    """Find the passages that together hold the evidence for a question of several hops.

    Args:
        question: In words; names should be written with capitals, or in quotes.
        search: From a query and a number to so many passages, best first, e.g. the `search` of a
            store. Passages should have their title in the metadata: what is linked by titles
            alone, as in an encyclopedia, is otherwise found by words only.
        budget: Most passages read, >= 1, each of them once. Queries cost no passage: about
            ``5 + 16 * width`` of them are made.
        k: Most passages in `HopResult.passages`, >= 1.
        width: Most passages followed, >= 0; 0 searches for the question and its names alone.
        look_up: The search for all other queries than the question; *search* if None. Where
            *search* embeds its query, one by words is faster, and here as good.

    Raises:
        InputError: The question is blank.
        SettingsError: A number is out of range.
    """
    expansion = _Expansion(question, search, look_up, budget=budget, k=k, width=width)
    return do(expansion.work())


async def aexpand_hops(
    question: str,
    search: ASearch,
    *,
    budget: int = BUDGET,
    k: int = K,
    width: int = WIDTH,
    look_up: ASearch | None = None,
) -> HopResult:
    """Do what `expand_hops` does, with the queries of a passage at once."""
    expansion = _Expansion(question, search, look_up, budget=budget, k=k, width=width)
    return await ado(expansion.work())


class _Query(NamedTuple):
    text: str
    k: int
    is_question: bool = False


@dataclass(slots=True)
class _Read:
    passage: Document
    title: str  # as it is compared
    text: str
    stems: frozenset[str]
    query: str
    rank: float = 0.0  # how high the question found it, in [0, 1]
    titled: bool = False  # whether the question names it
    named: float = 0.0  # how high a name of the question found it, in [0, 1]
    gain: float = 0.0  # of the best passage that led to it, in [0, 1]
    via: str | None = None

    @property
    def score(self) -> float:
        """Return the chance that neither the question nor another passage means it, from 1."""
        own = _RANK_WEIGHT * self.rank + _TITLE_WEIGHT * self.titled + _NAME_WEIGHT * self.named
        return 1 - (1 - own) * (1 - self.gain)


class _Lead(NamedTuple):
    text: str
    words: str  # as they are compared
    weight: float


class _Expansion:
    """What was read so far, and what to search for next."""

    def __init__(
        self, question: str, search: Any, look_up: Any, *, budget: int, k: int, width: int
    ) -> None:
        if not question.strip():
            raise InputError("the question is empty")
        check_length(question)
        check_at_least("budget", budget, 1)
        check_at_least("k", k, 1)
        check_at_least("width", width, 0)
        self._search, self._look_up = search, look_up or search
        self._question, self._budget, self._k, self._width = question, budget, k, width
        self._words = as_words(question)
        self._stems = [(word, stem(word)) for word in content_words(question)]
        self._weights: dict[str, float] = {}
        self._read: dict[str, _Read] = {}  # in the order of reading
        self._followed: list[str] = []
        self._n_searches = 0

    def work(self) -> Work[HopResult]:
        """Return the work of `expand_hops`."""
        n_first = max(1, round(self._budget * _FIRST_SHARE))
        (first,) = yield self._ask([_Query(self._question, n_first, is_question=True)])
        self._read_first(first[:n_first])
        names = question_names(self._question)[:_MOST_NAMES]
        if names:
            found = yield self._ask([_Query(name, _PER_NAME) for name in names])
            self._read_named(names, found)
        while (source := self._next_source()) is not None:
            self._followed.append(source)
            leads = self._find_leads(self._read[source])
            queries = [*self._make_queries(self._read[source], leads)]
            if queries:
                found = yield self._ask(queries)
                self._follow(source, leads, queries, found)
        return self.result()

    def _ask(self, queries: list[_Query]) -> TwinCall:
        """Return the call of the search for some queries, which async are asked at once."""
        self._n_searches += len(queries)

        def find(one: _Query) -> Any:
            return (self._search if one.is_question else self._look_up)(one.text, one.k)

        return TwinCall(
            lambda: [find(one) for one in queries], partial(ado_many, find, queries, _AT_ONCE)
        )

    def _open(self, passage: Document, query: str) -> _Read | None:
        """Read a passage, or find it among those that were; None if the budget is spent."""
        name = name_passage(passage)
        if name not in self._read and len(self._read) < self._budget:
            title = title_words(passage)
            self._read[name] = _Read(
                passage=passage,
                title=title,
                text=as_words(passage.page_content),
                stems=frozenset(stems(join_title(passage))),
                query=query,
                titled=bool(title) and contains_words(self._words, title),
            )
        return self._read.get(name)

    def _read_first(self, found: Sequence[Document]) -> None:
        for place, passage in enumerate(found):
            read = self._open(passage, self._question)
            if read is not None:
                read.rank = max(read.rank, _RANK_CONSTANT / (_RANK_CONSTANT + place))
        n = len(self._read)
        for word in {root for _, root in self._stems}:
            n_with = sum(word in one.stems for one in self._read.values())
            self._weights[word] = math.log(1 + (n - n_with + 0.5) / (n_with + 0.5))

    def _read_named(self, names: list[str], found: list[Sequence[Document]]) -> None:
        for name, passages in zip(names, found, strict=True):
            for place, passage in enumerate(passages[:_PER_NAME]):
                read = self._open(passage, name)
                if read is not None:
                    read.named = max(read.named, 1 / (1 + place))

    def _next_source(self) -> str | None:
        """Return the best passage that was not followed yet, unless enough were."""
        if len(self._followed) >= self._width:
            return None
        rest = [name for name in self._read if name not in self._followed]
        return max(rest, key=lambda name: self._read[name].score, default=None)

    def _find_leads(self, source: _Read) -> list[_Lead]:
        """Return the names that a passage adds, those near words of the question first."""
        leads: list[_Lead] = []
        seen = {source.title}
        text = source.passage.page_content
        if source.title and not contains_words(self._words, source.title):
            leads.append(_Lead(written_title(source.passage), source.title, 1.0))
        for start, name in find_names(text):
            bare = as_words(name)
            if bare in seen or contains_words(self._words, bare):
                continue
            seen.add(bare)
            near = set(stems(text[max(0, start - _BEFORE) : start + len(name) + _AFTER]))
            weight = self._share_of_question(near.difference(stems(name)))
            leads.append(_Lead(name, bare, weight - _LATER * len(leads)))
        return sorted(leads, key=lambda one: -one.weight)[:_MOST_NAMES]

    def _share_of_question(self, found: set[str]) -> float:
        total = sum(self._weights.values())
        return sum(self._weights.get(one, 0.0) for one in found) / total if total else 0.0

    def _make_queries(self, source: _Read, leads: list[_Lead]) -> Iterator[_Query]:
        """Ask for each name with what is open of the question, and for the name alone."""
        left_open = [word for word, root in self._stems if root not in source.stems]
        for lead in leads:
            yield _Query(" ".join([lead.text, *left_open]), _PER_HOP)
            yield _Query(lead.text, 1)

    def _follow(
        self,
        source: str,
        leads: list[_Lead],
        queries: list[_Query],
        found: list[Sequence[Document]],
    ) -> None:
        """Read what a passage led to, the most promising first."""
        reached: dict[str, _Reached] = {}
        names = [lead.words for lead in leads for _ in range(2)]
        for name, query, passages in zip(names, queries, found, strict=True):
            for place, passage in enumerate(passages[: query.k]):
                if query.k > 1 or title_words(passage) == name:
                    one = reached.setdefault(name_passage(passage), _Reached(passage, query.text))
                    one.place(0.0 if query.k == 1 else 1 / (1 + place), query.text)
        for name, read in self._read.items():
            reached.setdefault(name, _Reached(read.passage, read.query))
        reached.pop(source, None)
        self._take(source, reached)

    def _take(self, source: str, reached: dict[str, "_Reached"]) -> None:
        origin = self._read[source]
        gains = {name: origin.score * one.weigh(origin.text) for name, one in reached.items()}
        n_new = 0
        for name in sorted(gains, key=lambda name: -gains[name]):
            is_new = name not in self._read
            if not gains[name] or (is_new and n_new >= _MOST_NEW):
                continue
            read = self._open(reached[name].passage, reached[name].query)
            if read is None:
                continue
            n_new += is_new
            if gains[name] > read.gain:
                read.gain = gains[name]
                if name not in self._followed:
                    read.via, read.query = source, reached[name].query

    def result(self) -> HopResult:
        found = [
            HopPassage(one.passage, one.score, self._count_hops(name), one.query, one.via)
            for name, one in self._read.items()
        ]
        ranked = tuple(sorted(found, key=lambda one: -one.score))
        return HopResult(
            question=self._question,
            passages=_order_path(ranked[: self._k], self._read),
            ranked=ranked,
            followed=tuple(self._followed),
            n_searches=self._n_searches,
        )

    def _count_hops(self, name: str) -> int:
        n_hops = 0
        while (via := self._read[name].via) is not None:
            name, n_hops = via, n_hops + 1
        return n_hops


@dataclass(slots=True)
class _Reached:
    passage: Document
    query: str
    best: float = 0.0

    def place(self, share: float, query: str) -> None:
        if share > self.best:
            self.best, self.query = share, query

    def weigh(self, text: str) -> float:
        """Return how much it gains by its best place, and if the text names its title."""
        title = title_words(self.passage)
        is_named = len(title) >= _LEAST_TITLE and contains_words(text, title)
        return _HOP_WEIGHT * self.best + _NAMED_WEIGHT * is_named


def _order_path(best: Sequence[HopPassage], read: dict[str, _Read]) -> tuple[HopPassage, ...]:
    """Put each passage after the nearest one that led to it, best first among equals."""
    chosen = {one.id for one in best}
    after: dict[str | None, list[HopPassage]] = defaultdict(list)
    for one in best:
        via = one.via
        while via is not None and via not in chosen:
            via = read[via].via
        after[via].append(one)
    path: list[HopPassage] = []
    waiting = after[None][::-1]
    while waiting:
        path.append(waiting.pop())
        waiting.extend(after[path[-1].id][::-1])
    return tuple(path)
