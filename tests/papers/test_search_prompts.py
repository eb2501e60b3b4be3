"""What chat models are shown in a search for papers, and what is made of their replies."""

import re

import pytest

from deepera_graph.papers import PaperBase
from deepera_graph.papers.agent.asking import choose_shown, name_limits, read_broken
from deepera_graph.papers.agent.graph import PaperSearch
from deepera_graph.papers.agent.limits import Limits
from deepera_graph.papers.agent.state import Action, PaperVerdict, SearchPlan, Selected
from papers.chat import LIMITS, Told, judged, prompts_of
from papers.world import write_lines

pytestmark = pytest.mark.full

ASKED = "Papers on kelp counting"
KELP = [
    {
        "id": f"k{number}",
        "title": f"Kelp counting, part {number}",
        "abstract": f"We count kelp by boats on site {number}. Rays were seen.",
        "year": 2010 + number,
        "references": ["r1", "x2"] if number == 1 else [],
    }
    for number in range(1, 13)
]
OTHERS = [
    {"id": "r1", "title": "Seaweed cover from the air", "abstract": "Drones map kelp beds."},
    {"id": "x2", "title": "Tuning church bells", "abstract": "A lathe lowers their pitch."},
    {"id": "x1", "title": "Counting votes", "abstract": "Ballots are counted by hand."},
    {"id": "s1", "title": "Kelp surveys: a survey", "abstract": "We list kelp studies."},
]
ANY = {"topic": "kelp counting", "exclude": [], "year_from": None, "year_to": None,
       "venues": [], "not_venues": [], "better": []}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kelp")
    source = write_lines(folder / "kelp.jsonl", [*KELP, *OTHERS])
    with PaperBase.build(folder / "kelp.papers", source) as made:
        yield made


def call(tool, argument, page=1):
    return {"tool": tool, "argument": argument, "page": page}


def scout(*rounds, names=()):
    """Return a role that makes the calls of each round, then ends."""

    def play(n, _):
        calls = rounds[n - 1] if n <= len(rounds) else []
        return {"thought": "on", "names": [*names], "calls": [*calls]}

    return play


def scored(**by_id):
    """Return a judge that gives scores by id, .9 to all others; a pair has a broken limit, too."""

    def select(task):
        papers = []
        for one in task["papers"]:
            said = by_id.get(one["id"], 0.9)
            score, against = said if isinstance(said, tuple) else (said, "")
            papers.append(
                PaperVerdict(
                    id=one["id"],
                    score=score,
                    verdict="out" if against else "in",
                    against=against,
                    quote="We count kelp" if score else "",
                    reason="told",
                )
            )
        return Selected(papers=papers)

    return select


def search(base, *rounds, limits=ANY, selector=None, names=(), **settings):
    """Return a search with a scout, and its model."""
    model = Told(
        replies={
            "You read": lambda *_: limits,
            "You look for": scout(*rounds, names=names),
            "You judge": judged,
        }
    )
    return PaperSearch(base, planner=model, selector=selector, **settings), model


def shown(prompt):
    """Return the lines of a prompt that show papers, by id."""
    return {one[1]: one[0] for one in re.finditer(r"(?m)^\[(\w+)\] .*$", prompt)}


def test_a_planner_is_told_how_many_calls_are_left_in_all_and_now(base):
    agent, model = search(
        base, [call("search", "kelp"), call("search", "boats")], [call("search", "rays")],
        selector=scored(), max_actions=7,
    )  # fmt: skip
    agent.search(ASKED)
    told = [re.search(r"Calls left: (.*)", one)[1] for one in prompts_of(model, "You look for")]
    assert told == [
        "7 in all, at most 5 of them now",
        "5 in all, at most 5 of them now",
        "4 in all, at most 4 of them now",
    ]


def test_papers_are_shown_by_id_with_score_quote_and_what_was_followed(base):
    agent, model = search(
        base, [call("search", "kelp")], [call("citations", "[k1]"), call("references", "k1")],
        selector=scored(k2=0.6, k3=(0.8, "boats")),
    )  # fmt: skip
    found = agent.search(ASKED)
    assert [(one["tool"], one["text"]) for one in found.actions][1:] == [
        ("citations", "k1"),
        ("references", "k1"),
    ]
    first, last = (shown(one) for one in prompts_of(model, "You look for")[1:])
    assert "score 0.60" in first["k2"]
    assert "“We count kelp”" in first["k2"]
    assert "breaks: boats" in first["k3"]
    assert "followed" not in first["k1"]
    assert "citations and references followed" in last["k1"]


def test_calls_that_are_not_made_are_told_in_the_next_round(base):
    again = [call("search", "Kelp"), call("references", "nope"), call("search", "rays", 0)]
    agent, model = search(base, [call("search", "kelp")], again, selector=scored(), patience=3)
    found = agent.search(ASKED)
    told = prompts_of(model, "You look for")[2].partition("not made:\n")[2]
    assert "search 'Kelp' was made before, as S1, and is not repeated" in told
    assert "references 'nope' is not made: no such paper was found" in told
    assert "search 'rays': page 0 does not exist" in told
    assert any("round 2: search 'Kelp' was made before" in one for one in found.problems)


def test_what_is_unrelated_takes_no_place_among_the_papers_shown(base):
    unrelated = {f"k{number}": 0.0 for number in range(1, 11)}
    agent, model = search(base, [call("search", "kelp counting")], selector=scored(**unrelated))
    found = agent.search(ASKED)
    last = prompts_of(model, "You look for")[1]
    assert not unrelated.keys() & shown(last).keys()
    line = re.search(r"(?m)^S1 .*$", last)[0]
    new, kept = map(int, re.search(r"(\d+) new, (\d+) of these kept", line).groups())
    assert new == 10
    assert kept == len({*found.actions[0]["ids"]} - unrelated.keys()) < new


def test_ten_of_the_best_are_shown_and_ten_of_the_newest(base):
    def paper(number, step, **more):
        plain = {"score": 1 - number / 100, "verdict": "in", "fits": True, "step": step}
        return {"id": f"p{number}", **plain, **more}

    pool = [paper(number, 1 if number < 30 else 2) for number in range(40)]
    pool.append(paper(40, 3, score=0.001, fits=False))
    pool.append(paper(41, 3, score=0.9, verdict="out"))
    ids = [one["id"] for one in choose_shown(pool)]
    assert ids[:10] == [f"p{number}" for number in range(10)]
    assert ids[10:] == ["p41", *(f"p{number}" for number in range(30, 39))]


def test_a_chat_model_makes_five_calls_a_round_at_most(base):
    words = ["kelp", "boats", "site", "rays", "cover", "drones", "votes"]
    agent, model = search(base, [call("search", one) for one in words], selector=scored())
    found = agent.search(ASKED)
    assert [one["text"] for one in found.actions] == words[:5]
    assert "2 of 7 calls are not made" in prompts_of(model, "You look for")[1]


def test_a_call_brings_ten_papers_and_its_second_page_the_rest(base):
    agent, model = search(
        base, [call("search", "kelp counting")], [call("search", "kelp counting", 2)],
        selector=scored(),
    )  # fmt: skip
    found = agent.search(ASKED)
    first, second = found.actions
    assert (first["found"], first["more"], second["more"]) == (10, True, False)
    assert not {*first["ids"]} & {*second["ids"]}
    assert "10 found, more on the next page" in prompts_of(model, "You look for")[1]
    assert "“kelp counting”, page 2: ok" in prompts_of(model, "You look for")[2]


def test_paperscout_drops_what_scores_below_a_hundredth(base):
    agent, _ = search(base, [call("search", "kelp")], selector=scored(k4=0.009, k5=0.01))
    found = agent.search(ASKED)
    assert "k5" in found.ids
    (dropped,) = found.left_out
    assert (dropped.id, dropped.verdict) == ("k4", "in")
    assert dropped.reason == "scored below 0.01: told"


def test_the_topic_without_limits_is_in_every_later_prompt(base):
    agent, model = search(base, [call("search", "kelp")], limits=LIMITS)
    agent.search("kelp counting by anything but swarm search, up to 2022")
    for name in ("You look for", "You judge"):
        prompt = prompts_of(model, name)[0]
        assert "Topic: kelp counting\n" in prompt
        assert "Limits: L1: swarm search (left out); L2: up to 2022\n" in prompt


def test_other_names_of_the_subject_are_shown_from_then_on_and_to_the_judge(base):
    agent, model = search(
        base, [call("search", "kelp")], [call("search", "cover")], names=["seaweed cover"]
    )
    agent.search(ASKED)
    told = [re.search(r"names of the subject: (.*)", one)[1] for _, one in model.asked[1:]]
    assert told == ["none", *["seaweed cover"] * (len(told) - 1)]
    assert len(prompts_of(model, "You judge")) == 2


def test_a_limit_is_named_in_one_form_whatever_a_model_writes():
    limits = Limits(
        question="q",
        topic="t",
        exclude=("genetic algorithms",),
        year_to=2018,
        better=("boats", "drones"),
    )
    assert name_limits(limits) == {
        "L1": "genetic algorithms",
        "L2": "up to 2018",
        "L3": "boats better than drones",
    }
    for said in ("L1", "l1.", "L1: genetic algorithms", "exclude: genetic algorithms", "Genetic "
                 "algorithms"):  # fmt: skip
        assert read_broken(said, limits) == "genetic algorithms"
    assert read_broken("L3", limits) == "boats better than drones"
    assert [read_broken(one, limits) for one in ("", "none", "L9", " - ")] == [""] * 4


@pytest.mark.parametrize("said", ["L1", "exclude: swarm search"])
def test_a_paper_on_the_topic_that_breaks_a_limit_keeps_its_score_and_is_left_out(base, said):
    def judge(_, prompt):
        entries = re.findall(r"(?m)^\[(\d+)\] (.*)$", prompt)
        return {
            "papers": [
                {"paper": int(n), "reason": "", "quote": "", "score": 0.9,
                 "breaks": said if "part 3" in line else "none"}
                for n, line in entries
            ]
        }  # fmt: skip

    model = Told(
        replies={
            "You read": lambda *_: LIMITS,
            "You look for": scout([call("search", "kelp")]),
            "You judge": judge,
        }
    )
    found = PaperSearch(base, planner=model).search(ASKED)
    (out,) = found.left_out
    assert (out.id, out.score, out.against) == ("k3", 0.9, "swarm search")


def test_the_judge_has_a_rule_for_surveys_and_for_comparisons_that_fail(base):
    agent, model = search(base, [call("search", "kelp")], limits={**ANY, "better": ["A", "B"]})
    agent.search(ASKED)
    assert "L1: A better than B" in prompts_of(model, "You judge")[0]
    rules = model.systems["You judge"]
    assert "A survey or an overview of the topic has no approach of its own: it scores 0.5" in rules
    assert "a paper that tests both and finds B ahead, or no difference" in rules


def test_papers_far_from_the_topic_are_not_shown_to_a_paid_judge(base):
    rounds = ([call("search", "kelp counting part 1")], [call("references", "k1")])
    spared, whole = search(base, *rounds), search(base, *rounds, screen=-1.0)
    for (agent, model), is_judged in ((spared, False), (whole, True)):
        found = agent.search(ASKED)
        prompts = "\n".join(prompts_of(model, "You judge"))
        assert "Seaweed cover from the air" in prompts
        assert ("Tuning church bells" in prompts) is is_judged
        (far,) = (one for one in (*found.papers, *found.left_out) if one.id == "x2")
        assert (far.score is None, far.fits) == (not is_judged, False)
        assert far.reason == ("told" if is_judged else "too far from the topic to be judged")
        assert found.has_failed is False


def rounds_of(found):
    return [(one["step"], one["tool"], one["text"]) for one in found.actions]


def spar(base, *, reorder, **settings):
    """Return what SPAR finds with a chat model, and the model."""

    def evolve(_, prompt):
        return {
            "thought": "",
            "names": ["seaweed cover"],
            "papers": [
                {"paper": id, "queries": [f"grown from {id}", "boats"]} for id in shown(prompt)
            ],
        }

    model = Told(
        replies={
            "You read": lambda *_: ANY,
            "You write the first": lambda *_: {
                "thought": "", "whole": "kelp boats", "parts": ["rays", "site"]
            },
            "which grow out of single": evolve,
            "You judge": judged,
            "You order": reorder,
        }
    )  # fmt: skip
    return PaperSearch(base, planner=model, style="spar", **settings).search(ASKED), model


def test_spar_joins_the_question_into_queries_and_grows_others_out_of_single_papers(base):
    found, model = spar(base, reorder=lambda *_: {"ids": []})
    steps = rounds_of(found)
    assert [one[2] for one in steps if one[0] == 1] == [
        "kelp counting", "kelp boats", "rays", "site",
    ]  # fmt: skip
    assert {one[1] for one in steps if one[0] == 2} == {"references"}
    (prompt,) = prompts_of(model, "which grow out of single")
    seeds = [*shown(prompt)]
    assert len(seeds) == 2
    assert "We count kelp by boats" in prompt
    assert [one[2] for one in steps if one[0] == 3] == [
        f"grown from {seeds[0]}", "boats", f"grown from {seeds[1]}",
    ]  # fmt: skip


def test_spar_has_the_best_papers_ordered_by_a_role_of_their_own(base):
    def turn(_, prompt):
        return {"ids": [*reversed(shown(prompt)), "made up"]}

    plain, _ = spar(base, reorder=lambda *_: "no idea")
    turned, model = spar(base, reorder=turn)
    assert turned.ids == [*reversed(plain.ids[:20]), *plain.ids[20:]]
    assert "score 0.90" in prompts_of(model, "You order")[0]
    assert any("keep the order of their scores" in one for one in plain.problems)
    assert turned.usage["reorder"].calls == 1


def test_spar_follows_a_paper_that_scores_just_half(base):
    def plan(task):
        return SearchPlan(actions=[Action(tool="search", text="kelp")])

    half = {f"k{number}": 0.2 for number in range(2, 13)} | {
        "k1": 0.5,
        "s1": 0.2,
        "r1": 0.2,
        "x2": 0.2,
    }
    found = PaperSearch(base, planner=plan, style="spar", selector=scored(**half)).search(ASKED)
    assert [one[2] for one in rounds_of(found) if one[1] == "references"] == ["k1"]
    pasa = PaperSearch(base, planner=plan, style="pasa", selector=scored(**half)).search(ASKED)
    assert not [one for one in rounds_of(pasa) if one[1] == "references"]


def test_pasa_follows_no_paper_that_nobody_judged(base):
    queries = ["kelp counting", "boats on site"]
    agent = PaperSearch(
        base, planner=queries, style="pasa", selector=scored(), judged=3, max_judged=3
    )
    found = agent.search(ASKED)
    followed = {one["text"] for one in found.actions if one["tool"] == "references"}
    assert followed == {one.id for one in found.papers if one.verdict == "in"}
    assert len(followed) == 3


def test_rounds_that_bring_only_what_does_not_fit_end_the_search(base):
    rounds = [[call("search", one)] for one in ("kelp", "votes", "drones", "boats", "site")]
    unrelated = dict.fromkeys(("x1", "r1", "s1", *(f"k{n}" for n in range(1, 13))), 0.1)
    agent, _ = search(base, *rounds, selector=scored(**unrelated))
    found = agent.search(ASKED)
    assert (found.stopped, found.steps) == ("no_gain", 2)
    assert [one["kept"] for one in found.actions] == [0, 0]
