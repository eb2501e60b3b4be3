"""Questions of several hops, and the methods that are compared on them."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import BeforeValidator, Field, TypeAdapter

from deepera_graph.agents.twin import do
from deepera_graph.bioasq.phase_b.terms import find_terms
from deepera_graph.errors import InputError, StoreError
from deepera_graph.lab.data.lines import Text, read_line
from deepera_graph.lab.rankers.retrieval import CorpusBM25
from deepera_graph.multihop.agent.adaptive import penalise, search_adaptively
from deepera_graph.multihop.agent.step_search import group_answers
from deepera_graph.multihop.passages.expansion import WIDTH, expand_hops
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.path import PathStep, question_with_path
from deepera_graph.retrieval.fusion import fuse
from deepera_graph.retrieval.search import FUSED_AT_LEAST, FUSED_PER_RESULT
from deepera_graph.stores.words import join_title, name_passage
from deepera_graph.text.jsonl import read_places

PASSAGES, QUESTIONS = "passages.jsonl", "questions.jsonl"
_NUMBER = re.compile(r"#(\d+)")
BUDGET, BATCH_SIZE, NEIGHBOURS, N_FIRST = 50, 16, 16, 100
_N_SAMPLES = 10  # answers drawn from a batch
_STEP_WIDTH = 0  # a step is a question of one hop: its names are looked up, and nothing is followed


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A step that the data gives: ``#1`` in its text stands for the answer of the first."""

    question: Text
    answer: Text


def _read_supporting(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise ValueError(f"must be a list of ids, got {value!r:.80}")
    return value


@dataclass(frozen=True, slots=True)
class HopQuestion:
    """A question whose evidence lies in several passages, all of which are needed."""

    id: Text
    text: Annotated[Text, Field(validation_alias="question")]
    supporting: Annotated[frozenset[str], BeforeValidator(_read_supporting)]  # ids of passages
    steps: Annotated[
        tuple[SubQuestion, ...],
        BeforeValidator(lambda one: one or ()),
        Field(validation_alias="subquestions"),
    ] = ()
    answers: tuple[Text, ...] = ()  # right ones, any of which will do

    def filled_steps(self) -> list[str]:
        """Return the steps, with the answers of earlier ones in the place of their numbers."""
        return [
            _NUMBER.sub(partial(self._fill, before=place), step.question.replace(" >> ", " "))
            for place, step in enumerate(self.steps)
        ]

    def _fill(self, found: re.Match[str], *, before: int) -> str:
        number = int(found[1])
        return self.steps[number - 1].answer if 1 <= number <= before else found[0]


@dataclass(frozen=True, slots=True)
class _HopPassage:
    id: Text
    text: Text
    title: str | None = None


_PASSAGE, _QUESTION = TypeAdapter(_HopPassage), TypeAdapter(HopQuestion)


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
    lacking = [one for one in (PASSAGES, QUESTIONS) if not (folder / one).is_file()]
    if lacking:
        told = f"{folder / lacking[0]}: no such file"
        raise InputError(f"{told}; a data set has {PASSAGES}, {QUESTIONS}")
    passages: dict[str, Document] = {}
    for where, line in read_places(folder / PASSAGES):
        one = read_line(_PASSAGE, line, where)
        if one.id in passages:
            raise InputError(f"{where}: the id {one.id!r} comes twice")
        title = {"title": one.title} if one.title else {}
        passages[one.id] = Document(id=one.id, page_content=one.text, metadata=title)
    if not passages:
        raise InputError(f"{folder / PASSAGES}: no passages")
    lines = islice(read_places(folder / QUESTIONS), limit)
    questions = tuple(_read_question(line, where, passages) for where, line in lines)
    if not questions:
        raise InputError(f"{folder / QUESTIONS}: no questions")
    return HopData(folder.resolve().name, passages, questions)


def _read_question(line: dict[str, Any], where: str, passages: Mapping[str, Any]) -> HopQuestion:
    right = [] if line.get("answer") is None else [line["answer"], *(line.get("aliases") or ())]
    asked = read_line(_QUESTION, {**line, "answers": right}, where)
    if missing := sorted(asked.supporting - passages.keys()):
        raise InputError(f"{where}: unknown passage {missing[0]!r:.80}")
    return asked


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
                if (
                    known
                    and len(graph) == len(passages)
                    and all(graph.find_text(one) == name_passage(one) for one in passages)
                ):
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
    """Draw answers without a model: the likeliest name in each of ten random halves of a batch.

    The halves are the same for the same question and texts.
    """
    chance = random.Random(crc32("\0".join((question, *texts)).encode()))
    half = -(-len(texts) // 2)
    drawn = (find_terms(question, chance.sample(list(texts), half)) for _ in range(_N_SAMPLES))
    return [terms[0].text for terms in drawn if terms]


def _quam(search: HopSearch, question: HopQuestion, budget: int) -> list[str]:
    def affinity(one: str, other: str) -> float:
        near = zip(search.graph.neighbours(one), search.graph.scores(one), strict=True)
        return _in_unit([dict(near)[other]])[0]

    return _nar_in_unit(search, question, budget, affinity=affinity)


def _judge_steps(
    search: HopSearch, question: HopQuestion, budget: int, *, with_path: bool
) -> list[str]:
    """Order what BM25 finds for each step by its cosine, with or without the answers before it."""
    filled = question.filled_steps()
    path: list[PathStep] = []
    lists: list[list[str]] = []
    for asked, step in zip(filled, question.steps, strict=True):
        names = search.by_words(asked, -(-budget // len(filled)))
        judged = question_with_path(asked, path) if with_path else asked
        scores = dict(zip(names, search.cosines(judged, names), strict=True))
        lists.append(sorted(names, key=lambda name: -scores[name]))
        path.append(
            {
                "question": asked,
                "answer": step.answer,
                "status": "answered",
                "support": "proven",
                "cause": "",
                "titles": [],
            }
        )
    return _in_turn(lists, budget)


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
    "nar-asu": _nar_asu,
    "quam-like": _quam,
    "expansion": lambda search, question, n: _expand(search, question.text, n),
    "steps-bm25": lambda search, question, n: _by_steps(question, n, search.by_words),
    "steps-rrf": lambda search, question, n: _by_steps(question, n, search.by_both),
    "steps-rerank": partial(_judge_steps, with_path=False),
    "steps-path": partial(_judge_steps, with_path=True),
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
