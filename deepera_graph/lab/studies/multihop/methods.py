"""Retrieval for questions of several hops: methods compared at one budget of passages read."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from deepera_graph.agents.twin import do
from deepera_graph.bioasq.phase_b.terms import find_terms
from deepera_graph.calibration.statistics import Values
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.lab.data.readers import HopData, HopQuestion
from deepera_graph.lab.rankers.retrieval import CorpusBM25
from deepera_graph.lab.studies.experiment import About, Resampling, StudyResult
from deepera_graph.lab.tables import Column, Grid, Row
from deepera_graph.multihop.agent.adaptive import penalise, search_adaptively
from deepera_graph.multihop.agent.step_search import group_answers
from deepera_graph.multihop.passages.expansion import WIDTH, expand_hops
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.path import PathStep, question_with_path
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.retrieval.search import FUSED_AT_LEAST, FUSED_PER_RESULT
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.stores.words import join_title, name_passage

BUDGET, BATCH_SIZE, NEIGHBOURS, N_FIRST = 50, 16, 16, 100
_N_SAMPLES = 10  # answers drawn from a batch
_STEP_WIDTH = 0  # a step is a question of one hop: its names are looked up, and nothing is followed


class HopSearch:
    """Searches over a corpus: by words (BM25), by meaning (cosine), and both fused by rank."""

    def __init__(
        self,
        data: HopData,  # the corpus
        embeddings: Embeddings,  # any LangChain embeddings
        *,
        # where the graph is kept, which holds the vectors; one that is there is taken if it is of
        # these passages and embeddings
        keep: Path | None = None,
        # called with the passages embedded so far
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self._data = data
        self.embeddings = embeddings  # what passages and queries are embedded with
        self._names = [*data.passages]
        self._bm25 = CorpusBM25({name: join_title(one) for name, one in data.passages.items()})
        self.graph = self._open_graph(keep, on_progress)
        self._asked: dict[str, Sequence[float]] = {}

    def _open_graph(
        self, keep: Path | None, on_progress: Callable[[int], None] | None
    ) -> NeighbourGraph:
        passages = self._data.passages.values()
        k = min(NEIGHBOURS, len(passages) - 1)
        place = None if keep is None else keep / f"{self._data.name}.graph"
        if place is not None and place.exists():
            try:
                graph = NeighbourGraph.load(place)
            except StoreError:
                pass  # it is made anew
            else:
                if (
                    graph.is_made_with(self.embeddings)
                    and graph.k == k
                    and len(graph) == len(passages)
                    and all(graph.find_text(one) == name_passage(one) for one in passages)
                ):
                    return graph
        graph = NeighbourGraph.build(passages, self.embeddings, k, on_progress=on_progress)
        if place is not None:
            graph.save(place)
        return graph

    def vector(self, query: str) -> Sequence[float]:
        """Return the vector of a query, embedded once."""
        if query not in self._asked:
            self._asked[query] = self.embeddings.embed_query(query)
        return self._asked[query]

    def forget_queries(self) -> None:
        """Have each method pay for the queries that it embeds."""
        self._asked.clear()

    def by_words(self, query: str, n: int) -> list[str]:
        """Return ids of the best passages that share a word with the query."""
        return [hit.id for hit in self._bm25.search(query, n) if hit.score > 0]

    def by_meaning(self, query: str, n: int) -> list[str]:
        """Return ids of the nearest passages."""
        near = np.asarray(self.graph.cosines(self.vector(query), self._names))
        return [self._names[place] for place in np.argsort(-near, kind="stable")[:n]]

    def by_both(self, query: str, n: int) -> list[str]:
        """Fuse both by rank, as a hybrid store does."""
        depth = max(FUSED_PER_RESULT * n, FUSED_AT_LEAST)
        scores = fuse([self.by_words(query, depth), self.by_meaning(query, depth)])
        return sorted(scores, key=lambda name: (-scores[name], name))[:n]

    def cosines(self, question: str, names: Sequence[str]) -> list[float]:
        """Return the cosine of each passage with the question."""
        return self.graph.cosines(self.vector(question), names)

    def documents(self, names: Sequence[str]) -> list[Document]:
        """Return the passages of ids."""
        return [self._data.passages[name] for name in names]


Method = Callable[[HopSearch, HopQuestion, int], list[str]]


def _rerank(search: HopSearch, asked: str, budget: int, judged: str = "") -> list[str]:
    """Order what words find by its cosine with what is asked, or with *judged*."""
    names = search.by_words(asked, budget)
    scores = dict(zip(names, search.cosines(judged or asked, names), strict=True))
    return sorted(names, key=lambda name: -scores[name])


def _nar(
    search: HopSearch,
    question: HopQuestion,
    first: list[str],
    budget: int,
    score: Callable[[str, Sequence[str]], Sequence[float]] | None = None,
    **more: Any,
) -> list[str]:
    found = search_adaptively(
        question.text,
        first,
        search.graph.neighbours,
        score or search.cosines,
        budget=budget,
        batch_size=BATCH_SIZE,
        **more,
    )
    return [one.id for one in found.passages]


def _nar_in_unit(search: HopSearch, question: HopQuestion, budget: int, **more: Any) -> list[str]:
    """Follow neighbours of what words find, by cosines in [0, 1]."""
    first = search.by_words(question.text, max(budget, N_FIRST))

    def score(asked: str, names: Sequence[str]) -> list[float]:
        return _in_unit(search.cosines(asked, names))

    return _nar(search, question, first, budget, score=score, **more)


def _in_unit(cosines: Sequence[float]) -> list[float]:
    return [(1 + one) / 2 for one in cosines]


def _nar_asu(search: HopSearch, question: HopQuestion, budget: int) -> list[str]:
    """Divide the scores of a batch by the meanings of answers that are drawn from it."""

    def rescore(asked: str, names: Sequence[str], scores: Sequence[float]) -> list[float]:
        answers = draw_answers(asked, [one.page_content for one in search.documents(names)])
        divided = penalise(scores, len({*do(group_answers(answers))}) or None)
        return [one for one in divided if one is not None]

    return _nar_in_unit(search, question, budget, rescore=rescore)


def draw_answers(question: str, texts: Sequence[str]) -> list[str]:
    """Draw answers without a model: the likeliest name in each of ten random halves of a batch."""
    # The halves are the same for the same question and texts.
    chance = random.Random(crc32("\0".join((question, *texts)).encode()))
    half = -(-len(texts) // 2)
    drawn = (find_terms(question, chance.sample(list(texts), half)) for _ in range(_N_SAMPLES))
    return [terms[0].text for terms in drawn if terms]


def _quam(search: HopSearch, question: HopQuestion, budget: int) -> list[str]:
    def affinity(one: str, other: str) -> float:
        near = zip(search.graph.neighbours(one), search.graph.scores(one), strict=True)
        return _in_unit([dict(near)[other]])[0]

    return _nar_in_unit(search, question, budget, affinity=affinity)


def _rerank_steps(search: HopSearch, question: HopQuestion, budget: int) -> list[str]:
    """Order what words find for each step by its cosine, with the answers before it."""
    path: list[PathStep] = []

    def read(asked: str, share: int) -> list[str]:
        judged = question_with_path(asked, path)
        path.append(
            {
                "question": asked,
                "answer": question.steps[len(path)].answer,
                "status": "answered",
                "support": "proven",
                "cause": "",
                "titles": [],
            }
        )
        return _rerank(search, asked, share, judged)

    return _by_steps(question, budget, read)


def _expand(search: HopSearch, question: str, budget: int, width: int = WIDTH) -> list[str]:
    found = expand_hops(
        question,
        lambda query, k: search.documents(search.by_both(query, k)),
        look_up=lambda query, k: search.documents(search.by_words(query, k)),
        budget=budget,
        width=width,
    )
    return [one.id for one in found.ranked]


def take_in_turn(lists: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield one of each list in turn."""
    return (name for turn in zip_longest(*lists) for name in turn if name is not None)


def _by_steps(
    question: HopQuestion, budget: int, search: Callable[[str, int], list[str]]
) -> list[str]:
    steps = question.filled_steps()
    share = -(-budget // len(steps))
    turns = take_in_turn([search(step, share) for step in steps])
    return [*islice(dict.fromkeys(turns), budget)]


METHODS: dict[str, Method] = {
    "bm25": lambda search, question, n: search.by_words(question.text, n),
    "dense": lambda search, question, n: search.by_meaning(question.text, n),
    "rrf": lambda search, question, n: search.by_both(question.text, n),
    "rerank": lambda search, question, n: _rerank(search, question.text, n),
    "nar": lambda search, question, n: _nar(
        search, question, search.by_words(question.text, max(n, N_FIRST)), n
    ),
    "nar-rrf": lambda search, question, n: _nar(
        search, question, search.by_both(question.text, max(n, N_FIRST)), n
    ),
    "nar-asu": _nar_asu,
    "quam-like": _quam,
    "expansion": lambda search, question, n: _expand(search, question.text, n),
    "steps-bm25": lambda search, question, n: _by_steps(question, n, search.by_words),
    "steps-rrf": lambda search, question, n: _by_steps(question, n, search.by_both),
    "steps-rerank": lambda search, question, n: _by_steps(question, n, partial(_rerank, search)),
    "steps-path": _rerank_steps,
    "steps-expansion": lambda search, question, n: _by_steps(
        question, n, lambda step, share: _expand(search, step, share, _STEP_WIDTH)
    ),
}
MEANINGS = {
    "bm25": "a search by words",
    "dense": "a search by meaning, with embeddings",
    "rrf": "both searches, fused by rank",
    "rerank": "what bm25 finds, in the order of dense",
    "nar": "bm25, and the neighbours of what scores well",
    "nar-rrf": "rrf, and the neighbours of what scores well",
    "nar-asu": "nar, the scores of a batch divided by the number of answers that rules draw",
    "quam-like": "nar, a neighbour with the sum of its sources' scores, each times how near it is",
    "expansion": "names followed from passage to passage",
    "steps-bm25": "bm25 for each sub-question of the data",
    "steps-rrf": "rrf for each sub-question of the data",
    "steps-rerank": "what steps-bm25 finds, in the order of dense for the sub-question",
    "steps-path": "the same, in the order of dense for the sub-question with the answers before it",
    "steps-expansion": "expansion for each sub-question of the data",
}
OF_STEPS = tuple(name for name in METHODS if name.startswith("steps-"))

CUTOFFS = (5, 10, 20, 50)
_COMPARED = 10
MULTIHOP = About.named("multihop")
_Lists = Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class HopBench(Resampling):
    """What is compared, and how."""

    methods: tuple[str, ...] = ()  # all that the data has steps for if empty
    budget: int = BUDGET  # most passages that are read for a question, >= 1
    baseline: str = "rrf"  # method whose recall at 10 the others are compared with

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least("budget", self.budget, 1)
        for name in (*self.methods, self.baseline):
            if name not in METHODS:
                raise SettingsError(f"methods are {', '.join(METHODS)}, got {name!r}")

    @property
    def cutoffs(self) -> list[int]:
        """Ranks at which recall is counted."""
        return [one for one in CUTOFFS if one <= max(self.budget, CUTOFFS[0])]

    def measure(
        self,
        data: HopData,
        search: HopSearch,
        *,
        on_progress: Callable[[int], None] = lambda n_done: None,
    ) -> list[Row]:
        """Return the rows of a data set for `study`."""
        runs: dict[str, tuple[_Lists, float]] = {}
        has_steps = all(question.steps for question in data.questions)
        for name in self.methods:
            if name in OF_STEPS and not has_steps:
                raise SettingsError(f"{name} needs sub-questions, and {data.name} has none")
        every = [name for name in METHODS if has_steps or name not in OF_STEPS]
        for name in [*dict.fromkeys(self.methods or every)]:
            search.forget_queries()
            started = perf_counter()
            lists = [METHODS[name](search, question, self.budget) for question in data.questions]
            runs[name] = lists, perf_counter() - started
            on_progress(len(runs))
        base = runs[self.baseline][0] if self.baseline in runs else None
        return [
            (data.name, name, *self._cells(data, lists, base), seconds / len(data.questions))
            for name, (lists, seconds) in runs.items()
        ]

    def _cells(self, data: HopData, lists: _Lists, base: _Lists | None) -> Row:
        recalls = [_recalls(data, lists, k) for k in self.cutoffs]
        means = self.estimate([*recalls, *(Values.of(one.values == 1) for one in recalls)])
        minus = None
        if base is not None and base is not lists:
            pair = _recalls(data, lists, _COMPARED), _recalls(data, base, _COMPARED)
            minus = self.differences([pair])[0]
        return *means, minus, float(np.mean([len(one) for one in lists]))

    def study(self, measured: Mapping[str, Sequence[Row]]) -> StudyResult:
        """Return the table of the rows of each data set."""
        rows = tuple(chain.from_iterable(measured.values()))
        grid = Grid(
            name="methods",
            title="Retrieval",
            columns=(
                *Column.several("text", "data", "method"),
                *Column.several("percent", *(f"recall@{k}" for k in self.cutoffs)),
                *Column.several("percent", *(f"all@{k}" for k in self.cutoffs)),
                Column(f"recall@{_COMPARED} minus {self.baseline}", "percent"),
                Column("read", "number"),
                Column("a question", "seconds"),
            ),
            rows=rows,
            note="Brackets hold 95 % intervals over questions; read is passages of a question.",
        )
        names = dict.fromkeys(str(row[1]) for row in rows)
        findings = [f"{name}: {MEANINGS[name]}" for name in names]
        if any(name in OF_STEPS for name in names):
            findings.append("Sub-questions are given with the right answers of those before them.")
        return StudyResult(grids=(grid,), findings=tuple(findings))


def _recalls(data: HopData, lists: _Lists, k: int) -> Values:
    """Return the share of the supporting passages among the first *k* of each question."""
    pairs = zip(data.questions, lists, strict=True)
    return Values.of(
        [len(one.supporting.intersection(names[:k])) / len(one.supporting) for one, names in pairs]
    )
