"""The backend: scores, failures, both worlds, and how it is named and written down."""

import asyncio
import json
import pickle
import subprocess
import sys
from math import exp, inf, nan
from textwrap import dedent
from types import SimpleNamespace

import pytest

from deepera_graph import (
    Curve,
    EvidenceReranker,
    JudgementCache,
    SettingsError,
    Usage,
    encoder_backend,
    load_backend,
)
from deepera_graph.errors import AnswerError
from deepera_graph.judges.base import Countable, counting_backend, tokens_known
from deepera_graph.packages import install_command
from deepera_graph.settings.thresholds import judge_identity
from judges.cross_encoder.tasks import QUESTION, task
from support.judging import Alone
from support.tiny_encoder import TEXTS, write_model

WORDS = " ".join(TEXTS).split()
MANY = [" ".join(WORDS[n : n + 12]) + "." for n in range(24)]


class Predicts:
    """A live object; a passage that names a number gets it, another fails."""

    def __init__(self):
        self.batches = []

    def predict(self, pairs):
        self.batches.append([text for _, text in pairs])
        return [float(text.rstrip(".")) for _, text in pairs]


class Scores(Predicts):
    """As a cross-encoder of LangChain."""

    predict = None

    def score(self, pairs):
        return [[float(text)] for _, text in pairs]


class Ranks:
    """As a model of the `rerankers` package."""

    def score(self, query, doc):
        raise AssertionError("one call a pair")

    def rank(self, query, docs, doc_ids):
        found = sorted(zip(docs, doc_ids, strict=True), reverse=True)
        return SimpleNamespace(results=[
            SimpleNamespace(
                document=SimpleNamespace(doc_id=id),
                score=None if text == "?" else float(text) * len(query),
            )
            for text, id in found if text != "-"
        ])  # fmt: skip


def judge_of(backend, text="1", **changes):
    return Alone(backend.judge).invoke(task(text, **changes))


def expected(twin, text, question=QUESTION):
    return 1 / (1 + exp(-twin.logit((question, text))))


def test_the_score_is_the_logistic_function_of_the_logit_and_the_reason_says_so(folder, twin):
    found = judge_of(encoder_backend(folder), TEXTS[0])
    logit = twin.logit((QUESTION, TEXTS[0]))
    assert found.score == pytest.approx(expected(twin, TEXTS[0]), abs=1e-4)
    assert found.reason == f"cross-encoder tiny, logit {logit:.1f}"
    assert (found.quote, found.usage) == ("", Usage())


def test_the_title_is_read_before_the_text(folder, twin):
    backend = encoder_backend(folder)
    titled = judge_of(backend, TEXTS[0], title="The crust")
    assert titled.score == judge_of(backend, f"The crust. {TEXTS[0]}").score
    asks = judge_of(backend, TEXTS[0], title=" Wet summers? ")
    assert asks.score == judge_of(backend, f"Wet summers? {TEXTS[0]}").score


def test_section_and_intent_are_not_read(folder, twin):
    backend, other = encoder_backend(folder), {**task(TEXTS[0]), "section": "results"}
    judge = Alone(backend.judge)
    assert judge.invoke(other) == judge.invoke(task(TEXTS[0]))


def test_a_rerank_ranks_by_the_model_sync_and_async_alike(folder, twin):
    reranker = EvidenceReranker(encoder_backend(folder), max_concurrency=12)
    one = reranker.rerank(QUESTION, MANY)
    other = asyncio.run(reranker.arerank(QUESTION, MANY))
    assert [(p.id, p.score) for p in one.passages] == [(p.id, p.score) for p in other.passages]
    for passage in one.passages:
        assert passage.score == pytest.approx(expected(twin, passage.text), abs=1e-4)
    assert one.total_usage.sent_calls == 0


def test_calls_that_arrive_together_share_batches():
    model = Predicts()
    texts = [f"{n}.5" for n in range(200)]
    reranker = EvidenceReranker(encoder_backend(model), max_concurrency=64, content="passage")
    asyncio.run(reranker.arerank("How many?", texts))
    assert sorted(text for batch in model.batches for text in batch) == sorted(texts)
    assert len(model.batches) < 60


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_number_that_is_none_is_a_failure_of_its_passage_not_a_score(bad):
    reranker = EvidenceReranker(encoder_backend(Predicts()))
    result = reranker.rerank("How many?", ["1.0", f"{bad}", "2.0"])
    failed = result.passages[-1]
    assert [one.id for one in result.passages] == ["3", "1", "2"]
    assert (failed.status, failed.score) == ("failed", None)
    assert f"gave {bad}, which is no logit" in failed.reason


def test_a_passage_the_model_fails_on_fails_alone():
    backend = encoder_backend(Predicts())
    result = EvidenceReranker(backend, max_concurrency=8).rerank(
        "How many?", [*map(str, range(9)), "none"]
    )
    assert [one.status for one in result.passages] == ["scored"] * 9 + ["failed"]
    assert "cross-encoder Predicts failed: ValueError: could not convert" in (
        result.passages[-1].reason
    )
    with pytest.raises(AnswerError, match="could not convert"):
        judge_of(backend, "none")


def test_a_blank_passage_scores_0_and_asks_nobody():
    model = Predicts()
    found = judge_of(encoder_backend(model), "  \n ")
    assert (found.score, model.batches) == (0.0, [])


def test_probabilities_are_taken_as_they_are_and_checked():
    backend = encoder_backend(Predicts(), scale="probability")
    found = judge_of(backend, "0.25")
    assert (found.score, found.reason) == (0.25, "cross-encoder Predicts, probability 0.25")
    with pytest.raises(AnswerError, match=r"gave 1\.5, which is no probability"):
        judge_of(backend, "1.5")


def test_extreme_logits_keep_their_order_and_do_not_overflow():
    backend = encoder_backend(Predicts())
    scores = [judge_of(backend, text).score for text in ("-9000", "-30", "0", "30", "9000")]
    assert scores == sorted(scores)
    assert (scores[0], scores[2], scores[4]) == (0.0, 0.5, 1.0)


def test_a_curve_makes_probabilities_of_scores_and_is_told():
    curve = Curve(method="isotonic", x=(0.0, 0.5, 1.0), y=(0.0, 0.1, 1.0))
    plain, curved = encoder_backend(Predicts()), encoder_backend(Predicts(), curve=curve)
    assert judge_of(curved, "0").score == pytest.approx(0.1)
    assert judge_identity("encoder", curved.about) != judge_identity("encoder", plain.about)
    assert "note" in plain.about
    assert "note" not in curved.about


@pytest.mark.parametrize("make", [Predicts, Scores, Ranks])
def test_objects_that_predict_score_or_rank_are_judges(make):
    backend = encoder_backend(make(), scale="logit")
    factor = len(QUESTION) if make is Ranks else 1
    expect = 1 / (1 + exp(-0.02 * factor))
    assert judge_of(backend, "0.02").score == pytest.approx(expect, abs=1e-4)
    assert backend.about["model"] == make.__name__


def test_an_object_counts_one_call_a_passage():
    result = EvidenceReranker(encoder_backend(Predicts())).rerank("How many?", ["1", "2"])
    assert result.total_usage.calls == 2


@pytest.mark.parametrize(("text", "why"), [("?", "gives no scores"), ("-", "left out 1 of 1")])
def test_a_ranking_without_a_score_is_a_failure(text, why):
    with pytest.raises(AnswerError, match=why):
        judge_of(encoder_backend(Ranks()), text)


def test_the_best_sentence_is_quoted_if_asked_for(folder, twin):
    backend = encoder_backend(folder, quote=True)
    text = " ".join(TEXTS)
    found = judge_of(backend, text)
    assert found.quote == max(TEXTS, key=lambda one: twin.logit((QUESTION, one)))
    assert found.score == pytest.approx(expected(twin, text), abs=1e-4)
    assert asyncio.run(Alone(backend.judge).ainvoke(task(text))) == found
    assert judge_of(backend, TEXTS[1]).quote == TEXTS[1]


def test_counting_costs_nothing_and_runs_no_model():
    model = Predicts()
    backend = encoder_backend(model)
    assert isinstance(backend.judge, Countable)
    assert tokens_known(backend)
    estimate = EvidenceReranker(backend).estimate([("How many?", ["1", "2", "3"])])
    assert (estimate.total_usage.calls, model.batches) == (3, [])


def test_a_model_on_this_machine_counts_no_calls(folder, twin):
    counted = counting_backend(encoder_backend(folder))
    assert asyncio.run(Alone(counted.judge).ainvoke(task("a"))).usage == Usage()


def test_a_name_a_spec_and_a_pickle_build_the_same_judge(folder, twin):
    backend = load_backend(f"encoder:{folder}")
    again = load_backend(json.loads(json.dumps(dict(backend.spec))))
    copy = pickle.loads(pickle.dumps(backend))
    judged = [judge_of(one, TEXTS[0]) for one in (backend, again, copy)]
    assert judged[0] == judged[1] == judged[2]
    assert backend.fingerprint() == again.fingerprint() == copy.fingerprint()
    assert backend.name == "encoder"


def test_options_are_written_down(folder, twin):
    curve = Curve(method="platt", a=2.0, b=-1.0)
    given = {"max_tokens": 30, "batch_size": 4, "threads": 1, "kind": "onnx", "quote": True}
    backend = encoder_backend(str(folder), curve=curve, scale="probability", **given)
    again = load_backend(json.loads(json.dumps(dict(backend.spec))))
    assert again.spec == backend.spec
    assert again.about == backend.about
    assert again.about["max_tokens"] == 30


def test_the_fingerprint_tells_weights_apart_and_not_how_fast_they_run(folder, twin):
    backend = encoder_backend(folder)
    assert encoder_backend(folder, batch_size=2, threads=1).fingerprint() == backend.fingerprint()
    write_model(folder, n_outputs=2)
    assert encoder_backend(folder).fingerprint() != backend.fingerprint()


def test_a_batch_that_makes_a_difference_is_in_the_fingerprint(folder):
    write_model(folder, mixing=True)
    alone, together = encoder_backend(folder), encoder_backend(folder, batch_size=8)
    assert alone.about["batch_size"] == 1
    assert together.fingerprint() != alone.fingerprint()


def test_a_live_object_cannot_be_written_down():
    backend = encoder_backend(Predicts())
    with pytest.raises(SettingsError, match="live objects"):
        backend.fingerprint()
    with pytest.raises(TypeError, match="live object"):
        pickle.dumps(backend)


def test_a_named_model_runs_here_and_asks_no_chat_model(folder, twin):
    assert not load_backend(f"encoder:{folder}").asks_model


def test_judgements_of_a_named_model_can_be_cached(folder, twin):
    cache = JudgementCache()
    reranker = EvidenceReranker(f"encoder:{folder}", cache=cache, content="passage")
    first, second = (reranker.rerank(QUESTION, MANY) for _ in range(2))
    assert [(p.id, p.score) for p in first.passages] == [(p.id, p.score) for p in second.passages]
    assert cache.stats().n_entries >= len(MANY)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number >= 1, got 0"),
        ({"threads": True}, "threads must be a whole number >= 1, got True"),
        ({"max_tokens": 2.5}, "max_tokens must be a whole number >= 1, got 2.5"),
        ({"scale": "percent"}, r"scale must be one of \['logit', 'probability'\], got 'percent'"),
        ({"kind": "torch"}, r"kind must be one of .*, got 'torch'"),
        ({"max_tokens": 4}, "leaves no room"),
    ],
)
def test_options_out_of_range_are_named(folder, twin, changes, named):
    with pytest.raises(SettingsError, match=named):
        encoder_backend(folder, **changes)


def test_what_is_no_model_is_named(tmp_path, folder, twin):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no model")
    for model, named in [
        (tmp_path / "empty", "holds no model: neither model.onnx with tokenizer.json"),
        (tmp_path / "notes.txt", "must be an ONNX file or a folder, got the file"),
        (tmp_path / "gone.onnx", "does not exist"),
        (tmp_path / "gone", "must be a name, a file or a folder; "),
        ("", "must be a name, a file or a folder, got ''"),
        (7, "or an object with predict"),
        (None, "or an object with predict"),
    ]:
        with pytest.raises(SettingsError, match=named):
            encoder_backend(model)
    with pytest.raises(SettingsError, match=r"holds no model\.onnx"):
        encoder_backend(tmp_path / "empty", kind="onnx")
    with pytest.raises(SettingsError, match="threads does not go with a live object"):
        encoder_backend(Predicts(), threads=2)
    with pytest.raises(SettingsError, match=r"not the spec of an encoder backend: .*colour"):
        load_backend({"kind": "encoder", "model": str(folder), "colour": 1})
    with pytest.raises(SettingsError, match="not the spec of an encoder backend: 'model'"):
        load_backend({"kind": "encoder"})


@pytest.mark.parametrize(
    ("module", "extra", "model"),
    [
        ("onnxruntime", "", None),
        ("tokenizers", "", None),
        ("sentence_transformers", "sentence-transformers", "some/model"),
    ],
)
def test_a_missing_package_names_its_extra(monkeypatch, folder, twin, module, extra, model):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SettingsError) as caught:
        encoder_backend(model or folder)
    named = f"'some/model' is no file or folder, and a model by that name needs {module}"
    told = named if model else f"{module} is not installed"
    assert str(caught.value) == f"{told}: {install_command(extra)}"


@pytest.mark.full
def test_a_forked_child_judges_like_its_parent(folder, twin):
    done = subprocess.run([sys.executable, "-c", dedent("""
        import os, sys
        from deepera_graph import encoder_backend
        intent = dict(topic="", entity_type="", intent="other", expected_answer_type="other")
        window = dict(text="Rain and air.", title="", section="")
        batch = dict(question="Wet?", intent=intent, windows=[window], numbers=[0], part="")
        judge = encoder_backend(sys.argv[1]).judge
        before = judge.judge(batch)
        child = os.fork()
        if child == 0:
            os._exit(0 if judge.judge(batch) == before else 1)  # as multiprocessing does
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), judge.judge(batch) == before)
    """), str(folder)], capture_output=True, text=True, timeout=20, check=False)  # fmt: skip
    assert (done.stdout, done.stderr) == ("0 True\n", "")


@pytest.mark.full
def test_torch_is_not_loaded_for_onnx(folder, twin):
    code = (
        "import sys; from deepera_graph import encoder_backend; encoder_backend(sys.argv[1]);"
        "print({'torch', 'transformers', 'langgraph', 'openai'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
