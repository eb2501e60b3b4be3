"""Adaptive retrieval as a LangChain retriever: a first stage, a graph, a judge and a budget."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import ConfigDict, Field, PrivateAttr, ValidationError

from deepera_graph.agents.twin import Work, ado, as_work, ask, do
from deepera_graph.errors import BackendError, InputError, RoleError, SettingsError
from deepera_graph.multihop.agent.adaptive import (
    BATCH_SIZE,
    BUDGET,
    AdaptiveOptions,
    AdaptiveResult,
    Score,
    adapt,
)
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.multihop.passages.judging import (
    NeighbourFetcher,
    ScoreOrError,
    Scores,
    find_judge,
    open_first_stage,
    score_passages,
)
from deepera_graph.multihop.settings import Feedback
from deepera_graph.passages import check_length
from deepera_graph.settings.ranges import check_at_least, suggest_name
from deepera_graph.stores.words import name_passage

K = 10
N_FIRST = 100
FILLED_UP = -1
Revise = Callable[[str, Sequence[Document], Sequence[float]], Sequence[float]]
ARevise = Callable[[str, Sequence[Document], Sequence[float]], Awaitable[Sequence[float]]]
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveRun:
    """What adaptive retrieval found for a question, and what went wrong.

    Attributes:
        documents: Best first, at most k.
        result: Everything that was scored, in which turn, and by way of what.
        causes: Id to the reason why a passage could not be scored.
        not_in_graph: Passages of the first stage that the graph does not know: scored, but without
            neighbours.
        gone: Neighbours that the graph knows and the store does not give: not scored.
        n_repeated: How much of the budget went to passages whose text had been scored before,
            under another id.
    """

    documents: list[Document]
    result: AdaptiveResult
    causes: Mapping[str, str]
    not_in_graph: tuple[str, ...]
    gone: tuple[str, ...]
    n_repeated: int = 0


class AdaptiveRetriever(BaseRetriever):
    """Scores what a first stage found and, in turns with it, the neighbours of what scored well.

    ``AdaptiveRetriever(first_stage=store, graph=NeighbourGraph.of_store(store), k=10)``

    A document's metadata has `retrieval_score`, the score of the judge; `retrieval_rank`, from 1;
    `iteration`, the turn it was scored in: even for the first stage, odd for the graph, -1 for one
    of the first stage that was not scored and fills up the list; and `via`, the passage whose
    neighbour it is, for those from the graph.

    Attributes:
        first_stage: A passage store, a vector store, or any retriever.
        graph: The neighbours of all passages that the first stage may find.
        judge: Who scores, see `deepera_graph.multihop.passages.judging.find_judge`: a judge,
            embeddings, a backend or its name, a reranker, a cross-encoder, or a function of a
            question and texts. None compares by the embeddings of the graph or the store, and for a
            graph by words by these, too. A judge whose scores depend on what it reads together,
            such as ``local``, is refused.
        passages: Where neighbours are fetched from by their ids: documents, a mapping from ids to
            them, a store, or a function from ids to documents. None takes the first stage.
        where: Conditions on metadata, for passage stores alone.
        budget: Most passages scored for a question, >= 1.
        batch_size: Passages scored at once, >= 1.
        k: Most documents returned, >= 1; overridden by ``invoke(..., k=)``.
        n_first: Most passages of the first stage, >= 1.
        rescore: From the question, the passages of a batch and their scores, in [0, 1], to those
            that count; e.g. divided by the uncertainty of answers. None leaves them.
        arescore: The same for async calls; *rescore* in a thread if None.
        feedback: When scores are revised: ``each`` batch before the next, or ``after`` all.

    Raises:
        SettingsError: A field is unknown, missing or of another type, a number is out of range,
            something cannot be searched, or the judge is refused.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    first_stage: Any = Field(exclude=True)
    graph: NeighbourGraph = Field(exclude=True, repr=False)
    judge: Any = Field(default=None, exclude=True)
    passages: Any = Field(default=None, exclude=True, repr=False)
    where: Mapping[str, Any] | None = None
    budget: int = BUDGET
    batch_size: int = BATCH_SIZE
    k: int = K
    n_first: int = N_FIRST
    rescore: Revise | None = Field(default=None, exclude=True)
    arescore: ARevise | None = Field(default=None, exclude=True)
    feedback: Feedback = "each"
    _made: tuple[Any, Any, Scores] | None = PrivateAttr(default=None)

    if not TYPE_CHECKING:  # a type checker makes the signature from the fields

        def __init__(self, **values: Any) -> None:
            known = type(self).model_fields
            for name in values:
                if name not in known:
                    hint = suggest_name(name, known) or f"fields are {', '.join(known)}"
                    raise SettingsError(f"unknown field {name!r}; {hint}")
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise SettingsError(_describe_first(error)) from error
            self._check()  # here, as an error of ours in a validator would become one of pydantic

    def find(
        self, question: str, *, k: int | None = None, config: RunnableConfig | None = None
    ) -> AdaptiveRun:
        """Search, and return everything found out, not only the documents.

        Raises:
            InputError: The question is blank, or the graph is of other passages.
            SettingsError: A number is out of range.
            BackendError: Nothing could be scored.
        """
        revise = None if self.rescore is None else as_work(self.rescore)
        return do(self.work(question, k, config, revise=revise))

    async def afind(
        self, question: str, *, k: int | None = None, config: RunnableConfig | None = None
    ) -> AdaptiveRun:
        """Do what `find` does, in the running loop."""
        own: ARevise | Revise | None = self.arescore or self.rescore
        revise = None if own is None else as_work(own, in_thread=self.arescore is None)
        return await ado(self.work(question, k, config, revise=revise))

    def work(
        self,
        question: str,
        k: int | None,
        config: RunnableConfig | None,
        *,
        revise: Callable[..., Work[Sequence[float]]] | None,
        feedback: Feedback | None = None,
    ) -> Work[AdaptiveRun]:
        """Return the work of `find`, with the work that revises the scores of a batch."""
        search = self._begin(question, k, config)
        search.take_first((yield ask(self._open_first_stage(), question, config)))
        result = yield from adapt(
            question,
            search.first,
            search.neighbours,
            search.score,
            rescore=revise
            and (lambda question, ids, scores: revise(question, search.take(ids), scores)),
            options=AdaptiveOptions(self.budget, self.batch_size, feedback or self.feedback),
        )
        return search.finish(result)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self.find(query, k=k, config={"callbacks": run_manager.get_child()}).documents

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        run = await self.afind(query, k=k, config={"callbacks": run_manager.get_child()})
        return run.documents

    def _check(self) -> None:
        for name in ("budget", "batch_size", "k", "n_first"):
            check_at_least(name, getattr(self, name), 1)
        self._open_first_stage()
        NeighbourFetcher(self.first_stage, self.passages, self.where)
        self._scores()

    def _open_first_stage(self) -> Runnable[str, Sequence[Document]]:
        return open_first_stage(self.first_stage, self.n_first, self.where)

    def _scores(self) -> Scores:
        if self._made is None or self._made[0] is not self.judge or self._made[1] is not self.graph:
            store = getattr(self.first_stage, "vectorstore", None)
            own = getattr(store, "embeddings", None)
            self._made = self.judge, self.graph, find_judge(self.judge, self.graph, own)
        return self._made[2]

    def _begin(self, question: str, k: int | None, config: RunnableConfig | None) -> "_Searched":
        if not question.strip():
            raise InputError("the question is empty")
        check_length(question)
        most = self.k if k is None else k
        check_at_least("k", most, 1)
        return _Searched(self, question, most, config, self._scores())


def _describe_first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{name}= is missing"
    return f"{name}: {first['msg']}, got {first['input']!r:.80}"


class _Searched:
    """What is known while a question is searched for: the passages that were fetched so far."""

    def __init__(
        self,
        retriever: AdaptiveRetriever,
        question: str,
        k: int,
        config: RunnableConfig | None,
        judge: Scores,
    ) -> None:
        self._retriever, self._question, self._k, self._config = retriever, question, k, config
        self._judge, self._graph = judge, retriever.graph
        self._fetcher = NeighbourFetcher(retriever.first_stage, retriever.passages, retriever.where)
        self.first: list[str] = []
        self._pool: dict[str, Document] = {}
        self._ranks: dict[str, int] = {}
        self._gone: dict[str, None] = {}
        self._causes: dict[str, str] = {}

    def take_first(self, found: Sequence[Document]) -> None:
        """Note what the first stage found; a graph that knows none of it is of other passages."""
        for one in found[: self._retriever.n_first]:
            name = name_passage(one)
            if name not in self._pool and one.page_content.strip():
                self._pool[name] = one
                self._ranks[name] = len(self._ranks) + 1
        self.first = [*self._pool]
        if self.first and not any(name in self._graph for name in self.first):
            raise InputError(self._explain_strangers())

    def _explain_strangers(self) -> str:
        """Say why the graph has none of what the first stage found."""
        known = {name: self._graph.find_text(self._pool[name]) for name in self.first}
        for name, other in known.items():
            if other is not None:
                return (
                    f"the graph has the passages under other ids: {name!r} of the first stage is "
                    f"{other!r} there; give each one an id, Document(id=...), before it goes into "
                    "the store and into the graph"
                )
        return (
            f"the graph is of other passages: it has none of the {len(self.first)} that the "
            f"first stage found, e.g. {self.first[0]!r}; it has e.g. {self._graph.ids[0]!r}"
        )

    def _load(self, sources: Sequence[str]) -> Work[None]:
        """Fetch the neighbours of passages that are not here yet; what is not found is gone."""
        near = [
            name
            for source in sources
            if source in self._graph
            for name in self._graph.neighbours(source)
        ]
        known = self._pool | self._gone.keys()
        wanted = [name for name in dict.fromkeys(near) if name not in known]
        found = yield from self._fetcher.fetch(wanted)
        named = {name_passage(one): one for one in found if one.page_content.strip()}
        for name in wanted:
            if name in named:
                self._pool[name] = named[name]
            else:
                self._gone[name] = None

    def neighbours(self, name: str) -> list[str]:
        if name not in self._graph:
            return []
        return [near for near in self._graph.neighbours(name) if near in self._pool]

    def score(self, question: str, ids: Sequence[str]) -> Work[list[Score]]:
        passages = self.take(ids)
        found = yield from score_passages(self._judge, question, passages, self._config)
        scores = self._note(ids, found)
        yield from self._load([name for name in ids if name not in self._causes])
        return scores

    def finish(self, result: AdaptiveResult) -> AdaptiveRun:
        """Return the documents, and say in the log what went wrong."""
        if result.unscored and not result.passages:
            raise BackendError(f"no passage could be scored: {next(iter(self._causes.values()))}")
        unknown = tuple(name for name in self.first if name not in self._graph)
        asked = [name for batch in result.batches for name in batch]
        self._warn("passages that could not be scored", self._causes)
        found = "passages of the first stage that the graph does not know"
        self._warn(found, dict.fromkeys(unknown, "update the graph"))
        if self._retriever.where is None:
            cause = "deleted since the graph was built"
            near = "neighbours that the store does not have"
            self._warn(near, dict.fromkeys(self._gone, cause))
        return AdaptiveRun(
            documents=self._documents(result),
            result=result,
            causes=self._causes,
            not_in_graph=unknown,
            gone=tuple(self._gone),
            n_repeated=len(asked) - len({self._pool[name].page_content for name in asked}),
        )

    def _documents(self, result: AdaptiveResult) -> list[Document]:
        made = [
            self._document(
                one.id, {"retrieval_score": one.score, "iteration": one.iteration, "via": one.via}
            )
            for one in result.passages[: self._k]
        ]
        rest = result.rest[: self._k - len(made)]
        made += [self._document(name, {"iteration": FILLED_UP}) for name in rest]
        return [
            one.model_copy(update={"metadata": {**one.metadata, "retrieval_rank": rank}})
            for rank, one in enumerate(made, start=1)
        ]

    def _document(self, name: str, found: Mapping[str, Any]) -> Document:
        """Return a copy with what was found out; the score of a first stage is on another scale."""
        known = self._pool[name]
        metadata = {key: one for key, one in known.metadata.items() if key != "retrieval_score"}
        first = {"first_rank": self._ranks[name]} if name in self._ranks else {}
        told = {key: one for key, one in found.items() if one is not None}
        return known.model_copy(update={"id": name, "metadata": {**metadata, **first, **told}})

    def take(self, ids: Sequence[str]) -> list[Document]:
        return [self._pool[name] for name in ids]

    def _note(self, ids: Sequence[str], given: Sequence[ScoreOrError]) -> list[Score]:
        if len(given) != len(ids):
            raise ValueError(f"{len(given)} scores for {len(ids)} passages")
        scores: list[Score] = []
        for name, one in zip(ids, given, strict=True):
            if isinstance(one, RoleError):
                self._causes[name] = str(one)
            scores.append(None if isinstance(one, RoleError) else float(one))
        return scores

    def _warn(self, what: str, causes: Mapping[str, str]) -> None:
        if causes:
            name, cause = next(iter(causes.items()))
            _logger.warning("%s: %d, e.g. %r: %s", what, len(causes), name, cause)
