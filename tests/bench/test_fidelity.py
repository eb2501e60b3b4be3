"""Golden outputs of the prompts: a model that does as asked passes, one that does not is told."""

import json

import pytest
from typer.testing import CliRunner

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.lab.bench.fidelity import check_fidelity, golden_outputs
from deepera_graph.lab.cli.main import app
from support.openai_server import ChatServer

pytestmark = pytest.mark.full

CASES = golden_outputs()


def asked(request):
    return next(one for one in CASES if one.question in request.user)


def obedient(request):
    case = asked(request)
    if "You read" in request.system:
        return {
            "topic": "ecology",
            "entity_type": f"subject: {case.entities[0]}",
            "intent": case.intent,
            "expected_answer_type": case.answer_type,
        }
    passage = next(one for one in case.passages if one.text.split(".")[0] in request.user)
    if "score" in request.system:
        lines = request.user.splitlines()
        proof = [line for line in lines if passage.says and passage.says in line]
        number = int(proof[-1].split(":")[0].strip("[]")) if proof else 0
        return {
            "reason": "as asked",
            "evidence": [number] if passage.evidence else [],
            "score": 0.95 if passage.evidence else 0.2,
            "direction": passage.direction,
        }
    return {"text": passage.text}


def check(play):
    with ChatServer(play) as server:
        backend = llm_backend("openai:tiny", base_url=server.base_url)
        found = check_fidelity(EvidenceReranker(backend))
    return {one.what: one for one in found}


def test_a_model_that_does_as_asked_passes_everything():
    found = check(obedient)
    assert {one.role for one in found.values()} == {"intent", "score", "summarize"}
    for one in found.values():
        assert (one.n_right, one.first_wrong) == (one.n_asked, ""), one


@pytest.mark.parametrize(
    ("role", "change", "what"),
    [
        ("You read", {"intent": "definition"}, "intent"),
        ("You read", {"expected_answer_type": "procedural"}, "answer type"),
        ("score", {"score": 0.95}, "look-alike is dropped"),
        ("score", {"score": 0.1}, "evidence passes"),
        ("score", {"evidence": []}, "sentence that proves it"),
        ("score", {"direction": "mixed"}, "direction"),
        (
            "You shorten",
            {"text": "It rose by 99.9 %."},
            "summary in the passage's words",
        ),
    ],
)
def test_what_a_model_does_not_do_is_told(role, change, what):
    def play(request):
        said = obedient(request)
        return {**said, **change} if role in request.system and set(change) <= set(said) else said

    one = check(play)[what]
    assert one.n_right < one.n_asked
    assert one.first_wrong


def test_the_command_shows_a_table_and_ends_with_code_1_if_asked():
    with ChatServer(lambda request: {**obedient(request), "score": 0.95}) as server:
        args = ["bench", "prompts", "--model", "tiny", "--base-url", server.base_url]
        shown = CliRunner().invoke(app, [*args, "--cache", "off"])
        strict = CliRunner().invoke(app, [*args, "--cache", "off", "--strict", "--json"])
    assert shown.exit_code == 0, shown.output
    assert "| score | look-alike is dropped | 0 | 8 | rise-or-fall: 0.95 |" in shown.stdout
    assert strict.exit_code == 1
    assert json.loads(strict.stdout)["tables"][0]["rows"][0][1] == "intent"
