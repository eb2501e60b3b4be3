"""Cross-encoders of sentence-transformers; where it is not installed, a stand-in for it."""

import sys
from math import exp
from textwrap import dedent

import pytest

from deepera_graph import EvidenceReranker, SettingsError, encoder_backend, load_backend
from judges.cross_encoder.tasks import QUESTION, task
from support.judging import Alone

STAND_IN = """
    class CrossEncoder:
        def __init__(self, place, max_length=None):
            if place == "nowhere/model":
                raise OSError("no such weights")
            self.num_labels = 3 if place == "three/labels" else 1
            self.max_length = max_length or 512

        def predict(self, pairs, batch_size, show_progress_bar, activation_fn):
            assert batch_size == len(pairs) and not show_progress_bar
            assert activation_fn == "identity"
            return [len(text) / 10 for _, text in pairs]
"""
TORCH = "class nn:\n    Identity = staticmethod(lambda: 'identity')\n"


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    (tmp_path / "sentence_transformers.py").write_text(dedent(STAND_IN))
    (tmp_path / "torch.py").write_text(TORCH)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("sentence_transformers", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield
    for name in ("sentence_transformers", "torch"):
        sys.modules.pop(name, None)


def test_a_name_is_a_model_of_sentence_transformers(stand_in):
    backend = load_backend("encoder:some/model")
    found = Alone(backend.judge).invoke(task("Rain on copper."))
    assert found.score == pytest.approx(1 / (1 + exp(-1.5)), abs=1e-6)
    assert found.reason == "cross-encoder some/model, logit 1.5"
    assert backend.spec == {"kind": "encoder", "model": "some/model"}
    assert backend.about["judge_version"].startswith("sentence-transformers ")
    assert encoder_backend("some/model", max_tokens=64).about["max_tokens"] == 64


def test_weights_that_are_not_there_are_told(stand_in):
    with pytest.raises(SettingsError, match="no weights of 'nowhere/model': OSError: no such"):
        encoder_backend("nowhere/model")


def test_a_model_of_many_classes_is_refused(stand_in):
    with pytest.raises(SettingsError, match="must give one logit a pair, or two, gives 3"):
        encoder_backend("three/labels")


def test_threads_are_not_for_torch(stand_in):
    with pytest.raises(SettingsError, match="threads does not go with a model of sentence-"):
        encoder_backend("some/model", threads=2)


@pytest.fixture(scope="module")
def random_cross_encoder(tmp_path_factory):
    """A cross-encoder of one small layer, its weights drawn by chance, in a folder."""
    pytest.importorskip("sentence_transformers")
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    from support.tiny_encoder import make_tokenizer

    tokenizer = make_tokenizer()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=16, num_hidden_layers=1,
        num_attention_heads=2, intermediate_size=16, max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("cross_encoder")
    BertForSequenceClassification(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_a_real_model_scores_as_it_predicts(random_cross_encoder):
    from sentence_transformers import CrossEncoder

    texts = ["Rain and air form a crust.", "Two keepers.", "Lamps were cleaned " * 40]
    named = encoder_backend(random_cross_encoder)
    live = encoder_backend(CrossEncoder(str(random_cross_encoder)))
    plain = CrossEncoder(str(random_cross_encoder)).predict([(QUESTION, one) for one in texts])
    for backend in (named, live):
        result = EvidenceReranker(backend, content="passage").rerank(QUESTION, texts)
        by_place = {one.retrieval_rank: one.score for one in result.passages}
        assert [by_place[n] for n in (1, 2, 3)] == pytest.approx(list(plain), abs=1e-4)
    assert len(named.about["judge_version"]) == 64
    assert named.about["max_tokens"] == 64
