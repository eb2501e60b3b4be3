"""What `deepera index` and `deepera ask` keep beside a collection."""

import json
import logging

import pytest

from cli.conftest import QUESTION
from deepera_graph.cli.opening.judges import open_judge
from deepera_graph.cli.shared.options import JudgeOptions
from deepera_graph.judges.trained.backend import local_model
from deepera_graph.judges.trained.kept import FILE_NAME
from deepera_graph.judges.trained.reading import encoder as encoder_module
from deepera_graph.judges.trained.reading.encoder import Encoder

pytestmark = pytest.mark.full

PAPERS = [
    {"id": "trial", "text": "Green tea lowered fasting glucose by 4% in 60 adults."},
    {"id": "review", "text": "Effects of green tea on glucose are debated.", "title": "A review"},
    {"id": "protocol", "text": "Fasting glucose will be measured after green tea."},
]
OTHER = "Is fasting glucose lower after cups of green tea?"


@pytest.fixture
def place(tmp_path):
    return "--library", "papers", "--path", tmp_path / "store"


@pytest.fixture
def kept(tmp_path):
    return tmp_path / "store" / "collection" / "papers" / FILE_NAME


@pytest.fixture
def source(questions):
    return questions(*PAPERS, name="papers.jsonl")


@pytest.fixture
def runs(monkeypatch):
    """Counts what is encoded."""
    seen, run = [], Encoder._run

    def counted(self, ids):
        seen.append(len(ids))
        return run(self, ids)

    monkeypatch.setattr(Encoder, "_run", counted)
    return seen


def forget():
    """Have nothing in memory and no file open, as a new process."""
    encoder_module._restart_all()
    for encoder in encoder_module._ALIVE:
        if encoder._store is not None:
            encoder._store.close()


def ranking(result):
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["ranking"]


def test_a_passage_is_encoded_at_the_first_question_and_never_again(
    deepera, source, place, kept, runs
):
    deepera("index", source, *place)
    assert not kept.exists()
    forget()
    in_memory = ranking(deepera("ask", QUESTION, source, "--json"))
    forget()
    first = ranking(deepera("ask", QUESTION, *place, "--json"))
    assert kept.exists()
    del runs[:]
    forget()
    assert ranking(deepera("ask", QUESTION, *place, "--json")) == first
    assert runs == []
    forget()
    deepera("ask", OTHER, *place)
    assert len(runs) == 1
    assert [one["score"] for one in first] == [one["score"] for one in in_memory]


def test_what_is_embedded_without_a_title_is_kept_at_once(deepera, source, place, kept):
    deepera("index", source, *place, "--embeddings", "local")
    store = local_model(keep_in=kept.parent).encoder._store
    assert [store.find(one["text"]) is not None for one in PAPERS] == [True, False, True]


@pytest.mark.parametrize("key", ["DEEPERA_KEEP_VECTORS=off", "DEEPERA_BACKEND=rules"])
def test_nothing_is_kept_if_it_is_off_or_not_needed(deepera, source, place, kept, monkeypatch, key):
    deepera("index", source, *place)
    monkeypatch.setenv(*key.split("="))
    assert deepera("ask", QUESTION, *place).exit_code == 0
    assert not kept.exists()


def test_the_local_judge_before_a_chat_model_keeps_them_too(tmp_path):
    chosen = JudgeOptions(model="m", base_url="http://localhost:9/v1", cascade=3)
    kept_in = {"keep_in": str(tmp_path)}
    backend = open_judge(chosen, kept_in)
    assert backend.spec["local"]["keep_in"] == str(tmp_path)
    assert backend.fingerprint() == open_judge(chosen).fingerprint()


def test_what_is_kept_goes_with_its_collection(deepera, source, place, kept):
    deepera("index", source, *place)
    deepera("ask", QUESTION, *place)
    assert kept.exists()
    deepera("collections", "delete", "papers", "--yes", *place[2:])
    assert not kept.parent.exists()


def test_a_damaged_file_costs_a_warning(deepera, source, place, kept, caplog):
    deepera("index", source, *place)
    first = ranking(deepera("ask", QUESTION, *place, "--json"))
    forget()
    kept.write_text("These are notes about roofs. " * 50)
    with caplog.at_level(logging.WARNING):
        assert ranking(deepera("ask", QUESTION, *place, "--json")) == first
    assert "vectors.sqlite3 cannot be used, and is now vectors.sqlite3.unusable-1" in caplog.text


@pytest.mark.parametrize("value", ["0", "-1", "many"])
@pytest.mark.parametrize("command", ["index", "ask"])
def test_the_limit_is_a_number_or_off(deepera, source, place, command, value, monkeypatch):
    first = source if command == "index" else QUESTION
    monkeypatch.setenv("DEEPERA_KEEP_VECTORS", value)
    result = deepera(command, first, *place)
    assert result.exit_code == 2
    assert f"--keep-vectors must be a whole number >= 1 or 'off', got '{value}'" in result.stderr
