"""The whole LLM path against a real server and a real, very small model.

Its judgements are worthless, and nothing here says what they should be: what is shown is the
protocol. Every passage has a true status, calls are counted as the server counts them, a method
that the server lacks is left, and all ends in time.
"""

import json
import logging
import subprocess
import sys
import time

import pytest

from deepera_graph import EvidenceReranker, llm_backend
from deepera_graph.doctor import examine
from deepera_graph.errors import RoleError
from support.judging import Alone
from tinyllm.conftest import MODEL

pytestmark = pytest.mark.tinyllm

seen_by_the_reader = logging.getLogger(__name__)  # shown with --log-cli-level=INFO
TIMEOUT = 120.0
QUESTION = "Is salt water heavier than fresh water?"
PASSAGES = [
    "A litre of sea water weighs more than a litre of river water.",
    "Fresh water freezes at zero degrees.",
    "Salt makes water heavier. A litre of salt water weighs 1.03 kg.",
]
INTENT = {"topic": "", "entity_type": "", "intent": "other", "expected_answer_type": "other"}
PASSAGE = {"question": QUESTION, "intent": INTENT, "text": PASSAGES[0], "title": "", "section": ""}
EVIDENCE = {"text": PASSAGES[0], "summary": "", "quote": "", "title": "", "section": ""}
TASKS = {
    "intent": {"question": QUESTION, "problem": ""},
    "judge": PASSAGE,
    "summarizer": PASSAGE,
    "answerer": {"question": QUESTION, "intent": INTENT, "evidence": [EVIDENCE]},
}


def backend(tiny):
    return llm_backend(
        f"openai:{MODEL}",
        base_url=tiny.base_url,
        retry={"attempts": 1, "timeout": TIMEOUT},
        limits={"calls_at_once": 1},
        max_tokens=120,
    )


def counted(usage):
    return usage.calls + usage.failed_calls


@pytest.mark.parametrize("role", TASKS)
def test_every_role_answers_or_says_why_and_counts_its_calls(tiny, role):
    player = getattr(backend(tiny), role)
    before, started = tiny.calls, time.monotonic()
    try:
        asked = Alone(player) if role == "judge" else player
        usage, end = asked.invoke(TASKS[role]).usage, "answered"
    except RoleError as error:
        usage, end = error.usage, f"failed: {error}"
    seconds, method = time.monotonic() - started, player.model.ladder.method
    seen_by_the_reader.info(f"{role}: {end}, by {method}, {usage}, {seconds:.1f} s")
    assert counted(usage) == tiny.calls - before
    assert usage.failed_calls >= 1  # the server refuses a JSON schema
    assert end != "answered" or method in {"tools", "text"}
    assert seconds < 5 * TIMEOUT


def test_every_passage_has_a_true_status_and_every_call_is_counted(tiny):
    judging = backend(tiny)
    before, started = tiny.calls, time.monotonic()
    result = EvidenceReranker(judging, threshold=0.0, require_evidence=False).rerank(
        QUESTION, PASSAGES
    )
    seen = [(one.status, one.score, one.summary_status) for one in result.passages]
    seconds = time.monotonic() - started
    seen_by_the_reader.info(f"{result.outcome}, {seen}, {result.total_usage}, {seconds:.1f} s")
    assert sorted(one.text for one in result.passages) == sorted(PASSAGES)
    assert result.intent["status"] in {"recognised", "repaired", "fallback"}
    for one in result.passages:
        assert one.status in {"scored", "repaired", "failed"}
        assert (one.score is None) == (one.status == "failed")
        assert one.score is None or 0 <= one.score <= 1
        assert one.reason or one.status != "failed"
        assert one.kept == (one.score is not None)
        assert bool(one.summary_status) == one.kept
    assert counted(result.total_usage) == tiny.calls - before
    assert judging.judge.model.ladder.method in {"json_schema", "tools", "text"}


def test_the_doctor_tells_what_the_server_can_do(tiny):
    before = tiny.calls
    found = {one.name: one for one in examine(base_url=tiny.base_url, cache="off", timeout=TIMEOUT)}
    seen_by_the_reader.info("; ".join(f"{one.name}: {one.found}" for one in found.values()))
    assert tiny.calls - before <= 6
    assert found["address"].status == "ok"
    assert found["model"].found.startswith(MODEL)
    assert found["method: JSON schema"].status == "warn"
    assert "HTTP 500" in found["method: JSON schema"].found
    assert found["method: tool call"].status in {"ok", "warn"}


def test_the_command_line_writes_a_true_line(tiny, tmp_path):
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    passages = [{"id": str(place), "text": text} for place, text in enumerate(PASSAGES)]
    source.write_text(json.dumps({"id": "q", "question": QUESTION, "passages": passages}) + "\n")
    words = ["rerank", source, "-o", out, "--model", MODEL, "--base-url", tiny.base_url]
    limits = ["--cache", "off", "--max-concurrency", "1", "--max-calls", "16"]
    done = subprocess.run(
        [sys.executable, "-m", "deepera_graph", *map(str, [*words, *limits])],
        check=False,
        capture_output=True,
        text=True,
        timeout=16 * TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    line = json.loads(out.read_text())
    seen_by_the_reader.info(f"{line['outcome']}, {[one['status'] for one in line['ranking']]}")
    assert sorted(one["id"] for one in line["ranking"]) == ["0", "1", "2"]
    assert {one["status"] for one in line["ranking"]} <= {
        "scored",
        "repaired",
        "failed",
        "skipped_budget",
    }
