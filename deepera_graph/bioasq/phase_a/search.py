"""Phase A of BioASQ as a LangGraph state machine: a question in, documents and snippets out.

receive -> [rewrite] -> retrieve -> [score] -> [sort] -> combine -> snippets. Where nothing is found
it ends after retrieve.

Source:
    The system of BioASQ 13b that this follows: 1000 documents from the index, the best 30 by a
    cross-encoder, sorted by a chat model in one prompt, and a weighted ensemble of both rankings.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, Literal, Unpack

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph

from deepera_graph.agents.role import RoleNode, wrap_role
from deepera_graph.agents.run import AgentResult, AgentRun, Batched, versions
from deepera_graph.bioasq.phase_a import steps
from deepera_graph.bioasq.phase_a.ordering import (
    Order,
    Query,
    RewriteQueryTask,
    SearchRoles,
    SortTask,
    WeighSentences,
    search_roles,
    weigh_as,
)
from deepera_graph.bioasq.phase_a.steps import SearchInput, SearchOutput, SearchState
from deepera_graph.bioasq.questions import (
    BioasqQuestion,
    Snippet,
    as_question,
    document_url,
    list_questions,
)
from deepera_graph.bioasq.runs import ScoredDocument
from deepera_graph.bioasq.settings import SearchKwargs, SearchSettings
from deepera_graph.errors import SettingsError
from deepera_graph.reranker import EvidenceReranker
from deepera_graph.schema import Backend
from deepera_graph.settings.budget import Limiter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

SearchOutcome = Literal["ok", "degraded", "nothing_retrieved", "budget_stop", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentResult(AgentResult):
    """What was found for a question."""

    # the question with its documents, as URLs, and its snippets: what a submission has. Answers
    # that it came with are left out.
    question: BioasqQuestion
    documents: tuple[ScoredDocument, ...]  # the documents with their scores, best first
    # the rankings on the way: ``retrieved``, ``judged`` (with all that were retrieved), ``listed``
    # (those that a chat model sorted; empty if none did) and ``final``
    runs: Mapping[str, tuple[ScoredDocument, ...]]
    query: str  # what the chat model made of the question; empty if nothing
    # ``ok``; ``degraded`` if a step fell back on the one before it; ``nothing_retrieved``;
    # ``budget_stop``; or ``failed`` if the search did
    outcome: SearchOutcome
    problems: tuple[str, ...]  # all that went wrong on the way, in words, the step first
    unusable: str  # why no question can be judged or sorted, such as a wrong key; empty if not so
    usage: Mapping[str, Usage]  # calls and tokens by step
    seconds: float  # how long it took
    manifest: Mapping[str, Any]  # who judged and sorted, with which settings and versions

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "question": self.question.to_dict(),
            "runs": {name: [[*one] for one in run] for name, run in self.runs.items()},
            "query": self.query,
            "outcome": self.outcome,
            **self.plain_end(),
        }


def build_search_graph(
    # a passage store, any LangChain retriever or vector store, or a function of the question
    source: Any,
    # `SearchSettings`, or some of them by name
    settings: SearchSettings | Mapping[str, Any] | None = None,
    *,
    # scores the best documents; None keeps the first stage's order
    judge: EvidenceReranker | None = None,
    # who sorts and rewrites; needed if *sort* or *rewrite*. None does neither.
    roles: SearchRoles | None = None,
    sort: bool = True,  # whether the best documents are sorted in one prompt, if there are *roles*
    rewrite: bool = False,  # whether a query is searched for beside the question
    # says how well sentences answer; None is the local judge, with the weights of *judge* if that
    # is one
    weigh_sentences: WeighSentences | None = None,
    cache: JudgementCache | None = None,  # where replies of *roles* are kept; none are if None
) -> "CompiledStateGraph[SearchState, None, SearchInput, SearchOutput]":
    """Compile the search for one source of documents."""
    # In goes a `question`; out come `documents`, `snippets`, the rankings on the way, and what went
    # wrong (`SearchOutput`).
    chosen = SearchSettings.of(settings)
    if rewrite and roles is None:
        raise SettingsError("rewrite=True needs a chat model that rewrites the question")
    wrapped = partial(wrap_role, limiter=Limiter(chosen.max_concurrency), cache=cache)
    before: list[tuple[str, Any]] = [("receive", steps.receive)]
    if rewrite and roles is not None:
        rewriter: RoleNode[SearchState, RewriteQueryTask, Query] = RoleNode(
            "rewrite",
            ask=steps.ask_rewrite,
            role=wrapped("rewriter", roles.rewriter, Query, fingerprint=roles.fingerprint),
            record=steps.record_rewrite,
            on_failure=steps.rewrite_failed,
            run_name=lambda state: "rewrite the question",
        )
        before.append(("rewrite", rewriter))
    before.append(("retrieve", steps.Retrieve(source, chosen)))

    after: list[tuple[str, Any]] = []
    if judge is not None:
        after.append(("score", steps.Score(judge, chosen)))
    if sort and roles is not None:
        after.append(("sort", _sort_node(roles, wrapped, chosen)))
    after.append(("combine", partial(steps.combine, settings=chosen)))
    weigh = weigh_sentences or weigh_as(judge)
    after.append(("snippets", partial(steps.find_snippets, weigh=weigh, settings=chosen)))

    graph = StateGraph(SearchState, input_schema=SearchInput, output_schema=SearchOutput)
    for name, node in (*before, *after):
        graph.add_node(name, node)
    rows = pairwise([START, *dict(before)]), pairwise([*dict(after), END])
    for one, other in chain(*rows):
        graph.add_edge(one, other)
    found = after[0][0]
    graph.add_conditional_edges(
        "retrieve", lambda state: found if state["passages"] else END, [found, END]
    )
    return graph.compile(name="DeepEra BioASQ search")


def _sort_node(
    roles: SearchRoles, wrapped: Callable[..., Any], settings: SearchSettings
) -> RoleNode[SearchState, SortTask, Order]:
    return RoleNode(
        "sort",
        ask=partial(steps.ask_sort, settings=settings),
        role=wrapped("sorter", roles.sorter, Order, fingerprint=roles.fingerprint),
        record=partial(steps.record_sort, settings=settings),
        on_failure=steps.sort_failed,
        run_name=lambda state: f"sort {min(settings.listed, len(state['judged']))} documents",
    )


class DocumentSearch(Batched[BioasqQuestion | str, DocumentResult]):
    """Finds the documents and snippets that answer biomedical questions (BioASQ, phase A).

    ``DocumentSearch(store).search("Is wax moth venom an allergen?").question.documents``

    Args:
        source: Where documents are: a passage store, a LangChain retriever or vector store, or a
            function of the question.
        judge: Who scores the best documents: a backend or its name, as for `EvidenceReranker`:
            ``"local"``, ``"encoder:MODEL"``, a chat model (DeepEra's pointwise judge). None keeps
            the first stage's order.
        model: A chat model, its name, its backend, or `SearchRoles`: sorts the best documents in
            one prompt (*sort*) and rewrites the question (*rewrite*). None does neither.
        sort, rewrite, weigh_sentences: As for `build_search_graph`.
        cache: Where replies of chat models are kept, so that an equal one is not paid for twice.
        settings: See `SearchSettings`.

    Raises:
        SettingsError: A setting is unknown or out of range, a model cannot be made, or the source
            cannot be searched.
    """

    settings: SearchSettings
    questions_at_once = 4

    def __init__(
        self,
        source: Any,
        *,
        judge: Backend | str | Mapping[str, Any] | None = "local",
        model: SearchRoles | Backend | BaseChatModel | str | None = None,
        sort: bool = True,
        rewrite: bool = False,
        weigh_sentences: WeighSentences | None = None,
        cache: JudgementCache | None = None,
        **settings: Unpack[SearchKwargs],
    ) -> None:
        self.settings = SearchSettings.of(settings)
        if model is not None and not isinstance(model, SearchRoles):
            model = search_roles(model)
        self.roles = model
        self.judge: EvidenceReranker | None = None
        if judge is not None:
            self.judge = EvidenceReranker(
                judge,
                cache=cache,
                threshold=0.0,
                top_n=self.settings.judged,
                content="passage",
                require_evidence=False,
                max_concurrency=self.settings.max_concurrency,
            )
        self._sorts = sort and self.roles is not None
        self._rewrites = rewrite
        self.graph = build_search_graph(
            source,
            self.settings,
            judge=self.judge,
            roles=self.roles,
            sort=sort,
            rewrite=rewrite,
            weigh_sentences=weigh_sentences,
            cache=cache,
        )

    def search(
        self, question: BioasqQuestion | str, *, config: RunnableConfig | None = None
    ) -> DocumentResult:
        """Find documents and snippets for one question.

        What fails is told in the result, and costs no other question.

        Args:
            question: A question of BioASQ, or what is asked; not blank.
            config: A LangChain config: callbacks, tags, metadata, `max_concurrency`.

        Raises:
            InputError: The question is blank, or no question.
        """
        return self.run(question, config).finish()

    async def asearch(
        self, question: BioasqQuestion | str, *, config: RunnableConfig | None = None
    ) -> DocumentResult:
        """Do what `search` does, in the running loop."""
        return await self.run(question, config).afinish()

    def run(self, question: BioasqQuestion | str, config: RunnableConfig | None = None) -> "_Run":
        """Return the run of one question."""
        return _Run(self, question, config)

    def check(self, questions: object) -> list[BioasqQuestion | str]:
        """Return the questions; raise `InputError` if they are no list."""
        return list_questions(questions)

    def describe(self) -> dict[str, Any]:
        """Return who judges and sorts, the settings, and versions, without any secret."""
        judge, roles = self.judge, self.roles
        return {
            "judge": None if judge is None else {"name": judge.backend.name, **judge.backend.about},
            "model": None if roles is None else {"name": roles.name, **roles.about},
            "sort": self._sorts,
            "rewrite": self._rewrites,
            "settings": self.settings.to_dict(),
            "versions": dict(versions()),
        }


class _Run(AgentRun[DocumentResult]):
    name, modes = "DeepEra BioASQ search", ("values",)

    def __init__(
        self, search: DocumentSearch, question: BioasqQuestion | str, config: RunnableConfig | None
    ) -> None:
        self._asked, self._search = as_question(question), search
        super().__init__(search.graph, {"question": self._asked.body}, config, search.settings)

    def result(self) -> DocumentResult:
        asked, state = self._asked, self._state
        rankings = {name: state[name] for name in ("retrieved", "judged", "listed")}
        runs = {
            name: tuple(ScoredDocument(*pair) for pair in pairs)
            for name, pairs in {**rankings, "final": state["documents"]}.items()
        }
        return DocumentResult(
            question=BioasqQuestion(
                id=asked.id,
                type=asked.type,
                body=asked.body,
                documents=tuple(document_url(one.pmid) for one in runs["final"]),
                snippets=tuple(Snippet(**one["snippet"]) for one in state["snippets"]),
            ),
            documents=runs["final"],
            runs=runs,
            query=state["query"],
            outcome=_outcome(state),
            problems=tuple(state["problems"]),
            unusable=state["unusable"],
            usage=self.usage,
            seconds=self.seconds,
            manifest=self._search.describe(),
        )


def _outcome(state: Mapping[str, Any]) -> SearchOutcome:
    if state["stopped"]:
        return "budget_stop"
    if state["failed"]:
        return "failed"
    if not state["documents"]:
        return "nothing_retrieved"
    return "degraded" if state["degraded"] else "ok"
