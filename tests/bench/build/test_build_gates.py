"""Distractors that a model writes badly: found by their gate, written again, and recorded."""

import json
from random import Random

import pytest

from bench.build.lake_abstracts import lake_abstracts
from bench.build.model_script import answer, line_of, n_tries, passage_for, step_of
from deepera_graph.calibration.instance import read_rows
from deepera_graph.lab.build.corpus import Document
from deepera_graph.lab.build.writing.distractors import RejectedDistractor
from deepera_graph.lab.build.writing.gates import EXPLANATIONS, GATES
from deepera_graph.lab.data.readers import read_instances
from support.openai_server import ChatServer

pytestmark = pytest.mark.full


def holding_the_answer(request):
    return f"{passage_for(request)} It was {line_of(request, 'Never mention').split('; ')[0]}."


def off_topic(request):
    return ("Violins from Cremona keep their varnish for centuries without cracks or stains. " * 6
            ).replace("centuries", "ages", 1)  # fmt: skip


def unlike(request, start):
    return f"{start} {passage_for(request)}"


def sample(request):
    """The first sample shown, which is the golden passage here."""
    block = request.messages[1]["content"]
    return block.partition("=====\n")[2].partition("\n\n")[0]


def shuffled(text):
    words = text.lower().replace(".", "").split()
    Random(0).shuffle(words)
    return " ".join(words).capitalize() + "."


BAD_KINDS = {
    "contains-answer": holding_the_answer,
    "far-from-question": off_topic,
    "too-short": lambda request: " ".join(passage_for(request).split()[:8]) + ".",
    "too-long": lambda request: " ".join([passage_for(request)] * 3),
    "label": lambda request: unlike(request, "Deceptive:"),
    "copies-golden": sample,
    "chatter": lambda request: unlike(request, "Sure, here is the passage:"),
    "refusal": lambda request: unlike(request, "I cannot help with that."),
    "says-it-is-false": lambda request: unlike(request, "This passage is false."),
    "names-the-task": lambda request: unlike(request, "This distractor is about lakes."),
    "markup": lambda request: unlike(request, "## Results\n"),
    "placeholder": lambda request: unlike(request, "The share was [insert value]."),
    "cut-off": lambda request: passage_for(request).rstrip(".") + " and the",
    "blank": lambda request: " ",
    "no-prose": lambda request: shuffled(passage_for(request)),
}


def build_with(bad, build_lakes, **plan):
    """Build with a writer whose first try at every distractor is bad."""

    def script(request):
        if step_of(request) == "distractor" and n_tries(request) == 0:
            return {"text": bad(request)}
        return answer(request)

    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=2, n_distractors=1, **plan)
        return built, list(server.requests)


@pytest.mark.parametrize("gate", BAD_KINDS)
def test_a_bad_distractor_is_caught_written_again_and_recorded(gate, build_lakes):
    bad = BAD_KINDS[gate]
    built, requests = build_with(bad, build_lakes)
    rows = list(read_rows(built.folder / "rejected.jsonl", RejectedDistractor))
    assert [(row.slot, row.attempt) for row in rows] == [(1, 1)] * 2
    assert all(gate in row.reasons for row in rows)
    retries = [one for one in requests if step_of(one) == "distractor" and n_tries(one) == 1]
    assert len(retries) == 2
    assert all(EXPLANATIONS[gate] in one.user for one in retries)
    for one in read_instances(built.folder / "lmqg.ssli.jsonl"):
        [text] = [context.text for context in one.contexts if context.is_distractor]
        assert text not in {row.text for row in rows}
    assert built.manifest["datasets"]["lmqg"]["distractors"]["rejected_by"][gate] == 2


@pytest.mark.parametrize("relation", ["agrees", "partly"])
def test_a_distractor_that_the_model_finds_the_answer_in_is_written_again(relation, build_lakes):
    checked = []

    def script(request):
        if step_of(request) == "verify" and not checked:
            checked.append(request.user)
            return {"quote": "It did.", "relation": relation}
        return answer(request)

    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=1, n_distractors=1)
        retries = [one for one in server.requests if n_tries(one)]
    [row] = read_rows(built.folder / "rejected.jsonl", RejectedDistractor)
    assert row.reasons == ("agrees-with-answer",)
    assert row.text in checked[0]
    assert [EXPLANATIONS["agrees-with-answer"] in one.user for one in retries] == [True]


def test_a_distractor_that_could_not_be_checked_is_not_taken(build_lakes):
    def script(request):
        if step_of(request) == "verify" and not unusable:
            unusable.append(request.messages)
        if step_of(request) == "verify" and request.messages[:2] == unusable[0][:2]:
            return "Looks fine."
        return answer(request)

    unusable = []
    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=1, n_distractors=2)
    [row] = read_rows(built.folder / "rejected.jsonl", RejectedDistractor)
    assert row.reasons[0].startswith("unusable-check: ")
    assert built.manifest["datasets"]["lmqg"]["distractors"]["passed"] == 1


CHERRY = (
    "Cherry trees under street lamps flowered on day 104 and trees in unlit gardens on day 103 (p ="
    " 0.62), so that lighting at night did not delay flowering in any of the four towns."
)
BLOSSOM = (
    "In 60 cherry trees with night lighting the first blossom opened on 9 April and in 60 without "
    "on 10 April; there was no significant difference (p = 0.74), and the blossom of lit trees was "
    "as dense as that of the others in each of the two springs that we saw."
)


def test_the_local_judge_finds_the_answer_of_a_yes_no_question_in_other_words(
    build_lakes, tmp_path
):
    """No word of the answer is in it, and the model that checks sees nothing."""
    asked = ["Does night lighting delay the flowering of cherry trees?", "did not delay flowering"]
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(json.dumps({"document": "cherry", "pairs": [asked]}), encoding="utf-8")

    def script(request):
        if step_of(request) == "distractor" and n_tries(request) == 0:
            return {"text": BLOSSOM}
        return answer(request)

    with ChatServer(script) as server:
        built = build_lakes(
            server,
            documents=[*lake_abstracts(), Document(id="cherry", text=CHERRY)],
            generators=(f"file:{pairs}",),
            n_questions=1,
            n_distractors=1,
            min_group=1,
        )
    [row, *_] = read_rows(built.folder / "rejected.jsonl", RejectedDistractor)
    assert (row.text, row.reasons) == (BLOSSOM, ("entails-answer",))


def test_the_check_by_the_model_can_be_left_out(build_lakes):
    with ChatServer(answer) as server:
        built = build_lakes(server, n_questions=1, verify=False)
        assert "verify" not in {step_of(one) for one in server.requests}
    assert "verify" not in built.manifest["answers"]


def test_a_distractor_like_another_is_a_duplicate(build_lakes):
    def script(request):
        if step_of(request) == "distractor" and n_tries(request) == 0:
            seen.append(passage_for(request) if not seen else seen[0])
            return {"text": seen[-1]}
        return answer(request)

    seen = []
    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=1, n_distractors=2)
    [row] = read_rows(built.folder / "rejected.jsonl", RejectedDistractor)
    assert (row.slot, row.reasons) == (2, ("duplicate",))


def test_a_question_whose_distractors_all_fail_is_dropped_with_every_try_recorded(build_lakes):
    victims = []

    def script(request):
        asked = request.messages[1]["content"]
        if step_of(request) == "distractor" and (not victims or asked in victims):
            victims.append(asked)
            return {"text": "Deceptive:"}
        return answer(request)

    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=2, n_distractors=1, attempts=2)
    assert built.manifest["datasets"]["lmqg"]["questions"] == 2
    assert built.manifest["dropped"]["lmqg"] == {"no-distractor-passed": 1}
    assert built.manifest["datasets"]["lmqg"]["distractors"]["rejected"] == 2


def test_a_distractor_is_one_paragraph_like_other_passages(build_lakes):
    def script(request):
        reply = answer(request)
        if step_of(request) == "distractor":
            reply["text"] = reply["text"].replace(". ", ".\n\n  ")
        return reply

    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=2)
    for one in read_instances(built.folder / "lmqg.ssli.jsonl"):
        assert not any("\n" in context.text for context in one.contexts if context.is_distractor)


def test_every_gate_has_words_for_the_writer():
    assert set(EXPLANATIONS) >= set(GATES)
