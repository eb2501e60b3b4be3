"""Ways to answer questions of several hops, compared on one scripted chat model."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from langchain_core.runnables import RunnableLambda
from typer.testing import CliRunner

from deepera_graph import EvidenceReranker, SettingsError, multihop_backend
from deepera_graph.errors import FailedShareError
from deepera_graph.lab.cli.main import app
from deepera_graph.lab.data.readers import read_hop_data
from deepera_graph.lab.studies.multihop.answers import (
    answer_table,
    chain_backend,
    cover_match,
    measure_answers,
)
from deepera_graph.lab.studies.multihop.methods import HopSearch
from deepera_graph.lab.tables import format_table
from support import hop_world as world
from support.hops import CountingEmbeddings, write_hops
from support.openai_server import ChatServer, Reply
from support.openai_wire import content
from support.scripted import Script

pytestmark = pytest.mark.full

SUPPORTING = {
    world.TWO: ["versus", "anna"],
    world.FOUR: ["versus", "anna", "nils", "falun"],
    world.COMPARE: ["versus", "tarn"],
}


def line(question):
    return {
        "id": question,
        "question": question,
        "supporting": SUPPORTING[question],
        "answer": world.ANSWERS[question][0],
        "aliases": ["no other name"],
        "subquestions": [
            {"question": one, "answer": "not looked at"} for one in world.PLANS[question]
        ],
    }


@pytest.fixture
def folder(tmp_path):
    passages = [
        {"id": name, "title": title, "text": text} for name, (title, text) in world.PASSAGES.items()
    ]
    return write_hops(
        tmp_path / "world", passages=passages, questions=[line(one) for one in SUPPORTING]
    )


def measure(folder, play=world.play, limit=None, **options):
    data = read_hop_data(folder, limit=limit)
    search = HopSearch(data, CountingEmbeddings())
    with ChatServer(play) as server:
        backend = multihop_backend("openai:scripted", base_url=server.base_url)
        rows = measure_answers(data, search, backend, n_resamples=50, **options)
    names = [
        one.name.replace("-", "_").replace("@10", "").lower() for one in answer_table([]).columns
    ]
    plain = (dict(zip(names, row, strict=True)) for row in rows)
    return {one["method"]: SimpleNamespace(row=tuple(one.values()), **one) for one in plain}, server


def test_every_way_is_measured_with_what_it_cost(folder):
    rows, server = measure(folder)
    assert list(rows) == ["one-search", "given-steps", "agent", "agent-nar"]
    assert rows["agent"].cover_em.mean == rows["given-steps"].cover_em.mean == 1.0
    assert rows["agent"].recall.mean == 1.0
    assert rows["one-search"].calls == 2  # a reply and the last answer
    assert rows["given-steps"].calls == pytest.approx((3 + 5 + 3) / 3)
    assert rows["agent"].calls == pytest.approx((4 + 6 + 4) / 3)
    assert sum(row.calls for row in rows.values()) * 3 == pytest.approx(len(server.requests))
    table = format_table(answer_table([one.row for one in rows.values()]))
    assert "| world | agent | 100.0 [100.0, 100.0] | 100.0" in table


def test_questions_are_answered_at_the_same_time(folder):
    def play(request):
        answer = world.play(request)
        if request.system.startswith("You answer a question that took several steps"):
            return Reply(content=content(answer), latency=0.2)  # each is the end of a question
        return answer

    rows, server = measure(folder, play, methods=["agent"], at_once=len(SUPPORTING))
    assert server.max_in_flight > 1
    one_by_one, server = measure(folder, play, methods=["agent"])
    assert server.max_in_flight == 1
    assert rows["agent"].cover_em == one_by_one["agent"].cover_em
    with pytest.raises(SettingsError, match="at_once must be a whole number >= 1, got 0"):
        measure(folder, methods=["agent"], at_once=0)


def test_a_question_that_failed_counts_as_wrong(folder):
    def play(request):
        is_last = "several steps" in request.system
        broken = is_last and world.COMPARE in world.asked(request)
        return Reply(content="nonsense") if broken else world.play(request)

    rows, _ = measure(folder, play, methods=["agent"], max_failed_share=0.5)
    assert rows["agent"].failed == 1
    assert rows["agent"].cover_em.mean == pytest.approx(2 / 3)
    assert rows["agent"].f1.mean <= 2 / 3
    with pytest.raises(FailedShareError, match=r"agent on world: 1 of 3 questions .* than 20 %"):
        measure(folder, play, methods=["agent"])


def test_without_any_answer_nothing_is_right(folder):
    rows, _ = measure(
        folder,
        lambda request: Reply(content="nonsense"),
        methods=["agent"],
        max_failed_share=1.0,
    )
    assert rows["agent"].failed == 3
    assert rows["agent"].cover_em.mean == rows["agent"].f1.mean == 0


@pytest.mark.parametrize(
    ("answer", "gold", "is_right"),
    [
        ("It was Lund.", ["Lund"], True),
        ("the Lund cathedral", ["A Lund"], True),
        ("Lundby", ["Lund"], False),
        ("insufficient evidence", ["Lund"], False),
        ("Oslo", ["Kristiania", "Oslo"], True),
        ("Oslo", ["the"], False),
    ],
)
def test_an_answer_is_right_if_it_contains_a_right_one_in_whole_words(answer, gold, is_right):
    assert cover_match(answer, gold) is is_right


def test_what_cannot_be_compared_is_named(folder, tmp_path):
    with pytest.raises(SettingsError, match="got 'magic'"):
        measure(folder, methods=["magic"])
    bare = [{**line(world.TWO), "answer": None, "subquestions": []}]
    other = write_hops(tmp_path / "bare", questions=bare, passages=[
        {"id": name, "text": "Text."} for name in SUPPORTING[world.TWO]
    ])  # fmt: skip
    with pytest.raises(SettingsError, match=r"question 'Where was .* has no answer to compare"):
        measure(other)
    with pytest.raises(SettingsError, match="given-steps needs sub-questions, and bare has none"):
        measure(other, methods=["given-steps"])


def test_the_command_shows_both_tables(folder):
    quick = [
        "--embeddings",
        "support.hops:CountingEmbeddings",
        "--resamples",
        "50",
        "--cache",
        "off",
    ]
    with ChatServer(world.play) as server:
        model = ["--model", "scripted", "--base-url", server.base_url, "--answers", "agent"]
        args = ["study", "multihop", str(folder), "--methods", "rrf", *quick]
        said = json.loads(CliRunner().invoke(app, [*args, *model, "--json"]).stdout)
        shown = CliRunner().invoke(app, [*args, *model]).stdout
        capped = CliRunner().invoke(app, [*args, *model, "--json", "--max-calls", "3"])
    tables = {one["name"]: [row[1] for row in one["rows"]] for one in said["tables"]}
    assert tables == {"methods": ["rrf"], "answers": ["agent"]}
    assert "| world | agent | 100.0" in shown
    assert capped.exit_code == 1
    assert "3 of 3 questions have no answer" in capped.stderr
    assert "3 calls" in capped.stderr
    alone = CliRunner().invoke(app, [*args, "--answers", "agent"])
    assert alone.exit_code == 2
    assert "--answers goes with --model" in alone.stderr


def with_chain(*links):
    """A model that guesses a chain, and else plays its part."""

    def play(request):
        if not request.system.startswith("You take a question apart"):
            return world.play(request)
        return {"links": [{"question": one, "answer": guess} for one, guess in links]}

    return play


def test_a_guess_is_put_right_by_a_passage(folder):
    play = with_chain(("Who founded Versus Books?", "Ole Dahl"), ("Where was #1 born?", "Oslo"))
    rows, server = measure(folder, play, methods=["searchain-like"], limit=1)
    searched = [one.user for one in server.requests if "one step" in one.system]
    assert "Question: Where was Anna Berg born?" in searched[1]
    assert rows["searchain-like"].cover_em.mean == 1.0
    assert rows["searchain-like"].calls == 4


def test_a_guess_that_no_passage_verifies_stays_and_is_likely(folder):
    play = with_chain(("Who drew the emblem of Versus Books?", "Ole Dahl"), ("Who knew #1?", ""))
    _, server = measure(folder, play, methods=["searchain-like"], limit=1)
    searched = [one.user for one in server.requests if "one step" in one.system]
    assert "Question: Who knew Ole Dahl?" in searched[1]
    assert "Answer 1: Ole Dahl (no sentence was named for it)" in server.requests[-1].user


def test_a_chain_needs_a_chat_model_that_guesses(folder):
    roles = replace(
        multihop_backend("openai:any", base_url="http://localhost:9/v1"),
        planner=RunnableLambda(lambda task: {"questions": []}),
    )
    with pytest.raises(SettingsError, match="a chain of guesses needs a chat model, got 'llm'"):
        chain_backend(roles)


def test_a_judge_sees_the_path_in_every_step(folder):
    asked = []
    judge = EvidenceReranker(Script({"Berg": 0.9}).backend(), threshold=0.5, content="passage")
    rerank = judge.rerank

    def spy(question, passages, **more):
        asked.append(question)
        return rerank(question, passages, **more)

    judge.rerank = spy
    rows, _ = measure(folder, methods=["agent-judge"], limit=1, judge=judge)
    assert asked[1].endswith("(Known from earlier steps: Who founded Versus Books: Anna Berg.)")
    assert rows["agent-judge"].cover_em.mean == 1.0
    with pytest.raises(SettingsError, match="agent-judge needs a judge"):
        measure(folder, methods=["agent-judge"])


def test_answers_are_sampled_for_agent_asu(folder):
    _, server = measure(folder, methods=["agent-asu"], limit=1)
    samples = [
        one for one in server.requests if one.system.startswith("You answer a question from")
    ]
    assert len(samples) == 2 * 10  # of two steps, each of one batch


def test_likely_answers_are_counted(folder):
    def play(request):
        reply = world.play(request)
        return {**reply, "support": "likely"} if reply.get("support") == "proven" else reply

    rows, _ = measure(folder, play, methods=["agent"])
    assert rows["agent"].likely == 1.0
