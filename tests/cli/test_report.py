"""`deepera ask --report` and `--dry-run`."""

import json

import pytest

from cli.conftest import TEA
from deepera_graph.evidence.report.report import EvidenceReport
from support.openai_server import ChatServer
from support.openai_wire import Reply
from support.tea import QUESTION as TEA_QUESTION
from support.tea import TEA as PASSAGES

pytestmark = pytest.mark.full

RULES = ("--backend", "rules", "--quiet")


@pytest.fixture
def papers(tmp_path):
    path = tmp_path / "papers.jsonl"
    lines = (json.dumps({"id": id, "text": text, "title": id}) for id, text in PASSAGES)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_a_report_has_its_parts_in_every_form(deepera, papers):
    shown = deepera("ask", TEA_QUESTION, papers, "--backend", TEA, "--report", "-q").stdout
    parts = [TEA_QUESTION, "studies are evidence", "Limits and gaps", "Studies", "judged by"]
    assert [shown.index(one) for one in parts] == sorted(shown.index(one) for one in parts)
    assert max(map(len, shown.splitlines())) <= 100
    args = ("ask", TEA_QUESTION, papers, "--backend", TEA, "--report", "-q")
    plain = json.loads(deepera(*args, "--json").stdout)
    report = EvidenceReport.from_dict(plain)
    assert report.usage.keys() == {"intent", "score"}  # no summaries are paid for
    for form, mark in (("markdown", "## Studies"), ("html", "<h2>Studies</h2>")):
        assert mark in deepera(*args, "--format", form).stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--report", "--answer"), "give --report or --answer, not both"),
        (("--json", "--format", "csv"), "give --json or --format csv, not both"),
        (("--report", "--format", "csv"), "forms text, markdown, html, json, got --format csv"),
        (("--report", "--multihop"), "--report does not go with --multihop"),
        (("--dry-run", "--multihop"), "--dry-run does not go with --multihop"),
    ],
)
def test_what_does_not_go_together_is_one_line(deepera, papers, args, said):
    result = deepera("ask", TEA_QUESTION, papers, *args)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr


def test_a_dry_run_tells_calls_and_asks_nobody(deepera, papers):
    asked = []
    with ChatServer(lambda request: asked.append(request) or Reply(status=500)) as server:
        args = ("--model", "any", "--base-url", server.base_url, "--dry-run", "--report")
        result = deepera("ask", TEA_QUESTION, papers, *args, "--json")
        assert "a report on" in deepera("ask", TEA_QUESTION, papers, *args).stdout
    plain = json.loads(result.stdout)
    assert plain["steps"] == {"intent": 1, "score": plain["passages"]}
    assert plain["report_calls"] > 0
    assert asked == []
    free = deepera("ask", TEA_QUESTION, papers, *RULES, "--dry-run", "--report", "--json").stdout
    assert json.loads(free)["calls"] == 0


def test_a_chat_model_writes_and_checks(deepera, papers):
    def answer(request):
        system, user = (str(one["content"]) for one in request.messages)
        said = "Green tea lowered fasting glucose by 0.4 mmol/L in 212 adults."
        if "You plan" in system:
            return {"groups": [{"point": "glucose", "studies": [1, 2]}]}
        if "You write" in system:
            sentences = [{"text": said, "studies": [1]}, {"text": "Moss cures.", "studies": [1]}]
            return {"sentences": sentences}
        if "was checked" in system:
            return {"text": "", "studies": []}
        if "You read" in system:
            return {"topic": "nutrition", "entities": "drink: tea; measure: glucose",
                    "intent": "causal inference", "form": "categorical"}  # fmt: skip
        holds = "Moss" not in user and "lowered fasting" in user
        score = 0.9 if holds else 0.8 if "glucose fell" in user and "Moss" not in user else 0.1
        return {"reason": "x", "evidence": [1], "score": score, "direction": "supports"}

    with ChatServer(lambda request: Reply(content=json.dumps(answer(request)))) as server:
        args = ("--model", "any", "--base-url", server.base_url, "--report", "--json", "-q")
        result = deepera("ask", TEA_QUESTION, papers, *args, "--cache", "off")
    assert result.exit_code == 0
    report = EvidenceReport.from_dict(json.loads(result.stdout))
    assert {one.text for one in report.sentences} == {
        "Green tea lowered fasting glucose by 0.4 mmol/L in 212 adults.",
    }
    assert report.left_out == ("[1]: not found",)
    calls = {name: used.calls for name, used in report.usage.items()}
    assert (calls["outline"], calls["write"], calls["check"], calls["revise"]) == (1, 1, 2, 1)
