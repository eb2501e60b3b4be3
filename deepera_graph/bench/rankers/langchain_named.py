"""LangChain compressors by name, as a table of rankers has them."""

import os
import sys

from deepera_graph.bench.chat import MAX_CONCURRENCY, Chat
from deepera_graph.bench.errors import UnavailableError
from deepera_graph.bench.rankers.compressor import Compressor
from deepera_graph.bench.rankers.optional import foreign, imported, need, versions

COHERE_MODEL = "rerank-v3.5"


def cohere(model: str = COHERE_MODEL) -> Compressor:
    """Return Cohere's reranker; its key comes from ``COHERE_API_KEY``.

    Raises:
        UnavailableError: ``langchain-cohere`` is not installed, or there is no key.
    """
    need("langchain_cohere", install="langchain-cohere")
    if not os.environ.get("COHERE_API_KEY"):
        raise UnavailableError("no API key: set the environment variable COHERE_API_KEY")
    kind = imported("langchain_cohere").CohereRerank
    made = foreign(f"Cohere {model}", lambda: kind(model=model, top_n=None))
    about = {"kind": "langchain cohere", "model": model, **versions("langchain-cohere", "cohere")}
    return Compressor(made, name=f"Cohere {model}", fingerprint=about)


def langchain_listwise(chat: Chat) -> Compressor:
    """Return LangChain's `LLMListwiseRerank`, as it comes, but that it keeps all passages.

    Raises:
        UnavailableError: ``langchain-classic`` is not installed, or the model cannot do it.
    """
    need("langchain_classic", install="langchain-classic")
    module = imported("langchain_classic.retrievers.document_compressors")
    made = foreign(
        "LLMListwiseRerank",
        lambda: module.LLMListwiseRerank.from_llm(chat.langchain, top_n=sys.maxsize),
    )
    about = None
    if chat.fingerprint is not None:
        about = {
            "kind": "langchain listwise",
            "model": chat.fingerprint,
            **versions("langchain-classic"),
        }
    name = f"LLMListwiseRerank {chat.name}"
    return Compressor(made, name=name, fingerprint=about, at_once=MAX_CONCURRENCY)
