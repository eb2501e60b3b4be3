"""A corpus into a collection: offsets hold, nothing is embedded twice, what is cut is told."""

import json
import pickle
import sys
from concurrent.futures import Future
from importlib.util import find_spec

import pytest

from deepera_graph.bioasq.pubmed.index import EmbeddingWork, index_corpus
from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.collections.store import open_store
from support.letters import Counting
from support.pubmed_xml import article, deletion, write
from support.qdrant_server import QdrantServer


def record(number, text="Moss grew on the wall.", **more):
    return {"id": str(number), "title": f"Wall {number}", "text": text, **more}


@pytest.fixture
def corpus(tmp_path):
    """Writes records as a corpus."""

    def save(*records):
        path = tmp_path / "corpus.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
        return path

    return save


@pytest.fixture
def opened(tmp_path):
    """Opens the collection, in a folder, with embeddings that count; several times."""
    stores = []

    def again(embeddings=None, mode="hybrid"):
        for one in stores:
            one.close()
        store = open_store("moss", path=tmp_path / "store", mode=mode, embeddings=embeddings)
        stores.append(store)
        return store

    yield again
    for one in stores:
        one.close()


@pytest.mark.parametrize("mode", ["sparse", "dense", "hybrid"])
def test_a_passage_is_the_text_as_it_stands_with_what_the_record_says(corpus, opened, mode):
    long = "  Moss\u2028grew. " + "It held on. " * 400
    path = corpus(record(7, long, year=2019, mesh=["Moss"], journal="", parts=[]))
    store = opened(None if mode == "sparse" else Counting(), mode)
    report = index_corpus(path, store)
    [passage] = store.fetch(["7"])
    assert (report.indexed, passage.page_content) == (1, long)
    assert passage.metadata == {"title": "Wall 7", "year": 2019, "mesh": ["Moss"]}
    assert [one.id for one in store.search("moss on a wall", 3)] == ["7"]


def test_a_second_run_embeds_only_what_is_new_or_changed(corpus, opened):
    records = [record(n, f"Moss {n}.", year=2000) for n in range(6)]
    index_corpus(corpus(*records), opened(Counting()), batch_size=4)
    records[1]["text"] = "Moss fell."
    records[2]["title"] = "Roof"
    records[3]["year"] = 2001
    records.append(record(6))
    later = Counting()
    store = opened(later)
    report = index_corpus(corpus(*records), store, batch_size=4)
    assert later.given == ["Wall 1\nMoss fell.", "Roof\nMoss 2.", "Wall 6\nMoss grew on the wall."]
    assert (report.indexed, report.updated, report.unchanged) == (3, 1, 3)
    found = {one.id: one for one in store.fetch([one["id"] for one in records])}
    assert {name: one.page_content for name, one in found.items()} == {
        one["id"]: one["text"] for one in records
    }
    assert found["3"].metadata["year"] == 2001


def test_what_was_stopped_goes_on_and_ends_as_one_go(corpus, opened, tmp_path):
    path = corpus(*(record(n, f"Moss {n} on {n % 3} walls.") for n in range(20)))
    first, second, third = Counting(), Counting(), Counting()

    def stop(n, *_):
        if n >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_corpus(path, opened(first), batch_size=4, on_progress=stop)
    store = opened(second)
    report = index_corpus(path, store, batch_size=4)
    assert (report.unchanged, report.indexed, len(second.given)) == (12, 8, 8)
    with open_store("whole", path=tmp_path / "whole", embeddings=third) as whole:
        index_corpus(path, whole)
        expected = {one.passage.id: one for one in whole.scan(vectors=True)}
    found = {one.passage.id: one for one in store.scan(vectors=True)}
    assert found.keys() == expected.keys()
    for name, one in expected.items():
        assert found[name].passage == one.passage
        assert found[name].vector == pytest.approx(one.vector)


def test_what_embeddings_do_not_read_is_counted_and_recorded(corpus, opened):
    path = corpus(record(1, "Moss grew."), record(2, "Moss grew on walls and on roofs."))
    store = opened(Counting(max_tokens=6))
    report = index_corpus(path, store)
    assert (report.truncated, report.cut_tokens, report.max_tokens) == (1, 3, 6)
    short, long = store.fetch(["1", "2"])
    assert "cut_tokens" not in short.metadata
    assert long.metadata["cut_tokens"] == 3
    again = index_corpus(path, opened(Counting(max_tokens=6)))
    assert (again.unchanged, again.truncated) == (2, 0)


def test_embeddings_that_read_all_cut_nothing(corpus, opened):
    report = index_corpus(corpus(record(1, "Moss. " * 900)), opened(Counting()))
    assert (report.truncated, report.max_tokens) == (0, None)


@pytest.mark.parametrize("other", ["9", "090", "moss-9", str(10**10)])
def test_pruning_removes_what_the_corpus_does_not_have(corpus, opened, other):
    index_corpus(corpus(record(1), record(other), record(90)), opened(Counting()))
    store = opened(Counting())
    kept = index_corpus(corpus(record(1), record(90)), store)
    assert (kept.removed, store.count()) == (0, 3)
    pruned = index_corpus(corpus(record(1), record(90)), store, prune=True)
    assert (pruned.removed, store.count()) == (1, 2)
    assert [one.id for one in store.fetch(["1", "90", other])] == ["1", "90"]


def test_a_record_that_cannot_be_used_costs_itself_alone(corpus, opened):
    path = corpus(record(1), record(1, "Again."), {"id": "2"}, record(3))
    report = index_corpus(path, opened(Counting()))
    assert (report.indexed, report.n_skipped) == (2, 2)
    assert "id '1' is used twice" in report.skipped[0].reason
    with pytest.raises(InputError, match="no record that can be used"):
        index_corpus(corpus({"id": "2"}), opened(Counting()))


def test_batches_are_embedded_ahead_and_written_in_order(corpus, opened):
    waiting, most = [], []

    class Late(Future):
        def result(self, timeout=None):
            waiting.remove(self)
            return super().result(timeout)

    def embed(texts):
        done = Late()
        done.set_result(Counting().embed_documents(texts))
        waiting.append(done)
        most.append(len(waiting))
        return done

    own = Counting()
    path = corpus(*(record(n) for n in range(20)))
    report = index_corpus(path, opened(own), embed=embed, ahead=3, batch_size=2)
    assert (report.indexed, max(most), waiting, own.given) == (20, 3, [], [])


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_workers_on_ray_give_the_vectors_of_this_process(corpus, opened, tmp_path):
    from deepera_graph.jobs.ray import RayEngine

    path = corpus(*(record(n, f"Moss {n} grew.") for n in range(20)))
    store, here = opened(Counting()), Counting()
    with RayEngine(EmbeddingWork(pickle.dumps(here)), n_workers=2) as engine:
        index_corpus(path, store, embed=engine.start, ahead=6, batch_size=3)
    with open_store("whole", path=tmp_path / "whole", embeddings=here) as whole:
        index_corpus(path, whole)
        expected = {one.passage.id: one.vector for one in whole.scan(vectors=True)}
    found = {one.passage.id: one.vector for one in store.scan(vectors=True)}
    assert found == {name: pytest.approx(one) for name, one in expected.items()}


async def test_a_worker_embeds_as_this_process_does():
    work = EmbeddingWork(pickle.dumps(Counting()))
    with work.open(None) as embed:
        assert await embed(["moss"]) == Counting().embed_documents(["moss"])


@pytest.mark.full
def test_the_commands_lead_from_pubmed_to_a_collection(deepera, deepera_lab, tmp_path):
    folder = tmp_path / "pubmed"
    folder.mkdir()
    texts = {1: "Moss lowered the heat of roofs.", 2: "Kelp grew.", 3: "Moss of walls."}
    write(folder, 1, *(article(n, abstract=[("", text)]) for n, text in texts.items()))
    out = tmp_path / "corpus.jsonl"
    index = ("bioasq", "index", out, "--library", "moss")
    assert deepera_lab("bioasq", "read", folder, "-o", out).exit_code == 0
    first = deepera_lab(*index)
    assert first.exit_code == 0, first.output
    assert first.stdout == "'moss' (hybrid): 3 indexed; it holds 3 passages now\n"
    write(folder, 2, article(2, abstract=[("", "Kelp fell.")]), deletion(3))
    assert deepera_lab("bioasq", "read", folder, "-o", out, "--resume").exit_code == 0
    told = json.loads(deepera_lab(*index, "--prune", "--json").stdout)
    assert told["embeddings"] == "EvidenceEmbeddings"
    counted = {name: told[name] for name in ("indexed", "unchanged", "removed", "in_collection")}
    assert counted == {"indexed": 1, "unchanged": 1, "removed": 1, "in_collection": 2}
    found = deepera("ask", "Does moss lower the heat of roofs?", "-l", "moss", "--json")
    assert json.loads(found.stdout)["ranking"][0]["id"] == "1"


def test_the_plain_index_reads_a_corpus_too(deepera, deepera_lab, tmp_path):
    path = write(tmp_path, 1, article(7, abstract=[("AIM", "To see moss.")]))
    out = tmp_path / "corpus.jsonl"
    deepera_lab("bioasq", "read", path, "-o", out)
    assert deepera("index", out, "-c", "plain").exit_code == 0
    with open_store("plain", path=tmp_path / "data" / "deepera", must_exist=True) as store:
        [passage] = store.fetch(["7"])
    assert passage.page_content == "AIM: To see moss."
    assert (passage.metadata["pmid"], passage.metadata["year"]) == ("7", 2019)


def test_a_collection_of_words_is_one_by_option(deepera_lab, corpus):
    path = corpus(record(1))
    sparse = deepera_lab("bioasq", "index", path, "-l", "moss", "--mode", "sparse")
    assert "'moss' (sparse): 1 indexed" in sparse.stdout
    assert "'moss' (sparse): 0 indexed, 1 there before" in (
        deepera_lab("bioasq", "index", path, "-l", "moss").stdout
    )


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("none.jsonl", "-l", "moss"), "no such file: 'none.jsonl'"),
        (("{corpus}",), "--library must name a library"),
        (("{corpus}", "-l", "moss", "--int8"), "--int8 goes with --qdrant-url"),
        (("{corpus}", "-l", "m", "--engine", "ray", "--mode", "sparse"), "embeds nothing"),
        (("{corpus}", "-l", "m", "--workers", "2"), "--workers goes with --engine ray"),
        (("{corpus}", "-l", "m", "--embeddings", "bge"), "'bge-large-en'"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(deepera_lab, corpus, args, message):
    path = corpus(record(1))
    given = [one.replace("{corpus}", str(path)) for one in args]
    result = deepera_lab("bioasq", "index", *given)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


@pytest.mark.parametrize("name", ["pubmed25n0001.xml.gz", "folder"])
def test_what_has_to_be_read_first_is_sent_there(deepera_lab, tmp_path, name):
    given = tmp_path / name
    given.mkdir() if name == "folder" else given.write_bytes(b"")
    result = deepera_lab("bioasq", "index", given, "-l", "moss")
    assert result.exit_code == 2
    assert "a file that deepera-lab bioasq read has made" in result.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    "asked",
    [
        {"id": "q", "type": "yesno", "body": "Does moss grow?"},
        {"id": "q", "type": "list", "body": "Where does moss grow?", "snippets": []},
    ],
)
def test_questions_are_no_corpus(deepera, deepera_lab, tmp_path, asked):
    path = tmp_path / "golden.json"
    path.write_text(json.dumps({"questions": [asked]}), encoding="utf-8")
    result = deepera_lab("bioasq", "index", path, "-l", "moss")
    assert result.exit_code == 2
    assert "this is a question of BioASQ, no record of a corpus" in result.stderr
    assert "moss" not in deepera("collections", "list").stdout


BREAKS = """
from langchain_core.embeddings import DeterministicFakeEmbedding


class Breaks(DeterministicFakeEmbedding):
    def embed_documents(self, texts):
        if any("kelp" in text for text in texts):
            raise KeyboardInterrupt
        return super().embed_documents(texts)


def build():
    return Breaks(size=8)
"""


def test_a_break_of_indexing_tells_how_to_go_on(deepera_lab, corpus, tmp_path, monkeypatch):
    (tmp_path / "breaking.py").write_text(BREAKS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["deepera-lab", "bioasq", "index", "corpus.jsonl", "-l", "moss"]
    )
    path = corpus(record(1), record(2, "The kelp fell."))
    args = ("bioasq", "index", path, "-l", "moss", "--embeddings", "breaking:build")
    result = deepera_lab(*args, "--batch-size", "1")
    assert result.exit_code == 130
    assert "interrupted; the collection holds 1 passage\n" in result.stderr
    assert "go on with: deepera-lab bioasq index corpus.jsonl -l moss\n" in result.stderr


def test_without_its_package_a_model_by_name_says_how_to_install_it(deepera_lab, corpus):
    if find_spec("sentence_transformers") is not None:
        pytest.skip("sentence-transformers is installed")
    result = deepera_lab(
        "bioasq", "index", corpus(record(1)), "-l", "m", "--embeddings", "bge-large-en"
    )
    assert result.exit_code == 2
    assert "sentence_transformers is not installed: pip install" in result.stderr


def test_an_embedded_store_has_no_index_to_tune(opened):
    with pytest.raises(SettingsError, match="only a Qdrant server"):
        opened(Counting()).defer_links()


@pytest.mark.full
def test_a_server_links_vectors_once_all_are_there_and_may_keep_small_ones(deepera_lab, corpus):
    path = corpus(record(1), record(2))
    with QdrantServer() as server:
        args = ("bioasq", "index", path, "-l", "moss", "--qdrant-url", server.url)
        result = deepera_lab(*args, "--int8")
        assert result.exit_code == 0, result.output
        asked = server.changes()
        again = deepera_lab(*args)
        assert again.exit_code == 0, again.output
    assert [kind for kind, _ in asked] == ["create", "update", "update", "points", "update"]
    made, small, deferred, points, built = (body for _, body in asked)
    assert made["vectors"][""]["distance"] == "Cosine"
    assert small["quantization_config"]["scalar"]["type"] == "int8"
    assert small["vectors"][""]["on_disk"] is True
    assert (deferred["hnsw_config"]["m"], built["hnsw_config"]["m"]) == (0, 16)
    assert [one["payload"]["id"] for one in points["points"]] == ["1", "2"]
    assert server.changes()[len(asked) :] == []


def test_a_folder_is_left_as_qdrant_keeps_it(corpus, opened, tmp_path):
    store = opened(Counting())
    index_corpus(corpus(*(record(n) for n in range(5))), store)
    store.close()
    assert [one.name for one in (tmp_path / "store" / "collection" / "moss").iterdir()] == [
        "storage.sqlite"
    ]
    assert opened(Counting()).count() == 5
