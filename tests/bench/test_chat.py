"""A chat model for the benchmark: cached, counted, limited."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from pydantic import Field

from deepera_graph.chat.parsing import ReplyModel
from deepera_graph.errors import AnswerError, BackendError, BudgetError, SettingsError
from deepera_graph.judges.trained.backend import local_backend
from deepera_graph.lab.asking import Chat, run_together
from deepera_graph.lab.rankers.named import Models
from deepera_graph.settings.budget import Budget
from deepera_graph.stores.judgements import JudgementCache
from support.openai_server import ChatServer, Reply

RETRY = {"attempts": 1, "first_wait": 0.01}
TALK = [SystemMessage("Count."), HumanMessage("How many trout?")]


class FilledCount(ReplyModel):
    """A count."""

    n: int = Field(ge=0, description="How many.")


class FilledShare(ReplyModel):
    """A share, in a field of the same name."""

    n: float = Field(description="Which share.")


def ask(chat, kind=FilledCount, talk=TALK):
    return run_together(lambda one: chat.ask("count", one, kind), [talk])[0]


@pytest.fixture
def server():
    with ChatServer(lambda request: {"n": 3}) as running:
        yield running


def chat_at(server, **options):
    return Chat.of("openai:tiny", base_url=server.base_url, retry=RETRY, **options)


def test_an_answer_has_its_fields(server):
    chat = chat_at(server)
    assert ask(chat) == FilledCount(n=3)
    assert chat.usage.calls == 1
    assert chat.name == "tiny"


def test_the_cache_tells_prompts_kinds_and_models_apart(server):
    cache = JudgementCache()
    chat = chat_at(server, cache=cache)
    for _ in range(2):
        ask(chat)
        ask(chat, kind=FilledShare)
        ask(chat, talk=[*TALK[:1], HumanMessage("How many pike?")])
        ask(chat_at(server, cache=cache, temperature=1))
    assert server.calls == 4
    assert cache.stats().entries == {"count": 4}


def test_an_unusable_answer_is_asked_again_and_counted():
    with ChatServer(lambda request: {"n": -1}) as server:
        chat = chat_at(server, cache=(cache := JudgementCache()))
        with pytest.raises(AnswerError, match="asked twice"):
            ask(chat)
    assert chat.usage.calls == 2
    assert cache.stats().n_entries == 0


def test_a_refused_key_is_an_error_of_the_backend():
    refused = "tiny: the server refused the API key"
    with (
        ChatServer(lambda request: Reply(status=401)) as server,
        pytest.raises(BackendError, match=refused),
    ):
        ask(chat_at(server))


def test_what_is_no_chat_model_is_refused():
    with pytest.raises(SettingsError, match="backend must be a chat model, got 'local'"):
        Chat(local_backend())


def test_a_model_of_live_objects_cannot_be_cached():
    live = ChatOpenAI(model="tiny", api_key="any", default_headers={"x-key": "secret"})
    chat = Chat.of(live, cache=JudgementCache())
    assert chat.fingerprint is None
    with pytest.raises(SettingsError, match="made from live objects"):
        ask(chat)


def test_works_give_their_values_in_order():
    async def late(value):
        await asyncio.sleep(0.01 * (3 - value))
        return value

    assert run_together(late, range(3)) == [0, 1, 2]
    assert run_together(late, []) == []


def test_the_first_error_ends_all_works():
    ended = []

    async def forever():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append(True)
            raise

    async def fail():
        await asyncio.sleep(0.01)
        raise BackendError("gone")

    with pytest.raises(BackendError, match="gone"):
        run_together(lambda do: do(), [forever, fail, forever])
    assert ended == [True, True]


@pytest.mark.full
def test_models_share_one_budget(server):
    models = Models(model="tiny", base_url=server.base_url, budget=Budget(max_calls=3))
    one, other = models.chat(), models.chat(f"other@{server.base_url}")
    for chat in (one, other, one):
        ask(chat)
    with pytest.raises(BudgetError, match="budget reached: 3 calls"):
        ask(other)
    assert [request.model for request in server.requests] == ["tiny", "other", "tiny"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_concurrency": 0}, "max_concurrency must be >= 1, got 0"),
        ({"limits": {"requests_per_minute": -1}}, "requests_per_minute must be > 0, got -1"),
    ],
)
def test_models_out_of_range_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        Models(**options)
