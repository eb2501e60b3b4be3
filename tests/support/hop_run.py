"""A program that answers a question of four hops with a checkpointer, or goes on where one stopped.

python -m support.hop_run URL DATABASE sync|async
"""

import asyncio
import sys

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from deepera_graph import MultiHopAgent, multihop_backend
from support.hop_world import FOUR, Search

AT = {"configurable": {"thread_id": "1"}}


def main(url, database, way):
    """Print the answers of all steps, and the last."""
    result = asyncio.run(arun(url, database)) if way == "async" else run(url, database)
    print([one["answer"] for one in result.steps], result.text)  # noqa: T201
    return result


def run(url, database):
    with SqliteSaver.from_conn_string(database) as saver:
        return agent_of(url, saver).solve(FOUR, config=AT, resume=True)


async def arun(url, database):
    async with AsyncSqliteSaver.from_conn_string(database) as saver:
        return await agent_of(url, saver).asolve(FOUR, config=AT, resume=True)


def agent_of(url, saver):
    return MultiHopAgent(multihop_backend("openai:any", base_url=url), Search(), checkpointer=saver)


if __name__ == "__main__":
    main(*sys.argv[1:])
