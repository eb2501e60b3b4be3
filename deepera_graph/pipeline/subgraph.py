"""The state machine as a step of any graph: its own names of keys, a search, and further tries.

prepare -> [search ->] judge -> finish; where the evidence does not suffice, judge -> rewrite ->
search -> judge, a bounded number of times. Searches are rewritten, never the question that is
judged: so a rewrite that leads astray finds nothing, and proves nothing.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, get_type_hints

from langchain_core.documents import Document
from langchain_core.messages import convert_to_messages
from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from deepera_graph.agents.twin import invoker_of
from deepera_graph.errors import DeepEraError, InputError, RoleError, SettingsError, StoreError
from deepera_graph.judges.heuristic.roles import find_entities
from deepera_graph.passages import RETRIEVAL_KEYS
from deepera_graph.pipeline.graph import build_graph
from deepera_graph.pipeline.state import Output, Question
from deepera_graph.retrieval.fusion import as_search, named_errors
from deepera_graph.schema import Backend, RewriteTask, Rewritten
from deepera_graph.settings import Settings, SettingsKwargs
from deepera_graph.settings.ranges import check_at_least
from deepera_graph.text.words import content_words, stem

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

    from deepera_graph.stores.judgements import JudgementCache

Rewriter = Callable[[RewriteTask], str | Rewritten] | Runnable[RewriteTask, Any]
_OWN = {"queries": list[str], "next_query": str, "n_new": int}
_ALWAYS = ("documents", "outcome")
_CAN_HELP = ("ok", "no_evidence", "nothing_retrieved")  # outcomes that another search may better
_NEAREST, _ADDED = 3, 3  # passages that are read for a rewrite, and words taken from them
_logger = logging.getLogger(__name__)


def evidence_subgraph(
    backend: Backend | str | Mapping[str, Any] = "local",
    *,
    keys: Mapping[str, str] | None = None,
    search: Any = None,
    k: int = 30,
    retries: int | None = None,
    enough: int = 1,
    rewrite: "Rewriter | BaseChatModel | str" = "rules",
    checkpointer: "BaseCheckpointSaver[Any] | bool | None" = None,
    cache: "JudgementCache | None" = None,
    **settings: Unpack[SettingsKwargs],
) -> "CompiledStateGraph[Any, None, Any, Any]":
    """Compile the state machine as a node of any `StateGraph`, whatever its keys are called.

    ``graph.add_node("evidence", evidence_subgraph(search=store, keys={"question": "query"}))``

    In go the question and, without a *search*, its passages; out come the kept `documents` and the
    `outcome`, and what else *keys* names. A question may also be a list of messages: the last of a
    human counts.

    Args:
        backend: Who judges, as for `EvidenceReranker`.
        keys: What the parent calls ``question``, ``passages``, ``documents``, ``outcome`` and, if
            it wants them, ``ranking``, ``answer``, ``intent``, ``usage``, ``queries`` (all that was
            searched for) and the other keys of `build_graph`; those left out keep their names.
        search: What finds passages: a passage store, a LangChain retriever or vector store, or a
            function of the query. None: the parent has the passages.
        k: Most new passages that a search brings, >= 1.
        retries: Most further searches, >= 0, while fewer than *enough* passages are kept; None is 1
            with a *search*. All that was found is judged anew with every try, for the question.
        enough: Kept passages that end the search, >= 1.
        rewrite: Who writes the next query: ``"rules"`` (words of the question and of the nearest
            passages, no key); a chat model or its name, ``provider:model``; or a function or
            runnable from `RewriteTask` to a text, empty to give up. One that fails is logged, and
            what was found until then is the result.
        checkpointer: As for `StateGraph.compile`; None takes the parent's.
        cache: Where judgements are kept, so that no passage is paid for twice.
        settings: See `deepera_graph.Settings`; `answer=True` also draws an answer.

    Raises:
        SettingsError: A setting or key is unknown or out of range, or there are retries and no
            search.
    """
    Settings.check_names(settings, also=_PARAMETERS)
    names = _name_keys(keys or {})
    tries = _check_tries(search, k, retries, enough)
    judge = build_graph(backend, cache=cache, **settings)
    kinds: dict[str, Any] = {**get_type_hints(Output, include_extras=True), **_OWN}
    kinds["passages"] = list[Any]
    theirs = {name: Any for name in names.values() if name not in kinds}
    graph: StateGraph[Any, None, Any, Any] = StateGraph(
        _make_type("EvidenceState", {**kinds, **theirs}),
        input_schema=_make_type("EvidenceInput", _pick(names, ("question", "passages"))),
        output_schema=_make_type("EvidenceOutput", _pick(names, names.keys() - _GIVEN)),
    )
    graph.add_node("prepare", lambda state: _prepare(state, names, has_search=search is not None))
    graph.add_node("judge", judge)
    graph.add_node("finish", lambda state: {names[one]: state.get(one) for one in names})
    graph.add_edge(START, "prepare")
    graph.add_edge("finish", END)
    if search is None:
        graph.add_edge("prepare", "judge")
        graph.add_edge("judge", "finish")
        return graph.compile(checkpointer=checkpointer, name="evidence")

    def is_over(state: Any) -> bool:
        done = len(state["queries"]) > tries or state.get("outcome", "ok") not in _CAN_HELP
        return done or len(state.get("documents") or ()) >= enough

    graph.add_node("search", _make_search(search, k, tries))
    graph.add_node("rewrite", _make_rewriter(rewrite))
    graph.add_edge("prepare", "search")
    graph.add_conditional_edges(
        "search",
        lambda state: _after_search(state, tries),
        ["judge", "rewrite", "finish"],
    )
    graph.add_conditional_edges(
        "judge", lambda state: "finish" if is_over(state) else "rewrite", ["rewrite", "finish"]
    )
    graph.add_conditional_edges(
        "rewrite", lambda state: "search" if state["next_query"] else "finish", ["search", "finish"]
    )
    return graph.compile(checkpointer=checkpointer, name="evidence")


_GIVEN = {"question", "passages"}
_PARAMETERS = (
    "backend", "keys", "search", "k", "retries", "enough", "rewrite", "checkpointer", "cache",
)  # fmt: skip


def _name_keys(keys: Mapping[str, str]) -> dict[str, str]:
    """Return all keys that the parent shares, under its own names.

    Raises:
        SettingsError: There is no such key, or two have one name.
    """
    known = [*get_type_hints(Question), *get_type_hints(Output), "queries"]
    for name in keys:
        if name not in known:
            raise SettingsError(
                f"keys: unknown key {name!r}; available: {', '.join(dict.fromkeys(known))}"
            )
    names = {**{one: one for one in (*_GIVEN, *_ALWAYS)}, **keys}
    out = [name for one, name in names.items() if one not in _GIVEN]
    twice = next((name for name, n in Counter(out).items() if n > 1), None)
    if twice is not None or names["question"] == names["passages"]:
        raise SettingsError(f"keys: {twice or names['question']!r} stands for two things")
    return names


def _check_tries(search: Any, k: int, retries: int | None, enough: int) -> int:
    check_at_least("k", k, 1)
    check_at_least("enough", enough, 1)
    if retries is None:
        return 0 if search is None else 1
    check_at_least("retries", retries, 0)
    if retries and search is None:
        raise SettingsError(f"retries need a search, got retries={retries} without one")
    return retries


def _make_type(name: str, kinds: Mapping[str, Any]) -> Any:
    return TypedDict(name, dict(kinds), total=False)  # type: ignore[operator]  # made as it runs


def _pick(names: Mapping[str, str], wanted: Iterable[str]) -> dict[str, Any]:
    return {names[one]: Any for one in wanted}


def _prepare(state: Any, names: Mapping[str, str], *, has_search: bool) -> dict[str, Any]:
    """Read the parent's keys, and forget what was found for an earlier question."""
    question = _read_question(state.get(names["question"]))
    passages = [] if has_search else state.get(names["passages"])
    if passages is None:
        raise InputError(f"the state has no passages under {names['passages']!r}")
    return {
        "question": question,
        "passages": passages,
        "queries": [],
        "next_query": question,
        "documents": [],
        "outcome": "nothing_retrieved",
        "usage": None,
        "n_new": 0,
    }


def _read_question(value: Any) -> Any:
    """Return a question; of messages, in any form that LangChain takes, the last one of a human."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return value
    try:
        messages = convert_to_messages(value)
    except (ValueError, NotImplementedError) as error:
        raise InputError(f"question must be a text or messages, got {value!r:.80}") from error
    asked = [one for one in messages if one.type == "human"]
    if not asked:
        raise InputError("the messages hold no question of a human")
    return asked[-1].text


def _make_search(source: Any, k: int, tries: int) -> Runnable[Any, dict[str, Any]]:
    """Return the node that searches: it adds the best *k* that no search has brought before."""
    searched = as_search(source, k * (tries + 1))

    def add(state: Any, query: str, documents: Sequence[Document]) -> dict[str, Any]:
        known = {_same(one) for one in state["passages"]}
        fresh = [one for one in documents if _same(one) not in known][:k]
        queries = [*state["queries"], query]
        get_stream_writer()({"event": "searched", "query": query, "new": len(fresh)})
        passages = [*state["passages"], *map(_without_rank, fresh)]
        return {"queries": queries, "passages": passages, "n_new": len(fresh)}

    def find(state: Any) -> dict[str, Any]:
        with named_errors("the search failed"):
            documents = _check_found(searched.invoke(state["next_query"]))
        return add(state, state["next_query"], documents)

    async def afind(state: Any) -> dict[str, Any]:
        with named_errors("the search failed"):
            documents = _check_found(await searched.ainvoke(state["next_query"]))
        return add(state, state["next_query"], documents)

    return RunnableLambda(find, afunc=afind, name="search")


def _check_found(found: Any) -> Sequence[Document]:
    if isinstance(found, Sequence) and all(isinstance(one, Document) for one in found):
        return found
    raise InputError(f"a search must return a list of LangChain Documents, got {found!r:.80}")


def _same(passage: Document) -> str:
    return f"id {passage.id}" if passage.id else passage.page_content


def _without_rank(passage: Document) -> Document:
    """Return a passage without its rank and score in one search, which another one gives, too."""
    rest = {name: value for name, value in passage.metadata.items() if name not in RETRIEVAL_KEYS}
    return passage.model_copy(update={"metadata": rest})


def _after_search(state: Any, tries: int) -> str:
    """Judge what is new; a search that brought nothing new is rewritten at once."""
    if state["n_new"] or len(state["queries"]) == 1:
        return "judge"
    return "rewrite" if len(state["queries"]) <= tries else "finish"


def _make_rewriter(given: Any) -> Runnable[Any, dict[str, Any]]:
    """Return the node that writes the next query; one that fails ends the search, and is logged."""
    role = _find_rewriter(given)

    def ask(state: Any) -> RewriteTask:
        nearest = sorted(
            (one for one in state.get("ranking") or () if one["score"] is not None),
            key=lambda one: -one["score"],
        )
        texts = [state["passages"][one["index"]].page_content for one in nearest[:_NEAREST]]
        return {"question": state["question"], "tried": list(state["queries"]), "nearest": texts}

    def read(state: Any, said: Any) -> dict[str, Any]:
        text = " ".join(str(getattr(said, "text", said) or "").split())
        return {"next_query": "" if text in state["queries"] else text}

    def write(state: Any) -> dict[str, Any]:
        try:
            with named_errors("the rewriter failed"):
                return read(state, invoker_of(role)(ask(state), None))
        except (RoleError, StoreError) as error:
            return _give_up(error)

    async def awrite(state: Any) -> dict[str, Any]:
        try:
            with named_errors("the rewriter failed"):
                return read(state, await role.ainvoke(ask(state)))
        except (RoleError, StoreError) as error:
            return _give_up(error)

    return RunnableLambda(write, afunc=awrite, name="rewrite")


def _give_up(error: DeepEraError) -> dict[str, Any]:
    _logger.warning("the query could not be rewritten: %s", error)
    return {"next_query": ""}


def _find_rewriter(given: Any) -> Runnable[RewriteTask, Any]:
    if given == "rules":
        return RunnableLambda(rewrite_by_rules)
    if isinstance(given, Runnable) and not hasattr(given, "bind_tools"):
        return given
    if callable(given) and not hasattr(given, "bind_tools"):
        return RunnableLambda(given)
    if isinstance(given, str) and ":" not in given:
        raise SettingsError(
            f"rewrite must be 'rules', 'provider:model' or a function, got {given!r}"
        )
    from deepera_graph.judges.llm.backend import llm_rewriter  # noqa: PLC0415  # of a chat model

    return llm_rewriter(given)


def rewrite_by_rules(task: RewriteTask) -> str:
    """Return the content words of a question, and words that the nearest passages share.

    With every try other words are added, most frequent first; where there are none, the names in
    the question alone are searched for. Empty if nothing is left to try.

    Source:
        Pseudo-relevance feedback, as in Rocchio (1971), Relevance feedback in information
        retrieval; the passages are those that a judge put first, though it kept none or too few.
    """
    own, n_tried = content_words(task["question"]), len(task["tried"])
    shared = _shared_words(task["nearest"], {stem(word) for word in own})
    added = shared[_ADDED * (n_tried - 1) : _ADDED * n_tried]
    names = " ".join(one.rpartition(": ")[2] for one in find_entities(task["question"]))
    candidates = [" ".join([*own, *added]) if added else "", names]
    return next((one for one in candidates if one and one not in task["tried"]), "")


def _shared_words(texts: Sequence[str], known: set[str]) -> list[str]:
    """Return words of texts, those in most texts first, each once whatever its ending."""
    counts: Counter[str] = Counter()
    forms: dict[str, str] = {}
    for text in texts:
        seen: set[str] = set()
        for word in content_words(text):
            key = stem(word)
            if key not in known and key not in seen and len(word) > 3 and word.isalpha():
                seen.add(key)
                forms.setdefault(key, word)
                counts[key] += 1
    return [forms[key] for key, _ in counts.most_common()]
