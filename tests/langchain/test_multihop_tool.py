"""A tool that answers questions of several hops: the path as text, its passages as documents."""

import pytest

from deepera_graph import MultiHopAgent, SettingsError, multihop_backend
from langchain_deepera import create_multihop_tool
from support import hop_world as hops
from support.openai_server import ChatServer, Reply


def call(question, play=hops.play, search=None, **options):
    with ChatServer(play) as server:
        backend = multihop_backend("openai:scripted", base_url=server.base_url)
        tool = create_multihop_tool(MultiHopAgent(backend, search or hops.Search()), **options)
        args = {"question": question}
        return tool.invoke({"name": tool.name, "args": args, "id": "1", "type": "tool_call"})


@pytest.mark.full
def test_it_returns_the_path_and_the_passages():
    message = call(hops.TWO)
    assert message.content.splitlines()[:-1] == [
        "Where was the founder of Versus Books born?",
        "",
        "step 1  Who founded Versus Books?",
        "        Anna Berg",
        "        [versus] Versus Books: “It was founded in 1998 by Anna Berg.”",
        "",
        "step 2  Where was Anna Berg born?",
        "        Lund",
        "        [anna] Anna Berg: “Anna Berg is a publisher who was born in Lund.”",
        "",
        "answer  Lund",
        "        [versus] Versus Books: “It was founded in 1998 by Anna Berg.”",
        "        [anna] Anna Berg: “Anna Berg is a publisher who was born in Lund.”",
        "",
    ]
    assert message.content.splitlines()[-1].startswith("answered: 2 steps (complete), 4 calls, ")
    assert [one.id for one in message.artifact] == ["versus", "anna"]
    assert message.status == "success"


def test_too_little_evidence_is_an_answer():
    message = call(hops.NOWHERE)
    assert message.status == "success"
    assert "answer  none (insufficient evidence: a step is not in the passages)" in message.content
    assert message.artifact == []


def test_an_answer_that_failed_is_an_error_that_the_agent_reads():
    message = call(hops.TWO, lambda request: Reply(content="nonsense"))
    assert message.status == "error"
    assert "This does not mean that there is no evidence." in message.content


def test_something_else_is_refused():
    with pytest.raises(SettingsError, match="needs a MultiHopAgent, got 3"):
        create_multihop_tool(3)
