"""Embeddings of the local judge's weights, wherever LangChain takes embeddings."""

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from deepera_graph import SettingsError
from deepera_graph.cli.opening.stores import find_embeddings
from deepera_graph.judges.trained import model
from deepera_graph.judges.trained.backend import SUMS, local_model
from deepera_graph.retrieval.collections.store import open_store
from langchain_deepera import EvidenceEmbeddings
from support.stand_in import EvidenceModel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of weights, for which the stand-in stands in."""
    (tmp_path / SUMS).write_text("0  encoder.onnx\n")
    monkeypatch.setattr(model, "EvidenceModel", EvidenceModel)
    return tmp_path


def test_a_text_has_one_vector_of_length_1_in_any_company(folder):
    embeddings = EvidenceEmbeddings(folder)
    both = embeddings.embed_documents(["tea", "lakes"])
    assert embeddings.embed_query("tea") == both[0]
    assert [sum(number**2 for number in row) for row in both] == [pytest.approx(1)] * 2
    assert {type(number) for number in both[0]} == {float}
    assert embeddings.embed_documents([]) == []


def test_stores_search_with_them(folder, documents):
    embeddings = EvidenceEmbeddings(folder)
    text = documents[2].page_content
    found = InMemoryVectorStore.from_documents(documents, embeddings).similarity_search(text, k=1)
    assert found[0].page_content == text
    with open_store("tea", mode="dense", embeddings=embeddings) as store:
        store.add(documents)
        assert store.search(text, k=1)[0].page_content == text


def test_they_share_the_model_of_the_judge_and_name_what_is_missing(folder):
    local_model(folder)
    n_loaded = EvidenceModel.n_loaded
    EvidenceEmbeddings(folder).embed_query("tea")
    assert EvidenceModel.n_loaded == n_loaded
    with pytest.raises(SettingsError, match="weights must be a folder"):
        EvidenceEmbeddings(folder / "none").embed_query("tea")


def test_commands_take_them_by_the_name_local():
    assert isinstance(find_embeddings("local"), EvidenceEmbeddings)
