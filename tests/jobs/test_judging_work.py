"""Lines judged as a worker in another process judges them, in this one."""

import io
import json
import pickle
from dataclasses import replace

import pytest

from deepera_graph import EvidenceReranker, SettingsError
from deepera_graph.jobs.ray import JudgingWork, Share
from deepera_graph.jobs.report import JobReport
from deepera_graph.jobs.rerank import LocalEngine, rerank_lines

TEXTS = ["In adults, green tea lowered fasting glucose by 4%.", "Whether tea helps is open."]
LINES = [
    {"id": f"q{n}", "question": "Does green tea lower fasting glucose?", "passages": TEXTS, "n": n}
    for n in range(9)
]
SOURCE = b"".join(json.dumps(one).encode() + b"\n" for one in [*LINES[:4], ["bad"], *LINES[4:]])


@pytest.fixture
def reranker():
    return EvidenceReranker("support.scripted:tea_backend", max_concurrency=5)


def sent(reranker):
    """The work as it arrives at a worker."""
    return pickle.loads(pickle.dumps(JudgingWork.of(reranker)))


def run(reranker, engine=None):
    out, report = io.BytesIO(), JobReport()
    source = io.BytesIO(SOURCE)
    rerank_lines(reranker, source, out, report=report, engine=engine)
    plain = report.to_dict()
    del plain["seconds"]
    return out.getvalue(), plain


@pytest.mark.full
def test_a_worker_gives_the_bytes_and_the_report_of_a_run_without_workers(reranker):
    work, share = sent(reranker), Share(n_workers=2, place=1)
    with work.open(share) as do:
        elsewhere = run(reranker, LocalEngine(do, work.at_once(share)))
    assert elsewhere == run(reranker)
    assert work.at_once(share) == 2


def test_a_worker_that_would_judge_otherwise_does_not_begin(reranker):
    work = sent(reranker)
    other = replace(work, run={**work.run, "versions": {"deepera-graph": "0.0.1"}})
    with pytest.raises(SettingsError, match=r"judge otherwise: versions.deepera-graph was '0.0.1'"):
        other.open(Share()).__enter__()


def test_what_is_sent_to_workers_is_plain_and_holds_no_key(reranker, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    work = sent(EvidenceReranker("openai:gpt-5-mini"))
    assert "sk-very-secret" not in json.dumps(work.plain) + json.dumps(work.run)
