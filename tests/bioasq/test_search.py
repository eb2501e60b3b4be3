"""The search for documents: by hand, without a key, and against a server that fails."""

import re
from dataclasses import replace

import pytest
from langchain_core.runnables import RunnableLambda

from deepera_graph import Budget, open_cache, open_store
from deepera_graph.bioasq.phase_a.ordering import Order, search_roles
from deepera_graph.bioasq.phase_a.search import DocumentSearch, build_search_graph
from deepera_graph.bioasq.questions import BioasqQuestion, read_questions, write_questions
from deepera_graph.bioasq.settings import SearchSettings
from deepera_graph.errors import InputError, SettingsError
from support.faults import ATTEMPTS, EVERY, Good
from support.moths import (
    ABSTRACTS,
    HEAT,
    QUESTION,
    Library,
    documents,
    play,
    shown,
    text_of,
    weigh_by_words,
)
from support.openai_server import ChatServer, Reply
from support.scripted import Script

WORDS = {"weigh_sentences": weigh_by_words}
ASKED = BioasqQuestion(id="q1", type="yesno", body=QUESTION, exact_answer="yes")
RETRY = {"attempts": 1, "first_wait": 0}
FAULTS = {name: one for name, one in EVERY.items() if not one.only_scores}
SLOW = ("hang", "429 Retry-After", "slow")


def search(source=None, judge=None, **options):
    return DocumentSearch(source or Library(), judge=judge, **{**WORDS, **options})


def sorted_by(reply, judge=None, retry=RETRY, source=None, **options):
    """Search with a chat model on a server that answers with *reply*; the result, the server."""
    with ChatServer(reply) as server:
        roles = search_roles("openai:m", base_url=server.base_url, retry=retry)
        found = search(source, judge, model=roles, **options).search(ASKED)
    return found, server


def ids(ranked):
    return [one.pmid for one in ranked]


def by_heat(*among):
    return sorted(among or HEAT, key=lambda name: -HEAT[name])


FIRST = ids(search().search(QUESTION).runs["retrieved"])  # those that share a word, by BM25


def plain(result):
    """A result as plain data, but for how long it took."""
    return {**result.to_dict(), "seconds": 0}


# ---- without a key


@pytest.mark.full
def test_a_question_that_no_document_answers_is_told_and_has_its_documents():
    result = search(judge="local").search("Do quantum dots of yeast glow in moth tapestries?")
    assert result.outcome == "ok"
    assert result.documents
    assert "no document is evidence to the judge" in " ".join(result.problems)


def test_a_question_gets_ten_documents_and_its_snippets(tmp_path):
    result = search().search(ASKED)
    assert result.outcome == "ok"
    assert result.problems == ()
    assert len(result.question.documents) == 10
    assert ids(result.documents) == FIRST[:10]
    assert result.question.documents[0].endswith(f"/pubmed/{FIRST[0]}")
    assert result.question.exact_answer is None  # an answer it came with is none that was found
    assert (result.question.id, result.question.type) == ("q1", "yesno")
    assert 1 <= len(result.question.snippets) <= 10
    given = {*result.question.documents}
    assert all(one.document in given for one in result.question.snippets)
    write_questions(tmp_path / "a.json", [result.question])
    assert read_questions(tmp_path / "a.json") == [result.question]


@pytest.mark.full
def test_the_local_judge_finds_what_answers_without_a_key():
    with open_store("moths") as store:
        store.add(documents())
        result = DocumentSearch(store).search(ASKED)
    assert result.outcome == "ok"
    assert ids(result.documents)[0] == "101"
    best = result.question.snippets[0]
    assert best.text == "Blood pressure fell by 12 mmHg within an hour."
    assert ABSTRACTS["101"][1][best.begin : best.end] == best.text
    assert [one.score for one in result.documents] == sorted(
        (one.score for one in result.documents), reverse=True
    )
    assert result.manifest["judge"]["judge"] == "trained"


@pytest.mark.parametrize(("n", "found"), [(1, 1), (10, 10), (12, 12), (50, len(FIRST))])
def test_there_are_as_many_documents_as_asked_for_wherever_they_are_found(n, found):
    assert len(search(n_documents=n).search(QUESTION).documents) == found


def test_always_ten_snippets_can_be_had():
    assert len(search(n_snippets=10).search(QUESTION).question.snippets) == 10
    assert search(n_snippets=0).search(QUESTION).question.snippets == ()


def test_a_question_that_nothing_matches_has_no_documents():
    result = search().search("Zymurgy?")
    assert (result.outcome, result.question.documents) == ("nothing_retrieved", ())


def test_the_depth_is_what_is_retrieved_and_the_rest_follows_what_was_judged():
    library = Library()
    judge = Script({"Rats live": 0.9, "review": 0.8}, default=0.5).backend()
    result = search(library, judge, depth=7, judged=4, n_documents=7).search(QUESTION)
    assert library.asked == [(QUESTION, 7)]
    best = ids(result.runs["judged"])
    assert {*best[:4]} == {*FIRST[:4]}
    assert best[4:] == FIRST[4:7]
    scores = [one.score for one in result.runs["judged"]]
    assert scores == sorted(scores, reverse=True)


def test_a_judge_of_single_passages_orders_by_its_scores_alone():
    scores = {ABSTRACTS[name][1][:30]: heat / 11 for name, heat in HEAT.items()}
    result = search(judge=Script(scores).backend()).search(QUESTION)
    assert ids(result.runs["judged"]) == by_heat(*FIRST)


def test_the_first_stage_can_count_beside_a_judge():
    scores = {ABSTRACTS[name][1][:30]: heat / 11 for name, heat in HEAT.items()}
    judge = Script(scores).backend()
    result = search(judge=judge, first_weight=1e6).search(QUESTION)
    first = dict(result.runs["retrieved"])
    wanted = sorted(FIRST, key=lambda name: (-first[name], -HEAT[name]))
    assert ids(result.runs["judged"]) == wanted != by_heat(*FIRST)


def test_equal_scores_leave_the_first_stages_order():
    result = search(judge=Script({}, default=0.5).backend()).search(QUESTION)
    assert ids(result.runs["judged"]) == FIRST


# ---- with a chat model


def test_the_best_are_sorted_in_one_prompt():
    result, server = sorted_by(play, listed=6, ensemble="last")
    [request] = server.requests
    assert shown(request) == FIRST[:6]
    assert ids(result.runs["listed"]) == by_heat(*FIRST[:6])
    assert ids(result.documents) == [*by_heat(*FIRST[:6]), *FIRST[6:10]]
    assert result.usage["sort"].calls == 1


@pytest.mark.full
def test_both_rankings_are_weighed():
    alone, _ = sorted_by(play, ensemble="weighted", weights=(0, 1))
    assert ids(alone.documents) == by_heat(*FIRST)[:10]
    none, _ = sorted_by(play, ensemble="weighted", weights=(1, 0))
    assert ids(none.documents) == FIRST[:10]
    both, _ = sorted_by(play)
    places = {name: 7 * max(0, 10 - n) for n, name in enumerate(by_heat(*FIRST))}
    wanted = {name: places[name] + max(0, 10 - n) for n, name in enumerate(FIRST)}
    assert ids(both.documents) == sorted(FIRST, key=lambda name: -wanted[name])[:10]


def test_both_rankings_nominate():
    result, _ = sorted_by(play, ensemble="nominate", nominated=(2, 3), n_documents=5)
    hot = [name for name in by_heat(*FIRST) if name not in FIRST[:2]]
    assert ids(result.documents) == [*FIRST[:2], *hot[:3]]


@pytest.mark.parametrize("ensemble", ["weighted", "nominate", "last"])
def test_every_ensemble_gives_as_many_documents_as_are_asked_for(ensemble):
    result, _ = sorted_by(play, ensemble=ensemble, n_documents=12)
    assert len({*ids(result.documents)}) == 12
    assert {*ids(result.documents)} == {*FIRST[:12]}


@pytest.mark.full
def test_a_rewritten_question_is_searched_for_beside_the_question():
    library = Library()
    result, server = sorted_by(play, source=library, rewrite=True, sort=False)
    query = "Galleria mellonella venom hypotension"
    assert [asked for asked, _ in library.asked] == [QUESTION, query]
    assert result.query == query
    assert server.calls == 1
    of_venom = {"101", "102", "103", "104", "107", "111", "112"}
    assert {*ids(result.documents)[:6]} <= of_venom


@pytest.mark.full
def test_the_pointwise_judge_is_one_more_ranker():
    with ChatServer(play) as server:
        from deepera_graph import llm_backend

        backend = llm_backend("openai:m", base_url=server.base_url, retry=RETRY)
        result = search(judge=backend).search(ASKED)
        assert ids(result.runs["judged"]) == by_heat(*FIRST)
        assert server.calls == len(FIRST) + 1
    assert result.total_usage.calls == len(FIRST) + 1


@pytest.mark.full
async def test_sync_and_async_give_the_same():
    with ChatServer(play) as server:
        roles = search_roles("openai:m", base_url=server.base_url)
        judge = Script({"fell by": 0.9}, default=0.3).backend()
        finder = search(judge=judge, model=roles, rewrite=True)
        assert plain(finder.search(ASKED)) == plain(await finder.asearch(ASKED))
        [one], [other] = finder.batch([ASKED]), await finder.abatch([ASKED])
        assert plain(one) == plain(other) == plain(next(finder.stream([ASKED])))


@pytest.mark.full
def test_many_questions_keep_their_order():
    asked = [replace(ASKED, id=f"q{n}", body=f"{QUESTION} {'Wax? ' * n}") for n in range(9)]
    finder = search()
    wanted = [finder.search(one).question for one in asked]
    assert [one.question for one in finder.batch(asked)] == wanted
    streamed = {one.question.id: one.question for one in finder.stream(asked)}
    assert [streamed[one.id] for one in asked] == wanted


def test_an_equal_prompt_is_not_paid_for_twice(tmp_path):
    with ChatServer(play) as server, open_cache(tmp_path) as cache:
        roles = search_roles("openai:m", base_url=server.base_url)
        finder = search(model=roles, rewrite=True, cache=cache)
        one, other = finder.search(ASKED), finder.search(ASKED)
    assert server.calls == 2
    assert other.question == one.question
    assert other.total_usage.cached_calls == 2


def test_a_function_can_sort():
    def reverse(task):
        n = len(task["passages"])
        return Order(order=list(range(n, 0, -1)))

    roles = replace(
        search_roles("openai:m", base_url="http://x/v1"), sorter=RunnableLambda(reverse)
    )
    result = search(model=roles, ensemble="last").search(ASKED)
    assert ids(result.documents) == FIRST[::-1][:10]


# ---- faults


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in FAULTS if not name.startswith(SLOW)])
def test_a_model_that_fails_costs_its_step_alone(name):
    """Every fault of a server: it passes, or the judge's order is kept and the cause is told."""
    fault, tries = FAULTS[name], []

    def reply(request):
        tries.append(request)
        if fault.tries is not None and len(tries) > fault.tries:
            return play(request)
        return fault.reply(Good(request, text_of(request)))

    patient = {"attempts": ATTEMPTS, "first_wait": 0.001, "longest_wait": 0.002, "timeout": 5.0}
    result, _ = sorted_by(reply, retry=patient, ensemble="last")
    if fault.fails:
        assert result.outcome == "degraded"
        assert ids(result.documents) == FIRST[:10]
        assert re.search(fault.cause, " ".join(result.problems))
        assert result.runs["listed"] == ()
    else:
        assert result.outcome == "ok"
        assert ids(result.documents) == by_heat(*FIRST)[:10]
    assert len(result.question.snippets) >= 1
    calls, failed, _ = fault.cost
    if fault.fails and fault.tries is None:
        assert bool(result.usage["sort"].calls) == bool(calls)
        assert bool(result.usage["sort"].failed_calls) == bool(failed)


@pytest.mark.parametrize(
    ("order", "told"),
    [
        ([3, 1], "not named"),
        ([2, 2, 2, 1], "2 named again"),
        ([99, 1, -4], "2 invented"),
        (["two", 1], "1 invented"),
    ],
)
def test_an_odd_order_is_mended_and_told(order, told):
    result, _ = sorted_by(lambda request: {"order": order}, ensemble="last")
    assert result.outcome == "ok"
    assert [one for one in result.problems if told in one]
    assert {*ids(result.runs["listed"])} == {*FIRST}
    assert len(result.documents) == 10


@pytest.mark.full
def test_a_query_that_fails_leaves_the_question():
    def reply(request):
        return Reply(status=500) if request.system.startswith("You turn") else play(request)

    library = Library()
    result, _ = sorted_by(reply, source=library, rewrite=True)
    assert [asked for asked, _ in library.asked] == [QUESTION]
    assert result.outcome == "degraded"
    assert "rewrite: " in result.problems[0]
    assert "the question is searched for as it is" in result.problems[0]
    assert len(result.documents) == 10


def test_a_document_that_could_not_be_judged_comes_after_all_that_were():
    scores = {ABSTRACTS[FIRST[0]][1][:30]: RuntimeError("out of order")}
    result = search(judge=Script(scores, default=0.0).backend()).search(QUESTION)
    assert ids(result.runs["judged"]) == [*FIRST[1:], FIRST[0]]
    assert result.documents[-1].score == 0.0  # what was judged 0 is still above it
    assert result.runs["judged"][-1].score < 0
    assert "out of order" in result.problems[0]


def test_a_judge_that_fails_at_everything_leaves_the_first_stages_order():
    judge = Script({"": RuntimeError("out of order")}).backend()
    result = search(judge=judge).search(QUESTION)
    assert ids(result.documents) == FIRST[:10]
    assert result.outcome == "degraded"
    assert "out of order" in " ".join(result.problems)


def test_a_search_that_fails_is_told_and_costs_no_other_question():
    def source(question):
        if "Wax" in question:
            raise ConnectionError("gone")
        return documents("101")

    bad, good = search(source).batch(["Wax?", "Rats?"])
    assert (bad.outcome, bad.documents) == ("failed", ())
    assert "the search failed: ConnectionError: gone" in bad.problems[0]
    assert (good.outcome, ids(good.documents)) == ("ok", ["101"])


def test_snippets_that_fail_cost_no_document():
    def fail(question, windows):
        raise RuntimeError("no weights")

    result = search(weigh_sentences=fail).search(QUESTION)
    assert result.outcome == "degraded"
    assert result.question.snippets == ()
    assert "no snippets: RuntimeError: no weights" in result.problems[0]
    assert len(result.documents) == 10


@pytest.mark.full
def test_a_wrong_key_is_told_apart_from_a_bad_day():
    wrong, _ = sorted_by(lambda request: Reply(status=401))
    assert "refused the API key" in wrong.unusable
    bad, _ = sorted_by(lambda request: Reply(status=500))
    assert (bad.unusable, bad.outcome) == ("", "degraded")


def test_a_spent_budget_keeps_what_was_found():
    with ChatServer(play) as server:
        roles = search_roles("openai:m", base_url=server.base_url)
        finder = search(model=roles, budget=Budget(max_calls=2))
        results = finder.batch(
            [replace(ASKED, id=str(n), body=QUESTION + "?" * n) for n in range(4)]
        )
        assert server.calls == 2
    assert sorted(one.outcome for one in results) == ["budget_stop"] * 2 + ["ok"] * 2
    assert all(len(one.documents) == 10 for one in results)


def test_parts_of_a_document_are_one_document_without_snippets():
    parts = [
        one.model_copy(update={"id": f"{one.id}#{n}", "metadata": {**one.metadata, "part": n}})
        for one in documents("101")
        for n in (2, 1)
    ]
    result = search(lambda question: [*parts, *documents("102")]).search(QUESTION)
    assert ids(result.documents) == ["101", "102"]
    assert {one.document[-3:] for one in result.question.snippets} == {"102"}
    assert "1 documents are indexed in parts" in result.problems[0]


# ---- what is given


def test_nothing_that_was_given_is_changed():
    given = documents()
    before = [one.model_copy(deep=True) for one in given]
    search(lambda question: given, judge=Script({}, default=0.5).backend()).search(ASKED)
    assert given == before


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"depth": 0}, "depth must be a whole number >= 1, got 0"),
        ({"listed": 1}, "listed must be a whole number >= 2, got 1"),
        ({"n_snippets": 11}, "n_snippets must be at most 10, got 11"),
        ({"weights": (1, -1)}, "weights must be two numbers >= 0, got '1,-1'"),
        ({"weights": (1,)}, "weights must be two numbers >= 0, got '1'"),
        ({"nominated": (1, 2, 3)}, "nominated must be two numbers"),
        ({"ensemble": "nominate", "n_documents": 5}, "5 documents have no room for the 6 + 4"),
        (
            {"ensemble": "median"},
            "ensemble must be one of 'weighted', 'nominate', 'last', got 'median'",
        ),
        ({"fusion": "luck"}, "fusion must be one of 'ranks', 'scores', got 'luck'"),
        ({"first_weight": float("inf")}, "first_weight must be >= 0, got inf"),
        ({"dept": 3}, "dept"),
    ],
)
def test_settings_out_of_range_are_named(settings, problem):
    with pytest.raises(SettingsError, match=re.escape(problem)):
        search(**settings)


def test_rewriting_needs_a_model():
    with pytest.raises(SettingsError, match="rewrite=True needs a chat model"):
        search(rewrite=True)


def test_a_blank_question_is_refused():
    with pytest.raises(InputError, match="question"):
        search().search("  ")


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ({}, ["receive", "retrieve", "combine", "snippets"]),
        (
            {"roles": True, "rewrite": True},
            ["receive", "rewrite", "retrieve", "sort", "combine", "snippets"],
        ),
    ],
)
def test_the_graph_has_the_steps_that_are_wanted(options, nodes):
    if options.get("roles"):
        options = {**options, "roles": search_roles("openai:m", base_url="http://x/v1")}
    graph = build_search_graph(Library(), SearchSettings(), **options)
    drawn = graph.get_graph()
    assert [one for one in drawn.nodes if not one.startswith("__")] == nodes


def test_the_first_stages_scores_are_scaled_by_what_they_are():
    with open_store("moths") as store:
        store.add(documents())
        by_words = search(store).search(QUESTION).runs["retrieved"]
    assert by_words[0].score == pytest.approx(0.3)
    unscored = search(lambda question: documents("101", "102")).search(QUESTION)
    assert [one.score for one in unscored.runs["retrieved"]] == [1.0, 0.5]


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ["500, lasting", "prose, lasting", "refusal, lasting", "401, once"]
)
async def test_faults_are_told_alike_in_threads_and_in_a_loop(name):
    with ChatServer(lambda request: FAULTS[name].reply(Good(request, text_of(request)))) as server:
        roles = search_roles("openai:m", base_url=server.base_url, retry=RETRY)
        finder = search(judge=Script({}, default=0.5).backend(), model=roles, rewrite=True)
        one, other = finder.search(ASKED), await finder.asearch(ASKED)
    assert plain(one) == plain(other)
    assert (one.outcome, len(one.documents)) == ("degraded", 10)


@pytest.mark.parametrize("given", [None, 5, [QUESTION], {"body": QUESTION}])
def test_what_is_no_question_is_named(given):
    with pytest.raises(InputError, match=f"a BioasqQuestion or a text, got {type(given).__name__}"):
        search().search(given)


@pytest.mark.parametrize("given", [QUESTION, ASKED, None])
def test_one_question_is_no_list_of_them(given):
    finder = search()
    for ask in (finder.batch, lambda one: [*finder.stream(one)]):
        with pytest.raises(InputError, match="questions must be a list of questions, got one"):
            ask(given)
