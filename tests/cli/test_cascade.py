"""`--cascade`: the local judge reads all passages, the model the best of them."""

import json

import pytest

from cli.conftest import PASSAGES, line
from support.openai_server import ChatServer

VERDICT = {"reason": "it says so", "evidence": [1], "score": 0.9, "summary": "It did."}
ROLE_ANSWERS = {
    **VERDICT,
    "topic": "medicine",
    "entity_type": "drink: green tea; marker: fasting glucose",
    "intent": "causal inference",
    "expected_answer_type": "numeric",
    "text": "Green tea lowered fasting glucose by 4% in 60 adults.",
}


@pytest.mark.full
@pytest.mark.parametrize("mode", ["separate", "fused"])
def test_the_model_reads_the_best_alone(deepera, questions, mode):
    with ChatServer(lambda _: ROLE_ANSWERS) as server:
        args = ("--model", "any", "--base-url", server.base_url, "--cascade", "1", "--mode", mode)
        result = deepera("rerank", questions(line()), *args)
    ranking = json.loads(result.stdout)["ranking"]
    assert [one["kept"] for one in ranking] == [True, False, False]
    assert ranking[0]["id"] == "b"
    assert "not among the best 1" in ranking[1]["reason"]
    assert server.calls == {"separate": 3, "fused": 2}[mode]


def test_a_dry_run_counts_no_more_than_the_best(deepera, questions):
    args = ("--model", "openai:any", "--cascade", "2", "--top-n", "1", "--dry-run", "--json")
    plain = json.loads(deepera("rerank", questions(line()), *args).stdout)
    assert len(PASSAGES) > plain["usage"]["stages"]["score"]["calls"] == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--cascade", "3"), "--cascade needs --model"),
        (("--cascade", "3", "--backend", "local"), "--cascade goes with --backend llm"),
        (("--cascade", "0", "--model", "m"), "0"),
    ],
)
def test_a_cascade_without_a_model_is_an_error(deepera, questions, args, message):
    result = deepera("rerank", questions(line()), *args)
    assert result.exit_code == 2
    assert message in result.stderr
