"""A run that was cut short goes on where it stopped: what is judged is not judged again."""

import asyncio
from collections import Counter
from contextlib import contextmanager

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from deepera_graph import EvidenceReranker, InputError, build_graph
from deepera_graph.testing import judged, scripted_backend

pytestmark = pytest.mark.full

QUESTION = "Which text?"
CONFIG = {"configurable": {"thread_id": "one"}, "max_concurrency": 1}
TEXTS = [f"Text {n}." for n in range(6)]


def asked():
    passages = [Document(id=text, page_content=text, metadata={"n": [1]}) for text in TEXTS]
    return {"question": QUESTION, "passages": passages}


def strict():
    return JsonPlusSerializer(allowed_msgpack_modules=None)


@contextmanager
def memory(path):
    yield InMemorySaver(serde=strict())


@contextmanager
def sqlite(path):
    with SqliteSaver.from_conn_string(str(path / "state.sqlite")) as saver:
        saver.serde = strict()
        yield saver


class Judge:
    """Scores 0.9; the first time it meets the fourth text it does something else."""

    def __init__(self, surprise):
        self._surprise, self.judged = surprise, []

    def __call__(self, task):
        if task["text"] == "Text 3." and self._surprise is not None:
            surprise, self._surprise = self._surprise, None
            surprise()
        self.judged.append(task["text"])
        return judged(0.9)


def press_ctrl_c():
    raise KeyboardInterrupt


def expected():
    return build_graph(scripted_backend(lambda task: judged(0.9))).invoke(asked())


@pytest.mark.parametrize("saver_of", [memory, sqlite])
def test_after_an_interruption_only_the_rest_is_judged(saver_of, tmp_path):
    judge = Judge(press_ctrl_c)
    backend = scripted_backend(judge)
    with saver_of(tmp_path) as saver:
        graph = build_graph(backend, checkpointer=saver)
        with pytest.raises(KeyboardInterrupt):
            graph.invoke(asked(), CONFIG)
        done = Counter(judge.judged)
        assert 0 < done.total() < 6
        state = graph.invoke(None, CONFIG)
    assert Counter(judge.judged) == Counter(TEXTS)
    assert backend.intent.calls == 1
    assert state == expected()


def test_after_a_new_process_only_the_rest_is_judged(tmp_path):
    before = Judge(press_ctrl_c)
    with sqlite(tmp_path) as saver, pytest.raises(KeyboardInterrupt):
        build_graph(scripted_backend(before), checkpointer=saver).invoke(asked(), CONFIG)
    after = Judge(None)
    with sqlite(tmp_path) as saver:
        state = build_graph(scripted_backend(after), checkpointer=saver).invoke(None, CONFIG)
    assert Counter(before.judged + after.judged) == Counter(TEXTS)
    assert before.judged
    assert state == expected()


@pytest.mark.parametrize("is_async", [False, True])
def test_a_judge_may_interrupt_to_ask_a_human(is_async):
    n_judged = Counter()

    def judge(task):
        score = 0.9
        if task["text"] == "Text 3.":
            score = interrupt("how good is it?")
        n_judged[task["text"]] += 1
        return judged(score)

    graph = build_graph(scripted_backend(judge), checkpointer=InMemorySaver(serde=strict()))

    def run(given):
        return (
            asyncio.run(graph.ainvoke(given, CONFIG)) if is_async else graph.invoke(given, CONFIG)
        )

    waiting = run(asked())
    assert waiting["__interrupt__"][0].value == "how good is it?"
    state = run(Command(resume=0.85))
    assert n_judged == Counter(TEXTS)
    assert [one.id for one in state["documents"]][-1] == "Text 3."
    assert state["ranking"][-1]["score"] == 0.85


def test_the_whole_state_survives_a_strict_saver():
    saver = InMemorySaver(serde=strict())
    graph = build_graph(scripted_backend(lambda task: judged(0.9)), checkpointer=saver)
    state = graph.invoke(asked(), CONFIG)
    values = graph.get_state(CONFIG).values
    assert {key: values[key] for key in state} == state
    assert [one.metadata for one in values["passages"]] == [
        one.metadata for one in asked()["passages"]
    ]
    for snapshot in graph.get_state_history(CONFIG):
        for document in snapshot.values.get("passages", []):
            assert isinstance(document, Document)


def test_the_front_door_takes_a_saver_and_starts_afresh_every_time():
    backend = scripted_backend(lambda task: judged(0.9))
    reranker = EvidenceReranker(backend, checkpointer=InMemorySaver(serde=strict()))
    config = {"configurable": {"thread_id": "one"}}
    once = reranker.rerank(QUESTION, TEXTS, config=config)
    again = reranker.rerank(QUESTION, TEXTS[:2], config=config)
    assert (len(once.passages), len(again.passages)) == (6, 2)
    assert (
        again.usage["score"] == reranker.rerank(QUESTION, TEXTS[:2], config=config).usage["score"]
    )
    assert backend.judge.calls == 10


@pytest.mark.parametrize("as_node", ["score", "plan"])
def test_a_cascade_that_an_older_version_began_is_refused_and_not_misread(as_node):
    graph = build_graph(scripted_backend(lambda task: judged(0.9)), checkpointer=InMemorySaver())
    graph.invoke(asked(), CONFIG, interrupt_after=["intent"])
    first = {
        "index": 0, "id": TEXTS[0], "start": 0, "end": len(TEXTS[0]), "score": 1.0,
        "status": "candidate", "by": "first", "reason": "", "quote": "", "unusable": False,
    }  # fmt: skip
    graph.update_state(CONFIG, {"judgements": [first]}, as_node=as_node)
    with pytest.raises(InputError, match=r"begun by version 0\.9 or older, with a cascade"):
        graph.invoke(None if as_node == "score" else Command(goto="select"), CONFIG)
