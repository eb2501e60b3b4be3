"""Notes and guidance: what the prompts show, and what is done with odd replies."""

import pytest

from bench.build.lake_abstracts import lake_abstracts
from bench.build.model_script import answer, block_of, line_of, n_tries, step_of
from deepera_graph.lab.data.readers import read_instances
from support.openai_server import ChatServer

pytestmark = pytest.mark.full


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
    victims = []

    def script(request):
        asked = request.messages[1]["content"]
        if step_of(request) == "guidance" and (not victims or asked in victims):
            victims.append(asked)
            return {"guides": []}
        return answer(request)

    built, _ = build_with(script, build_lakes)
    assert built.manifest["datasets"]["lmqg"]["questions"] == 2
    assert built.manifest["dropped"]["lmqg"] == {"unusable-reply": 1}


def wanted(requests):
    """Words asked for: those of the guidance, then those of each passage, by question."""
    planned = {
        line_of(one, "Question"): line_of(one, "Lengths in words, in the same order").split(", ")
        for one in requests
        if step_of(one) == "guidance"
    }
    asked = {question: [] for question in planned}
    for one in requests:
        if step_of(one) == "distractor" and n_tries(one) == 0:
            asked[line_of(one, "Question")].append(line_of(one, "Words").split()[-1])
    return planned, asked


def test_distractors_are_to_be_as_long_as_natural_passages_of_their_pool(build_lakes):
    lakes = [
        one.model_copy(update={"text": one.text + " It was so in every year." * (number % 7)})
        for number, one in enumerate(lake_abstracts())
    ]
    built, requests = build_with(
        answer, build_lakes, documents=lakes, n_distractors=5, max_tokens=300
    )
    planned, asked = wanted(requests)
    assert planned == asked
    for made in read_instances(built.folder / "lmqg.base.jsonl"):
        natural = {str(len(one.text.split())) for one in made.contexts}
        assert set(planned[made.question]) <= natural
        assert len(set(planned[made.question])) > 1


@pytest.mark.parametrize("length", [5, -1, 9999])
def test_a_plan_of_another_length_is_brought_back_to_the_one_asked_for(build_lakes, length):
    def script(request):
        reply = answer(request)
        if step_of(request) == "guidance":
            reply["guides"] = [{**one, "length": length} for one in reply["guides"]]
        return reply

    _, requests = build_with(script, build_lakes)
    planned, asked = wanted(requests)
    assert planned == asked


def test_a_plan_of_nearly_the_length_asked_for_is_kept(build_lakes):
    def script(request):
        reply = answer(request)
        if step_of(request) == "guidance":
            reply["guides"] = [{**one, "length": one["length"] + 3} for one in reply["guides"]]
        return reply

    _, requests = build_with(script, build_lakes)
    planned, asked = wanted(requests)
    assert asked == {q: [str(int(one) + 3) for one in ones] for q, ones in planned.items()}


def test_the_guided_generator_shows_its_notes_beside_the_passage(build_lakes):
    _, requests = build_with(answer, build_lakes, generators=("guided",), settings=("base",))
    shown = [one for one in requests if step_of(one) == "guided"]
    assert len(shown) == 2
    assert all(block_of(one).startswith("Notes on methods: The ") for one in shown)


def test_a_document_without_results_gives_no_question(build_lakes):
    victims = []

    def script(request):
        if step_of(request) == "extract" and (not victims or block_of(request) in victims):
            victims.append(block_of(request))
            return {"methods": "Some.", "results": " ", "significance": ""}
        return answer(request)

    built, _ = build_with(script, build_lakes, generators=("guided",))
    assert built.manifest["datasets"]["guided"]["questions"] == 2
    assert built.manifest["dropped"]["guided"] == {"no-results": 1}
