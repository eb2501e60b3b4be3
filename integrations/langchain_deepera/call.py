"""One call of the reranker under the caller's run."""

import asyncio
from collections.abc import Sequence

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import set_config_context

from deepera_graph import EvidenceReranker, RerankResult


def rerank(
    reranker: EvidenceReranker,
    question: str,
    documents: Sequence[Document],
    config: RunnableConfig | None,
) -> RerankResult:
    """Rerank; the config counts for more than the run around this call, but takes its limits.

    LangGraph does it the other way round: inside a chain its runs would nest under the chain, and
    not under the retriever whose callbacks it is given. So the config becomes what is around it.
    """
    given = ensure_config(config)
    with set_config_context(given) as context:
        return context.run(reranker.rerank, question, documents, config=given)


async def arerank(
    reranker: EvidenceReranker,
    question: str,
    documents: Sequence[Document],
    config: RunnableConfig | None,
) -> RerankResult:
    """Do what `rerank` does, in the running loop."""
    given = ensure_config(config)
    with set_config_context(given) as context:
        work = reranker.arerank(question, documents, config=given)
        return await asyncio.create_task(work, context=context)
