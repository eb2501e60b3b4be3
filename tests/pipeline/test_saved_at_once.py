"""With a saver, what a branch has found is saved while the others still wait for their turn."""

import sqlite3
import time
from contextlib import closing

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from deepera_graph import EvidenceReranker
from deepera_graph.testing import judged, scripted_backend

N_PASSAGES = 40
N_JUDGED = 10


@pytest.mark.full
@pytest.mark.parametrize("config", [{}, {"max_concurrency": 1}])
def test_a_judgement_does_not_wait_for_all_to_begin(tmp_path, config):
    seen = []

    def n_saved():
        count = "SELECT count(*) FROM writes WHERE channel = 'judgements'"
        with closing(sqlite3.connect(tmp_path / "state.sqlite")) as states:
            return states.execute(count).fetchone()[0]

    def judge(task):
        seen.append(task["text"])
        limit = time.monotonic() + 5
        while len(seen) == N_JUDGED and n_saved() < N_JUDGED - 2:
            assert time.monotonic() < limit
            time.sleep(0.01)
        return judged(0.9)

    with SqliteSaver.from_conn_string(str(tmp_path / "state.sqlite")) as saver:
        reranker = EvidenceReranker(scripted_backend(judge), checkpointer=saver, max_concurrency=2)
        result = reranker.rerank(
            "Which text?",
            [f"Text {n}." for n in range(N_PASSAGES)],
            config={"configurable": {"thread_id": "one"}, **config},
        )
    assert result.failed == ()
