"""Embedding study: how well retrieval tells evidence from look-alikes put into its store."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph.calibration.instance import Dataset, DatasetError
from deepera_graph.lab.bench.figures import CurveFigure, draw_column
from deepera_graph.lab.build.search import DIMENSIONS, LsaEmbeddings
from deepera_graph.lab.construction import CachedEmbeddings
from deepera_graph.lab.metrics.ranking import DatasetSummary, JudgedRanking, compute
from deepera_graph.lab.rankers.retrieval import BM25Index
from deepera_graph.lab.studies.base import BM25, LSA, StudyConfig, StudyRunner
from deepera_graph.lab.studies.experiment import StudyResult
from deepera_graph.lab.tables import Column, Grid, Row
from deepera_graph.stores.embeddings import unit_rows
from deepera_graph.stores.judgements import JudgementCache

CUTS = (1, 3, 5, 10, 30)
Scores = NDArray[np.float64]
Places = NDArray[np.int64]
Searcher = Callable[[Sequence[str], Sequence[str]], Scores]  # texts, questions -> (n_q, n_texts)


def study_embeddings(runner: StudyRunner) -> StudyResult:
    """Search one store of all passages, with rising shares of the look-alikes in it."""
    rows: list[Row] = []
    findings = []
    for data in runner.data():
        store = SearchedStore.of(data.dataset)
        if not store.look_alikes:
            findings.append(f"{data.name}: left out, as it holds no labelled look-alike.")
            continue
        for name, search in _searchers(runner.config).items():
            try:
                rows += _rows(runner, data, store, name, search)
            except DatasetError as error:
                findings.append(f"{data.name}: {name} is left out: {error}.")
        findings.append(
            f"{data.name}: a store of {len(store.texts):,} passages, of which "
            f"{len(store.look_alikes):,} are look-alikes."
        )
    grid = Grid.told(
        "embeddings",
        columns=(
            *Column.several("text", "data set", "embeddings"),
            Column("look-alikes in", "percent"),
            *(Column(f"NRS@{k}", "percent") for k in CUTS),
            *Column.several("percent", "CDR", "HitRate@10"),
        ),
        rows=tuple(rows),
        dimensions=DIMENSIONS,
    )
    return StudyResult(grids=(grid,), drawings=_draw(rows), findings=tuple(findings))


def _searchers(config: StudyConfig) -> dict[str, Searcher]:
    own: dict[str, Searcher] = {
        BM25: _search_bm25,
        LSA: lambda texts, questions: _search_dense(LsaEmbeddings(texts), texts, questions),
    }
    found = {name: search for name, search in own.items() if name in config.searchers}
    for name, embeddings in config.embeddings.items():
        found[name] = partial(_search_dense, _with_cache(name, embeddings, config))
    return found


def _search_bm25(texts: Sequence[str], questions: Sequence[str]) -> Scores:
    index = BM25Index(texts)
    return np.stack([index.scores(question) for question in questions])


def _search_dense(embeddings: Embeddings, texts: Sequence[str], questions: Sequence[str]) -> Scores:
    passages = unit_rows(embeddings.embed_documents(list(texts)))
    asked = unit_rows([embeddings.embed_query(question) for question in questions])
    return np.asarray(asked @ passages.T, dtype=np.float64)


def _with_cache(name: str, embeddings: Embeddings, config: StudyConfig) -> Embeddings:
    """Keep vectors between runs, if it is known what they depend on."""
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    if config.keep is None or not isinstance(model, str):
        return embeddings
    return CachedEmbeddings(embeddings, f"{name} {model}", JudgementCache(config.keep / "vectors"))


@dataclass(frozen=True, slots=True)
class SearchedQuestion:
    """What a question looks for: places in `SearchedStore.texts`."""

    question: str
    golden: frozenset[int]
    pairs: tuple[tuple[int, int], ...]  # a golden passage and a look-alike of it


@dataclass(frozen=True, slots=True)
class SearchedStore:
    """The passages of all questions, each text once."""

    texts: tuple[str, ...]
    look_alikes: frozenset[int]  # evidence for no question
    questions: tuple[SearchedQuestion, ...]

    @classmethod
    def of(cls, dataset: Dataset) -> "SearchedStore":
        """Put the passages of all questions into one store."""
        places: dict[str, int] = {}
        look_alikes: set[int] = set()
        golden: set[int] = set()
        questions = []
        for instance in dataset:
            of = {one.id: places.setdefault(one.text, len(places)) for one in instance.contexts}
            mine = frozenset(of[one.id] for one in instance.contexts if one.is_golden)
            look_alikes.update(of[one.id] for one in instance.contexts if one.is_distractor)
            golden |= mine
            pairs = tuple(
                (of[one.parent_id], of[one.id])
                for one in instance.contexts
                if one.is_distractor and one.parent_id in of
            )
            questions.append(SearchedQuestion(instance.question, mine, pairs))
        return cls(tuple(places), frozenset(look_alikes - golden), tuple(questions))

    def with_share(self, share: float, seed: int) -> Places:
        """Return places with that share of the look-alikes, shuffled; more share adds to less."""
        rng = np.random.default_rng(seed)
        drawn = rng.permutation(sorted(self.look_alikes))
        chosen = drawn[: round(share * len(drawn))]
        plain = [place for place in range(len(self.texts)) if place not in self.look_alikes]
        return np.asarray(rng.permutation([*plain, *chosen]), dtype=np.int64)

    def search(self, scores: Scores, share: float, seed: int) -> list[list[JudgedRanking]]:
        """Return the first 30 places a question, and its evidence and look-alikes in order."""
        places = self.with_share(share, seed)
        heads, pairs = [], []
        for number, (wanted, row) in enumerate(zip(self.questions, scores, strict=True)):
            order = places[np.argsort(-row[places], kind="stable")]
            rank = {str(place): rank for rank, place in enumerate(order)}
            golden = {str(place): 1 for place in wanted.golden}
            head = tuple(map(str, order[: max(CUTS)]))
            others = dict.fromkeys(id for id in head if int(id) in self.look_alikes)
            heads.append(JudgedRanking(str(number), head, len(places), golden, others))
            mine = {str(own): str(parent) for parent, own in wanted.pairs if str(own) in rank}
            members = tuple(sorted({*mine, *mine.values()}, key=rank.__getitem__))
            pairs.append(JudgedRanking(str(number), members, len(places), golden, mine))
        return [heads, pairs]


def _rows(
    runner: StudyRunner, data: DatasetSummary, store: SearchedStore, name: str, search: Searcher
) -> list[Row]:
    scores = search(store.texts, [one.question for one in store.questions])
    rows: list[Row] = []
    for share in runner.config.shares:
        heads, pairs = store.search(scores, share, runner.config.seed)
        columns = [
            *(compute(f"NRS@{k}", heads) for k in CUTS),
            compute("CDR", pairs),
            compute("HitRate@10", heads),
        ]
        rows.append((data.name, name, share, *runner.estimate(columns)))
    return rows


def _draw(rows: Sequence[Row]) -> tuple[CurveFigure, ...]:
    if not rows:
        return ()
    return tuple(
        CurveFigure(
            name=name,
            title=title,
            x_label="look-alikes in, percent",
            y_label=f"{label}, percent",
            panels=draw_column(rows, column, factor=100),
        )
        for name, title, label, column in (
            ("nrs", "Share of the first 10 that are no look-alike", "NRS@10", 3 + CUTS.index(10)),
            ("cdr", "Evidence before its own look-alike", "CDR", 3 + len(CUTS)),
        )
    )
