"""An agent of one role has limits, budget, resume, batches and a journal from what all share."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from deepera_graph.agents.journal import Journal
from deepera_graph.agents.role import RoleNode, wrap_role
from deepera_graph.agents.run import AgentResult, AgentRun, Batched, made_by, make_manifest
from deepera_graph.errors import InputError, RoleError, SettingsError
from deepera_graph.schema import RoleAnswer, RoleSet
from deepera_graph.settings import AgentSettings
from deepera_graph.settings.budget import Budget, Limiter
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.usage import Usage, UsageRecord, merge_usage

AT = {"configurable": {"thread_id": "1"}}


class Said(RoleAnswer):
    """What was said."""

    text: str


class EchoState(TypedDict):
    """What travels."""

    question: str
    heard: bool
    text: str
    problems: list[str]
    usage: Annotated[dict[str, UsageRecord], merge_usage]


@dataclass(frozen=True, slots=True, kw_only=True)
class EchoSettings(AgentSettings):
    """How loud it is."""

    times: int = 1
    max_concurrency: int = 4
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class Echoed(AgentResult):
    """An echo."""

    text: str
    problems: tuple[str, ...]
    usage: Mapping[str, Usage]
    seconds: float
    manifest: Mapping[str, Any]


class Echo(Batched[str, Echoed]):
    """Says what it is asked."""

    questions_at_once = 2

    def __init__(self, say, *, cache=None, saver=None, **settings):
        self.settings = EchoSettings.of(settings)
        self.roles, self.saver = RoleSet(name="echo", spec={"kind": "echo"}), saver
        role = wrap_role(
            "echo",
            RunnableLambda(say),
            Said,
            limiter=Limiter(self.settings.max_concurrency),
            cache=cache,
            fingerprint=self.roles.fingerprint,
        )
        graph = StateGraph(EchoState)
        graph.add_node("receive", lambda state: {"heard": True, "problems": [], "usage": None})
        graph.add_node("say", RoleNode(
            "say",
            ask=lambda state: {"text": state["question"] * self.settings.times},
            role=role,
            record=lambda state, said: {"text": said.text},
            on_failure=self.fail,
            run_name=lambda state: "say",
        ))  # fmt: skip
        graph.add_edge(START, "receive")
        graph.add_edge("receive", "say")
        graph.add_edge("say", END)
        self.graph = graph.compile(checkpointer=saver)

    @staticmethod
    def fail(state: EchoState, error: RoleError) -> dict[str, Any]:
        return {"text": "", "problems": [str(error)]}

    def run(self, question, config=None):
        return EchoRun(self, question, config)

    def check(self, questions):
        return [*questions]


class EchoRun(AgentRun[Echoed]):
    """One echo."""

    name, kind, begun, differs = "echo", "echo", "heard", "with other settings"

    def __init__(self, echo, question, config):
        self.echo = echo
        has_saver = echo.saver is not None
        super().__init__(
            echo.graph, {"question": question}, config, echo.settings, has_saver=has_saver
        )

    def made_by(self):
        return made_by(self.echo.roles, self.echo.settings)

    def _told(self, node, update):
        if node == "say":
            yield {"event": "said", "text": update["text"]}

    def result(self):
        manifest = make_manifest(self.echo.roles, self.echo.settings)
        problems = tuple(self._state["problems"])
        return Echoed(self._state["text"], problems, self.usage, self.seconds, manifest)


def test_an_agent_tells_events_and_ends_with_its_result():
    said, last = Echo(lambda task: Said(text=task["text"]), times=2).run("ab").stream()
    assert said == {"event": "said", "text": "abab"}
    result = last["result"]
    assert (result.text, result.total_usage.calls) == ("abab", 1)
    assert [*result.plain_end()] == ["problems", "usage", "seconds", "manifest"]
    assert result.manifest["settings"] == {"times": 2, "max_concurrency": 4, "budget": None}


def test_a_budget_holds_for_a_batch_and_what_is_over_it_is_told():
    echo = Echo(lambda task: Said(text=task["text"]), budget={"max_calls": 2})
    found = echo.batch(["a", "b", "c"])
    assert sum(one.total_usage.calls for one in found) == 2
    assert [one.problems for one in found if not one.text] == [("budget reached: 2 calls",)]


def test_many_questions_are_asked_in_order_in_threads_and_in_a_loop():
    echo, asked = Echo(lambda task: Said(text=task["text"])), ["a", "b", "c"]
    assert [one.text for one in echo.batch(asked)] == asked
    assert [one.text for one in asyncio.run(echo.abatch(asked))] == asked
    assert sorted(one.text for one in echo.stream(asked)) == asked


def test_a_finished_thread_is_read_and_another_question_or_setting_is_refused():
    calls = []

    def say(task):
        calls.append(task["text"])
        return Said(text=task["text"])

    saver = InMemorySaver()
    echo = Echo(say, saver=saver)
    assert echo.run("a", AT).finish().text == "a"
    assert echo.run("a", AT).finish(resume=True).text == "a"
    assert asyncio.run(echo.run("a", AT).afinish(resume=True)).text == "a"
    assert calls == ["a"]
    with pytest.raises(InputError, match="of another question: 'a', not 'b'"):
        echo.run("b", AT).finish(resume=True)
    with pytest.raises(SettingsError, match="with other settings; take another thread_id, or the "):
        Echo(say, saver=saver, times=2).run("a", AT).finish(resume=True)
    assert Echo(say, saver=saver, budget={"max_calls": 1}).run("a", AT).finish(resume=True).text
    with pytest.raises(SettingsError, match="needs a checkpointer, and this echo has none"):
        Echo(say).run("a", AT).finish(resume=True)


def test_a_thread_that_was_cut_short_goes_on_where_it_was():
    saver, broken = InMemorySaver(), [KeyboardInterrupt()]

    def say(task):
        if broken:
            raise broken.pop()
        return Said(text=task["text"])

    echo = Echo(say, saver=saver)
    with pytest.raises(KeyboardInterrupt):
        echo.run("a", AT).finish()
    assert echo.graph.get_state(AT).next == ("say",)
    assert echo.run("a", AT).finish(resume=True).text == "a"


def test_equal_questions_are_paid_for_once(tmp_path):
    with JudgementCache(tmp_path / "kept.sqlite") as cache:
        echo = Echo(lambda task: Said(text=task["text"]), cache=cache)
        first, second = echo.run("a").finish(), echo.run("a").finish()
    assert (first.total_usage.cached_calls, second.total_usage.cached_calls) == (0, 1)


def test_a_journal_goes_on_with_what_the_same_settings_made(tmp_path):
    echo, path = Echo(lambda task: Said(text=task["text"])), tmp_path / "done.jsonl"
    ran = make_manifest(echo.roles, echo.settings)
    with Journal(path, ran).open(resume=False) as journal:
        journal.put("1", {"text": echo.run("a").finish().text})
    with Journal(path, ran).open(resume=True) as journal:
        assert journal.entries == {"1": {"id": "1", "text": "a"}}
    other = make_manifest(echo.roles, EchoSettings(times=3))
    with (
        pytest.raises(SettingsError, match=r"settings.times was 1 and is 3"),
        Journal(path, other).open(resume=True),
    ):
        pass
