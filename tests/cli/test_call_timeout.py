"""`--call-timeout`: how long one answer of a chat model may take."""

import json
from dataclasses import asdict

import pytest

from cli.conftest import answer, line
from deepera_graph.chat.sending import RetryPolicy
from deepera_graph.cli.main import PROGRAM
from deepera_graph.cli.opening.judges import open_judge
from deepera_graph.cli.shared.options import JudgeOptions
from deepera_graph.lab.cli.main import PROGRAM as LAB
from deepera_graph.lab.rankers.named import Models
from support.openai_server import ChatServer, Reply

AT = {"model": "openai:any", "base_url": "http://127.0.0.1:9/v1"}
ASKING = ("ask", "rerank", "serve", "mcp", "papers ask", "bioasq answer", "study multihop")


def timeout_of(backend):
    return asdict(RetryPolicy()) | backend.spec.get("retry", {})


@pytest.mark.parametrize("command", ASKING)
def test_every_command_that_asks_a_chat_model_has_it(command):
    program = PROGRAM if command in PROGRAM.commands else LAB
    command = program.load_command(command)
    assert "--call-timeout" in {name for one in command.params for name in one.opts}


@pytest.mark.parametrize(("given", "seconds"), [(None, 60.0), (300.0, 300.0)])
def test_a_call_may_take_as_long_as_it_says(given, seconds):
    judge = open_judge(JudgeOptions(**AT, call_timeout=given))
    assert timeout_of(judge)["timeout"] == seconds


def test_rankers_of_the_bench_wait_as_long():
    chat = Models(**AT, retry={"timeout": 300.0}).chat()
    assert timeout_of(chat.backend)["timeout"] == 300.0


@pytest.mark.full
def test_a_call_that_was_given_up_names_the_option(deepera, questions):
    def fail_late(request):
        return Reply(fault="hang") if "numbered" in request.system else answer(request)

    with ChatServer(fail_late) as server:
        args = ("--model", "any", "--base-url", server.base_url, "--call-timeout", "0.02")
        result = deepera("rerank", questions(line()), *args, "--max-calls", "4", "-q")
    reasons = [one["reason"] for one in json.loads(result.stdout)["ranking"]]
    late = "no answer within 0.02 s; a slow model needs a longer --call-timeout"
    assert any(late in one for one in reasons)


@pytest.mark.parametrize("value", ["0", "-1", "inf", "nan"])
def test_a_call_that_may_take_no_time_is_an_error(deepera, questions, value):
    result = deepera("rerank", questions(line()), "--model", "openai:any", "--call-timeout", value)
    assert result.exit_code == 2
