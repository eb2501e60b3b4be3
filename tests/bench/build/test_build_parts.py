"""Parts of the builder: the plan, the embeddings, the guidance, the estimate, the model."""

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from bench.build.lake_abstracts import lake_abstracts
from deepera_graph.calibration.instance import DatasetError
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.judges.llm.backend import llm_backend
from deepera_graph.judges.trained.backend import local_backend
from deepera_graph.lab.asking import describe_model, without_server
from deepera_graph.lab.build import corpus
from deepera_graph.lab.build.builder import build, estimate_build
from deepera_graph.lab.build.corpus import Chunk, read_corpus
from deepera_graph.lab.build.search import LsaEmbeddings, drop_unconnected, embed_chunks
from deepera_graph.lab.build.writing.distractors import (
    FilledGuide,
    QAPair,
    draw_lengths,
    draw_types,
    phrases_to_avoid,
)
from deepera_graph.lab.construction import CachedEmbeddings
from deepera_graph.lab.settings import BuildPlan
from deepera_graph.stores.judgements import JudgementCache


class CountingEmbeddings(Embeddings):
    model = "counting"

    def __init__(self):
        self.texts = []

    def embed_documents(self, texts):
        self.texts.extend(texts)
        return [[len(text), text.count("a") + 0.1, 1.0] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def test_a_full_disk_is_told_with_the_file_of_the_corpus(tmp_path, monkeypatch):
    few = f"{corpus._TABLES} PRAGMA max_page_count = 12;"
    monkeypatch.setattr(corpus, "_TABLES", few)
    path = tmp_path / "corpus.sqlite3"
    with pytest.raises(StoreError, match=r"corpus\.sqlite3' cannot be used: the disk is full"):
        read_corpus(lake_abstracts(), 200, [], path=path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_questions": 0}, "n_questions must be a whole number >= 1, got 0"),
        ({"n_contexts": 3}, r"n_contexts must be above n_distractors \(3\), got 3"),
        ({"settings": ("base", "hard")}, "got 'base,hard'"),
        ({"settings": ("base", "base")}, "got 'base,base'"),
        ({"golden": "hide"}, "got 'hide'"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"attempts": 0}, "attempts must be a whole number >= 1, got 0"),
        ({"min_similarity": 2.0}, r"min_similarity must be in \[-1, 1\], got 2"),
        ({"min_group": 0}, "min_group must be a whole number >= 1, got 0"),
    ],
)
def test_a_plan_out_of_range_names_the_value(changes, message):
    with pytest.raises(SettingsError, match=message):
        BuildPlan(**changes)


def test_kept_embeddings_compute_a_text_once_and_give_the_same_again(tmp_path):
    inner = CountingEmbeddings()
    with JudgementCache(tmp_path / "kept.sqlite3") as cache:
        first = CachedEmbeddings(inner, "counting", cache).embed_documents(["ab", "c", "ab"])
    with JudgementCache(tmp_path / "kept.sqlite3") as cache:
        kept = CachedEmbeddings(inner, "counting", cache)
        assert kept.embed_documents(["ab", "c", "d"])[:2] == first[:2]
        assert kept.embed_query("ab") == first[0]
    assert inner.texts == ["ab", "c", "d", "ab"]
    assert np.allclose(first, [[2, 1.1, 1], [1, 0.1, 1], [2, 1.1, 1]])


@pytest.mark.full
def test_embeddings_of_ones_own_are_asked_once_for_each_text(server, build_lakes):
    inner = CountingEmbeddings()
    build_lakes(server, embeddings=inner, min_group=1)
    n_asked = len(inner.texts)
    built = build_lakes(server, embeddings=inner, min_group=1, overwrite=True)
    assert built.manifest["embeddings"]["name"] == "CountingEmbeddings:counting"
    assert len(inner.texts) - n_asked <= 1


def test_lsa_finds_a_chunk_by_its_own_words():
    texts = [one.text for one in lake_abstracts()]
    embeddings = LsaEmbeddings(texts)
    rows = np.array(embeddings.embed_documents(texts))
    query = np.array(embeddings.embed_query(texts[7].split(". ")[2]))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert int(np.argmax(rows @ query)) == 7


def test_lsa_of_one_text_is_an_error():
    with pytest.raises(DatasetError, match="at least 2 chunks of text are needed, got 1"):
        LsaEmbeddings(["only this one"])


def test_lsa_of_texts_with_the_same_words_is_an_error():
    with pytest.raises(DatasetError, match="2 chunks cannot be embedded: no word tells"):
        LsaEmbeddings(["lake.", "lake!"])


def test_a_corpus_without_connections_is_an_error():
    corpus = read_corpus(lake_abstracts(4), 200, [])
    vectors = embed_chunks(corpus, LsaEmbeddings([*corpus.texts()]), identity="lsa")
    with pytest.raises(DatasetError, match="all 4 documents are weakly connected"):
        drop_unconnected(corpus, vectors, BuildPlan(min_similarity=0.999), [])


def test_types_of_distractors_are_used_equally_often_and_begin_by_chance():
    types = draw_types(6, 0, "q1")
    assert sorted(types[:3]) == ["background", "irrelevant", "misleading"]
    assert types[:3] == types[3:]
    assert len({draw_types(1, 0, f"q{number}")[0] for number in range(30)}) == 3


def test_phrases_that_do_not_single_out_the_answer_are_not_avoided():
    phrases = ["Trout", "40 cm", "forty centimetres", "warmth"]
    guide = FilledGuide(type="background", focus="", avoid=phrases, length=90)
    pair = QAPair("How long do trout grow?", "40 cm", Chunk("a#1", "They grow to 40 cm.", "a"))
    others = ["Feeding increased with warmth.", "Pike grow to 90 cm."]
    assert phrases_to_avoid(guide, pair, others) == ["40 cm", "forty centimetres"]


@pytest.mark.full
def test_the_estimate_counts_the_calls_of_a_build_that_goes_well(server, build_lakes):
    build_lakes(server, generators=("lmqg", "guided"), min_group=1)
    plan = BuildPlan(n_questions=6, n_contexts=8, max_tokens=120)
    found = estimate_build(read_corpus(lake_abstracts(), 120, []), plan, ("lmqg", "guided"))
    assert found.total_usage.calls == 3 * 6 + 2 * (6 + 18 + 18)
    assert found.total_usage.calls <= server.calls <= found.counts["most_calls"] + 20
    assert found.counts["questions"] == 12


@pytest.mark.full
def test_the_estimate_of_tokens_is_near_what_is_sent(server, build_lakes):
    built = build_lakes(server)
    plan = BuildPlan(n_questions=6, n_contexts=8, max_tokens=120)
    found = estimate_build(read_corpus(lake_abstracts(), 120, []), plan, ("lmqg",))
    sent = sum(len(m["content"]) for one in server.requests for m in one.messages) / 4
    per_call = sent / server.calls
    assert built.n_sent == server.calls
    assert found.total_usage.input_tokens / found.total_usage.calls == pytest.approx(
        per_call, rel=0.25
    )


@pytest.mark.full
def test_a_model_is_told_from_others_by_name_and_options_not_by_its_server():
    def record(url, **options):
        backend = llm_backend("openai:small", base_url=url, **options)
        return without_server(backend).fingerprint()["spec"], describe_model(backend)

    near, far = record("http://near/v1"), record("http://far/v1")
    assert near[0] == far[0]
    assert near[1]["server"] == "http://near/v1"
    assert record("http://near/v1", temperature=1)[0] != near[0]


def test_a_backend_without_a_chat_model_cannot_build(tmp_path):
    with pytest.raises(SettingsError, match="chat model"):
        build(lake_abstracts(), tmp_path, model=local_backend())


@pytest.mark.full
def test_a_langchain_model_is_asked_in_words(tmp_path):
    model = FakeListChatModel(responses=['{"pairs": []}'])
    with pytest.raises(DatasetError, match=r"no question could be made: lmqg: .* no-pair"):
        build(lake_abstracts(), tmp_path, model=model, generators=("lmqg",))


def test_lengths_are_drawn_from_natural_ones_within_bounds():
    natural = [10, 90, 100, 110, 300]
    drawn = draw_lengths(50, 0, "q1", natural=natural, least=0.5, most=2)
    assert set(drawn) == {90, 100, 110}
    assert drawn == draw_lengths(50, 0, "q1", natural=natural, least=0.5, most=2)
    assert drawn != draw_lengths(50, 1, "q1", natural=natural, least=0.5, most=2)


def test_where_no_natural_length_is_within_bounds_the_median_counts():
    assert draw_lengths(2, 0, "q1", natural=[10, 20], least=0.9, most=1.1) == [15, 15]
