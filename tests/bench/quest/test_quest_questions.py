"""From topics to questions: four of each, and each reason for which a question is rejected."""

import re
from dataclasses import replace
from typing import get_args

import pytest

from bench.quest.conftest import TOPICS, read
from bench.quest.scripted import Scripted
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.errors import BackendError, InputError, SettingsError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.lab.quest.asking import Flaw
from deepera_graph.lab.quest.builder import answer_quest
from deepera_graph.lab.quest.questions import drop_repeated, read_candidates
from deepera_graph.lab.quest.records import INTENTS, QuestQuestion
from deepera_graph.lab.settings import QuestPlan

pytestmark = pytest.mark.full

FEW = {"max_hops": 0, "max_scored": 20}


def reviewer(planted, verdicts):
    """A writer whose review says of each question what is wrong with it."""

    def bend(text, reply):
        asked = re.findall(r"^\[(\d+)\] (\w+):", text, re.MULTILINE)
        return {
            "questions": [
                {"question": int(number), "reason": "so it is", "verdict": verdicts[intent]}
                for number, intent in asked
                if intent in verdicts
            ]
        }

    return Scripted(model_name="writer", planted=planted, bend={"review": bend})


@pytest.mark.full
def test_a_question_that_the_review_finds_fault_with_is_rejected_and_counted(build, planted):
    flaws = dict(zip(INTENTS, get_args(Flaw)[1:], strict=True))
    faulty = reviewer(planted, flaws).bend["review"]

    def bend(text, reply):
        return faulty(text, reply) if "kelp" in text else reply

    writer = Scripted(model_name="writer", planted=planted, bend={"review": bend})
    result = build(topics=TOPICS[:2], writer=writer, **FEW)
    assert [one["intent"] for one in read(result.folder, "questions.jsonl")] == [*INTENTS]
    assert result.manifest["rejected"] == {
        "review": {"ambiguous": 1, "not_judgeable": 1, "too_broad": 1, "too_narrow": 1}
    }
    assert result.manifest["questions"]["written"] == 8
    for one in read(result.folder, "rejected.jsonl"):
        assert (one["stage"], one["detail"]) == ("review", "so it is")
        assert (one["reason"], "kelp" in one["query"]) == (flaws[one["intent"]], True)


def test_a_question_that_the_review_forgets_is_not_taken_for_sound(build, planted):
    result = build(writer=reviewer(planted, {"method": "ok"}), **FEW)
    assert result.manifest["rejected"] == {"review": {"not_reviewed": 3}}


def ask(*queries):
    return [QuestQuestion(id=f"q{n}", query=query) for n, query in enumerate(queries)]


class ByFirstWord:
    """Embeddings in which texts with the same first word are alike."""

    model = "by-first-word"

    def embed_documents(self, texts):
        words = sorted({text.split()[0] for text in texts})
        return [
            [1.0 if text.split()[0] == word else 0.0 for word in words] + [len(text) / 1000]
            for text in texts
        ]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def test_what_is_asked_twice_is_asked_once():
    asked = ask("Kelp, counted by kites?", "kelp counted by Kites", "Bells tuned by ear",
                "Bells that ears tune", "Orchards")  # fmt: skip
    kept, rejected = drop_repeated(asked, QuestPlan(), ByFirstWord())
    assert [one.id for one in kept] == ["q0", "q2", "q4"]
    assert [(one.id, one.reason) for one in rejected] == [("q1", "duplicate"), ("q3", "duplicate")]
    assert rejected[0].detail == "asks what q0 asks"
    assert re.fullmatch(r"cosine [01]\.\d{3} with q2", rejected[1].detail)
    by_words, _ = drop_repeated(asked, QuestPlan(), None)
    assert [one.id for one in by_words] == ["q0", "q2", "q3", "q4"]


def test_questions_of_different_intents_are_not_the_same_however_alike():
    one, other = ask("Kelp with kites", "Kelp without kites")
    other = replace(other, intent="scope")
    assert drop_repeated([one, other], QuestPlan(), ByFirstWord())[1] == []


def test_a_question_with_too_few_answers_is_left_out_with_its_number(build):
    result = build(min_answers=5, **FEW)
    kept = {one["id"] for one in read(result.folder, "queries.jsonl")}
    answers = {one["id"]: one["answers"] for one in read(result.folder, "records.jsonl")}
    assert kept == {id for id, n in answers.items() if n >= 5} != set(answers)
    assert {one["id"] for one in read(result.folder, "questions.jsonl")} == set(answers)
    [reasons] = result.manifest["rejected"].values()
    assert reasons == {"too_few_answers": len(answers) - len(kept)}


@pytest.mark.parametrize("line", ['{"id": ["1"], "ranked": ["p"]}', '{"id": "2", "ranked": ["p"]}'])
def test_papers_of_a_question_that_is_not_there_are_named(tmp_path, line):
    (tmp_path / "run.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match="unknown question id"):
        read_candidates(tmp_path / "run.jsonl", [QuestQuestion(id="1", query="Kelp")])


def test_candidates_are_read_from_a_run_that_was_written_with_its_head(tmp_path):
    lines = [
        '{"ran": {"system": "sparse"}}',
        '{"id": "1", "ranked": ["a"], "error": "torn"}',
        '{"id": "1", "ranked": ["p", "q"], "calls": []}',
    ]
    (tmp_path / "run.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = read_candidates(tmp_path / "run.jsonl", [QuestQuestion(id="1", query="Kelp")])
    assert found == {"1": ["p", "q"]}


def test_two_topics_or_questions_of_one_id_are_refused(build, planted, base, tmp_path):
    with pytest.raises(InputError, match="the id 't0': 'kelp counting' and 'bell tuning'"):
        build(topics=[TOPICS[0], replace(TOPICS[1], id="t0")])
    writer = Scripted(model_name="writer", planted=planted)
    with pytest.raises(InputError, match="'q' 2 times"):
        answer_quest([QuestQuestion(id="q", query="Kelp")] * 2, tmp_path / "out", sources=base,
                     model=writer)  # fmt: skip


def test_a_question_for_which_no_query_is_written_is_rejected(build, planted):
    def bend(text, reply):
        return {kind: [] for kind in reply} if "\nscope: " in text else reply

    writer = Scripted(model_name="writer", planted=planted, bend={"rewrite": bend})
    result = build(writer=writer, **FEW)
    [rejected] = read(result.folder, "rejected.jsonl")
    assert (rejected["stage"], rejected["reason"]) == ("rewrite", "unusable_reply")
    assert (rejected["intent"], rejected["detail"]) == ("scope", "no query was written")


def test_a_reply_without_four_questions_rejects_the_topic_and_says_why(build, planted):
    def bend(text, reply):
        if "bell" not in text:
            return {**reply, "fifth": reply["scope"]}
        return {("other" if name == "scope" else name): one for name, one in reply.items()}

    writer = Scripted(model_name="writer", planted=planted, bend={"questions": bend})
    result = build(topics=TOPICS[:2], writer=writer, **FEW)
    [rejected] = read(result.folder, "rejected.jsonl")
    assert (rejected["stage"], rejected["topic"]) == ("topic", "bell tuning")
    assert (rejected["reason"], "scope" in rejected["detail"]) == ("unusable_reply", True)
    assert result.manifest["questions"]["kept"] == 4


def test_questions_of_two_topics_that_ask_the_same_are_kept_once(build):
    twins = [replace(TOPICS[0], id=one, parents=(one,)) for one in ("by sea", "by air")]
    result = build(topics=twins, **FEW)
    assert result.manifest["rejected"] == {"duplicate": {"duplicate": 4}}
    found = read(result.folder, "rejected.jsonl")
    assert {one["topic"] for one in found} == {"by air > kelp counting"}
    assert found[0]["detail"] == "asks what by sea-method asks"


@pytest.mark.full
def test_a_topic_whose_call_failed_is_named_and_asked_again(build, planted):
    down = [True]

    def fail(text, reply):
        if down and "bell" in text:
            raise RuntimeError("no reply")
        return reply

    model = Scripted(model_name="writer", planted=planted, bend={"questions": fail})
    writer = llm_backend(model, retry={"attempts": 1})
    first = build(topics=TOPICS[:2], writer=writer, **FEW)
    assert {id: "no reply" in cause for id, cause in first.failed.items()} == {"t1": True}
    assert first.manifest["questions"]["judged"] == 4
    down.clear()
    again = build(topics=TOPICS[:2], writer=writer, overwrite=True, **FEW)
    assert (again.failed, again.manifest["questions"]["judged"]) == ({}, 8)
    assert model.asked["questions"] == 3


def test_a_writer_that_refuses_the_key_is_not_asked_about_every_topic(build, planted):
    asked = []

    class RefusedError(Exception):
        status_code = 401

    def refuse(text, reply):
        asked.append(text)
        raise RefusedError("no such key")

    writer = Scripted(model_name="writer", planted=planted, bend={"questions": refuse})
    with pytest.raises(BackendError, match="refused the API key"):
        build(topics=TOPICS, writer=writer, questions_at_once=2)
    assert len(asked) == 2


def test_no_question_at_all_is_an_error_that_says_why(build):
    with pytest.raises(DatasetError, match=r"4 answers: too_few_answers \(e\.g\. .*at least 99"):
        build(min_answers=99, **FEW)


def test_answers_that_no_judge_could_give_are_told_from_answers_that_are_not_there(build, planted):
    mute = Scripted(model_name="mute", planted=planted, bend={"grade": lambda text, reply: {}})
    with pytest.raises(DatasetError, match=r"[0-9]+ papers could not be judged \(mute: unusable"):
        build(judges=[mute], **FEW)


def test_a_question_with_useless_constraints_is_rejected(build, planted):
    useless = {
        "method": [{"key": "year_from", "value": "lately"}],
        "setting": [{"key": "year_from", "value": "2020"}, {"key": "year_to", "value": "2010"}],
        "comparison": [],
    }

    def bend(text, reply):
        changed = {one: {**reply[one], "constraints": given} for one, given in useless.items()}
        return {**reply, **changed}

    writer = Scripted(model_name="writer", planted=planted, bend={"questions": bend})
    result = build(writer=writer, **FEW)
    found = read(result.folder, "rejected.jsonl")
    assert {(one["stage"], one["reason"]) for one in found} == {("question", "bad_question")}
    one, two, three = (one["detail"] for one in found)
    assert one == "year_from must be one year, got 'lately'"
    assert "year_from is after year_to" in two
    assert three == "it has no constraints"


def test_topics_are_mapped_to_classes_and_those_that_fit_none_are_left_out(build, planted):
    def bend(text, reply):
        asked = Scripted.block_of(text)
        if "bell" in asked:
            return {"classes": ["Bells", "none such"]}
        return {"classes": ["seaweed", "kites"] if "kelp" in asked else []}

    writer = Scripted(model_name="writer", planted=planted, bend={"map": bend})
    result = build(topics=TOPICS[:3], writer=writer, categories=("bells", "kelp"), **FEW)
    assert result.manifest["rejected"] == {"topic": {"no_category": 2}}
    details = [one["detail"] for one in read(result.folder, "rejected.jsonl")]
    assert details == ["not in the list: seaweed, kites", "none fits"]
    found = read(result.folder, "questions.jsonl")
    assert {tuple(one["categories"]) for one in found} == {("bells",)}


@pytest.mark.full
def test_years_of_a_question_bound_what_is_found(build, planted):
    def bend(text, reply):
        scope = reply["scope"]
        years = [{"key": "Year from", "value": "2016"}, {"key": "year-to", "value": "2018"}]
        return {**reply, "scope": {**scope, "constraints": [*scope["constraints"], *years]}}

    writer = Scripted(model_name="writer", planted=planted, bend={"questions": bend})
    result = build(writer=writer, max_hops=1)
    years = {one["id"]: one["year"] for one in planted.papers}
    judged = {
        years[one["paper_id"]]
        for one in read(result.folder, "judgements.jsonl")
        if one["query_id"].endswith("scope")
    }
    assert judged == {2016, 2017, 2018}


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_hops", 3), ("tau", 0), ("prefilter", "best"), ("group", 0), ("quorum", 0),
     ("least_yield", 2), ("duplicate", -2), ("max_answers", 0)],
)  # fmt: skip
def test_a_setting_out_of_range_is_named_with_its_value(name, value):
    with pytest.raises(SettingsError, match=rf"{name} .*got .?{value}"):
        QuestPlan(**{name: value})


def test_a_quorum_above_the_number_of_judges_is_refused(build):
    with pytest.raises(SettingsError, match="quorum must be at most 1"):
        build(quorum=2)


def test_a_plan_is_read_back_from_a_manifest():
    plan = QuestPlan(categories=("cs.CL",), tau=1, floor=0.2)
    assert QuestPlan.of(plan.to_dict()) == plan


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"query": "q"}, "'id'"),
        ({"id": "1", "query": " "}, "'query'"),
        ({"id": "1", "query": "q", "intent": "other"}, "'intent'"),
        ({"id": "1", "query": "q", "constraints": ["x"]}, "'constraints'"),
        ({"id": "1", "query": "q", "constraints": {"year_from": "x"}}, "year_from"),
        ({"id": "1", "query": "q", "categories": "cs.CL"}, "'categories' must be a list"),
    ],
)
def test_a_bad_question_of_a_file_is_named(line, problem):
    with pytest.raises(InputError, match=problem):
        QuestQuestion.from_dict(line)
