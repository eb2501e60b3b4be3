"""What is around the trained judge: when it is loaded, what it costs, how it travels."""

import asyncio
import multiprocessing
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from queue import Queue

import pytest

from deepera_graph import EvidenceReranker, SettingsError, Usage, load_backend, local_backend
from deepera_graph.judges.trained import backend as of_weights
from deepera_graph.judges.trained import model as model_module
from deepera_graph.judges.trained.backend import SUMS, local_model
from support.judging import Alone
from support.list_judges import QUESTION, TEXTS, run, scores
from support.stand_in import EvidenceModel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of weights, for which the stand-in stands in."""
    (tmp_path / SUMS).write_text("0  encoder.onnx\n")
    monkeypatch.setattr(EvidenceModel, "n_loaded", 0)
    monkeypatch.setattr(model_module, "EvidenceModel", EvidenceModel)
    return tmp_path


def test_it_says_which_weights_judge_before_they_are_loaded(folder):
    backend = local_backend("trained", weights=folder)
    assert backend.name == "local"
    assert backend.about["judge"] == "trained"
    assert backend.about["judge_version"] == sha256((folder / SUMS).read_bytes()).hexdigest()[:16]
    assert "calibrated probability" in backend.about["note"]
    assert EvidenceModel.n_loaded == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_scores_depend_on_the_pool_and_cost_nothing(folder, is_async):
    result = run(local_backend("trained", weights=folder), is_async=is_async, threshold=0.4)
    assert scores(result) == {"1": 9 / 19, "2": 1.0, "3": 4 / 19}
    assert result.passages[0].reason == "in company"
    assert result.total_usage == Usage()


@pytest.mark.full
def test_one_model_serves_all_backends_threads_and_copies(folder):
    made = [local_backend("trained", weights=folder) for _ in range(2)]
    made.append(pickle.loads(pickle.dumps(made[0])))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, made * 4))
    assert local_model(folder) is local_model(str(folder))
    assert EvidenceModel.n_loaded == 1
    assert local_model(folder, threads=2).threads == 2


def test_no_call_runs_in_the_thread_of_the_event_loop(folder):
    run(local_backend("trained", weights=folder), is_async=True)
    assert threading.current_thread() not in local_model(folder).used_in


def test_a_process_does_not_end_while_a_thread_loads_to_read_ahead(folder, monkeypatch):
    told = Queue()
    monkeypatch.setattr(
        EvidenceModel,
        "read_ahead",
        lambda self, passages: told.put((passages, threading.current_thread().daemon)),
        raising=False,
    )
    local_backend("trained", weights=folder).judge.prepare(TEXTS)
    assert told.get(timeout=5) == (TEXTS, False)


def test_the_judge_judges_a_passage_alone_too(folder):
    judge = Alone(local_backend("trained", weights=folder).judge)
    task = {"question": QUESTION, "intent": {}, "text": "a", "title": "", "section": ""}
    assert judge.invoke(task).reason == asyncio.run(judge.ainvoke(task)).reason == "alone"


def test_an_estimate_loads_nothing(folder):
    estimate = EvidenceReranker(local_backend("trained", weights=folder)).estimate(
        [(QUESTION, TEXTS)]
    )
    assert (estimate.total_usage, estimate.tokens_known) == (Usage(), True)
    assert EvidenceModel.n_loaded == 0


def test_it_is_built_again_from_its_spec(folder):
    backend = local_backend("trained", weights=folder, threads=2)
    again = load_backend(dict(backend.spec))
    assert (again.spec, again.about) == (backend.spec, backend.about)
    assert again.spec == {
        "kind": "local", "judge": "trained", "weights": str(folder), "threads": 2,
    }  # fmt: skip
    assert again.fingerprint() == local_backend("trained", weights=folder).fingerprint()


def test_damaged_weights_are_told_once_and_not_for_every_passage(folder, monkeypatch):
    def load(folder, *, threads):
        raise SettingsError("encoder.onnx has another checksum")

    monkeypatch.setattr(EvidenceModel, "load", load)
    result = run(local_backend("trained", weights=folder, threads=3))
    assert "another checksum" in result.backend_failure


@pytest.mark.full
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_judges_even_if_a_load_was_under_way(folder):
    with of_weights._SHARED._lock, multiprocessing.get_context("fork").Pool(1) as pool:
        found = pool.apply_async(run, (local_backend("trained", weights=folder),)).get(20)
    assert scores(found)["2"] == 1.0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"judge": "model"}, "judge must be one of"),
        ({"weights": "no/such/folder"}, "weights must be a folder"),
        ({"weights": "."}, "no judge weights"),
        ({"threads": 0}, "threads must be"),
        ({"judge": "rules", "threads": 1}, "threads goes with the trained judge"),
        ({"judge": "rules", "weights": "."}, "weights goes with the trained judge"),
    ],
)
def test_what_cannot_be_is_named(given, message):
    with pytest.raises(SettingsError, match=message):
        local_backend(**{"judge": "trained", **given})


def test_a_spec_of_something_else_is_named():
    with pytest.raises(SettingsError, match="not the spec of a local backend"):
        load_backend({"kind": "local", "model": "x"})


def test_the_rules_have_a_name_of_their_own():
    assert load_backend("rules").about["judge"] == "rules"
    assert load_backend("rules").name == "rules"
    assert load_backend(load_backend("rules").spec).about["judge"] == "rules"
