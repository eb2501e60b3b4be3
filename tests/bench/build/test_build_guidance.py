"""Notes and guidance: what the prompts show, and what is done with odd replies."""

import pytest

from bench.build.model_script import answer, block_of, line_of, step_of
from deepera_graph.bench.readers.instances import read_instances
from support.openai_server import ChatServer


def build_with(script, build_lakes, **options):
    with ChatServer(script) as server:
        built = build_lakes(server, n_questions=2, **options)
        return built, list(server.requests)


def types_in(built):
    return [
        [one.distractor_type for one in made.contexts if one.is_distractor]
        for made in read_instances(built.folder / "lmqg.ssli.jsonl")
    ]


def test_guidance_sees_the_question_its_answer_and_the_three_nearest_passages(build_lakes):
    built, requests = build_with(answer, build_lakes)
    base = {one.question: one for one in read_instances(built.folder / "lmqg.base.jsonl")}
    shown = [one for one in requests if step_of(one) == "guidance"]
    assert len(shown) == 2
    for request in shown:
        made = base[line_of(request, "Question")]
        assert line_of(request, "Correct answer") == made.gold_answer
        nearest = [f"[{place}] {one.text}" for place, one in enumerate(made.contexts[:3], start=1)]
        assert block_of(request) == "\n\n".join(nearest)


def test_too_few_plans_serve_more_than_once(build_lakes):
    def script(request):
        reply = answer(request)
        if step_of(request) == "guidance":
            reply["guides"] = [{**reply["guides"][0], "type": "irrelevant"}]
        return reply

    built, _ = build_with(script, build_lakes, n_distractors=2, attempts=2)
    assert all(set(types) == {"irrelevant"} for types in types_in(built))


def test_plans_are_taken_for_the_type_that_was_asked_for(build_lakes):
    def script(request):
        reply = answer(request)
        if step_of(request) == "guidance":
            reply["guides"].reverse()
        return reply

    built, _ = build_with(script, build_lakes)
    assert [sorted(types) for types in types_in(built)] == [
        ["background", "irrelevant", "misleading"]
    ] * 2


def test_guidance_without_a_plan_drops_the_question(build_lakes):
    def script(request):
        return {"guides": []} if step_of(request) == "guidance" else answer(request)

    built, _ = build_with(script, build_lakes)
    assert built.manifest["datasets"]["lmqg"]["questions"] == 0
    assert set(built.manifest["dropped"]["lmqg"]) == {"unusable-reply"}


@pytest.mark.parametrize(("length", "low", "high"), [(5, 30, 70), (-1, 30, 70), (9999, 70, 120)])
def test_an_odd_length_is_brought_near_that_of_natural_passages(build_lakes, length, low, high):
    def script(request):
        reply = answer(request)
        if step_of(request) == "guidance":
            reply["guides"] = [{**one, "length": length} for one in reply["guides"]]
        return reply

    _, requests = build_with(script, build_lakes)
    asked = [line_of(one, "Words") for one in requests if step_of(one) == "distractor"]
    assert all(low <= int(words.split()[-1]) <= high for words in asked)


def test_the_guided_generator_shows_its_notes_beside_the_passage(build_lakes):
    _, requests = build_with(answer, build_lakes, generators=("guided",), settings=("base",))
    shown = [one for one in requests if step_of(one) == "guided"]
    assert len(shown) == 2
    assert all(block_of(one).startswith("Notes on methods: The ") for one in shown)


def test_a_document_without_results_gives_no_question(build_lakes):
    def script(request):
        if step_of(request) == "extract":
            return {"methods": "Some.", "results": " ", "significance": ""}
        return answer(request)

    built, _ = build_with(script, build_lakes, generators=("guided",))
    assert set(built.manifest["dropped"]["guided"]) == {"no-results"}
