"""Phase B as a graph, against a scripted model: its ways, its limits, and what fails."""

import asyncio
import json
import re
from collections import Counter
from dataclasses import replace
from threading import Event

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import open_cache
from deepera_graph.bioasq.phase_b.answer import (
    TypedAnswerer,
    build_answer_graph,
    submission_of,
)
from deepera_graph.bioasq.phase_b.extract import extractive_backend
from deepera_graph.bioasq.phase_b.roles import IdealAnswered, typed_backend
from deepera_graph.bioasq.questions import read_questions, write_questions
from deepera_graph.errors import InputError, SettingsError
from support.bioasq_answers import ALL, IDEAL, answered, asked, part_of, play, snippet
from support.faults import ATTEMPTS, EVERY, Good
from support.openai_server import ChatServer, Reply

pytestmark = pytest.mark.full

RETRY = {
    "attempts": ATTEMPTS, "timeout": 0.5,
    "first_wait": 0.02, "longest_wait": 0.5, "total_wait": 2.0,
}  # fmt: skip
FAULTS = {name: one for name, one in EVERY.items() if not one.only_scores}
LONG = {"hang, lasting", "hang, thrice"}  # the same as once, but for seconds


def backend_of(server, **options):
    return typed_backend("openai:scripted", base_url=server.base_url, **options)


def plain(answers):
    """What came out, without what differs from run to run."""
    return [{k: v for k, v in one.to_dict().items() if k != "seconds"} for one in answers]


def test_every_type_gets_its_answers():
    with ChatServer(play) as server:
        found = TypedAnswerer(backend_of(server)).batch(ALL)
    assert [one.exact for one in found] == [
        "yes",
        (("helicase ZIR3",), ("ligase BUM7",)),
        (("ankle swelling",), ("muscle cramps",)),
        None,
    ]
    assert {one.ideal for one in found} == {IDEAL}
    assert [one.outcome for one in found] == ["answered"] * 4
    assert [one.exact_status for one in found] == ["answered"] * 3 + ["not_asked"]
    assert server.calls == TypedAnswerer(backend_of(server)).most_calls(ALL) == 7


def test_sync_and_async_give_the_same():
    with ChatServer(play) as server:
        answerer = TypedAnswerer(backend_of(server))
        found = answerer.batch(ALL)
        again = asyncio.run(answerer.abatch(ALL))
        one = asyncio.run(answerer.aanswer(ALL[0]))
    assert plain(found) == plain(again)
    assert plain([one]) == plain(found[:1])


def test_a_batch_keeps_its_order_and_a_stream_misses_none():
    answerer = TypedAnswerer()
    assert [one.question for one in answerer.batch(ALL)] == ALL
    assert Counter(one.question.id for one in answerer.stream(ALL)) == {one.id: 1 for one in ALL}


def test_a_stream_yields_what_is_there_before_a_question_that_takes_long():
    is_over = Event()

    def wait(task):
        if task["question"] == ALL[0].body:
            assert is_over.wait(timeout=30)
        return IdealAnswered(text="They glow.")

    roles = replace(extractive_backend(), ideal=RunnableLambda(wait))
    stream = TypedAnswerer(roles).stream(ALL)
    early = [next(stream).question.id for _ in ALL[1:]]
    is_over.set()
    assert {*early} == {one.id for one in ALL[1:]}
    assert [one.question.id for one in stream] == [ALL[0].id]


def test_the_submission_is_read_again_with_documents_and_snippets(tmp_path):
    with ChatServer(play) as server:
        found = TypedAnswerer(backend_of(server)).batch(ALL)
    path = tmp_path / "submission.json"
    write_questions(path, submission_of(found))
    read = read_questions(path)
    assert [(one.id, one.documents, one.snippets) for one in read] == [
        (one.id, one.documents, one.snippets) for one in ALL
    ]
    assert [one.exact_answer for one in read] == [one.exact for one in found]
    assert [one.ideal_answers for one in read] == [(IDEAL,)] * 4


def test_answers_in_the_question_are_neither_shown_nor_changed():
    golden = replace(ALL[1], exact_answer=(("xylitol",),), ideal_answers=("Xylitol.",))
    with ChatServer(play) as server:
        found = TypedAnswerer(backend_of(server)).answer(golden)
    assert not any("ylitol" in json.dumps(one.body) for one in server.requests)
    assert golden.exact_answer == (("xylitol",),)
    assert found.to_question().ideal_answers == (IDEAL,)


@pytest.mark.parametrize(("style", "hinted"), [(1, False), (2, True), (3, True)])
def test_the_ideal_answer_is_told_the_exact_one_from_style_2_on(style, hinted):
    with ChatServer(play) as server:
        TypedAnswerer(backend_of(server, style=style)).answer(ALL[1])
    [ideal] = [one for one in server.requests if part_of(one) == "ideal"]
    assert ("helicase ZIR3; ligase BUM7" in ideal.user) == hinted
    assert ("Do not paraphrase" in ideal.system) == (style == 3)


def test_an_example_of_the_prompts_is_not_answered():
    with ChatServer(play) as server:
        roles = backend_of(server, examples={"list": [answered("list")]})
        answerer = TypedAnswerer(roles)
        with pytest.raises(InputError, match="'example-list' asks the same"):
            answerer.batch([*ALL, answered("list", name="other")])
    assert server.calls == 0


def test_a_question_without_snippets_is_not_asked_and_told():
    bare = asked("yesno", texts=[])
    with ChatServer(play) as server:
        found = TypedAnswerer(backend_of(server)).batch([bare, ALL[0]])
    assert server.calls == 2
    assert (found[0].outcome, found[0].exact_status) == ("failed", "no_snippets")
    assert found[0].problems == ("the question has no snippet to answer it from",)
    assert submission_of(found) == [found[1].to_question()]


def test_of_a_thousand_snippets_the_first_are_read_each_once_and_told():
    texts = [f"Celalol lowered airway resistance in trial {n // 2}." for n in range(1000)]
    with ChatServer(play) as server:
        found = TypedAnswerer(backend_of(server)).answer(asked("yesno", texts=texts))
    shown = server.requests[0].user
    assert "[50] Celalol lowered airway resistance in trial 49." in shown
    assert "[51]" not in shown
    told = (
        "500 snippets: 50 are read, one of each document first, and those above 600 characters last"
    )
    assert found.problems == (told,)
    assert len(found.to_question().snippets) == 1000


def read_of(given, **settings):
    """The snippets that are read of (document, text) pairs."""
    snippets = tuple(snippet(text, pmid) for pmid, text in given)
    with ChatServer(play) as server:
        question = replace(asked("summary"), snippets=snippets)
        TypedAnswerer(backend_of(server), **settings).answer(question)
    return re.findall(r"^\[\d+\] (.*)$", server.requests[0].user, re.MULTILINE)


def test_every_document_keeps_a_snippet_before_another_has_its_second():
    given = [("1", f"Finding {n}.") for n in range(5)] + [("2", "Other."), ("3", "Third.")]
    assert read_of(given, max_snippets=4) == ["Finding 0.", "Finding 1.", "Other.", "Third."]


def test_long_snippets_go_first_where_not_all_have_room():
    long = "Celalol did much. " * 50
    given = [("1", long), ("1", "Short."), ("2", "Brief."), ("1", "Curt.")]
    assert read_of(given, max_snippets=3) == ["Short.", "Brief.", "Curt."]
    assert len(read_of(given)) == 4


def test_the_only_snippet_of_a_document_is_kept_though_it_is_long():
    long = ("Celalol did much. " * 50).strip()
    given = [("1", "Short."), ("1", "Curt."), ("2", long)]
    assert read_of(given, max_snippets=2) == ["Short.", long]


def test_what_is_part_of_another_snippet_is_not_read_again():
    given = [
        ("1", "It fell."),
        ("2", "In rats, it fell. It rose later."),
        ("3", "In RATS, it fell."),
    ]
    assert read_of(given) == ["In rats, it fell. It rose later."]


def test_a_snippet_without_room_for_its_characters_is_passed_over():
    given = [("1", "A" * 500), ("2", "B" * 550), ("3", "C" * 400)]
    assert [one[0] for one in read_of(given, max_characters=1000)] == ["A", "C"]


def test_a_snippet_that_is_too_long_is_cut_and_told():
    found = TypedAnswerer(max_characters=1000).answer(asked("summary", texts=["Tea. " * 500]))
    assert found.problems[0] == "the snippet has 2499 characters: the first are read"


def test_rules_stand_in_for_a_model_that_fails_and_are_told():
    def fail_exact(request):
        return play(request) if part_of(request) == "ideal" else "Hard to say."

    with ChatServer(fail_exact) as server:
        found = TypedAnswerer(backend_of(server)).answer(ALL[1])
    assert found.exact[0] == ("helicase ZIR3",)
    assert (found.exact_status, found.ideal_status) == ("extracted", "answered")
    assert (found.outcome, found.is_complete, found.is_settled) == ("partly_extracted", True, False)
    assert "put together from the snippets by rules instead" in found.problems[0]


def test_without_fallback_a_failure_is_left_out():
    with ChatServer(lambda request: "Hard to say.") as server:
        answerer = TypedAnswerer(backend_of(server), fallback=False)
        found = answerer.batch(ALL[:3])
    assert [one.exact_status for one in found] == ["failed"] * 3
    assert submission_of(found) == []


def test_rules_do_not_stand_in_for_a_server_that_refuses_the_key():
    with ChatServer(lambda request: Reply(status=401)) as server:
        found = TypedAnswerer(backend_of(server)).batch(ALL)
    assert {one.outcome for one in found} == {"failed"}
    assert all("refused the API key" in one.problems[-1] for one in found)


def test_a_budget_holds_for_all_questions_together():
    with ChatServer(play) as server:
        answerer = TypedAnswerer(
            backend_of(server), budget={"max_calls": 3}, fallback=False, max_concurrency=1
        )
        found = answerer.batch(ALL)
    assert server.calls == 3
    statuses = [status for one in found for status in (one.exact_status, one.ideal_status)]
    assert Counter(statuses) == {"answered": 3, "skipped_budget": 4, "not_asked": 1}


def test_no_more_calls_are_in_flight_than_allowed():
    with ChatServer(play, latency=0.02) as server:
        TypedAnswerer(backend_of(server), max_concurrency=2).batch(ALL * 2)
        assert server.max_in_flight == 2
        server.reset_counts()
        TypedAnswerer(backend_of(server)).batch(ALL, config={"max_concurrency": 1})
        assert server.max_in_flight == 1


def test_a_reply_is_paid_for_once(tmp_path):
    with ChatServer(play) as server, open_cache(tmp_path) as cache:
        first = TypedAnswerer(backend_of(server), cache=cache).batch(ALL)
        again = TypedAnswerer(backend_of(server), cache=cache).batch(ALL)
        assert server.calls == 7
        TypedAnswerer(backend_of(server, style=3), cache=cache).batch(ALL)
        assert server.calls == 14
    assert [one.exact for one in first] == [one.exact for one in again]
    assert [one.total_usage.cached_calls for one in again] == [2, 2, 2, 1]


def test_a_function_can_stand_in_for_a_role():
    mine = replace(
        extractive_backend(),
        exact=RunnableLambda(lambda task: {"names": ["ZIR3 (zirase)", *"abcdef"]}),
    )
    found = TypedAnswerer(mine).answer(ALL[1])
    assert found.exact == (("ZIR3",), ("a",), ("b",), ("c",), ("d",))
    assert found.problems == (
        "exact: left out the synonym in brackets: 'zirase'",
        "exact: 7 names: the first 5 are kept",
    )


def test_the_graph_is_plain_data_in_and_out():
    graph = build_answer_graph(extractive_backend())
    found = graph.invoke(
        {"type": "yesno", "question": ALL[0].body, "snippets": [ALL[0].snippets[0].text]}
    )
    assert json.loads(json.dumps(found)) == found
    assert found["exact"]["names"] == ["yes"]


@pytest.mark.parametrize(
    "wrong",
    [{"max_snippets": 0}, {"max_characters": 10}, {"max_concurrency": 0}, {"budget": {"calls": 3}}],
)
def test_a_setting_out_of_range_is_refused(wrong):
    with pytest.raises(SettingsError, match=str(next(iter(wrong))).partition("_")[0]):
        TypedAnswerer(**wrong)


@pytest.mark.parametrize("name", sorted(FAULTS.keys() - LONG))
def test_a_fault_costs_its_own_answer_alone(name):
    """Every fault that a server may have, on the exact answer of one of four questions."""
    fault = FAULTS[name]
    hit, is_begun = 0, False

    def faulty(request):
        nonlocal hit
        is_over = fault.tries is not None and hit >= fault.tries
        if not is_begun or is_over or part_of(request) != "factoid":
            return play(request)
        hit += 1
        return fault.reply(Good(request, play(request)))

    with ChatServer(faulty) as server:
        answerer = TypedAnswerer(backend_of(server, retry=RETRY), fallback=False)
        answerer.answer(asked("factoid", name="first"))  # the output mode is known from it
        is_begun = True
        found = {one.question.type: one for one in answerer.batch(ALL)}
    others = [one for kind, one in found.items() if kind != "factoid"]
    assert hit > 0
    assert [one.outcome for one in others] == ["answered"] * 3
    one = found["factoid"]
    assert one.exact_status == ("failed" if fault.fails else "answered")
    assert one.ideal == IDEAL
    assert len(submission_of(found.values())) == 4 - fault.fails
    if fault.fails:
        assert one.problems[0].startswith("exact: ")


@pytest.mark.parametrize("given", ["Does wax help?", None, 5])
def test_what_is_no_question_with_snippets_is_named(given):
    with pytest.raises(InputError, match=f"with its snippets, got {type(given).__name__}"):
        TypedAnswerer().answer(given)
    with pytest.raises(InputError, match=f"with its snippets, got {type(given).__name__}"):
        asyncio.run(TypedAnswerer().abatch([ALL[0], given]))


def test_one_question_is_no_batch():
    with pytest.raises(InputError, match="must be a list of questions, got one BioasqQuestion"):
        TypedAnswerer().batch(ALL[0])
