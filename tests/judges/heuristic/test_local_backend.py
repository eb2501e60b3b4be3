import asyncio
import pickle
import subprocess
import sys
import time

import pytest

from deepera_graph.judges import load_backend
from deepera_graph.judges.trained.backend import local_backend
from deepera_graph.usage import Usage
from support.judging import Alone


def asked(task, question, passages):
    fields = task(question, passages["result"])
    item = {"text": passages["result"], "summary": "", "quote": "", "title": "", "section": ""}
    return {
        "intent": {"question": question, "problem": ""},
        "judge": fields,
        "summarizer": fields,
        "answerer": {"question": question, "intent": fields["intent"], "evidence": [item]},
    }


@pytest.mark.parametrize("role", ["intent", "judge", "summarizer", "answerer"])
def test_sync_async_and_pickled_roles_agree_and_cost_nothing(task, question, passages, role):
    runnable = getattr(local_backend("rules"), role)
    runnable = Alone(runnable) if role == "judge" else runnable
    given = asked(task, question, passages)[role]
    first = runnable.invoke(given)
    assert asyncio.run(runnable.ainvoke(given)) == first
    assert pickle.loads(pickle.dumps(runnable)).invoke(given) == first
    assert first.usage == Usage()


def test_roles_leave_their_input_alone(task, question, passages):
    given = asked(task, question, passages)
    Alone(local_backend("rules").judge).invoke(given["judge"])
    local_backend("rules").answerer.invoke(given["answerer"])
    assert given == asked(task, question, passages)


def test_the_backend_says_what_it_is():
    backend = local_backend("rules")
    assert backend.name == "rules"
    assert backend.about["judge"] == "rules"
    assert "does not understand" in backend.about["note"]


def test_the_backend_is_built_again_from_its_spec():
    assert load_backend(local_backend("rules").spec).name == "rules"


def test_thirty_passages_take_well_under_a_second(task, question, passages):
    judge = Alone(local_backend("rules").judge)
    text = " ".join([passages["result"], passages["methods"], passages["background"]] * 2)
    judge.invoke(task(question, text))
    before = time.process_time()
    for _ in range(30):
        judge.invoke(task(question, text))
    assert time.process_time() - before < 0.3


@pytest.mark.full
def test_no_model_library_is_loaded():
    code = (
        "import sys, deepera_graph.judges.trained as local\n"
        "local.local_backend('rules').intent.invoke({'question': 'Why?', 'problem': ''})\n"
        "names = ('numpy', 'sklearn', 'torch', 'openai', 'langgraph')\n"
        "sys.exit(str([name for name in names if name in sys.modules]) "
        "if any(name in sys.modules for name in names) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_background_table_is_small_and_names_its_source():
    from importlib.resources import files

    text = files("deepera_graph.text").joinpath("term_counts.json").read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert "counted by count_terms over" in text[:200]
