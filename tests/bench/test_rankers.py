import numpy as np
import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from bench.lakes import make_dataset, make_instance
from deepera_graph import __version__
from deepera_graph.calibration.instance import RankingError, UnavailableError
from deepera_graph.errors import SettingsError
from deepera_graph.lab.bench.rank import rank_dataset
from deepera_graph.lab.rankers.base import (
    CandidatePassage,
    FirstStage,
    Random,
    Ranker,
    candidates_of,
    texts_of,
)
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.rankers.external import Compressor
from deepera_graph.lab.rankers.named import asks_a_model, make_ranker
from deepera_graph.lab.rankers.retrieval import BM25, Dense
from deepera_graph.reranker import EvidenceReranker
from support.scripted import Script

TEXTS = [
    "Boats are painted in spring.",
    "Phosphorus makes algae bloom in shallow lakes.",
    "Algae were counted under a microscope.",
    "Trout avoid warm water.",
]


def shown(texts=TEXTS, titles=None):
    titles = titles or [""] * len(texts)
    return [
        CandidatePassage(id=str(place), text=text, title=title, section="")
        for place, (text, title) in enumerate(zip(texts, titles, strict=True), start=1)
    ]


def order(ranking):
    return [id for id, _ in ranking]


class WordEmbeddings(Embeddings):
    """Counts of three words."""

    asked: int = 0

    def embed_query(self, text):
        return [float(text.lower().count(word)) for word in ("algae", "trout", "boat")]

    def embed_documents(self, texts):
        self.asked += len(texts)
        return [self.embed_query(text) for text in texts]


class FirstLetters(BaseDocumentCompressor):
    """Keeps what starts with a letter of the query, without scores."""

    metadata_kept: bool = True

    def compress_documents(self, documents, query, callbacks=None):
        kept = [one for one in reversed(documents) if one.page_content[0] in query]
        if self.metadata_kept:
            return kept
        return [Document(one.page_content) for one in kept]


def test_first_stage_leaves_the_order():
    assert order(FirstStage().rank("?", shown())) == ["1", "2", "3", "4"]


def test_random_is_seeded_and_differs_between_questions_and_repeats():
    passages = shown([f"Text {number}." for number in range(30)])
    first = order(Random().rank("How?", passages))
    assert first == order(Random().rank("How?", passages))
    assert first != order(Random().rank("Why?", passages))
    assert first != order(Random().repeat(1).rank("How?", passages))
    assert first == order(Random().repeat(0).rank("How?", passages))


@pytest.mark.full
def test_random_gives_every_place_the_same_chance():
    places = [
        order(Random().rank(f"Question {number}?", shown())).index("1") for number in range(2000)
    ]
    assert np.bincount(places) == pytest.approx(500, abs=75)


@pytest.mark.full
def test_bm25_prefers_passages_with_rare_words_of_the_question():
    ranking = BM25().rank("Why do algae bloom?", shown())
    assert order(ranking)[:2] == ["2", "3"]
    assert ranking[-1][1] == 0


def test_bm25_stems_words():
    assert order(BM25().rank("painting a boat", shown()))[0] == "1"


@pytest.mark.parametrize("question", ["the of and", "", "zzz"])
def test_bm25_without_a_shared_word_keeps_the_order(question):
    assert order(BM25().rank(question, shown())) == ["1", "2", "3", "4"]


def test_bm25_ranks_passages_without_any_word():
    assert order(BM25().rank("algae", shown(["!!", "the"]))) == ["1", "2"]


def test_a_title_counts_only_where_titles_differ():
    assert texts_of(shown(["a", "b"], ["T", "T"])) == ["a", "b"]
    assert texts_of(shown(["a", "b"], ["T", ""])) == ["T a", "b"]


def test_dense_ranks_by_cosine_and_asks_for_a_passage_once():
    embeddings = WordEmbeddings()
    ranker = Dense(embeddings, name="words")
    ranking = ranker.rank("algae and trout", shown())
    assert order(ranking) == ["2", "3", "4", "1"]
    assert ranking[0][1] == pytest.approx(1 / np.sqrt(2))
    ranker.rank("boats", shown())
    assert embeddings.asked == 4


def test_dense_gives_0_to_a_passage_without_a_direction():
    assert Dense(WordEmbeddings(), name="words").rank("algae", shown(["nothing"])) == [("1", 0.0)]


def test_any_langchain_embeddings_can_be_ranked_with():
    ranker = Dense(DeterministicFakeEmbedding(size=8), name="fake")
    assert sorted(order(ranker.rank("algae", shown()))) == ["1", "2", "3", "4"]


def test_a_compressor_may_reorder_and_drop():
    assert Compressor(FirstLetters(), name="letters").rank("TAB", shown()) == [
        ("4", -1.0), ("3", -2.0), ("1", -3.0),
    ]  # fmt: skip


def test_a_compressor_that_loses_metadata_is_refused():
    ranker = Compressor(FirstLetters(metadata_kept=False), name="letters")
    with pytest.raises(RankingError, match="'letters' returned a document without its metadata"):
        ranker.rank("TAB", shown())


def test_deepera_ranks_all_passages_or_only_the_kept_ones():
    backend = Script({"Phosphorus": 0.9, "counted": 0.85, "Trout": 0.3}).backend()
    reranker = EvidenceReranker(backend, content="passage")
    everything, kept = DeepEra(reranker), DeepEra(reranker, kept_only=True)
    assert order(everything.rank("Why do algae bloom?", shown())) == ["2", "3", "4", "1"]
    assert kept.rank("Why?", shown()) == [("2", 0.9), ("3", 0.85)]
    assert everything.usage.calls == 5
    assert (everything.name, kept.name) == ("DeepEra scripted", "DeepEra scripted, kept")


@pytest.mark.full
def test_deepera_ranks_many_as_it_ranks_one():
    ranker = DeepEra(EvidenceReranker(Script({"algae": 0.9}).backend(), content="passage"))
    jobs = [("Why?", shown()), ("How?", shown(TEXTS[:2]))]
    assert ranker.rank_many(jobs) == [ranker.rank(*job) for job in jobs]


def test_deepera_puts_a_passage_that_failed_last():
    from deepera_graph.errors import AnswerError

    backend = Script({"Boats": AnswerError("no"), "": 0.1}).backend()
    ranking = DeepEra(EvidenceReranker(backend, content="passage")).rank("Why?", shown())
    assert ranking[-1] == ("1", -1.0)


def test_deepera_with_live_objects_has_no_fingerprint():
    assert DeepEra(EvidenceReranker(Script({}).backend())).fingerprint is None


def test_deepera_fingerprint_names_backend_settings_and_version():
    spec = {"kind": "factory", "path": "support.scripted:tea_backend"}
    strict = DeepEra(EvidenceReranker(Script({}).backend(spec), threshold=0.9)).fingerprint
    loose = DeepEra(EvidenceReranker(Script({}).backend(spec), threshold=0.5)).fingerprint
    assert strict["backend"] == spec
    assert strict["version"] == __version__
    assert strict != loose


def test_a_ranker_sees_no_label_no_id_and_no_first_stage_score():
    instance = make_instance(distractors=(3,))
    for place, passage in enumerate(candidates_of(instance), start=1):
        assert passage == {
            "id": str(place), "text": instance.contexts[place - 1].text, "title": "",
            "section": "",
        }  # fmt: skip


def test_a_label_that_changes_changes_nothing_a_ranker_is_shown():
    one, other = make_instance(golden=(1,), distractors=(2,)), make_instance(golden=(5,))
    assert candidates_of(one) == candidates_of(other)


class Broken(Ranker):
    """Returns what it is told to."""

    name = "broken"

    def __init__(self, ranking):
        self.ranking = ranking

    def rank(self, question, passages):
        return self.ranking


@pytest.mark.parametrize(
    ("ranking", "message"),
    [
        pytest.param([("9", 1.0)], r"unknown passages \['9'\]", id="invented"),
        pytest.param([("1", 1.0), ("1", 0.5)], "a passage twice", id="duplicate"),
        pytest.param([("1", float("nan"))], "not a number", id="nan"),
    ],
)
def test_what_is_no_ranking_is_refused(ranking, message):
    ranker: Ranker = Broken(ranking)
    with pytest.raises(RankingError, match=message):
        list(rank_dataset(ranker, make_dataset(1)))


@pytest.mark.parametrize("name", ["first-stage", "random", "bm25", "deepera:local"])
def test_rankers_are_made_by_name(name):
    assert isinstance(make_ranker(name), Ranker)


def test_factories_are_named_by_their_path():
    assert make_ranker("dense:bench.factories:words").name == "dense bench.factories:words"
    ranker = make_ranker("compressor:bench.factories:backwards")
    assert order(ranker.rank("?", shown())) == ["4", "3", "2", "1"]


@pytest.mark.parametrize("name", ["deepera:nowhere:build", "nar:nowhere:build"])
def test_a_judge_whose_module_is_misspelt_names_the_module(name):
    with pytest.raises(UnavailableError, match=r"module 'nowhere', .* cannot be imported"):
        make_ranker(name)


@pytest.mark.parametrize("head", ["dense", "compressor", "deepera", "deepera-kept", "nar"])
def test_a_factory_that_fails_costs_its_own_row_alone(head):
    with pytest.raises(
        UnavailableError, match=r"bench\.factories:broken.*RuntimeError: no weights"
    ):
        make_ranker(f"{head}:bench.factories:broken")


def test_a_judge_of_a_module_without_a_dot_is_no_chat_model(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tea_judges.py").write_text("from support.scripted import tea_backend\n")
    assert isinstance(make_ranker("deepera:tea_judges:tea_backend"), DeepEra)
    assert not asks_a_model("deepera-kept:tea_judges:tea_backend")
    assert asks_a_model("deepera:tea_judges:gpt")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("bm26", "ranker must be one of first-stage, bm25, ", id="unknown"),
        pytest.param("rules", "did you mean 'deepera:rules'", id="judge"),
        pytest.param("dense:", "ranker must be one of", id="no-factory"),
        pytest.param("dense:nowhere:words", "cannot be imported", id="no-module"),
        pytest.param("dense:bench.factories:backwards", "must return LangChain emb", id="wrong"),
        pytest.param("compressor:bench.factories:words", "must return a LangChain c", id="other"),
    ],
)
def test_rankers_that_cannot_be_made_are_refused(name, message):
    with pytest.raises(SettingsError, match=message):
        make_ranker(name)
