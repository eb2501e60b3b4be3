"""Embedding study: how well retrieval tells evidence from look-alikes put into its store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from deepera_graph.bench.build.corpus import KeptEmbeddings, LsaEmbeddings
from deepera_graph.bench.data.instance import Dataset, DatasetError
from deepera_graph.bench.figures import CurveFigure, CurvePoints
from deepera_graph.bench.metrics.ranking import JudgedRanking, compute
from deepera_graph.bench.rankers.embedding import unit_rows
from deepera_graph.bench.rankers.lexical import BM25Index
from deepera_graph.bench.studies.base import (
    BM25,
    LSA,
    Cell,
    Column,
    Experiment,
    ExperimentResult,
    Grid,
    Lab,
    Material,
    Setup,
    curve,
    estimates,
)
from deepera_graph.bench.table import MetricEstimate
from deepera_graph.cache.store import JudgementCache

Scores = NDArray[np.float64]
Searcher = Callable[[Sequence[str], Sequence[str]], Scores]


def searchers(setup: Setup) -> dict[str, Searcher]:
    """Return those of a setup by name: BM25, latent semantic vectors, and its embeddings.

    Each takes texts and questions and gives scores of shape (n_questions, n_texts).
    """
    found: dict[str, Searcher] = {BM25: _bm25, LSA: _lsa}
    for name, embeddings in setup.embeddings.items():
        found[name] = _dense(_kept(name, embeddings, setup))
    return {name: one for name, one in found.items() if name in setup.searchers} | {
        name: found[name] for name in setup.embeddings
    }


def _bm25(texts: Sequence[str], questions: Sequence[str]) -> Scores:
    index = BM25Index(texts)
    return np.stack([index.scores(question) for question in questions])


def _lsa(texts: Sequence[str], questions: Sequence[str]) -> Scores:
    return _dense(LsaEmbeddings(texts))(texts, questions)


def _dense(embeddings: Embeddings) -> Searcher:
    def search(texts: Sequence[str], questions: Sequence[str]) -> Scores:
        passages = unit_rows(embeddings.embed_documents(list(texts)))
        asked = unit_rows([embeddings.embed_query(question) for question in questions])
        return np.asarray(asked @ passages.T, dtype=np.float64)

    return search


def _kept(name: str, embeddings: Embeddings, setup: Setup) -> Embeddings:
    """Keep vectors between runs, if it is known what they depend on."""
    model = getattr(embeddings, "model", None) or getattr(embeddings, "model_name", None)
    if setup.keep is None or not isinstance(model, str):
        return embeddings
    return KeptEmbeddings(embeddings, f"{name} {model}", JudgementCache(setup.keep / "vectors"))


Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one question looks for: places in `Store.texts`.

    `pairs` holds the place of a golden passage and that of a look-alike of it.
    """

    question: str
    golden: frozenset[int]
    pairs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Store:
    """The passages of all questions, each text once.

    Attributes:
        texts: Shape (n_texts,).
        look_alikes: Places of texts that are a look-alike of some question's evidence, and
            evidence for none.
        questions: Shape (n_questions,).
    """

    texts: tuple[str, ...]
    look_alikes: frozenset[int]
    questions: tuple[Wanted, ...]

    def with_share(self, share: float, seed: int) -> Places:
        """Return the places of a store with that share of the look-alikes, in random order.

        Args:
            share: In [0, 1]; all other passages are always in.
            seed: The same seed gives the same store, and a larger share all of a smaller one.
        """
        rng = np.random.default_rng(seed)
        drawn = rng.permutation(sorted(self.look_alikes))
        chosen = drawn[: round(share * len(drawn))]
        plain = [place for place in range(len(self.texts)) if place not in self.look_alikes]
        return np.asarray(rng.permutation([*plain, *chosen]), dtype=np.int64)


def gather(dataset: Dataset) -> Store:
    """Put the passages of all questions into one store.

    Raises:
        DatasetError: The data cannot be read.
    """
    places: dict[str, int] = {}
    look_alikes: set[int] = set()
    golden: set[int] = set()
    questions = []
    for instance in dataset:
        of = {one.id: places.setdefault(one.text, len(places)) for one in instance.contexts}
        mine = frozenset(of[one.id] for one in instance.contexts if one.is_golden)
        look_alikes.update(of[one.id] for one in instance.contexts if one.is_distractor)
        golden |= mine
        pairs = [
            (of[one.parent_id], of[one.id])
            for one in instance.contexts
            if one.is_distractor and one.parent_id in of
        ]
        questions.append(Wanted(instance.question, mine, tuple(pairs)))
    return Store(tuple(places), frozenset(look_alikes - golden), tuple(questions))


def ranks(scores: NDArray[np.float64], store: Places) -> Mapping[int, int]:
    """Return place to rank in a store, from 1; equal scores keep the order of the store.

    Args:
        scores: One a text, in the order of `Store.texts`.
        store: See `Store.with_share`.
    """
    order = np.argsort(-scores[store], kind="stable")
    return {int(place): rank for rank, place in enumerate(store[order], start=1)}


def first_places(scores: NDArray[np.float64], store: Places, k: int) -> Sequence[int]:
    """Return the places of the first *k*, best first; see `ranks`."""
    return [int(place) for place in store[np.argsort(-scores[store], kind="stable")[:k]]]


CUTS = (1, 3, 5, 10, 30)
_DEEPEST = max(CUTS)
_Row = tuple[Cell, ...]


def run(lab: Lab) -> ExperimentResult:
    """Measure."""
    rows: list[_Row] = []
    findings = []
    for material in lab.materials():
        store = gather(material.dataset)
        if store.look_alikes:
            for name, search in searchers(lab.setup).items():
                try:
                    rows += _rows(lab, material, store, name, search)
                except DatasetError as error:
                    findings.append(f"{material.name}: {name} is left out: {error}.")
            findings.append(
                f"{material.name}: a store of {len(store.texts):,} passages, of which "
                f"{len(store.look_alikes):,} are look-alikes."
            )
        else:
            findings.append(f"{material.name}: left out, as it holds no labelled look-alike.")
    grid = Grid(
        name="embeddings",
        title="Embedding study",
        columns=(
            Column("data set"),
            Column("embeddings"),
            Column("look-alikes in", "percent"),
            *(Column(f"NRS@{k}", "percent") for k in CUTS),
            Column("CDR", "percent"),
            Column("HitRate@10", "percent"),
        ),
        rows=tuple(rows),
        note=(
            "All passages of a data set in one store, with a share of its look-alikes drawn at "
            "random. NRS@k: share of the first k that are no look-alike, of any question; CDR: "
            "share of the pairs of a golden passage and its own look-alike in the right order. "
            "bm25 and lsa (TF-IDF cut down to 256 dimensions) need no model."
        ),
    )
    return ExperimentResult(grids=(grid,), drawings=_figures(rows), findings=tuple(findings))


def measure(store: Store, scores: Scores, share: float, seed: int) -> list[list[JudgedRanking]]:
    """Return the first 30 places of each question, and its evidence and look-alikes in order.

    Args:
        store: All passages.
        scores: Shape (n_questions, n_texts).
        share: Share of the look-alikes put in, in (0, 1].
        seed: Of the draw.
    """
    places = store.with_share(share, seed)
    inside = set(map(int, places))
    heads, pairs = [], []
    for number, (wanted, row) in enumerate(zip(store.questions, scores, strict=True)):
        rank = ranks(row, places)
        mine = {str(own): str(parent) for parent, own in wanted.pairs if own in inside}
        golden = {str(place): 1 for place in wanted.golden}
        head = tuple(map(str, first_places(row, places, _DEEPEST)))
        others = dict.fromkeys(id for id in head if int(id) in store.look_alikes)
        heads.append(JudgedRanking(str(number), head, len(places), golden, others))
        members = sorted({*mine, *mine.values()}, key=lambda id, rank=rank: rank[int(id)])  # type: ignore[misc]  # binds the loop's own
        pairs.append(JudgedRanking(str(number), tuple(members), len(places), golden, mine))
    return [heads, pairs]


def _rows(lab: Lab, material: Material, store: Store, name: str, search: Searcher) -> list[_Row]:
    """Measure one way to search.

    Raises:
        DatasetError: It cannot search these texts.
    """
    scores = search(store.texts, [one.question for one in store.questions])
    rows: list[_Row] = []
    for share in lab.setup.shares:
        heads, pairs = measure(store, scores, share, lab.setup.seed)
        columns = [
            *(compute(f"NRS@{k}", heads) for k in CUTS),
            compute("CDR", pairs),
            compute("HitRate@10", heads),
        ]
        rows.append((material.name, name, share, *estimates(columns, lab.setup)))
    return rows


def _figures(rows: Sequence[_Row]) -> tuple[CurveFigure, ...]:
    if not rows:
        return ()
    return tuple(
        CurveFigure(
            name=name,
            title=title,
            x_label="look-alikes in, percent",
            y_label=f"{label}, percent",
            panels=_panels(rows, column),
        )
        for name, title, label, column in (
            ("nrs", "Share of the first 10 that are no look-alike", "NRS@10", 3 + CUTS.index(10)),
            ("cdr", "Evidence before its own look-alike", "CDR", 3 + len(CUTS)),
        )
    )


def _panels(rows: Sequence[_Row], column: int) -> dict[str, dict[str, CurvePoints]]:
    panels: dict[str, dict[str, CurvePoints]] = {}
    for data, name in dict.fromkeys((str(row[0]), str(row[1])) for row in rows):
        mine = [row for row in rows if row[:2] == (data, name)]
        x = [100 * float(row[2]) for row in mine if isinstance(row[2], float)]
        means = [row[column] for row in mine]
        known = [
            one if isinstance(one, MetricEstimate) else MetricEstimate(*[np.nan] * 4)
            for one in means
        ]
        panels.setdefault(data, {})[name] = curve(x, known)
    return panels


EXPERIMENT = Experiment(
    name="embeddings",
    title="Embedding study",
    measures=(
        "How well retrieval tells evidence from look-alikes that were put into its store: NRS and "
        "CDR, for BM25 and for embeddings."
    ),
    run=run,
)
