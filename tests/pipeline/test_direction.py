"""What a passage says to a yes/no question or a claim: from the judge to all that users see."""

import asyncio
import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from deepera_graph import EvidenceReranker, Judgement, RerankResult, local_backend
from deepera_graph.cli.judging.evidence import show_result
from deepera_graph.demo import DemoQuestion, Trial
from deepera_graph.export import describe_evidence
from deepera_graph.jobs.files import to_output_line
from deepera_graph.jobs.lines import QuestionLine
from deepera_graph.judges.base import read_verdicts
from deepera_graph.judges.heuristic.answer import answer
from deepera_graph.judges.llm.judging import read_position
from deepera_graph.pipeline.intent import UNKNOWN
from deepera_graph.schema import read_direction
from deepera_graph.stores.judgements import JudgementCache
from deepera_graph.testing import judged, scripted_backend
from deepera_graph.text.questions import describe_directions
from support.list_judges import strict

QUESTION = "Does aspirin reduce preeclampsia?"
SAID = {
    "Aspirin reduced preeclampsia.": "supports",
    "Aspirin lowered the risk of preeclampsia.": "supports",
    "Aspirin raised the risk of preeclampsia.": "contradicts",
    "Aspirin made no difference to preeclampsia.": "no_difference",
    "Aspirin is a drug.": None,
}


def judge(task):
    said = SAID[task["text"]]
    return judged(0.9 if said else 0.1, quote=task["text"], direction=said)


def backend(**options):
    return replace(scripted_backend(judge, **options), answerer=local_backend("rules").answerer)


@pytest.fixture(scope="module")
def result():
    return EvidenceReranker(backend(), answer=True).rerank(QUESTION, list(SAID))


def test_every_passage_has_the_direction_that_its_judge_gave(result):
    assert {one.text: one.direction for one in result.passages} == SAID


def test_the_kept_are_counted_in_the_order_of_the_directions(result):
    assert result.direction_counts == {"supports": 2, "contradicts": 1, "no_difference": 1}
    assert describe_directions(result.direction_counts) == (
        "2 support, 1 contradicts, 1 no difference"
    )


def test_sync_and_async_give_the_same_directions(result):
    other = asyncio.run(EvidenceReranker(backend()).arerank(QUESTION, list(SAID)))
    assert [one.direction for one in other.passages] == [one.direction for one in result.passages]


def test_a_result_is_written_down_with_its_directions_and_an_older_one_is_read(result):
    assert RerankResult.from_json(result.to_json()).direction_counts == result.direction_counts
    plain = result.to_dict()
    for one in plain["passages"]:
        del one["direction"]
    assert RerankResult.from_dict(plain).direction_counts == {}


def test_documents_carry_their_direction(result):
    assert [one.metadata["deepera"]["direction"] for one in result.to_documents()] == [
        one.direction for one in result.kept
    ]


def test_the_documents_of_the_graph_carry_it_too():
    state = EvidenceReranker(backend()).graph.invoke({"question": QUESTION, "passages": [*SAID]})
    directions = {one.metadata["deepera"]["direction"] for one in state["documents"]}
    assert directions == {"supports", "contradicts", "no_difference"}


def test_a_strict_checkpointer_keeps_directions():
    reranker = EvidenceReranker(backend(), checkpointer=strict())
    config = {"configurable": {"thread_id": "1"}}
    first = reranker.rerank(QUESTION, list(SAID), config=config)
    again = reranker.rerank(QUESTION, list(SAID), config=config, resume=True)
    assert again.direction_counts == first.direction_counts != {}


def test_the_events_have_directions():
    events = EvidenceReranker(backend()).stream(QUESTION, list(SAID))
    found = [one["direction"] for one in events if one["event"] == "scored"]
    assert sorted(map(str, found)) == sorted(map(str, SAID.values()))


def test_what_people_read_says_it(result):
    out = io.StringIO()
    show_result(Console(file=out, width=200), result)
    assert "0.90 no difference" in out.getvalue()
    assert "2 support, 1 contradicts, 1 no difference" in out.getvalue()
    html = result._repr_html_()
    assert "0.90<br>contradicts" in html
    assert "2 support, 1 contradicts, 1 no difference" in html


def test_an_agent_reads_it(result):
    head, *lines = describe_evidence(result).splitlines()
    assert head.endswith("(threshold 0.80; 2 support, 1 contradicts, 1 no difference):")
    assert sum("score 0.90, supports)" in line for line in lines) == 2


def test_an_output_line_and_the_demo_have_it(result):
    line = QuestionLine(number=1, end=1, id="1", question=QUESTION, passages=[], metadata={})
    ranking = json.loads(to_output_line(line, result))["ranking"]
    assert [one.get("direction") for one in ranking] == [one.direction for one in result.passages]
    asked = DemoQuestion(id="q", science="s", question=QUESTION, golden=("1",), look_alikes={})
    trial = Trial(question=asked, result=result).to_dict()
    assert {one["direction"] for one in trial["ranking"]} == {*SAID.values()}


def test_a_judge_that_gives_none_leaves_no_trace_for_people():
    plain = scripted_backend(lambda task: judged(0.9))
    found = EvidenceReranker(plain).rerank(QUESTION, list(SAID))
    assert (found.direction_counts, describe_directions(found.direction_counts)) == ({}, "")
    assert describe_evidence(found).splitlines()[0].endswith("(threshold 0.80):")


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("supports", "supports"),
        (" Support ", "supports"),
        ("No difference", "no_difference"),
        ("no-difference", "no_difference"),
        ("CONTRADICT", "contradicts"),
        ("none", None),
        ("perhaps", None),
        ("", None),
        (None, None),
        (["supports"], None),
        (1, None),
    ],
)
def test_a_direction_is_read_leniently_and_no_other_word_fails_a_judgement(said, read):
    assert read_direction(said) == read
    assert Judgement(score=0.5, direction=said).direction == read


@pytest.mark.parametrize("said", ["supports", "No difference", "none", "n/a", "", None])
def test_nothing_is_noted_of_a_direction_or_of_none(said):
    assert read_position(said) == ("", "")


def test_another_word_is_noted():
    assert read_position("yes, but") == ("yes, but", "")
    assert read_position(3) == ("", "no direction: 3")


def test_a_judge_of_ones_own_may_give_a_plain_judgement():
    batch = {"windows": [{"text": "a", "title": "", "section": ""}] * 3}
    given = [{"score": 0.4, **more} for more in ({"direction": "mixed"}, {}, {"direction": "so"})]
    assert [one.direction for one in read_verdicts(batch, given)] == ["mixed", None, None]


def test_a_judgement_of_the_cache_has_its_direction_and_one_without_is_read(tmp_path):
    spec = {"kind": "factory", "path": "support.roles:importable_backend"}
    with JudgementCache(tmp_path / "cache.db") as cache:
        first = EvidenceReranker(backend(spec=spec), cache=cache).rerank(QUESTION, [*SAID])
        again = EvidenceReranker(backend(spec=spec), cache=cache).rerank(QUESTION, [*SAID])
        assert again.total_usage.cached_calls == again.total_usage.calls
        assert again.direction_counts == first.direction_counts
    old = Judgement(score=0.9).model_dump(include={"score", "reason", "quote", "summary"})
    assert Judgement.model_validate(old).direction is None


def evidence(*pairs):
    return [
        {
            "text": text,
            "summary": "",
            "quote": text,
            "title": "",
            "section": "",
            **({"direction": direction} if direction else {}),
        }
        for text, direction in pairs
    ]


def ask(*pairs):
    return answer({"question": QUESTION, "intent": UNKNOWN, "evidence": evidence(*pairs)})


def test_the_local_answer_ends_with_what_all_kept_passages_say(result):
    assert result.answer is not None
    assert result.answer["text"].endswith("(2 support, 1 contradicts, 1 no difference)")


def test_the_local_answer_shows_both_sides_however_many_agree():
    agree = [(f"Aspirin reduced preeclampsia {n} times.", "supports") for n in range(6)]
    found = ask(*agree, ("Aspirin raised preeclampsia.", "contradicts"))
    assert found.citations == [1, 2, 3, 4, 7]
    assert found.text.endswith("Aspirin raised preeclampsia. [7] (6 support, 1 contradicts)")


def test_without_directions_the_local_answer_is_the_first_five_sentences():
    found = ask(*((f"Aspirin reduced preeclampsia {n} times.", None) for n in range(7)))
    assert found.citations == [1, 2, 3, 4, 5]
    assert found.text.endswith("[5]")
