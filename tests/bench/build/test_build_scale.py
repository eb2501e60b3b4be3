"""A corpus on disk, vectors in a file, workers elsewhere, a store for pools: same results."""

import pickle
from importlib.util import find_spec

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from bench.build.lake_abstracts import lake_abstracts
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.cluster import RayWorkers
from deepera_graph.lab.build.builder import open_build_store
from deepera_graph.lab.build.corpus import Document, read_corpus
from deepera_graph.lab.build.search import (
    ChunkSearch,
    LsaEmbeddings,
    StoreIndex,
    drop_unconnected,
    embed_chunks,
    find_fence,
)
from deepera_graph.lab.settings import BuildPlan
from support.qdrant_server import QdrantServer

pytestmark = pytest.mark.full

N = 600  # more than two batches


class Elsewhere:
    """Workers that see only what can be sent to another process."""

    is_elsewhere = True

    def map(self, function, items, shared):
        for item in items:
            sent, given, own = pickle.loads(pickle.dumps((function, shared, item)))
            yield pickle.loads(pickle.dumps(sent(given, own)))


class Failing(Embeddings):
    """Embeddings that end after some texts, as a server does that is gone."""

    def __init__(self, n_before=10_000):
        self.n_before, self.n_texts = n_before, 0

    def embed_documents(self, texts):
        if self.n_texts + len(texts) > self.n_before:
            raise RuntimeError("gone")
        self.n_texts += len(texts)
        return [[len(text), text.count("a"), text.count("e")] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class SearchingServer(QdrantServer):
    """A Qdrant server that also searches a collection of dense vectors."""

    def answer(self, method, path, body):
        if path.endswith("/points/query/batch"):
            return [{"points": self.search(**one)} for one in body["searches"]]
        if method == "PUT" and path.endswith("/points"):
            self.vectors = getattr(self, "vectors", {}) | {
                one["id"]: np.array(one["vector"][""]) for one in body["points"]
            }
        found = super().answer(method, path, body)
        if self.made is not None:
            self.made.setdefault("sparse_vectors", {})
        return found

    def search(self, query, limit, **others):
        scores = {id: float(vector @ query["nearest"]) for id, vector in self.vectors.items()}
        best = sorted(scores, key=lambda id: -scores[id])[:limit]
        return [{**self.points[id], "version": 1, "score": scores[id]} for id in best]


def make_failing():
    return Failing()


def files(folder):
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def test_a_corpus_in_a_file_is_the_one_in_memory(tmp_path):
    lakes = [*lake_abstracts(30), Document(id="blank", text=" "), *lake_abstracts(3)]
    drops = [], []
    one = read_corpus(lakes, 40, drops[0])
    other = read_corpus(lakes, 40, drops[1], path=tmp_path / "c.sqlite3", workers=Elsewhere())
    assert list(one) == list(other)
    assert one.n_chunks == len(list(one)) > 30
    assert dict(one.documents) == dict(other.documents) == {x.id: x for x in lakes[:30]}
    assert one.chunks_of("L7") == other.chunks_of("L7") != ()
    assert (one.fingerprint, one.n_read) == (other.fingerprint, 34)
    assert drops[0] == drops[1]
    assert [drop.reason for drop in drops[0]] == ["no-text", *["id-used-twice"] * 3]


def test_chunks_are_read_by_place_and_found_by_id():
    corpus = read_corpus(lake_abstracts(9), 40, [])
    places = [5, 0, 11]
    chunks = corpus.read_chunks(places)
    assert corpus.find_chunks([one.id for one in chunks]) == places
    assert [one.text for one in chunks] == [list(corpus.texts())[place] for place in places]


def test_embedding_that_was_cut_off_goes_on_after_the_last_batch(tmp_path):
    corpus = read_corpus(lake_abstracts(N), 200, [])
    with pytest.raises(RuntimeError, match="gone"):
        embed_chunks(corpus, Failing(300), identity="f", folder=tmp_path)
    rest = Failing()
    vectors = embed_chunks(corpus, rest, identity="f", folder=tmp_path)
    assert rest.n_texts == N - 256
    assert np.array_equal(vectors, embed_chunks(corpus, Failing(), identity="f"))
    nobody = Failing(0)
    assert np.array_equal(vectors, embed_chunks(corpus, nobody, identity="f", folder=tmp_path))


def test_vectors_of_other_embeddings_are_not_taken(tmp_path):
    corpus = read_corpus(lake_abstracts(9), 200, [])
    embed_chunks(corpus, Failing(), identity="one", folder=tmp_path)
    again = Failing()
    embed_chunks(corpus, again, identity="two", folder=tmp_path)
    assert again.n_texts == 9


def test_vectors_of_an_older_version_are_made_again_and_say_so(tmp_path, caplog):
    for name in ("chunks.f32", "chunks.json"):
        (tmp_path / name).write_bytes(b"{}")
    corpus = read_corpus(lake_abstracts(9), 200, [])
    embed_chunks(corpus, Failing(), identity="one", folder=tmp_path)
    assert "chunks.f32 was written by an older version: embedding again" in caplog.text
    assert [one.suffix for one in tmp_path.iterdir()] == [".npy"]


def test_documents_that_are_alike_are_all_kept_and_a_loner_goes():
    lakes = lake_abstracts(60)
    odd = Document(id="odd", text="Violins of Cremona are varnished with amber. They sound warm.")
    for documents, lost in ((lakes, []), ([*lakes, odd], ["odd"])):
        drops = []
        corpus = read_corpus(documents, 200, [])
        vectors = embed_chunks(corpus, LsaEmbeddings([*corpus.texts()]), identity="lsa")
        drop_unconnected(corpus, vectors, BuildPlan(), drops)
        assert [one.document for one in drops] == lost
        assert len(corpus.documents) == 60


@pytest.mark.parametrize(
    ("cosines", "n_below"),
    [
        (np.linspace(0.5, 0.9, 100), 0),
        (np.append(np.linspace(0.5, 0.9, 100), -0.2), 1),
        (np.append(np.full(99, 1.0), 0.9), 0),
    ],
    ids=["even", "one-loner", "twins"],
)
def test_the_fence_lies_below_what_is_usual_in_a_corpus(cosines, n_below):
    assert int((cosines < find_fence(cosines)).sum()) == n_below


async def test_a_store_finds_the_pools_that_an_exact_search_finds():
    corpus = read_corpus(lake_abstracts(40), 60, [])
    embeddings = LsaEmbeddings([*corpus.texts()])
    vectors = embed_chunks(corpus, embeddings, identity="lsa")
    corpus.leave_out(np.arange(40) == 3)
    question = "Does copper change the growth of perch?"
    with open_build_store("lakes", embeddings) as store:
        exact = await ChunkSearch(corpus, vectors, embeddings).find_nearest(question, 12)
        index = StoreIndex(vectors, corpus, store)
        assert await ChunkSearch(corpus, vectors, embeddings, index).find_nearest(question, 12) == (
            exact
        )
    assert len(exact) == 12
    assert "L3" not in {one.chunk.document for one in exact}


def test_builds_elsewhere_have_the_same_bytes(server, build_lakes, tmp_path):
    """With pools from a Qdrant server, and by workers that share nothing with this process."""
    build_lakes(server, tmp_path / "here")
    build_lakes(server, tmp_path / "workers", workers=Elsewhere())
    assert files(tmp_path / "here") == files(tmp_path / "workers")
    with SearchingServer() as qdrant:
        build_lakes(server, tmp_path / "there", qdrant_url=qdrant.url)
        n_uploads = len(qdrant.changes())
        build_lakes(server, tmp_path / "there", qdrant_url=qdrant.url, overwrite=True)
        assert len(qdrant.changes()) == n_uploads == 2  # the collection, and one batch
        assert len(qdrant.points) == 40
    assert files(tmp_path / "here") == files(tmp_path / "there")


def test_workers_elsewhere_make_embeddings_themselves(server, build_lakes):
    with pytest.raises(SettingsError, match="workers cannot be sent embeddings, got Failing"):
        build_lakes(server, embeddings=Failing(), workers=Elsewhere())
    built = build_lakes(server, embeddings=make_failing, workers=Elsewhere(), n_questions=1)
    assert built.manifest["embeddings"] == {"name": "Failing"}


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_a_build_on_ray_has_the_same_bytes(server, build_lakes, tmp_path):
    build_lakes(server, tmp_path / "here")
    with RayWorkers(2) as workers:
        build_lakes(server, tmp_path / "there", workers=workers)
    assert files(tmp_path / "here") == files(tmp_path / "there")
