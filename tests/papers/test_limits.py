"""Limits of a question, read by rules."""

import pytest
from langchain_core.documents import Document

from deepera_graph.papers import Scope
from deepera_graph.papers.agent.limits import (
    Limits,
    breaks_by_facts,
    find_kinds,
    goes_by_words,
    leave_out,
    says,
)
from deepera_graph.papers.agent.limits.reading import read_limits
from deepera_graph.papers.agent.planners import find_labels, subject_of

VENUES = ("NORDAI", "ICRS", "ACL")


def read(text, **how):
    found = read_limits(text, venues=VENUES, **how).to_dict()
    found.pop("question")
    return found


@pytest.mark.parametrize(
    ("text", "exclude", "topic"),
    [
        ("kelp counting, excluding drones", ["drones"], "kelp counting"),
        ("kelp counting, but not by drones", ["drones"], "kelp counting"),
        ("kelp counting without any drones", ["drones"], "kelp counting"),
        ("kelp counting with methods other than drones", ["drones"], "kelp counting with methods"),
        ("kelp counting, except under cloud cover", ["cloud cover"], "kelp counting"),
        ("kelp counting, leaving out those built on drones", ["drones"], "kelp counting"),
        ("kelp counting that does not use drones", ["drones"], "kelp counting"),
        ("kelp counting, not about drones or boats", ["drones", "boats"], "kelp counting"),
        ("kelp counting, excluding news and blogs", ["news", "blogs"], "kelp counting"),
        ("compare sonar and nets but do not use drones", ["drones"], "compare sonar and nets"),
        ("kelp counting instead of fish counting", ["fish counting"], None),
        ("kelp counting beyond drones", ["drones"], None),
        ("kelp counting by boats rather than drones", ["drones"], None),
        (
            "Which robots work inside pipes? Not about swimming.",
            ["swimming"],
            "Which robots work inside pipes?",
        ),
    ],
)
def test_what_is_left_out_is_kept_apart_from_the_topic(text, exclude, topic):
    found = read(text)
    assert found["exclude"] == exclude
    if topic is not None:
        assert found["topic"] == topic
    assert set(found) == {"topic", "exclude"}


def test_a_list_with_commas_is_left_out_one_by_one():
    found = read("kelp counting, excluding drones, surveys and editorials")
    assert (found["exclude"], found["not_types"]) == (["drones"], ["review", "editorial"])


def test_what_is_asked_for_is_not_left_out_and_is_told():
    found = read("kelp, excluding kelp")
    assert "exclude" not in found
    assert found["notes"] == ["'kelp' is what is asked for, and is not left out"]


@pytest.mark.parametrize(
    ("sentence", "phrase", "expected"),
    [
        ("Vitamin D in schoolchildren", "children", True),
        ("A pediatric clinic", "children", True),
        ("First-principles phonon transport", "first-principles calculations", True),
        ("Wild bees declined", "honey bees", None),
        ("Hives of honeybees", "honey bees", True),
        ("Deeper GNNs", "graph neural networks", True),
        ("A graph neural network", "GNN", True),
        ("Yields of plants", "ants", None),
        ("No effect on weight was seen in mice", "mice", True),
        ("Drones were not flown", "drones", False),
        ("Divers see more than drones", "drones", False),
    ],
)
def test_a_sentence_says_denies_or_does_not_name_what_is_left_out(sentence, phrase, expected):
    assert says(sentence, phrase) is expected


@pytest.mark.parametrize(
    ("sentence", "phrase", "topic", "expected"),
    [
        ("Wild bees declined.", "honey bees", "pesticides", True),
        ("Bumblebees declined.", "honeybees", "pesticides", True),
        ("Nests were counted.", "honeybees", "bumblebee colonies", True),
        ("Nests were counted.", "honeybees", "wasps", False),
        ("Rats drank tea.", "mice", "tea", False),
    ],
)
def test_nearness_says_nothing_where_part_of_a_phrase_is_meant_by_others(
    sentence, phrase, topic, expected
):
    assert goes_by_words(sentence, phrase, topic) is expected


@pytest.mark.parametrize(
    ("title", "kinds"),
    [
        ("Kelp from drones: a systematic review", {"review"}),
        ("Peer review of kelp counts", set()),
        ("A survey of kelp by volunteers", set()),
        ("Counting kelp: protocol for a trial", {"protocol"}),
        ("Kelp for sleep: a cluster trial", {"trial"}),
        ("Kelp for sleep: a single-arm phase 2 trial", {"trial"}),
        ("Kelp for sleep: a non-randomised controlled trial", {"trial"}),
        ("Kelp for sleep: a cluster-randomised, open-label trial", {"trial", "randomised trial"}),
        ("Kelp for sleep: an RCT", {"trial", "randomised trial"}),
        ("Kelp or tea: an open-label, noninferiority trial", {"trial"}),
        ("Kelp on trial", set()),
        ("Kelp: a systematic review and meta-analysis", {"review", "meta-analysis"}),
        (
            "Systematic review and individual participant data meta-analysis of kelp",
            {"review", "meta-analysis"},
        ),
        ("Kelp: protocol for a systematic review and meta-analysis", {"protocol"}),
        ("Kelp and meta-analysis", set()),
    ],
)
def test_a_title_says_what_kind_a_paper_is(title, kinds):
    assert set(find_kinds(title, "", "")) == kinds


def test_a_review_is_left_out_with_the_words_that_say_it_is_one():
    paper = {"title": "Kelp", "abstract": "Kelp grows. This review counts it.", "year": 2020}
    limits = Limits(question="?", topic="?", not_types=("review",))
    assert breaks_by_facts(paper, limits) == ("no reviews", "This review counts it.")
    assert breaks_by_facts(paper, Limits(question="?", topic="?", types=("review",))) == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        "how does kelp grow without lowering the rate of division?",
        "do consecutive primes avoid ending in the same digit?",
        "kelp with and without drones",
        "deaths of kelp in 2020",
        "kelp counting, not without drones",
        "kelp counting, not only by drones",
        "kelp counting and whether or not it pays",
        "is there no method for kelp counting?",
    ],
)
def test_what_only_looks_like_an_exclusion_is_none(text):
    assert not read(text).keys() & {"exclude", "year_from", "year_to"}


@pytest.mark.parametrize(
    ("text", "years"),
    [
        ("kelp, before 2019", {"year_to": 2018}),
        ("kelp, published up to 2019", {"year_to": 2019}),
        ("kelp, no later than 2019", {"year_to": 2019}),
        ("kelp since 2019", {"year_from": 2019}),
        ("kelp, published after 2018", {"year_from": 2019}),
        ("kelp, published in 2019 or later", {"year_from": 2019}),
        ("kelp, from 2012 on", {"year_from": 2012}),
        ("kelp, in 2012?", {"year_from": 2012, "year_to": 2012}),
        ("kelp, 2012 only", {"year_from": 2012, "year_to": 2012}),
        ("kelp deaths, in 2012, of otters", {}),
        ("kelp deaths in 2012", {}),
        ("kelp from 2019 on", {"year_from": 2019}),
        ("kelp between 2012 and 2015", {"year_from": 2012, "year_to": 2015}),
        ("kelp from 2012-2015", {"year_from": 2012, "year_to": 2015}),
        ("kelp, no older than 2019", {"year_from": 2019}),
        ("kelp in the 2010s", {"year_from": 2010, "year_to": 2019}),
        ("kelp, past decade", {"year_from": 2015}),
        ("kelp, pre-2010", {"year_to": 2009}),
        ("kelp, nothing before 2000", {"year_from": 2000}),
        ("kelp, not from 2017", {"not_years": [2017]}),
        ("kelp in the last five years", {"year_from": 2020}),
        ("kelp counting on KelpBench-2017", {}),
    ],
)
def test_years_in_words_are_read_inclusively(text, years):
    found = read(text, as_of="2024-06")
    topic = found.pop("topic")
    assert found == years
    assert topic.startswith("kelp")


def test_the_last_years_need_a_date_of_asking():
    found = read("kelp in the last five years")
    assert "year_from" not in found
    assert "needs a date of asking" in found["notes"][0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kelp in trials with more than 300 participants", "more than 300 participants"),
        ("kelp, studies of at least 1,000 patients", "studies of at least 1,000 patients"),
        ("kelp (n ≥ 100)", "n >= 100"),
        ("kelp, sample size above 200, since 2015", "sample size above 200"),
        ("kelp: only those with 200+ subjects", "200+ subjects"),
        ("Do hospitals with more than 300 patients buy kelp?", None),
        ("Does a study time of more than 30 minutes help students?", None),
        ("Does walking over 10,000 steps help people?", None),
    ],
)
def test_a_limit_on_size_is_told_as_none_is_applied(text, said):
    notes = read(text).get("notes", [])
    assert notes == ([f"a limit on size is not applied: {said!r}"] if said else [])


@pytest.mark.parametrize(
    ("text", "venues"),
    [
        ("kelp, only at ICRS", {"venues": ["ICRS"]}),
        ("kelp, published at ACL", {"venues": ["ACL"]}),
        ("kelp, not those at NORDAI", {"not_venues": ["NORDAI"]}),
        ("kelp at ICRS or ACL", {"venues": ["ICRS", "ACL"]}),
        ("kelp, only at ICRS or ACL", {"venues": ["ICRS", "ACL"]}),
    ],
)
def test_venues_are_read(text, venues):
    assert read(text) == {"topic": "kelp", **venues}


def test_a_comparison_has_a_direction():
    text = "Which papers report better results for drones than for boats in kelp counting?"
    assert read(text)["better"] == ["drones", "boats"]
    assert read("papers that show that boats outperform drones in kelp")["better"] == [
        "boats",
        "drones",
    ]


def test_limits_only_narrow_what_the_caller_lets_be_seen():
    limits = Limits(question="?", topic="?", year_from=2010, year_to=2020, not_venues=("ICRS",))
    scope, notes = limits.narrow(Scope(year_from=2015, hide=("a",)), VENUES)
    assert scope == Scope(year_from=2015, year_to=2020, hide=("a",), not_venues=("ICRS",))
    assert notes == ()


def test_limits_that_the_base_cannot_keep_are_named():
    limits = Limits(question="?", topic="?", year_from=2022, venues=("KELPCON",))
    scope, notes = limits.narrow(Scope(year_to=2015), VENUES)
    assert scope == Scope(year_to=2015)
    assert "no year is from 2022 and up to 2015" in notes[0]
    assert "'KELPCON'" in notes[1]


def test_limits_survive_json():
    limits = read_limits("kelp, not by drones, since 2019, only at ACL", venues=VENUES)
    assert Limits.from_dict(limits.to_dict()) == limits


def test_the_subject_has_no_words_that_only_ask():
    assert subject_of("Are there any papers that explore kelp counting by boats?") == (
        "kelp counting by boats?"
    )
    assert subject_of("papers") == "papers"


def test_labels_that_recur_are_found_whatever_their_writing():
    titles = [
        "Team Ebb at KelpEval-2019 Task 3: weeds",
        "Tolvan at kelpeval 2019 task 3",
        "KelpEval-2018 Task 11: overview",
        "Counting kelp",
    ]
    assert find_labels(titles) == ["KelpEval-2019 Task 3", "KelpEval-2018 Task 11"]


@pytest.mark.parametrize(
    ("question", "topic", "limits"),
    [
        ("Does tea help, since 2015, excluding reviews?", "Does tea help?",
         {"year_from": 2015, "not_types": ["review"]}),
        ("Does tea help (2015 or later, no reviews)?", "Does tea help?",
         {"year_from": 2015, "not_types": ["review"]}),
        ("Does tea help? Only trials, published after 2010.", "Does tea help?",
         {"year_from": 2011, "types": ["trial"]}),
        ("Does tea help, not before 2015 and no reviews?", "Does tea help?",
         {"year_from": 2015, "not_types": ["review"]}),
        ("Does tea help children, excluding infants, since 2015?",
         "Does tea help children, excluding infants?", {"year_from": 2015}),
        ("Does tea help sleep, excluding animals and preprints?",
         "Does tea help sleep, excluding animals?", {"not_types": ["preprint"]}),
        ("Does tea help sleep, excluding reviews, mice and rats?",
         "Does tea help sleep, excluding mice and rats?", {"not_types": ["review"]}),
        ("Does tea help sleep, excluding animals?", None, {}),
        ("Have deaths fallen since 2015?", None, {}),
        ("Have deaths in Norway, between 1990 and 2000, fallen?", None, {}),
        ("Since 2015, have deaths fallen?", None, {}),
        ("How did rents move, 2008 to 2012?", None, {}),
        ("Do trials only report benefits?", None, {}),
        ("Does wax keep apples firm, without cooling?", None, {}),
    ],
)  # fmt: skip
def test_apart_are_limits_at_the_end_of_a_question_alone(question, topic, limits):
    found = read_limits(question, apart=True).to_dict()
    assert found == {"question": question, "topic": topic or question, **limits}


@pytest.mark.parametrize(
    "said",
    [
        "1,200 children underwent randomization.",
        "Children were randomly allocated to tea.",
        "Adults were randomized to tea or water.",
        "We randomly assigned adults to tea.",
        "In a randomised trial of 90 adults, tea did not help.",
    ],
)
def test_a_trial_says_so_in_many_ways(said):
    assert set(find_kinds("Tea and sleep", said, "")) == {"trial", "randomised trial"}


@pytest.mark.parametrize(
    ("said", "is_trial"),
    [
        ("In an uncontrolled single-arm trial, 40 adults drank tea.", True),
        ("We conducted a prospective, non-randomised trial of tea.", True),
        ("In a quasi-randomised trial, 40 adults drank tea.", True),
        ("This was an open-label trial; adults were not randomised.", True),
        ("In a double-blind trial, adults drank tea or water.", True),
        ("Tea should next be tested in a randomised trial.", False),
        ("In a recent trial tea helped; we asked 40 adults why.", False),
        ("We searched for non-randomised trials of tea.", False),
    ],
)
def test_a_trial_need_not_be_randomised(said, is_trial):
    assert list(find_kinds("Tea and sleep", said, "")) == ["trial"] * is_trial


def test_only_randomised_trials_leave_out_others():
    texts = {
        "random": "We randomised 40 adults to tea.",
        "single": "In an uncontrolled single-arm trial, 40 adults drank tea.",
        "not": "In a non-randomised controlled trial, 40 adults drank tea.",
        "cohort": "We followed a cohort of 40 adults who drank tea.",
    }
    given = [
        Document(id=id, page_content=text, metadata={"title": f"Tea {id}"})
        for id, text in texts.items()
    ]
    kept = {
        asked: [one.id for one in leave_out(given, read_limits(f"Tea? {asked}.", apart=True))[0]]
        for asked in ("Only trials", "Only randomised trials", "RCTs only", "No randomised trials")
    }
    assert kept == {
        "Only trials": ["random", "single", "not"],
        "Only randomised trials": ["random"],
        "RCTs only": ["random"],
        "No randomised trials": ["single", "not", "cohort"],
    }
    out = leave_out(given, read_limits("Tea? Only randomised trials.", apart=True))[1]
    assert {why for _, why in out} == {"only randomised trials"}


def test_trials_that_are_not_randomised_are_not_read_as_those_that_are():
    assert "types" not in read_limits("Tea? Non-randomised trials only.", apart=True).to_dict()
    assert read_limits("tea, non-randomised trials only").types == ("trial",)


def test_passages_of_a_study_break_a_limit_together():
    record = {"title": "Wax on apples", "doi": "10.1000/a"}
    passages = [
        Document(id="a.pdf#1", page_content="We waxed.", metadata={**record, "part": 1}),
        Document(id="r", page_content="Apples.", metadata={**record, "year": 2012}),
        Document(id="b.pdf#1", page_content="We waxed.", metadata={"title": "Pears", "part": 1}),
        Document(id="c", page_content="We waxed.", metadata={"title": "Plums", "year": 2020}),
    ]
    limits = Limits(question="?", topic="?", year_from=2015, types=("trial",))
    kept, out = leave_out(passages, limits)
    assert [one.id for one in kept] == ["b.pdf#1"]  # another piece may say that it is a trial
    assert [(one.id, why) for one, why in out] == [
        ("a.pdf#1", "from 2015 on"),
        ("r", "from 2015 on"),
        ("c", "only trials"),
    ]


def test_a_preprint_is_known_by_its_server_unless_its_article_is_there_too():
    draft = {"title": "Wax on apples", "doi": "10.1101/2022.05.05.555123", "year": 2022}
    article = {"title": "Wax on pears", "doi": "10.1000/p", "venue": "Fruit", "year": 2023}
    record = {**article, "doi": "10.1101/2022.06.06.666123", "venue": "bioRxiv"}
    passages = [
        Document(id=id, page_content="We waxed.", metadata={**about, "authors": ["Roy, A."]})
        for id, about in (("a", draft), ("b", article), ("c", record))
    ]
    _, out = leave_out(passages, Limits(question="?", topic="?", not_types=("preprint",)))
    assert [(one.id, why) for one, why in out] == [("a", "no preprints")]


def test_a_year_in_which_papers_on_a_topic_were_published_has_an_end():
    found = read_limits("papers published in 2012 on kelp")
    assert (found.topic, found.year_from, found.year_to) == ("papers on kelp", 2012, 2012)
