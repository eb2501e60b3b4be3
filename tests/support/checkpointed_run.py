"""A program that reranks questions with a checkpointer, and goes on where an earlier one stopped.

python -m support.checkpointed_run URL DATABASE OUT sync|async
"""

import asyncio
import json
import sys
from pathlib import Path

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from deepera_graph import EvidenceReranker
from deepera_graph.judges.llm.backend import llm_backend
from support.kills import N_QUESTIONS, passages, question

AT_ONCE = 4


def main(url, database, out, way):
    """Write the last state of every question to *out*."""
    backend = llm_backend("openai:any", base_url=url)
    states = asyncio.run(arun(backend, database)) if way == "async" else run(backend, database)
    text = json.dumps(states, default=lambda one: one.model_dump(), sort_keys=True, indent=1)
    Path(out).write_text(text, encoding="utf-8")


def run(backend, database):
    with SqliteSaver.from_conn_string(database) as saver:
        reranker = reranker_of(backend, saver)
        for n in range(N_QUESTIONS):
            reranker.rerank(question(n), passages(n), config=at(n), resume=True)
        return [reranker.graph.get_state(at(n)).values for n in range(N_QUESTIONS)]


async def arun(backend, database):
    async with AsyncSqliteSaver.from_conn_string(database) as saver:
        reranker = reranker_of(backend, saver)
        for n in range(N_QUESTIONS):
            await reranker.arerank(question(n), passages(n), config=at(n), resume=True)
        return [(await reranker.graph.aget_state(at(n))).values for n in range(N_QUESTIONS)]


def reranker_of(backend, saver):
    saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
    return EvidenceReranker(backend, checkpointer=saver, max_concurrency=AT_ONCE)


def at(number):
    """Where the state of a question is kept."""
    return {"configurable": {"thread_id": f"q{number}"}}


if __name__ == "__main__":
    main(*sys.argv[1:])
