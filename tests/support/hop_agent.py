"""The agent over the little world of hops, against a server."""

from deepera_graph.multihop.agent.agent import MultiHopAgent
from deepera_graph.multihop.agent.roles import multihop_backend
from support import hop_world as hops
from support.openai_server import ChatServer, Reply


def backend_of(server, **options):
    return multihop_backend("openai:scripted", base_url=server.base_url, **options)


def solved(question, play=hops.play, search=None, **settings):
    """Solve a question against a server; the result, the server, and the search."""
    search = search or hops.Search()
    with ChatServer(play) as server:
        result = MultiHopAgent(backend_of(server), search, **settings).solve(question)
    return result, server, search


def kinds(server):
    """What kind of prompt each request was, in order."""
    starts = {
        "You plan": "plan",
        "You answer one step": "reply",
        "You answer a question that took": "reason",
        "You compare": "entail",
        "You answer a question from": "sample",
    }
    found = [[v for k, v in starts.items() if one.system.startswith(k)] for one in server.requests]
    return [name for [name] in found]


def planning(*plans):
    """A model that plans as told, the last plan again and again, and else plays its part.

    No plan is complete, and none a retry, unless it says so.
    """
    given = list(plans)

    def play(request):
        if not request.system.startswith("You plan"):
            return hops.play(request)
        found = given.pop(0) if len(given) > 1 else given[0]
        if callable(found):
            return found(request)
        if isinstance(found, Reply):
            return found
        return {"thought": "", "is_retry": False, "is_complete": False, **found}

    return play
