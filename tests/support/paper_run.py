"""A program that searches for papers with a chat model, or goes on where one stopped.

python -m support.paper_run URL FOLDER sync|async|cache
"""

import asyncio
import re
import sys
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from deepera_graph import PaperBase, PaperSearch, open_cache
from deepera_graph.judges.llm.backend import llm_backend

QUESTION = "kelp counting by anything but swarm search, up to 2022"
AT = {"configurable": {"thread_id": "1"}}
BASE = "planted.papers"
ROUNDS = (("kelp", "seaweed cover"), ("divers", "eigenvectors"), ("carillon",))


def play(request):
    """Answer a prompt of the search by what it shows alone."""
    if request.system.startswith("You read"):
        return {
            "topic": "kelp counting", "exclude": ["swarm search"], "year_from": None,
            "year_to": 2022, "venues": [], "not_venues": [], "better": [],
        }  # fmt: skip
    if request.system.startswith("You judge"):
        return {
            "papers": [verdict(*one) for one in re.findall(r"(?m)^\[(\d+)\] (.*)$", request.user)]
        }
    n_done = len(re.findall(r"(?m)^[SRC]\d+ ", request.user))
    at = {0: 0, 2: 1, 4: 2}.get(n_done)
    queries = ROUNDS[at] if at is not None else ()
    return {"thought": "on", "calls": [{"tool": "search", "argument": one} for one in queries]}


def verdict(number, line):
    """What is said of a paper, by the line that shows it."""
    return {
        "paper": int(number),
        "reason": "told",
        "quote": "Work on",
        "score": 0.9 if "kelp" in line.lower() else len(line) % 5 / 10,
        "breaks": "swarm search" if "swarm search" in line else "",
    }


class LoggedBase:
    """A base that writes down what it is asked, in a file that outlives a kill."""

    def __init__(self, base, log):
        self.base, self.log = base, log
        self.place, self.has_vectors, self.venues = base.place, base.has_vectors, base.venues

    def search(self, text, **how):
        """Search, and write the query down."""
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return self.base.search(text, **how)


def main(url, folder, way):
    """Search, print the ids, and return what was found."""
    folder = Path(folder)
    with PaperBase.open(folder / BASE) as base:
        logged = LoggedBase(base, folder / "asked.txt")
        if way == "async":
            found = asyncio.run(arun(url, folder, logged))
        else:
            found = run(url, folder, logged, way)
    print(found.ids)  # noqa: T201
    return found


def run(url, folder, base, way):
    if way == "cache":
        with open_cache(folder) as kept:
            return search_of(url, base, cache=kept).search(QUESTION)
    if way == "whole":
        return search_of(url, base).search(QUESTION)
    with SqliteSaver.from_conn_string(str(folder / "search.sqlite")) as saver:
        return search_of(url, base, checkpointer=saver).search(QUESTION, config=AT, resume=True)


async def arun(url, folder, base):
    async with AsyncSqliteSaver.from_conn_string(str(folder / "search.sqlite")) as saver:
        search = search_of(url, base, checkpointer=saver)
        return await search.asearch(QUESTION, config=AT, resume=True)


def search_of(url, base, **kept):
    backend = llm_backend("openai:any", base_url=url)
    return PaperSearch(base, planner=backend, judged=5, max_concurrency=1, **kept)


if __name__ == "__main__":
    main(*sys.argv[1:])
