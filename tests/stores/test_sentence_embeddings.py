"""Embeddings of sentence-transformers, on a model of a few hundred numbers."""

import pickle
from importlib.util import find_spec

import pytest

from deepera_graph.stores import embeddings as module
from deepera_graph.stores.embeddings import SentenceEmbeddings, name_embeddings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # of torch and transformers
    pytest.mark.skipif(
        find_spec("sentence_transformers") is None, reason="sentence-transformers is not installed"
    ),
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "moss", "grew", "on", "walls", "search"]
LIMIT = 8


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a BERT of one layer that reads eight tokens."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    tokenizer = BertTokenizerFast(vocab_file=str(folder / "vocab.txt"))
    tokenizer.save_pretrained(folder / "bert")
    size = {"hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": LIMIT}
    config = BertConfig(vocab_size=len(WORDS), num_hidden_layers=1, num_attention_heads=2, **size)
    BertModel(config).save_pretrained(folder / "bert")
    encoder = Transformer(str(folder / "bert"), max_seq_length=LIMIT)
    SentenceTransformer(modules=[encoder, Pooling(8, "cls")]).save(str(folder / "whole"))
    return str(folder / "whole")


def test_vectors_have_length_one_and_tell_what_they_do_not_read(model):
    embeddings = SentenceEmbeddings(model)
    long = "moss grew on walls " * 5
    [short_one, long_one] = embeddings.embed_documents(["moss", long])
    assert sum(one * one for one in short_one) == pytest.approx(1)
    assert embeddings.max_tokens == LIMIT
    assert embeddings.count_tokens(["moss", long]) == [3, 22]
    assert embeddings.embed_documents([long + "search"])[0] == pytest.approx(long_one)
    assert embeddings.embed_documents([]) == []


def test_a_worker_gets_the_name_and_reads_the_weights_itself(model):
    embeddings = SentenceEmbeddings(model)
    sent = pickle.dumps(embeddings)
    assert len(sent) < 500 + len(model)
    assert pickle.loads(sent).embed_query("moss") == embeddings.embed_query("moss")
    assert name_embeddings(embeddings) == f"SentenceEmbeddings:{model}"


def test_english_bge_gets_its_instruction_before_a_question_alone(model, monkeypatch):
    monkeypatch.setattr(module, "SHORT_NAMES", {"bge": "BAAI/bge-tiny-en"})
    package = pytest.importorskip("sentence_transformers")
    whole = package.SentenceTransformer
    asked = []

    def find(name, **how):
        asked.append(name)
        return whole(model, **how)

    monkeypatch.setattr(package, "SentenceTransformer", find)
    embeddings = SentenceEmbeddings("bge").open()
    assert asked == ["BAAI/bge-tiny-en"]
    prompted = "Represent this sentence for searching relevant passages: moss"
    [expected, plain] = embeddings.embed_documents([prompted, "moss"])
    assert embeddings.embed_query("moss") == pytest.approx(expected)
    assert expected != pytest.approx(plain)
