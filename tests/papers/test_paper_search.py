"""A search in several steps: planners, limits, budgets, resume, and what comes out."""

import asyncio
import json
import random
import threading
from time import sleep

import pytest
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.papers import PaperBase, Scope
from deepera_graph.papers.agent.graph import PaperSearch
from deepera_graph.papers.agent.state import Action, PaperVerdict, SearchPlan, Selected
from papers.chat import LIMITS, Told, judged
from papers.planted import make_questions, make_world, plain
from papers.world import write_lines

pytestmark = pytest.mark.full

KELP = "Papers on kelp counting"
REWRITES = ["kelp counting", "estimating seaweed cover", "kelp survey", "seaweed cover", "swarm"]


@pytest.fixture(scope="module")
def world():
    return make_world()


@pytest.fixture(scope="module")
def planted(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    source = write_lines(folder / "planted.jsonl", plain(world))
    with PaperBase.build(folder / "planted.papers", source) as made:
        yield made


def give(score=None, verdict="in"):
    """Return a selector that says the same of all papers."""

    def select(task):
        said = [PaperVerdict(id=one["id"], score=score, verdict=verdict) for one in task["papers"]]
        return Selected(papers=said)

    return select


def searches(*queries, **more):
    """Return a planner that searches for one query a round, then ends."""

    def plan(task):
        left = queries[task["step"] - 1 : task["step"]]
        return SearchPlan(actions=[Action(tool="search", text=one, **more) for one in left])

    return plan


class Counting:
    """A base that keeps what it is asked, and fails where it is told to."""

    def __init__(self, base, fail=()):
        self.base, self.fail, self.asked = base, dict(fail), []
        self.place, self.has_vectors = base.place, base.has_vectors

    def venues(self):
        return self.base.venues()

    def _ask(self, tool, text, how):
        self.asked.append((tool, text))
        error = self.fail.pop(len(self.asked), None)
        if error is not None:
            raise error
        return getattr(self.base, tool)(text, **how)

    def search(self, text, **how):
        return self._ask("search", text, how)

    def references(self, text, **how):
        return self._ask("references", text, how)

    def citations(self, text, **how):
        return self._ask("citations", text, how)


def trace(found):
    return [(one["id"], one["step"], one["tool"], one["text"]) for one in found.actions]


@pytest.mark.parametrize("style", ["sparse", "rules"])
def test_a_search_without_a_key_finds_the_field(planted, world, style):
    found = PaperSearch(planted, style=style).search(KELP)
    field = {one["id"] for one in world if one["field"] == "kelp counting"}
    assert set(found.ids[: len(field)]) <= field
    assert found.stopped == "complete"
    assert not found.problems
    assert found.total_usage.calls == 0


def test_limits_hold_and_answers_are_found_without_a_model(planted, world):
    search, recalls, broken = PaperSearch(planted), [], []
    for one in make_questions(world):
        found = search.search(one["query"])
        gold, first = one["gold"], set(found.ids[: len(one["gold"])])
        recalls.append(len(gold & set(found.ids[:25])) / len(gold))
        broken.append(len(first & one["violating"]) / len(gold))
    assert sum(recalls) / len(recalls) >= 0.9
    assert sum(broken) / len(broken) <= 0.1


def test_exclusions_tell_what_does_without_from_what_does_it_in_other_words(planted, world):
    asked = [one for one in make_questions(world) if "published" not in one["query"]]
    asked = [one for one in asked if " at " not in one["query"]]
    search, scores = PaperSearch(planted, max_papers=1000), []
    for one in asked:
        found = search.search(one["query"])
        pool = {each.id: each for each in (*found.papers, *found.left_out)}
        known = (one["gold"] | one["violating"]) & pool.keys()
        kept = set(found.ids) & known
        right = len(kept & one["gold"])
        scores.append(2 * right / (len(kept) + len(one["gold"] & known)))
    assert sum(scores) / len(scores) >= 0.9


@pytest.mark.parametrize("selector", ["rules", "vectors"])
def test_the_citations_of_what_is_left_out_are_not_followed(tmp_path, selector):
    papers = [
        {"id": "k1", "title": "Kelp counting", "abstract": "By drones.", "references": ["r1"]},
        {"id": "k2", "title": "Kelp counting from boats at low tide", "references": ["r2"]},
        {"id": "r1", "title": "Rotor noise"},
        {"id": "r2", "title": "Sextants at sea"},
    ]
    source = write_lines(tmp_path / "p.jsonl", papers)
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        search = PaperSearch(base, style="rules", selector=selector)
        found = search.search("Papers on kelp counting, excluding drones")
        followed = {one["text"] for one in found.actions if one["tool"] != "search"}
    assert followed == {"k2"}
    assert found.ids == ["k2", "r2"]
    assert [one.id for one in found.left_out] == ["k1"]


@pytest.mark.parametrize(
    ("question", "against"),
    [
        ("kelp counting since 2015", {"old": "from 2015 on"}),
        ("kelp counting, not in Tides", {"tides": "not at Tides"}),
        ("kelp counting, only papers from Tides", {"old": "only at Tides", "new": "only at Tides"}),
        ("kelp counting", {}),
    ],
)
def test_what_years_and_venues_leave_out_is_named(tmp_path, question, against):
    papers = [
        {"id": "old", "title": "Kelp counting by boat", "year": 2009, "venue": "Shores"},
        {"id": "new", "title": "Kelp counting by eye", "year": 2019, "venue": "Shores"},
        {"id": "tides", "title": "Kelp counting by rope", "year": 2018, "venue": "Tides"},
    ]
    with PaperBase.build(tmp_path / "k.papers", write_lines(tmp_path / "k.jsonl", papers)) as base:
        found = PaperSearch(base).search(question)
    assert {one.id: one.against for one in found.left_out} == against
    assert {*found.ids} == {one["id"] for one in papers} - {*against}
    assert found.n_seen == len(found.ids)
    for limit in against.values():
        assert f"breaks a limit: {limit}\n" in found.to_text()


def test_a_paper_that_does_without_the_excluded_thing_stays(tmp_path):
    papers = [
        {"id": "a", "title": "Kelp counting by boats", "abstract": "We deliberately avoid drones."},
        {"id": "b", "title": "Kelp counting by drones", "abstract": "Drones did the work."},
        {"id": "c", "title": "Kelp counting by divers", "abstract": "We beat drones by 3 points, "
         "which is more than expected."},
    ]  # fmt: skip
    with PaperBase.build(tmp_path / "b.papers", write_lines(tmp_path / "p.jsonl", papers)) as base:
        found = PaperSearch(base).search("Papers on kelp counting, excluding drones")
        by_words = PaperSearch(base, selector="rules").search(found.question)
    for one in (found, by_words):
        assert sorted(one.ids) == ["a", "c"]
        assert [each.id for each in one.left_out] == ["b"]
        assert one.left_out[0].against == "drones"
        assert "drones" in one.left_out[0].quote.lower()


def test_pasa_searches_then_expands_what_scores_above_half_in_two_layers(planted):
    best = planted.search("kelp counting", k=10).papers
    chosen = {best[0].id, best[1].id}

    def judge(task):
        said = [
            PaperVerdict(id=one["id"], score=0.9 if one["id"] in chosen else 0.2)
            for one in task["papers"]
        ]
        return Selected(papers=said)

    found = PaperSearch(planted, planner=REWRITES[:2], style="pasa", selector=judge).search(KELP)
    assert trace(found)[:2] == [
        ("S1", 1, "search", REWRITES[0]),
        ("S2", 1, "search", REWRITES[1]),
    ]
    assert {one[3] for one in trace(found)[2:]} == chosen
    assert {one[1:3] for one in trace(found)[2:]} == {(2, "references")}
    assert all(one["k"] == 10 for one in found.actions[:2])
    assert found.stopped == "complete"
    assert set(found.ids[:2]) == chosen


def test_spar_takes_turns_between_queries_and_the_references_of_the_best(planted):
    search = PaperSearch(planted, planner=REWRITES, style="spar", selector=give(0.8))
    found = search.search(KELP)
    first = [one[3] for one in trace(found) if one[1] == 1]
    assert first == [KELP, *REWRITES[:4]]
    assert [one[1:3] for one in trace(found) if one[1] == 2] == [(2, "references")] * 5
    assert [one[1:] for one in trace(found) if one[1] == 3] == [(3, "search", "swarm")]
    assert [one[1:3] for one in trace(found) if one[1] == 4] == [(4, "references")] * 5
    assert found.stopped == "complete"


def test_scout_alternates_between_its_queries_and_citations(planted):
    search = PaperSearch(planted, planner=[*REWRITES, "carillon"], selector=give(0.8), max_steps=4)
    found = search.search(KELP)
    assert [one[3] for one in trace(found) if one[1] == 1] == REWRITES
    assert [one[2] for one in trace(found) if one[1] == 2] == ["citations"] * 5
    assert [one[1:] for one in trace(found) if one[1] == 3] == [(3, "search", "carillon")]
    assert found.stopped == "max_steps"


def test_no_action_is_repeated_and_what_cannot_be_done_is_named(planted):
    def plan(task):
        wanted = [("search", "Kelp  counting"), ("search", "kelp counting"), ("citations", "nope")]
        return SearchPlan(actions=[Action(tool=tool, text=text) for tool, text in wanted])

    counted = Counting(planted)
    found = PaperSearch(counted, planner=plan, selector="rules").search(KELP)
    assert counted.asked == [("search", "Kelp  counting")]
    assert found.stopped == "no_gain"
    assert any("was made before" in one for one in found.problems)
    assert any("'nope' is not made: no such paper" in one for one in found.problems)


@pytest.mark.parametrize("most", [1, 3, 7])
def test_no_more_calls_are_made_than_allowed(planted, most):
    counted = Counting(planted)
    search = PaperSearch(counted, style="rules", max_actions=most)
    found = search.search(KELP)
    assert len(counted.asked) == len(found.actions) == most
    assert found.stopped == "max_actions"


def test_no_more_papers_are_taken_than_allowed_and_the_rest_is_counted(planted):
    found = PaperSearch(planted, style="sparse", max_papers=7).search(KELP)
    (call,) = found.actions
    assert found.n_seen == call["new"] == 7
    assert call["found"] == call["new"] + call["left"]
    assert found.stopped == "max_papers"


def test_a_budget_of_calls_ends_the_search_and_keeps_what_was_found(planted):
    search = PaperSearch(
        planted, planner=searches(*REWRITES), selector=give(0.9), budget={"max_calls": 3}
    )
    found = search.search(KELP)
    assert found.total_usage.calls == 3
    assert found.stopped == "budget"
    assert found.papers
    assert any("budget reached: 3 calls" in one for one in found.problems)


def test_a_planner_that_never_stops_is_stopped(planted):
    def plan(task):
        query = f"kelp {task['step']} counting"
        return SearchPlan(actions=[Action(tool="search", text=query)])

    found = PaperSearch(planted, planner=plan, selector="rules", max_steps=9).search(KELP)
    assert found.stopped == "no_gain"
    assert found.steps == 3


def test_sync_async_and_stream_give_the_same(planted):
    search = PaperSearch(planted)
    events = list(search.stream(KELP))
    whole = {**search.search(KELP).to_dict(), "seconds": 0}
    assert {**events[-1]["result"].to_dict(), "seconds": 0} == whole
    assert [one["event"] for one in events][:3] == ["understood", "planned", "called"]
    assert {**asyncio.run(search.asearch(KELP)).to_dict(), "seconds": 0} == whole


@pytest.mark.parametrize("n_events", range(1, 14, 2))
def test_a_search_that_was_cut_short_goes_on_and_repeats_no_call(planted, n_events):
    how = {"planner": searches(*REWRITES), "selector": give(0.9), "max_steps": 8, "patience": 9}
    whole = PaperSearch(planted, **how).search(KELP)
    counted = Counting(planted)
    search = PaperSearch(counted, checkpointer=InMemorySaver(), **how)
    config = {"configurable": {"thread_id": "1"}}
    stream = search.stream(KELP, config=config)
    for _ in range(n_events):
        next(stream)
    stream.close()
    found = search.search(KELP, config=config, resume=True)
    again = search.search(KELP, config=config, resume=True)
    assert [text for _, text in counted.asked] == REWRITES
    assert trace(found) == trace(whole) == trace(again)
    assert found.ids == whole.ids == again.ids
    assert found.usage == whole.usage


def test_a_thread_of_another_search_is_refused(planted):
    saver, config = InMemorySaver(), {"configurable": {"thread_id": "1"}}
    search = PaperSearch(planted, checkpointer=saver)
    search.search(KELP, config=config)
    with pytest.raises(InputError, match="of another question"):
        search.search("bell tuning", config=config, resume=True)
    with pytest.raises(SettingsError, match="other settings or another scope"):
        search.search(KELP, config=config, scope=Scope(year_to=2015), resume=True)
    with pytest.raises(SettingsError, match="needs a checkpointer"):
        PaperSearch(planted).search(KELP, resume=True)


def test_a_call_that_fails_is_kept_with_its_cause_and_is_no_empty_one(planted):
    counted = Counting(planted, {1: RuntimeError("out of order")})
    found = PaperSearch(counted, planner=searches(*REWRITES[:2]), selector="rules").search(KELP)
    first, second = found.actions
    assert (first["status"], first["cause"]) == ("failed", "RuntimeError: out of order")
    assert second["status"] == "ok"
    assert found.has_failed
    assert found.papers


def test_faulty_answers_of_a_model_lose_nothing_silently(planted):
    chance = random.Random(5)

    def judge(task):
        if chance.random() < 0.3:
            raise RuntimeError("gibberish")
        said = [PaperVerdict(id=one["id"], score=0.7) for one in task["papers"]]
        return Selected(papers=said[: None if chance.random() < 0.5 else -1])

    def plan(task):
        if task["step"] == 2:
            raise ValueError("prose instead of a plan")
        return searches(*REWRITES)(task)

    found = PaperSearch(planted, planner=plan, selector=judge, judged=3).search(KELP)
    seen = {id for one in found.actions for id in one["ids"]}
    assert seen == set(found.ids)
    unjudged = [one for one in found.papers if one.verdict == "unjudged"]
    assert unjudged
    assert all(one.reason.startswith("not judged") for one in unjudged)
    assert any("gibberish" in one for one in found.problems)
    assert any("said nothing of" in one for one in found.problems)
    assert any("round 2 could not be planned" in one for one in found.problems)


def test_what_is_hidden_is_nowhere_in_pool_or_trace(planted):
    whole = PaperSearch(planted).search(KELP)
    hidden = tuple(whole.ids[:3])
    scope = Scope(hide=hidden, year_to=2019)
    found = PaperSearch(planted).search(KELP, scope=scope)
    text = json.dumps([found.to_dict()["papers"], found.to_dict()["actions"]])
    assert not any(f'"{id}"' in text for id in hidden)
    assert all(one.paper.year <= 2019 for one in found.papers)


@pytest.mark.parametrize("accuracy", [1.0, 0.9, 0.8])
def test_the_precision_of_a_search_is_that_of_its_judge(planted, world, accuracy):
    chance, known = random.Random(7), {one["id"]: one for one in world}

    def judge(task):
        said = []
        for one in task["papers"]:
            fits = known[one["id"]]["field"] == "kelp counting"
            fits = fits if chance.random() < accuracy else not fits
            said.append(PaperVerdict(id=one["id"], score=float(fits)))
        return Selected(papers=said)

    search = PaperSearch(planted, planner=REWRITES, style="pasa", selector=judge)
    found = search.search(KELP)
    gold = {one["id"] for one in world if one["field"] == "kelp counting"}
    kept = {one.id for one in found.papers if (one.score or 0) > 0.5}
    precision = len(kept & gold) / len(kept)
    assert precision == 1 if accuracy == 1 else precision >= accuracy - 0.15
    assert len(gold & set(found.ids)) / len(gold) >= 0.9


def test_a_selector_drops_only_what_breaks_a_limit(planted):
    found = PaperSearch(planted, style="sparse", selector=give(0.0)).search(KELP)
    assert len(found.ids) == found.n_seen
    dropped = PaperSearch(planted, style="sparse", selector=give(0.9, "out")).search(KELP)
    assert dropped.ids == []
    assert len(dropped.left_out) == dropped.n_seen


def test_every_paper_names_the_calls_that_found_it(planted):
    found = PaperSearch(planted).search(KELP)
    by_id = {one["id"]: one for one in found.actions}
    for paper in found.papers:
        assert paper.found_by
        assert all(paper.id in by_id[one["call"]]["ids"] for one in paper.found_by)
    firsts = [one.found_by[0]["call"] for one in (*found.papers, *found.left_out)]
    assert all(firsts.count(one["id"]) == one["new"] for one in found.actions)


def test_a_result_is_written_in_other_forms(planted):
    found = PaperSearch(planted, style="sparse").search("kelp counting, before 2019")
    assert "limits: year to 2018" in found.export("text", k=3)
    shown, left_out = found.export("text", k=1).split("left out:")
    assert shown.count("[pl") == 1
    assert left_out.count("[pl") == len(found.left_out) == 2
    assert found.export("bibtex", k=2).count("@article{ames") == 2
    assert found.export("ris", k=2).count("ER  - ") == 2
    assert found.export("csv", k=2).count("\n") == 3
    assert json.loads(found.export("json", k=1))["papers"][0]["rank"] == 1
    assert found.export("mermaid").startswith("flowchart LR\n  Q[")
    with pytest.raises(SettingsError, match="did you mean 'bibtex'"):
        found.export("bibtx")


def test_a_hostile_question_is_drawn_safely(planted):
    found = PaperSearch(planted, style="sparse").search('kelp "]; <script>x</script> & more')
    assert "<script>" not in found.export("mermaid")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"style": "scot"}, "did you mean 'scout'"),
        ({"style": "pasa"}, "needs a chat model or a planner"),
        ({"style": "rules", "planner": ["a"]}, "takes no planner"),
        ({"style": "dense"}, "needs vectors, and .* has none"),
        ({"selector": "llm"}, "needs a chat model"),
        ({"selector": 3}, "got 3"),
        ({"max_steps": 0}, "max_steps must be a whole number >= 1, got 0"),
    ],
)
def test_bad_settings_are_told(planted, how, message):
    with pytest.raises(SettingsError, match=message):
        PaperSearch(planted, **how)


def test_a_question_of_marks_alone_ends_with_a_status(planted):
    found = PaperSearch(planted, style="sparse").search("?!")
    assert [one["status"] for one in found.actions] == ["no_words"]
    assert found.ids == []


def test_a_runnable_may_plan(planted):
    found = PaperSearch(planted, planner=RunnableLambda(searches("kelp")), selector="rules").search(
        KELP
    )
    assert [one["text"] for one in found.actions] == ["kelp"]


def scouted(n, _):
    calls = [
        [{"tool": "search", "argument": "kelp"}, {"tool": "search", "argument": "seaweed cover"}],
        [{"tool": "citations", "argument": "pl000"}, {"tool": "references", "argument": "[pl005]"},
         {"tool": "references", "argument": "pl999"}],
    ]  # fmt: skip
    return {"thought": "on we go", "calls": calls[n - 1] if n <= len(calls) else []}


def test_a_chat_model_reads_limits_plans_and_judges(planted):
    model = Told(
        replies={"You read": lambda *_: LIMITS, "You look for": scouted, "You judge": judged}
    )
    found = PaperSearch(planted, planner=model).search(
        "kelp counting by anything but swarm search, up to 2022"
    )
    assert found.limits.exclude == ("swarm search",)
    assert [one["tool"] for one in found.actions] == [
        "search", "search", "citations", "references",
    ]  # fmt: skip
    assert found.stopped == "complete"
    assert any("'pl999' is not made: no such paper" in one for one in found.problems)
    assert all(one.paper.year <= 2022 for one in found.papers)
    assert {one.against for one in found.left_out} == {"swarm search"}
    assert all(one.quote in ("", "Work on") for one in found.papers)
    scores = [one.score for one in found.papers]
    assert scores == sorted(scores, reverse=True)
    assert set(found.usage) == {"understand", "plan", "judge"}


def test_queries_of_a_chat_model_are_those_of_pasa(planted):
    def queries(n, _):
        return {"thought": "", "queries": ["kelp counting", "seaweed cover"]}

    model = Told(replies={"You read": lambda *_: LIMITS, "You write": queries, "You judge": judged})
    found = PaperSearch(planted, planner=model, style="pasa").search(KELP)
    assert [one["text"] for one in found.actions][:2] == ["kelp counting", "seaweed cover"]
    assert {one["tool"] for one in found.actions[2:]} <= {"references"}
    assert len([one for one in model.asked if one[0] == "You write"]) == 1


def test_limits_that_a_model_cannot_read_are_read_by_rules(planted):
    model = Told(
        replies={
            "You read": lambda *_: "no idea",
            "You look for": lambda *_: {"thought": "", "calls": []},
        }
    )
    found = PaperSearch(planted, planner=model).search("kelp counting, not by divers, before 2015")
    assert (found.limits.exclude, found.limits.year_to) == (("divers",), 2014)
    assert any("were read by rules" in one for one in found.problems)


def test_a_doubtful_paper_counts_less_and_stays(planted):
    best = PaperSearch(planted, style="sparse").search(KELP).ids[0]

    def doubt(task):
        said = [
            PaperVerdict(id=one["id"], doubt=1.0 if one["id"] == best else 0.0)
            for one in task["papers"]
        ]
        return Selected(papers=said)

    found = PaperSearch(planted, style="sparse", selector=doubt).search(KELP)
    assert found.ids[-1] == best
    assert not found.left_out


def test_venues_that_the_base_does_not_know_are_told_before_a_search(planted):
    with pytest.raises(SettingsError, match="near it: ICRS"):
        PaperSearch(planted).search(KELP, scope=Scope(venues=("ICR",)))


def test_a_single_call_at_a_time_gives_the_same(planted):
    narrow = PaperSearch(planted, max_concurrency=1).search(KELP)
    assert narrow.ids == PaperSearch(planted).search(KELP).ids


def test_the_config_may_ask_for_fewer_calls_at_once(planted):
    in_flight = threading.Semaphore(1)
    together = []

    def judge(task):
        together.append(not in_flight.acquire(blocking=False))
        try:
            sleep(0.01)  # room for another call, were there one
            return give(score=1)(task)
        finally:
            if not together[-1]:
                in_flight.release()

    def plan(task):
        first = [Action(tool="search", text=one) for one in REWRITES]
        return SearchPlan(actions=first if task["step"] == 1 else [])

    PaperSearch(planted, planner=plan, selector=judge, judged=3).search(
        KELP, config={"max_concurrency": 1}
    )
    assert len(together) > 3
    assert not any(together)
