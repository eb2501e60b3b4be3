"""The rankers that DeepEra is compared with."""

import os
from importlib import import_module
from typing import Any

from ranker import CALL_SECONDS, KEY, TOP_N, Passages, Rank, Ranker

WINDOW, STEP = 20, 10  # RankGPT's own defaults


def rankgpt_windows(url: str, at_once: int) -> Rank:
    """RankGPT: windows of 20, step 10, from the end to the start, each with its own call.

    Prompt and parsing are the original's, as the package `rerankers` carries them; that package
    has one window only, so the loop over the windows is ours.

    Source:
        Sun et al. (2023), Is ChatGPT Good at Search?, section 3.2, figure 2.
    """
    client = import_module("openai").AsyncOpenAI(base_url=url, api_key=KEY, timeout=CALL_SECONDS)
    original = import_module("rerankers.models.rankgpt_rankers")

    async def rank(question: str, passages: Passages) -> list[str]:
        hits = [{"content": text, "code": code} for code, text in passages.items()]
        item = {"query": question, "hits": hits}
        for start, end in windows(len(hits)):
            messages = original.create_permutation_instruction(item, start, end)
            reply = await client.chat.completions.create(
                model="m", messages=messages, temperature=0
            )
            text = reply.choices[0].message.content
            item = original.receive_permutation(item, text, start, end)
        return [hit["code"] for hit in item["hits"]]

    return rank


def windows(n: int) -> list[tuple[int, int]]:
    """Return the windows over *n* passages, last first; the last one to be asked starts at 0."""
    found = [(max(0, n - WINDOW), n)]
    while found[-1][0] > 0:
        end = found[-1][1] - STEP
        found.append((max(0, end - WINDOW), end))
    return found


def llama_index_rankgpt(url: str, at_once: int) -> Rank:
    """`RankGPTRerank`: one window over everything."""
    kind = import_module("llama_index.postprocessor.rankgpt_rerank").RankGPTRerank
    return _llama_index(kind(llm=_llama_index_model(url), top_n=TOP_N))


def llama_index_rerank(url: str, at_once: int) -> Rank:
    """`LLMRerank`: ten passages a call, four calls at once; neither number can be told to it.

    The batch size can; ten is its default.
    """
    kind = import_module("llama_index.core.postprocessor").LLMRerank
    return _llama_index(kind(llm=_llama_index_model(url), top_n=TOP_N))


def langchain_listwise(url: str, at_once: int) -> Rank:
    """`LLMListwiseRerank`: one call."""
    kind = import_module("langchain_classic.retrievers.document_compressors").LLMListwiseRerank
    return _langchain(kind.from_llm(_langchain_model(url), top_n=TOP_N))


def langchain_filter(url: str, at_once: int) -> Rank:
    """`LLMChainFilter`: one call a passage, all at once; it only says yes or no."""
    kind = import_module("langchain_classic.retrievers.document_compressors").LLMChainFilter
    return _langchain(kind.from_llm(_langchain_model(url)))


def haystack_ranker(url: str, at_once: int) -> Rank:
    """`LLMRanker`: one call, which lists the relevant passages only."""
    secret = import_module("haystack.utils").Secret.from_token(KEY)
    generator = import_module("haystack.components.generators.chat").OpenAIChatGenerator(
        api_key=secret, model="m", api_base_url=url, timeout=CALL_SECONDS
    )
    kind = import_module("haystack.components.rankers.llm_ranker").LLMRanker
    ranker = kind(chat_generator=generator, top_k=TOP_N, raise_on_failure=True)
    document = import_module("haystack").Document

    async def rank(question: str, passages: Passages) -> list[str]:
        documents = [document(id=code, content=text) for code, text in passages.items()]
        found = await ranker.run_async(query=question, documents=documents)
        return [one.id for one in found["documents"]]

    return rank


def paper_qa(url: str, at_once: int) -> Rank:
    """paper-qa's gathering of evidence, over given texts: summary and score, one call a passage."""
    package, types = import_module("paperqa"), import_module("paperqa.types")
    parameters = {"model": "openai/m", "api_base": url, "api_key": KEY, "timeout": CALL_SECONDS}
    served = {"model_list": [{"model_name": "openai/m", "litellm_params": parameters}]}
    settings = package.Settings(
        summary_llm="openai/m",
        summary_llm_config=served,
        answer={"evidence_retrieval": False, "max_concurrent_requests": 2 * at_once},
    )
    model = settings.get_summary_llm()
    embedding = settings.get_embedding_model()  # made, and not asked: nothing is retrieved

    async def rank(question: str, passages: Passages) -> list[str]:
        source = types.Doc(docname="invented", dockey="invented", citation="Invented (2026)")
        texts = [
            types.Text(text=text, name=f"passage {place}", doc=source)
            for place, text in enumerate(passages.values())
        ]
        docs = package.Docs(docs={"invented": source}, texts=texts)
        session = await docs.aget_evidence(
            question, settings, embedding_model=embedding, summary_llm_model=model
        )
        codes = dict(zip((text.name for text in texts), passages, strict=True))
        best = sorted(session.contexts, key=lambda one: -one.score)
        return [codes[one.text.name] for one in best]

    return rank


def _langchain(compressor: Any) -> Rank:
    document = import_module("langchain_core.documents").Document

    async def rank(question: str, passages: Passages) -> list[str]:
        documents = [document(id=code, page_content=text) for code, text in passages.items()]
        return [one.id for one in await compressor.acompress_documents(documents, question)]

    return rank


def _langchain_model(url: str) -> Any:
    kind = import_module("langchain_openai").ChatOpenAI
    return kind(model="m", base_url=url, api_key=KEY, timeout=CALL_SECONDS)


def _llama_index(reranker: Any) -> Rank:
    schema = import_module("llama_index.core.schema")

    async def rank(question: str, passages: Passages) -> list[str]:
        nodes = [
            schema.NodeWithScore(node=schema.TextNode(id_=code, text=text), score=0.5)
            for code, text in passages.items()
        ]
        found = await reranker.apostprocess_nodes(nodes, query_str=question)
        return [one.node.node_id for one in found]

    return rank


def _llama_index_model(url: str) -> Any:
    kind = import_module("llama_index.llms.openai_like").OpenAILike
    return kind(model="m", api_base=url, api_key=KEY, is_chat_model=True, timeout=CALL_SECONDS)


os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network on import
BASE = "rankgpt-20-10"
_LANGCHAIN = ("langchain-classic", "langchain-openai")
_LLAMA_INDEX = ("llama-index-core", "llama-index-llms-openai-like")
RIVALS = {
    BASE: Ranker(
        "RankGPT, windows of 20, step 10", ("rerankers", "openai"), rankgpt_windows, in_turn=True
    ),
    "rankgpt-one": Ranker(
        "RankGPT, one window (LlamaIndex RankGPTRerank)",
        ("llama-index-postprocessor-rankgpt-rerank", *_LLAMA_INDEX),
        llama_index_rankgpt,
    ),
    "langchain-listwise": Ranker("LangChain LLMListwiseRerank", _LANGCHAIN, langchain_listwise),
    "langchain-filter": Ranker("LangChain LLMChainFilter", _LANGCHAIN, langchain_filter),
    "llama-index-llm": Ranker("LlamaIndex LLMRerank", _LLAMA_INDEX, llama_index_rerank),
    "haystack": Ranker("Haystack LLMRanker", ("haystack-ai",), haystack_ranker),
    "paper-qa": Ranker("paper-qa, gathering evidence", ("paper-qa",), paper_qa),
}
