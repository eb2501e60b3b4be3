"""Retrieval for questions of several hops: methods compared at one budget of passages read."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from deepera_graph.bench.metrics.statistics import (
    Interval,
    Values,
    bootstraps,
    paired_bootstraps,
)
from deepera_graph.bench.rankers.retrieval import CorpusBM25
from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.multihop.adaptive import search_adaptively
from deepera_graph.multihop.expansion import WIDTH, expand_hops
from deepera_graph.multihop.graph import NeighbourGraph
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.retrieval.search import FUSED_AT_LEAST, FUSED_PER_RESULT
from deepera_graph.retrieval.word_index import join_title
from deepera_graph.settings import check_at_least
from deepera_graph.text.jsonl import read_places

CUTOFFS = (5, 10, 20, 50)
BUDGET, BATCH_SIZE, NEIGHBOURS, N_FIRST = 50, 16, 16, 100
_STEP_WIDTH = 0  # a step is a question of one hop: its names are looked up, and nothing is followed
_NUMBER = re.compile(r"#(\d+)")
PASSAGES, QUESTIONS = "passages.jsonl", "questions.jsonl"


class SubQuestion(NamedTuple):
    """A step that the data gives: ``#1`` in its text stands for the answer of the first."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class HopQuestion:
    """A question whose evidence lies in several passages, all of which are needed."""

    id: str
    text: str
    supporting: frozenset[str]  # ids of passages
    steps: tuple[SubQuestion, ...] = ()
    answers: tuple[str, ...] = ()  # right ones, any of which will do

    def filled_steps(self) -> list[str]:
        """Return the steps, with the answers of earlier ones in the place of their numbers."""
        return [
            _NUMBER.sub(partial(self._fill, before=place), step.question.replace(" >> ", " "))
            for place, step in enumerate(self.steps)
        ]

    def _fill(self, found: re.Match[str], *, before: int) -> str:
        number = int(found[1])
        return self.steps[number - 1].answer if 1 <= number <= before else found[0]


@dataclass(frozen=True)
class HopData:
    """Questions and the passages they are asked of."""

    name: str
    passages: dict[str, Document]
    questions: tuple[HopQuestion, ...]


def read_hop_data(folder: Path, *, limit: int | None = None) -> HopData:
    """Read ``passages.jsonl`` (`id`, `title`, `text`) and ``questions.jsonl``.

    A question has `id`, `question`, `supporting`, which are ids of passages, and may have
    `subquestions` with `question` and `answer`, and an `answer` with `aliases`.

    Raises:
        InputError: A file is missing, a line cannot be read, an id comes twice, or a supporting
            passage is not there; the message names the line.
    """
    passages: dict[str, Document] = {}
    for where, line in _read_lines(folder / PASSAGES):
        name, text = _text(line, "id", where), _text(line, "text", where)
        if name in passages:
            raise InputError(f"{where}: the id {name!r} comes twice")
        title = {"title": line["title"]} if line.get("title") else {}
        passages[name] = Document(id=name, page_content=text, metadata=title)
    if not passages:
        raise InputError(f"{folder / PASSAGES}: there are no passages")
    questions = [
        _read_question(line, where, passages)
        for where, line in islice(_read_lines(folder / QUESTIONS), limit)
    ]
    if not questions:
        raise InputError(f"{folder / QUESTIONS}: there are no questions")
    return HopData(folder.resolve().name, passages, tuple(questions))


def _read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; a data set has {PASSAGES}, {QUESTIONS}")
    return read_places(path)


def _text(line: dict[str, Any], field: str, where: str) -> str:
    value = line.get(field)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {field!r} must be a text, got {value!r:.80}")
    return value


def _read_question(line: dict[str, Any], where: str, passages: dict[str, Document]) -> HopQuestion:
    supporting = line.get("supporting")
    if not isinstance(supporting, list) or not supporting:
        raise InputError(f"{where}: 'supporting' must be a list of ids, got {supporting!r:.80}")
    missing = [name for name in supporting if name not in passages]
    if missing:
        raise InputError(f"{where}: there is no passage {missing[0]!r:.80}")
    steps = line.get("subquestions") or []
    return HopQuestion(
        id=_text(line, "id", where),
        text=_text(line, "question", where),
        supporting=frozenset(supporting),
        steps=tuple(
            SubQuestion(_text(one, "question", where), _text(one, "answer", where)) for one in steps
        ),
        answers=_read_answers(line, where),
    )


def _read_answers(line: dict[str, Any], where: str) -> tuple[str, ...]:
    """Return the right answer and its other forms; none if the line has no answer."""
    if line.get("answer") is None:
        return ()
    others = line.get("aliases") or []
    if not isinstance(others, list) or not all(isinstance(one, str) for one in others):
        raise InputError(f"{where}: 'aliases' must be a list of texts, got {others!r:.80}")
    return (_text(line, "answer", where), *others)


class HopSearch:
    """Searches over a corpus: by words (BM25), by meaning (cosine), and both fused by rank.

    Args:
        data: The corpus.
        embeddings: Any LangChain embeddings.
        keep: Where the graph is kept, which holds the vectors; one that is there is taken if it is
            of these passages and embeddings.
        on_progress: Called with the passages embedded so far.
    """

    def __init__(
        self,
        data: HopData,
        embeddings: Embeddings,
        *,
        keep: Path | None = None,
        on_progress: Callable[[int], None] | None = None,
    ) -> None:
        self._data, self._embeddings = data, embeddings
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
                known = graph.is_made_with(self._embeddings) and graph.k == k
                if known and len(graph) == len(passages) and all(map(graph.holds, passages)):
                    return graph
        graph = NeighbourGraph.build(passages, self._embeddings, k, on_progress=on_progress)
        if place is not None:
            graph.save(place)
        return graph

    def vector(self, query: str) -> Sequence[float]:
        """Return the vector of a query, embedded once."""
        if query not in self._asked:
            self._asked[query] = self._embeddings.embed_query(query)
        return self._asked[query]

    @property
    def embeddings(self) -> Embeddings:
        """What passages and queries are embedded with."""
        return self._embeddings

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


def _rerank(search: HopSearch, question: HopQuestion, budget: int) -> list[str]:
    names = search.by_words(question.text, budget)
    scores = dict(zip(names, search.cosines(question.text, names), strict=True))
    return sorted(names, key=lambda name: -scores[name])


def _nar(search: HopSearch, question: HopQuestion, first: list[str], budget: int) -> list[str]:
    found = search_adaptively(
        question.text,
        first,
        search.graph.neighbours,
        search.cosines,
        budget=budget,
        batch_size=BATCH_SIZE,
    )
    return [one.id for one in found.passages]


def _expand(search: HopSearch, question: str, budget: int, width: int = WIDTH) -> list[str]:
    found = expand_hops(
        question,
        lambda query, k: search.documents(search.by_both(query, k)),
        look_up=lambda query, k: search.documents(search.by_words(query, k)),
        budget=budget,
        width=width,
    )
    return [one.id for one in found.ranked]


def _in_turn(lists: list[list[str]], budget: int) -> list[str]:
    """Take one passage of each list in turn, each passage once."""
    turns = (name for turn in zip_longest(*lists) for name in turn if name is not None)
    return [*islice(dict.fromkeys(turns), budget)]


def _by_steps(
    question: HopQuestion, budget: int, search: Callable[[str, int], list[str]]
) -> list[str]:
    steps = question.filled_steps()
    share = -(-budget // len(steps))
    return _in_turn([search(step, share) for step in steps], budget)


METHODS: dict[str, Method] = {
    "bm25": lambda search, question, n: search.by_words(question.text, n),
    "dense": lambda search, question, n: search.by_meaning(question.text, n),
    "rrf": lambda search, question, n: search.by_both(question.text, n),
    "rerank": _rerank,
    "nar": lambda search, question, n: _nar(
        search, question, search.by_words(question.text, max(n, N_FIRST)), n
    ),
    "nar-rrf": lambda search, question, n: _nar(
        search, question, search.by_both(question.text, max(n, N_FIRST)), n
    ),
    "expansion": lambda search, question, n: _expand(search, question.text, n),
    "steps-bm25": lambda search, question, n: _by_steps(question, n, search.by_words),
    "steps-rrf": lambda search, question, n: _by_steps(question, n, search.by_both),
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
    "expansion": "names followed from passage to passage",
    "steps-bm25": "bm25 for each sub-question of the data",
    "steps-rrf": "rrf for each sub-question of the data",
    "steps-expansion": "expansion for each sub-question of the data",
}
OF_STEPS = tuple(name for name in METHODS if name.startswith("steps-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HopRow:
    """One method on one data set.

    Attributes:
        recall: The share of supporting passages among the first k, by k, over questions.
        complete: The share of questions with all of them among the first k, by k.
        difference: Recall at 10 minus that of the baseline, on the same questions.
        passages: Passages read for a question; never more than the budget.
        seconds: Time a question takes, with the embedding of its queries.
    """

    dataset: str
    method: str
    n_questions: int
    recall: dict[int, Interval]
    complete: dict[int, Interval]
    difference: Interval | None
    passages: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HopBench:
    """What is compared, and how."""

    methods: tuple[str, ...] = ()  # all that the data has steps for if empty
    budget: int = BUDGET
    baseline: str = "rrf"
    n_resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least("budget", self.budget, 1)
        check_at_least("n_resamples", self.n_resamples, 1)
        for name in (*self.methods, self.baseline):
            if name not in METHODS:
                raise SettingsError(f"methods are {', '.join(METHODS)}, got {name!r}")

    def measure(
        self,
        data: HopData,
        search: HopSearch,
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[HopRow]:
        """Return a row a method.

        Raises:
            SettingsError: A method that was asked for takes steps, and the data has none.
        """
        runs: dict[str, _Run] = {}
        for name in self._choose(data):
            runs[name] = _Run(data, *_time(METHODS[name], data, search, self.budget))
            if on_progress is not None:
                on_progress(len(runs))
        base = runs.get(self.baseline)
        return [self._row(data, name, run, base) for name, run in runs.items()]

    def _choose(self, data: HopData) -> list[str]:
        has_steps = all(question.steps for question in data.questions)
        for name in self.methods:
            if name in OF_STEPS and not has_steps:
                raise SettingsError(f"{name} needs sub-questions, and {data.name} has none")
        every = [name for name in METHODS if has_steps or name not in OF_STEPS]
        return [*dict.fromkeys(self.methods or every)]

    def _row(self, data: HopData, name: str, run: "_Run", base: "_Run | None") -> HopRow:
        how = {"n_resamples": self.n_resamples, "seed": self.seed}
        shown = [cutoff for cutoff in CUTOFFS if cutoff <= max(self.budget, CUTOFFS[0])]
        columns = [run.recall(k) for k in shown] + [run.complete(k) for k in shown]
        found = bootstraps(columns, **how)
        difference = None
        if base is not None and base is not run:
            difference = paired_bootstraps([(run.recall(10), base.recall(10))], **how)[0]
        return HopRow(
            dataset=data.name,
            method=name,
            n_questions=len(data.questions),
            recall=dict(zip(shown, found, strict=False)),
            complete=dict(zip(shown, found[len(shown) :], strict=True)),
            difference=difference,
            passages=float(np.mean([len(one) for one in run.lists])),
            seconds=run.seconds / len(data.questions),
        )


@dataclass(frozen=True)
class _Run:
    """What a method found for each question."""

    data: HopData
    lists: list[list[str]]
    seconds: float

    def recall(self, k: int) -> Values:
        return Values.of([found / needed for found, needed in self._count(k)])

    def complete(self, k: int) -> Values:
        return Values.of([float(found == needed) for found, needed in self._count(k)])

    def _count(self, k: int) -> Iterator[tuple[int, int]]:
        for question, names in zip(self.data.questions, self.lists, strict=True):
            needed = question.supporting
            yield len(needed.intersection(names[:k])), len(needed)


def _time(
    method: Method, data: HopData, search: HopSearch, budget: int
) -> tuple[list[list[str]], float]:
    search.forget_queries()
    started = perf_counter()
    lists = [method(search, question, budget) for question in data.questions]
    return lists, perf_counter() - started


def hop_table(rows: Sequence[HopRow]) -> str:
    """Return a Markdown table a data set, in percent, best recall at 10 in bold."""
    tables = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == dataset]
        tables.append(_one_table(dataset, own))
    return "\n".join(tables)


def describe_methods(rows: Sequence[HopRow]) -> str:
    """Return what the methods of a table do, as a Markdown list."""
    names = dict.fromkeys(row.method for row in rows)
    lines = [f"- {name}: {MEANINGS[name]}" for name in names]
    if any(name in OF_STEPS for name in names):
        lines += ["", "Sub-questions are given with the right answers of those before them."]
    return "\n".join(lines)


def _one_table(dataset: str, rows: Sequence[HopRow]) -> str:
    cutoffs = list(rows[0].recall)
    main = 10 if 10 in cutoffs else cutoffs[-1]
    best = max(row.recall[main].mean for row in rows)
    head = [
        "method",
        *(f"recall@{k}" for k in cutoffs),
        *(f"all@{k}" for k in cutoffs if k >= main),
        "minus baseline",
        "read",
        "s",
    ]
    lines = [f"### {dataset}: {rows[0].n_questions} questions", "", _join(head)]
    lines.append(_join(["---", *["---:"] * (len(head) - 1)]))
    for row in rows:
        cells = [
            _percent(row.recall[k], interval=k == main, bold=k == main and _is(row, best, main))
            for k in cutoffs
        ]
        cells += [_percent(row.complete[k]) for k in cutoffs if k >= main]
        cells.append("" if row.difference is None else _signed(row.difference))
        lines.append(_join([row.method, *cells, f"{row.passages:.0f}", f"{row.seconds:.2f}"]))
    return "\n".join([*lines, ""])


def _is(row: HopRow, best: float, cutoff: int) -> bool:
    return row.recall[cutoff].mean == best


def _join(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _percent(one: Interval, *, interval: bool = False, bold: bool = False) -> str:
    mean = f"{100 * one.mean:.1f}"
    mean = f"**{mean}**" if bold else mean
    return f"{mean} [{100 * one.low:.1f}, {100 * one.high:.1f}]" if interval else mean


def _signed(one: Interval) -> str:
    return f"{100 * one.mean:+.1f} [{100 * one.low:+.1f}, {100 * one.high:+.1f}]"


def plain_rows(rows: Sequence[HopRow]) -> list[dict[str, Any]]:
    """Return rows as plain data, shares in [0, 1]."""
    return [
        {
            "dataset": row.dataset,
            "method": row.method,
            "questions": row.n_questions,
            "recall": {str(k): one._asdict() for k, one in row.recall.items()},
            "complete": {str(k): one._asdict() for k, one in row.complete.items()},
            "difference": None if row.difference is None else row.difference._asdict(),
            "passages": row.passages,
            "seconds": row.seconds,
        }
        for row in rows
    ]
