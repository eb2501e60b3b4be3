"""Every reranker of the table behind one call: passages in, (id, score) pairs out, best first.

All keep their own defaults but the limits: everything is to be returned, and one call may take
`CALL_SECONDS`. A reranker that gives no scores gets the place from the end as one, and a filter
returns what it keeps, with score 1.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any

from answers import (
    INDICES,
    JUDGEMENT,
    LABELLED_ANSWERS,
    PERMUTATION,
    RANKED_IDS,
    RELEVANCES,
    YES_OR_NO,
    Form,
)
from outcomes import Ranking

CALL_SECONDS = 1.5
KEY = "not-needed"
Rank = Callable[[str, str, Mapping[str, str]], Ranking]


@dataclass(frozen=True, slots=True)
class Rival:
    """A reranker: its name, the packages it needs, the answers it asks for, how it is called.

    *rank* takes the URL of the server, the question, and the passages by id.
    """

    name: str
    packages: tuple[str, ...]
    form: Form
    rank: Rank

    def missing(self) -> str:
        """Return the first package that is not installed, or an empty text."""
        for package in self.packages:
            try:
                metadata.version(package)
            except metadata.PackageNotFoundError:
                return package
        return ""

    @property
    def versions(self) -> list[str]:
        """Names and versions of the packages measured."""
        return [f"{package} {metadata.version(package)}" for package in self.packages]


def deepera(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """Everything is kept unless its evidence fails; what is not kept counts as reported."""
    package = import_module("deepera_graph")
    backend = package.llm_backend("openai:m", base_url=url, timeout=CALL_SECONDS)
    reranker = package.EvidenceReranker(
        backend, threshold=0.0, top_n=len(passages), content="passage"
    )
    items = [{"id": code, "text": text} for code, text in passages.items()]
    found = reranker.rerank(question, items).passages
    return [(one.id, one.score if one.kept else None) for one in found]


def langchain_listwise(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`LLMListwiseRerank`."""
    kind = import_module("langchain_classic.retrievers.document_compressors").LLMListwiseRerank
    reranker = kind.from_llm(_langchain_model(url), top_n=len(passages))
    found = reranker.compress_documents(_langchain_documents(passages), question)
    return _by_place(one.id for one in found)


def langchain_filter(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`LLMChainFilter`."""
    kind = import_module("langchain_classic.retrievers.document_compressors").LLMChainFilter
    chosen = kind.from_llm(_langchain_model(url))
    found = chosen.compress_documents(_langchain_documents(passages), question)
    return [(one.id, 1.0) for one in found]


def llama_index_rerank(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`LLMRerank`."""
    kind = import_module("llama_index.core.postprocessor").LLMRerank
    reranker = kind(llm=_llama_index_model(url), top_n=len(passages))
    found = reranker.postprocess_nodes(_llama_index_nodes(passages), query_str=question)
    return [(one.node.node_id, one.score) for one in found]


def llama_index_rankgpt(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`RankGPTRerank`."""
    kind = import_module("llama_index.postprocessor.rankgpt_rerank").RankGPTRerank
    reranker = kind(llm=_llama_index_model(url), top_n=len(passages))
    found = reranker.postprocess_nodes(_llama_index_nodes(passages), query_str=question)
    return _by_place(one.node.node_id for one in found)


def haystack_ranker(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`LLMRanker`."""
    generators = import_module("haystack.components.generators.chat")
    secret = import_module("haystack.utils").Secret.from_token(KEY)
    generator = generators.OpenAIChatGenerator(
        api_key=secret, model="m", api_base_url=url, timeout=CALL_SECONDS
    )
    kind = import_module("haystack.components.rankers.llm_ranker").LLMRanker
    document = import_module("haystack").Document
    documents = [document(id=code, content=text) for code, text in passages.items()]
    ranker = kind(chat_generator=generator, top_k=len(passages))
    return _by_place(one.id for one in ranker.run(query=question, documents=documents)["documents"])


def rerankers_rankgpt(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`RankGPTRanker`; with its own default of `rank_end` it would rank nothing."""
    litellm = _litellm()
    litellm.api_base, litellm.request_timeout = url, CALL_SECONDS
    kind = import_module("rerankers.models.rankgpt_rankers").RankGPTRanker
    ranker = kind("openai/m", api_key=KEY, verbose=0)
    found = ranker.rank(
        question, list(passages.values()), doc_ids=list(passages), rank_end=len(passages)
    )
    return _by_place(one.document.doc_id for one in found.results)


def rerankers_filter(url: str, question: str, passages: Mapping[str, str]) -> Ranking:
    """`LLMRelevanceFilter`; it returns everything, scored 1 or 0."""
    _litellm()
    kind = import_module("rerankers.models.llm_relevance_filter").LLMRelevanceFilter
    limits = {"api_base": url, "api_key": KEY, "timeout": CALL_SECONDS}
    ranker = kind("openai/m", verbose=0, **limits)
    found = ranker.rank(question, list(passages.values()), doc_ids=list(passages))
    return [(one.document.doc_id, one.score) for one in found.results]


def _langchain_model(url: str) -> Any:
    kind = import_module("langchain_openai").ChatOpenAI
    return kind(model="m", base_url=url, api_key=KEY, timeout=CALL_SECONDS)


def _langchain_documents(passages: Mapping[str, str]) -> list[Any]:
    kind = import_module("langchain_core.documents").Document
    return [kind(id=code, page_content=text) for code, text in passages.items()]


def _llama_index_model(url: str) -> Any:
    kind = import_module("llama_index.llms.openai_like").OpenAILike
    return kind(model="m", api_base=url, api_key=KEY, is_chat_model=True, timeout=CALL_SECONDS)


def _llama_index_nodes(passages: Mapping[str, str]) -> list[Any]:
    schema = import_module("llama_index.core.schema")
    nodes = [schema.TextNode(id_=code, text=text) for code, text in passages.items()]
    return [schema.NodeWithScore(node=node, score=0.5) for node in nodes]


def _litellm() -> Any:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network on import
    return import_module("litellm")


def _by_place(codes: Iterable[str]) -> Ranking:
    ordered = list(codes)
    return [(code, float(len(ordered) - place)) for place, code in enumerate(ordered)]


_LANGCHAIN = ("langchain-classic", "langchain-openai", "openai")
_LLAMA_INDEX = ("llama-index-core", "llama-index-llms-openai-like", "openai")
_RERANKERS = ("rerankers", "litellm", "openai")
RIVALS = [
    Rival("DeepEra", ("deepera-graph", "langchain-openai", "openai"), JUDGEMENT, deepera),
    Rival("LangChain LLMListwiseRerank", _LANGCHAIN, RANKED_IDS, langchain_listwise),
    Rival("LangChain LLMChainFilter", _LANGCHAIN, YES_OR_NO, langchain_filter),
    Rival("LlamaIndex LLMRerank", _LLAMA_INDEX, RELEVANCES, llama_index_rerank),
    Rival(
        "LlamaIndex RankGPTRerank",
        ("llama-index-postprocessor-rankgpt-rerank", *_LLAMA_INDEX),
        PERMUTATION,
        llama_index_rankgpt,
    ),
    Rival("Haystack LLMRanker", ("haystack-ai", "openai"), INDICES, haystack_ranker),
    Rival("rerankers RankGPTRanker", _RERANKERS, PERMUTATION, rerankers_rankgpt),
    Rival("rerankers LLMRelevanceFilter", _RERANKERS, LABELLED_ANSWERS, rerankers_filter),
]
