"""Modes in which one call does the work of two: the same results for fewer calls."""

import asyncio
import json
from dataclasses import asdict, replace

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from deepera_graph import (
    Calibrated,
    EvidenceReranker,
    Gap,
    Judgement,
    PerIntent,
    Quantile,
    llm_backend,
    prompts,
)
from deepera_graph.chat.models import request_body
from deepera_graph.errors import SettingsError
from deepera_graph.judges import load_backend
from deepera_graph.judges.llm import prompt as show
from deepera_graph.judges.llm.prompt import FusedGroupReply, FusedReply
from deepera_graph.judges.trained.backend import local_backend
from deepera_graph.settings.thresholds import Curve
from support.faults import EVERY, Good
from support.faulty_model import THRESHOLD, FaultyModel, Plan, question
from support.moss import (
    QUESTION,
    MossModel,
    bed,
    kind_of,
    kinds,
    made,
    run,
    summary,
    wants_summaries,
)
from support.openai_server import ChatServer, Reply

NODES = ("score", "fused", "grouped")  # of each mode, the one that scores
MODES = ("separate", "fused", "grouped")
BEDS = [bed(number) for number in range(12)]
KEPT = [0, 3, 6, 9]
CALLS = {
    "separate": ["intent", *["alone"] * 12, *["summary"] * 4],
    "fused": ["intent", *["alone"] * 12],
    "grouped": ["intent", *["group"] * 3],
}


def as_kept(passage):
    """A passage; one that fails without its reason, which a group does not ask for."""
    return passage if passage.kept else replace(passage, reason="")


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_modes_differ_in_their_calls_alone(is_async):
    found = {}
    for mode in MODES:
        with ChatServer(MossModel()) as server:
            reranker = made(server, mode)
            result = run(reranker, BEDS, is_async=is_async)
            assert kinds(server) == CALLS[mode]
            assert result.total_usage.sent_calls == server.calls
            estimate = reranker.estimate([(QUESTION, BEDS)])
            assert {mode: used.calls for mode, used in estimate.usage.items()}["score"] == (
                result.usage["score"].calls
            )
        found[mode] = result
    same = [
        (one.intent, list(map(as_kept, one.passages)), one.outcome, one.threshold)
        for one in found.values()
    ]
    assert same[0] == same[1] == same[2]
    kept = [(one.id, one.summary, one.summary_status) for one in found["fused"].kept]
    assert kept == [(str(n + 1), summary(n), "ok") for n in KEPT]


@pytest.mark.full
@pytest.mark.parametrize("mode", MODES)
def test_all_before_the_passage_is_the_same_for_all_passages_of_a_question(mode):
    with ChatServer(MossModel()) as server:
        run(made(server, mode), BEDS)
        asked = [one for one in server.requests if kind_of(one) in {"alone", "group"}]
    before = {one.user[: one.user.index("\n=====")] for one in asked}
    others = {json.dumps({**one.body, "messages": one.body["messages"][:-1]}) for one in asked}
    assert len(before) == len(others) == 1
    assert before.pop().startswith(f"Question: {QUESTION}\n")
    assert all(one.user.rstrip().endswith("=====") for one in asked)


def test_the_modes_judge_by_the_same_rules():
    rubric = prompts.shared_parts()["rubric"]
    systems = [prompts.text_of("deepera_graph.prompts", f"{node}.system") for node in NODES]
    assert all(system.count(rubric) == 1 for system in systems)
    assert len({system.replace(rubric, "") for system in systems}) == 3
    assert rubric.startswith("How to score")
    assert len(rubric) > 900


def test_summaries_follow_the_same_rules_in_every_mode():
    rules = prompts.shared_parts()["summary_rules"]
    nodes = ("summarize", "fused", "grouped")
    systems = [prompts.text_of("deepera_graph.prompts", f"{node}.system") for node in nodes]
    assert all(system.count(rules) == 1 for system in systems)


@pytest.mark.full
@pytest.mark.parametrize(
    ("said", "status", "text", "n_more"),
    [
        pytest.param(summary(0), "ok", summary(0), 0, id="good"),
        pytest.param("", "ok", summary(0), 1, id="empty-is-asked-for"),
        pytest.param("NONE", "ok", summary(0), 1, id="none-is-asked-for"),
        pytest.param(None, "ok", summary(0), 1, id="missing-is-asked-for"),
        pytest.param("Moss grew by 77 mm.", "drifted", "Its moss grew by 10 mm.", 0, id="drifted"),
    ],
)
def test_a_summary_given_along_is_checked_like_any_other(said, status, text, n_more):
    given = {} if said is None else {"summary": said}
    model = MossModel(alone=lambda n: {"reason": "r", "evidence": [2], "score": 0.9, **given})
    with ChatServer(model) as server:
        [one] = run(made(server, "fused"), BEDS[:1]).passages
        assert (one.summary_status, one.summary, one.kept) == (status, text, True)
        assert kinds(server) == ["intent", "alone", *["summary"] * n_more]


def test_what_is_kept_below_the_threshold_is_summarized_apart():
    model = MossModel(
        alone=lambda n: {"reason": "r", "evidence": [2], "score": 0.4, "summary": "x"}
    )
    with ChatServer(model) as server:
        [one] = run(made(server, "fused", on_empty="top1"), BEDS[:1]).kept
        assert (one.summary, kinds(server)) == (summary(0), ["intent", "alone", "summary"])


@pytest.mark.full
@pytest.mark.parametrize(
    ("threshold", "line"),
    [
        (0.8, "from 0.8"),
        (0.739, "from 0.73"),
        (Gap(), "from 0.5"),
        (Quantile(share=0.5, floor=0.65), "from 0.65"),
        (PerIntent(values={"causal inference": 0.7}), "from 0.7"),
    ],
)
def test_a_summary_is_asked_for_from_the_lowest_score_that_may_be_kept(threshold, line):
    with ChatServer(MossModel()) as server:
        run(made(server, "fused", threshold=threshold), BEDS[:2])
        run(made(server, "grouped", threshold=threshold), BEDS[:2])
        asked = [one.user for one in server.requests if kind_of(one) != "intent"]
    assert len(asked) == 3
    assert all(f"\nSummary: {line}\n" in one for one in asked)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["fused", "grouped"])
def test_where_no_summary_is_wanted_none_is_asked_for(mode):
    with ChatServer(MossModel()) as server:
        result = run(made(server, mode, content="passage"), BEDS)
        assert not any(map(wants_summaries, server.requests))
        assert all("Summary: none is wanted" in one.user for one in server.requests[1:])
        assert [one.id for one in result.kept] == [str(n + 1) for n in KEPT]
        assert {one.summary for one in result.kept} == {""}


def test_a_threshold_just_below_a_round_number_is_not_rounded_up():
    shown = [show.wanted_values({"summary_from": x}) for x in (0.0, 0.8, 0.29, 0.7999, 1.0)]
    summaries = [one["summary"].split()[-1] for one in shown]
    assert summaries == ["0", "0.8", "0.29", "0.79", "1"]
    assert [one["finding"].split()[-1] for one in shown] == ["0", "0.5", "0.29", "0.5", "0.5"]


def test_a_summary_that_does_not_fit_costs_no_score():
    cut = Reply(
        content='{"reason": "r", "evidence": [2], "score": 0.9, "su', finish_reason="length"
    )
    model = MossModel(alone=lambda n: cut if wants_summaries(server.requests[-1]) else None)
    with ChatServer(model) as server:
        [one] = run(made(server, "fused"), BEDS[:1]).passages
        assert kinds(server) == ["intent", *["alone"] * 3, "summary"]
    assert (one.score, one.kept, one.status, one.summary) == (0.9, True, "repaired", summary(0))
    assert "limit of tokens" in one.reason


@pytest.mark.full
@pytest.mark.parametrize("mode", ["fused", "grouped"])
def test_events_and_a_checkpoint_are_as_in_other_modes(mode):
    with ChatServer(MossModel()) as server:
        told = list(made(server, mode).stream(QUESTION, BEDS[:4]))
        names = [one["event"] for one in told]
        assert names == ["intent", *["scored"] * 4, "selected", *["summarized"] * 2, "result"]
        assert {one["id"] for one in told if one["event"] == "scored"} == set("1234")
        saver = InMemorySaver()
        reranker = EvidenceReranker(made(server, mode).backend, checkpointer=saver, top_n=99)
        config = {"configurable": {"thread_id": "t"}}
        first = reranker.rerank(QUESTION, BEDS[:4], config=config)
        n_calls = server.calls
        again = reranker.rerank(QUESTION, BEDS[:4], config=config, resume=True)
        assert (again.passages, server.calls) == (first.passages, n_calls)


class FusedFaulty(FaultyModel):
    """Gives the summary along."""

    def _right_answer(self, stage, id, text):
        answer = super()._right_answer(stage, id, text)
        return {**answer, "summary": self.known[id].sentences[1]} if stage == "score" else answer


@pytest.mark.full
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_faults_hit_their_passages_only_and_a_lost_verdict_is_no_score(is_async):
    quick = {name: fault for name, fault in EVERY.items() if not name.startswith(("hang", "slow"))}
    plan = Plan(quick, 0.4)
    known = plan.passages(0, 40)
    with ChatServer(FusedFaulty(plan, {one.id: one for one in known})) as server:
        retry = {"attempts": 4, "first_wait": 0.01, "longest_wait": 0.5}
        backend = llm_backend("openai:m", base_url=server.base_url, mode="fused", retry=retry)
        reranker = EvidenceReranker(backend, threshold=THRESHOLD, top_n=99)
        passages = [{"id": one.id, "text": one.text} for one in known]
        job = [(question(0), passages)]
        [result] = asyncio.run(reranker.abatch(job)) if is_async else reranker.batch(job)
    found = {one.id: one for one in result.passages}
    assert len(found) == len(known)
    for one in known:
        fault, got = plan.fault("score", one.id), found[one.id]
        if fault and fault.fails:
            assert (got.status, got.score, got.kept) == ("failed", None, False)
        elif fault and fault.status == "unproven":
            assert not got.kept
        else:
            assert (got.score, got.kept) == (one.score, one.score >= THRESHOLD), asdict(got)
            assert got.summary == (one.sentences[1] if got.kept else "")
    assert "summarize" not in result.usage


def test_a_backend_is_known_by_its_mode_and_built_again():
    def backend(**options):
        return llm_backend("openai:m", base_url="http://127.0.0.1:1/v1", **options)

    every = [
        backend(),
        backend(mode="fused"),
        backend(mode="grouped"),
        backend(mode="grouped", group_size=4),
    ]
    prints = [json.dumps(one.fingerprint(), sort_keys=True) for one in every]
    assert len(set(prints)) == 4
    for one, known in zip(every, prints, strict=True):
        again = load_backend(json.loads(json.dumps(one.spec)))
        assert json.dumps(again.fingerprint(), sort_keys=True) == known
        assert type(again.judge) is type(one.judge)
    assert backend(mode="separate").fingerprint() == every[0].fingerprint()
    assert "mode" not in every[0].about


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"mode": "fusd"},
            "mode must be one of separate, fused, grouped, got 'fusd'; did you mean 'fused'?",
        ),
        ({"mode": "grouped", "group_size": 1}, "whole number >= 2, got 1"),
        ({"mode": "grouped", "group_size": True}, "whole number >= 2, got True"),
        ({"mode": "grouped", "group_size": 2.5}, "whole number >= 2, got 2.5"),
        ({"mode": "fused", "group_size": 5}, "goes with mode 'grouped', not with 'fused'"),
        ({"group_size": 5}, "goes with mode 'grouped', not with 'separate'"),
    ],
)
def test_a_mode_that_makes_no_sense_is_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        llm_backend("openai:m", base_url="http://127.0.0.1:1/v1", **options)


@pytest.mark.parametrize("kind", [FusedReply, FusedGroupReply])
def test_a_reason_is_bounded_where_the_server_takes_bounds(kind):
    assert "maxLength" in json.dumps(request_body("json_schema", kind))
    assert "maxLength" not in json.dumps(request_body("json_schema", kind, bounded=False))
    assert "maxLength" in json.dumps(request_body("tools", kind, bounded=False))


def test_a_judge_that_gives_no_summaries_is_told_of_none():
    tasks = []
    judge = RunnableLambda(lambda task: tasks.append(task) or Judgement(score=0.9))
    local = local_backend()
    EvidenceReranker(replace(local, judge=judge)).rerank(QUESTION, BEDS[:2])
    judge.gives_summaries = True
    EvidenceReranker(replace(local, judge=judge)).rerank(QUESTION, BEDS[:2])
    assert [one.get("summary_from") for one in tasks] == [None, None, 0.8, 0.8]


@pytest.mark.full
def test_a_threshold_that_no_score_reaches_wants_no_summary():
    curve = Curve(method="platt", a=0.1, b=-3.0)
    with ChatServer(MossModel()) as server:
        run(made(server, "fused", threshold=Calibrated(curve=curve)), BEDS[:1])
        assert "Summary: none is wanted" in server.requests[-1].user


@pytest.mark.full
def test_the_rules_of_a_field_are_added_for_scores_and_for_summaries():
    domain = {"name": "bryology", "score": ["Wet beds count."], "summarize": ["Say the bed."]}
    with ChatServer(MossModel()) as server:
        for mode in ("fused", "grouped"):
            backend = llm_backend("openai:m", base_url=server.base_url, mode=mode, domain=domain)
            run(EvidenceReranker(backend), BEDS[:2])
        asked = [one.system for one in server.requests if kind_of(one) != "intent"]
    assert len(asked) == 3
    assert all("- Wet beds count." in one and "- Say the bed." in one for one in asked)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["fused", "grouped"])
@pytest.mark.parametrize("known", ["tools", "json_object", "text"])
def test_a_mode_works_in_whatever_way_a_server_can_be_asked(mode, known):
    model = MossModel()

    def answer(request):
        form = request.body.get("response_format", {}).get("type")
        asked = "tools" if "tools" in request.body else form or "text"
        if asked != known:
            return Reply(status=400, content="not supported")
        return Good(request, json.dumps(model(request))).say(json.dumps(model(request)))

    with ChatServer(answer) as server:
        result = run(made(server, mode), BEDS[:4])
    assert [(one.id, one.summary) for one in result.kept] == [("1", summary(0)), ("4", summary(3))]
    assert {one.status for one in result.passages} == {"scored"}
