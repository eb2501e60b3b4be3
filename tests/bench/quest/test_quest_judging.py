"""How pairs are judged: grades and quotes that count, disagreement, quorum, and biased judges."""

import pytest

from bench.quest.conftest import read
from bench.quest.scripted import Scripted
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.lab.quest.asking import PACKAGE, PairGrade, find_evidence, read_grade
from deepera_graph.lab.quest.judging import Pair, needs_ruling
from deepera_graph.papers.paper import Paper
from deepera_graph.prompts import text_of
from papers.planted import METHODS

pytestmark = pytest.mark.full

PAPER = Paper(id="p", title="Kelp counting from kites", abstract="We fly kites. They see kelp.")


@pytest.mark.parametrize(
    ("grades", "wanted"),
    [
        ([2, 2, 2], False), ([2, 2, 1], True), ([2, 1, 1], False), ([2, 2, 0], True),
        ([0, 0, 2], True), ([2, 1], True), ([1, 0], False), ([1, 1, 0], False), ([2], False),
    ],
)  # fmt: skip
def test_a_spread_of_2_or_a_mean_within_half_of_the_threshold_is_settled(grades, wanted):
    assert needs_ruling(grades, tau=2) is wanted


@pytest.mark.parametrize(
    ("grades", "grade"), [([2, 2, 2], 2), ([2, 1, 1], 1), ([1, 0], 0), ([0, 1, 1], 1)]
)
def test_the_grade_is_the_lower_median_of_the_judges(grades, grade):
    said = {str(place): PairGrade(one) for place, one in enumerate(grades)}
    assert Pair(PAPER, said).grade == grade


def test_a_ruling_settles_and_what_the_last_filter_takes_out_is_a_partial_match():
    pair = Pair(PAPER, {"a": PairGrade(2), "b": PairGrade(0)}, ruling=PairGrade(2))
    assert (pair.grade, pair.is_settled) == (2, True)
    pair.dropped = "technique"
    assert pair.grade == 1
    assert Pair(PAPER, pair.said, ruling=PairGrade(failure="no")).grade == 0


@pytest.mark.parametrize(
    ("written", "grade"),
    [(2, 2), (0, 0), ("1", 1), (2.0, 2), (1.5, None), ("1.5", None), (3, None), (-1, None),
     (True, None), (None, None), ("two", None), ([2], None)],
)  # fmt: skip
def test_a_grade_is_0_1_or_2_and_nothing_between(written, grade):
    assert read_grade(written) == grade


def test_a_quote_stands_in_title_or_abstract_or_is_none():
    assert find_evidence(PAPER, "Kelp counting from kites") == "Kelp counting from kites"
    assert find_evidence(PAPER, " We fly  kites. ") == "We fly kites."
    assert find_evidence(PAPER, "We fly balloons over kelp") == ""


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("Q-learning", "Q-learning"),
        ("q-LEARNING", "Q-learning"),
        ("deep q‑learning", "Deep Q-learning"),
        ("Edge  devices", "edge\ndevices"),
        ("graph neural networks", "Graph Neural Networks"),
        ('"kites".', "kites"),
        ("learning", ""),  # only a part of a compound
        ("edge", "edge"),
        ("kite", ""),
        ("on", ""),
        (" . ", ""),
    ],
)
def test_a_short_quote_or_one_in_another_case_counts_if_it_is_whole_and_says_something(
    quote, found
):
    paper = Paper(
        id="p",
        title="Deep Q-learning on edge\ndevices",
        abstract="İstanbul: we fly kites, and train Graph Neural Networks on what they see.",
    )
    assert find_evidence(paper, quote) == found


def bent(planted, change, name="bent"):
    """A judge whose entries of a reply are changed one by one."""

    def bend(text, reply):
        shown = planted.shown(text)
        query = Scripted.question_of(text)
        entries = [change(query, shown[one["paper"]], one) for one in reply["papers"]]
        return {"papers": [one for many in entries for one in many]}

    return Scripted(model_name=name, planted=planted, bend={"grade": bend})


@pytest.mark.full
def test_the_cause_of_a_strict_grade_that_does_not_count_is_true(build, planted):
    quotes = ["", "of the", "balloons"]

    def change(query, paper, one):
        return [{**one, "grade": 2, "quote": quotes[one["paper"] % 3]}]

    judges = [*(Scripted(model_name=one, planted=planted) for one in "ab"), bent(planted, change)]
    result = build(judges=judges, max_hops=0, max_scored=10)
    told = {one["failures"]["bent"] for one in read(result.folder, "judgements.jsonl")}
    whys = ["none is given", "'of the' says nothing", "'balloons' is in neither title nor abstract"]
    assert told == {f"a grade of 2 needs a quote, and {why}" for why in whys}


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("no_grade", lambda query, paper, one: [{**one, "grade": 1.5}]),
        ("several_grades", lambda query, paper, one: [one, {**one, "grade": 0}]),
        ("forgotten", lambda query, paper, one: []),
        ("no_evidence", lambda query, paper, one: [{**one, "grade": 2, "quote": "It is known."}]),
    ],
)
def test_a_grade_that_does_not_count_is_a_failure_and_never_a_0(build, planted, kind, change):
    sound = [Scripted(model_name=one, planted=planted) for one in "ab"]
    result = build(judges=[*sound, bent(planted, change)], max_hops=0, max_scored=10)
    for one in read(result.folder, "records.jsonl"):
        assert one["failed_grades"] == {"bent": {kind: one["scored"]}}
        assert one["judges"] == {"asked": ["a", "b", "bent"], "quorum": 2}
        assert one["unjudged"] == {}
    for one in read(result.folder, "judgements.jsonl"):
        assert set(one["grades"]) == {"a", "b"}
        assert set(one["failures"]) == {"bent"}


@pytest.mark.full
def test_a_pair_without_a_quorum_is_unjudged_and_not_a_0(build, planted):
    dropped = planted.papers[0]

    def change(query, paper, one):
        return [] if paper is dropped else [one]

    judges = [bent(planted, change, "a"), bent(planted, change, "b"),
              Scripted(model_name="c", planted=planted)]  # fmt: skip
    result = build(judges=judges, max_hops=0, max_scored=40)
    [unjudged] = {tuple(one["unjudged"]) for one in read(result.folder, "records.jsonl")}
    assert unjudged == (dropped["id"],)
    assert dropped["id"] not in {one["paper_id"] for one in read(result.folder, "judgements.jsonl")}


def down(planted, name):
    """A judge whose server is gone."""

    def refuse(text, reply):
        raise ConnectionError("the server is gone")

    model = Scripted(model_name=name, planted=planted, bend={"grade": refuse})
    return llm_backend(model, retry={"attempts": 1})


def test_a_judge_that_is_down_leaves_the_others_and_is_named(build, planted):
    judges = [Scripted(model_name=one, planted=planted) for one in "ab"]
    result = build(judges=[*judges, down(planted, "down")], max_hops=0, max_scored=10)
    for one in read(result.folder, "records.jsonl"):
        assert set(one["failed_grades"]["down"]) == {"down"}
    assert all("calls failed" in cause for cause in result.failed.values())
    assert len(result.failed) == 4


def test_no_quorum_at_all_ends_the_run_and_says_why(build, planted):
    judges = [Scripted(model_name="a", planted=planted)]
    judges += [down(planted, one) for one in "bc"]
    with pytest.raises(BackendError, match="2 of 3 judges cannot be asked, and a grade needs 2"):
        build(judges=judges)


def test_the_same_model_twice_is_one_opinion(build, planted):
    judges = [Scripted(model_name="same", planted=planted) for _ in range(2)]
    with pytest.raises(SettingsError, match="'same' twice"):
        build(judges=judges)


# The four kinds of error that the audit of ScholarQuest found (Table 9), each as a judge.


def over_credit(query, paper, one, planted):
    """Keyword over-crediting: naming the method is using it."""
    named = [word for word in METHODS if word in query]
    has = paper["field"] in query and any(word in paper["abstract"] for word in named)
    return 2 if has and "other than" not in query else one["grade"]


def match_strictly(query, paper, one, planted):
    """Over-strict claim matching: a claim counts only in the question's words."""
    return min(one["grade"], 1) if "report results above" in query else one["grade"]


def presume(query, paper, one, planted):
    """Implicit-knowledge overuse: what such papers usually do counts as said."""
    return 2 if paper["field"] in query else one["grade"]


def match_terms(query, paper, one, planted):
    """Terminology mismatch: a method under another name is not the method."""
    named = [word for word in METHODS if word in query and "relies on" in query]
    text = f"{paper['title']} {paper['abstract']}".lower()
    return min(one["grade"], 1) if named and named[0] not in text else one["grade"]


BIASES = {"over_credit": over_credit, "match_strictly": match_strictly,
          "presume": presume, "match_terms": match_terms}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("bias", BIASES)
def test_a_biased_judge_errs_alone_and_is_overruled_among_three(build, planted, tmp_path, bias):
    def change(query, paper, one):
        grade = BIASES[bias](query, paper, one, planted)
        quote = "as everybody knows" if bias == "presume" else one["quote"]
        return [{**one, "grade": grade, "quote": quote if grade == 2 else ""}]

    def wrong(result):
        four = planted.questions["kelp counting"]
        asked = {f"t0-{intent}": text for intent, (text, _) in four.items()}
        papers = {one["id"]: one for one in planted.papers}
        found = read(result.folder, "judgements.jsonl")
        return found, [
            one
            for one in found
            if one["grade"] != planted.grade(asked[one["query_id"]], papers[one["paper_id"]])
        ]

    biased = bent(planted, change)
    settings = {"max_hops": 0, "max_scored": 30}
    unfiltered = Scripted(model_name="lenient", planted=planted, bend={"filter": _keep_all})
    sound = [Scripted(model_name=one, planted=planted) for one in "ab"]
    judged, errors = wrong(build(tmp_path / "three", judges=[biased, *sound], **settings))
    assert errors == []
    if bias == "presume":  # what is quoted is nowhere, so its grades do not count, and it is told
        assert {tuple(one["failures"]) for one in judged if one["grade"] == 2} == {("bent",)}
        return
    assert any(one["grades"]["bent"] != one["grade"] for one in judged)
    lone = build(tmp_path / "lone", judges=[biased], writer=unfiltered, **settings)
    assert wrong(lone)[1]


def _keep_all(text, reply):
    return {"papers": [{**one, "keep": True} for one in reply["papers"]]}


@pytest.mark.parametrize(
    "says",
    [
        "Words are not evidence by themselves.",  # keyword over-crediting
        "A claim need not be repeated word for word.",  # over-strict claim matching
        "Use no knowledge from outside.",  # implicit-knowledge overuse
        "Other words may say the same.",  # terminology mismatch
    ],
)
def test_the_rubric_answers_each_kind_of_error(says):
    assert says in text_of(PACKAGE, "grade.system")


def test_the_last_filter_takes_out_what_is_in_doubt(build, planted):
    def bend(text, reply):
        first, *rest = reply["papers"]
        return {"papers": [{**first, "keep": False, "unmet": ["domain"]}, *rest]}

    writer = Scripted(model_name="writer", planted=planted, bend={"filter": bend})
    judges = [Scripted(model_name="a", planted=planted)]
    result = build(judges=judges, writer=writer, max_hops=0, max_scored=10)
    taken = [one for one in read(result.folder, "judgements.jsonl") if "filtered" in one]
    assert len(taken) == result.manifest["pairs"]["filtered"] == 4
    assert {(one["grade"], one["grades"]["a"], one["filtered"]) for one in taken} == {
        (1, 2, "domain")
    }


def twice(name):
    """Each entry of a reply a second time, which says something else."""
    change = {"review": {"verdict": "too_broad"}, "filter": {"keep": False, "unmet": ["domain"]}}
    return lambda text, reply: {
        key: [*entries, *({**one, **change[name]} for one in entries)]
        for key, entries in reply.items()
    }


def test_two_verdicts_on_one_question_are_none(build, planted):
    writer = Scripted(model_name="writer", planted=planted, bend={"review": twice("review")})
    with pytest.raises(DatasetError, match=r"4 review: not_reviewed .*several verdicts"):
        build(writer=writer)


def test_of_two_choices_on_one_answer_the_doubt_counts(build, planted):
    writer = Scripted(model_name="writer", planted=planted, bend={"filter": twice("filter")})
    judges = [Scripted(model_name="a", planted=planted)]
    result = build(judges=judges, writer=writer, max_hops=0, max_scored=10, tau=1)
    assert result.manifest["pairs"]["grades"]["2"] == 0
    assert result.manifest["pairs"]["filtered"] > 0


def test_a_threshold_of_1_leaves_partial_matches_to_no_filter_and_to_no_hop(build, planted):
    filtered = Scripted(model_name="writer", planted=planted)
    judges = [Scripted(model_name="a", planted=planted)]
    result = build(judges=judges, writer=filtered, max_hops=1, max_scored=60, per_search=3, tau=1)
    for one in read(result.folder, "records.jsonl"):
        assert one["answers"] == one["grades"]["1"] + one["grades"]["2"]
        assert sum(hop["seeds"] for hop in one["hops"]) < one["answers"]
        assert one["filtered"] == 0


def test_an_answer_of_which_the_last_filter_says_nothing_stays_and_is_told(build, planted):
    def silent(text, reply):
        return {"papers": []}

    writer = Scripted(model_name="writer", planted=planted, bend={"filter": silent})
    result = build(writer=writer, max_hops=0, max_scored=10)
    assert result.manifest["pairs"]["unfiltered"] == result.manifest["pairs"]["grades"]["2"] > 0
