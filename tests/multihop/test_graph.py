"""The graph of neighbours: built, kept, changed."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.multihop.passages.graph import NeighbourGraph
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.stores import nearest as nearest_module
from deepera_graph.stores.words import WordIndex

BUILDERS = ["meaning", "words"]


class Table(Embeddings):
    """Vectors that a test wrote down, by the text."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed_documents(self, texts):
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        return self.vectors[text]


def plain(names):
    return [Document(id=name, page_content=name) for name in names]


def edges(graph):
    return {name: (graph.neighbours(name), graph.scores(name)) for name in graph.ids}


@pytest.fixture(params=BUILDERS)
def build(request, embeddings):
    """Builds a graph of either kind."""

    def run(passages, k=3):
        if request.param == "words":
            return NeighbourGraph.of_words(passages, k)
        return NeighbourGraph.build(passages, embeddings, k)

    return run


def test_neighbours_are_the_nearest_first_by_cosine():
    vectors = {"a": [1, 0], "b": [0.8, 0.6], "c": [0, 1], "d": [-1, 0]}
    graph = NeighbourGraph.build(plain(vectors), Table(vectors), k=2)
    assert graph.neighbours("a") == ("b", "c")
    assert graph.scores("a") == pytest.approx((0.8, 0.0))
    assert graph.neighbours("c") == ("b", "a")  # a and d tie at 0: the lower id
    assert graph.neighbours("d") == ("c", "b")


def test_no_passage_is_its_own_neighbour(build, passages):
    """Defect SU-D7: in the public graph files a document is in its own list."""
    graph = build(passages)
    assert all(name not in graph.neighbours(name) for name in graph.ids)
    twins = build([*passages, Document(id="twin", page_content=passages[0].page_content)])
    assert twins.neighbours("twin")[0] == passages[0].id
    assert "twin" not in twins.neighbours("twin")


def test_a_graph_by_words_is_what_a_search_for_the_whole_passage_finds(passages):
    graph = NeighbourGraph.of_words(passages, 4)
    words = WordIndex()
    words.add(passages)
    for one in passages:
        found = [hit for hit in words.search(one.page_content, k=8) if hit.id != one.id][:4]
        shared = {hit.id: hit.metadata["retrieval_score"] for hit in found}
        assert dict(zip(graph.neighbours(one.id), graph.scores(one.id), strict=True)) == (
            pytest.approx(shared)
        )


def test_what_shares_no_word_is_no_neighbour():
    graph = NeighbourGraph.of_words(plain(["kelp otter", "kelp moss", "cathode"]), 2)
    assert graph.neighbours("cathode") == ()
    assert graph.neighbours("kelp otter") == ("kelp moss",)


def test_the_title_counts(embeddings):
    titled = [
        Document(id="a", page_content="It lies there.", metadata={"title": "Tolvan"}),
        Document(id="b", page_content="Tolvan is old."),
        Document(id="c", page_content="It lies."),
    ]
    assert NeighbourGraph.of_words(titled, 2).neighbours("b") == ("a",)


def test_the_order_passages_come_in_changes_no_neighbour(build, passages):
    turned = random.Random(3).sample(passages, len(passages))
    assert edges(build(turned)) == edges(build(passages))


def test_blocks_change_no_neighbour(build, passages, monkeypatch):
    whole = build(passages)
    for name, size in {"_CELLS": 12, "_EXACT_COLUMNS": 2, "_EXACT_ROWS": 2, "_MARGIN": 1}.items():
        monkeypatch.setattr(nearest_module, name, size)
    assert edges(build(passages)) == edges(whole)


def test_many_that_tie_at_the_end_are_cut_by_id():
    names = [f"t{n:03}" for n in range(60)]
    vectors = {name: [0.6, 0.8] for name in names}
    shuffled = random.Random(1).sample(names, len(names))
    graph = NeighbourGraph.build(plain(shuffled), Table(vectors), k=3)
    assert graph.neighbours("t000") == ("t001", "t002", "t003")
    assert graph.neighbours("t040") == ("t000", "t001", "t002")


def test_a_larger_corpus_in_blocks_is_that_by_all_pairs(monkeypatch):
    monkeypatch.setattr(nearest_module, "_EXACT_COLUMNS", 64)
    monkeypatch.setattr(nearest_module, "_CELLS", 30_000)
    vectors = np.random.default_rng(0).normal(size=(500, 8))
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    names = [f"p{n:03}" for n in range(500)]
    graph = NeighbourGraph.build(plain(names), Table(dict(zip(names, vectors, strict=True))), k=7)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -2)
    for row in range(0, 500, 7):
        best = np.argsort(-cosines[row])[:7]
        assert graph.neighbours(names[row]) == tuple(names[place] for place in best)


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_a_k_that_is_no_number_of_neighbours_is_refused(build, passages, k):
    with pytest.raises(SettingsError, match=r"k must be .*>= 1, got"):
        build(passages, k)


@pytest.mark.parametrize("k", [8, 16])
def test_a_k_that_the_passages_do_not_suffice_for_is_refused(build, passages, k):
    with pytest.raises(SettingsError, match=f"k must be below the number of passages, 8, got {k}"):
        build(passages, k)


def test_passages_that_cannot_be_told_apart_are_refused(build, passages):
    other = Document(id="lamp", page_content="Another text.")
    with pytest.raises(InputError, match=r"two passages .* have the id 'lamp'"):
        build([*passages, other])
    assert edges(build([*passages, passages[0]])) == edges(build(passages))


def test_a_passage_without_a_text_is_refused(build, passages):
    with pytest.raises(InputError, match="passage 'void' has no text"):
        build([*passages, Document(id="void", page_content=" ")])


@pytest.mark.parametrize(
    ("vector", "message"),
    [([math.nan, 1], "'b' is not finite"), ([1], r"different sizes: \[1, 2\]")],
)
def test_unusable_vectors_are_refused(vector, message):
    vectors = {"a": [1, 0], "b": vector, "c": [0, 1]}
    with pytest.raises(InputError, match=message):
        NeighbourGraph.build(plain(vectors), Table(vectors), k=1)


def test_an_unknown_passage_is_an_error(build, passages):
    graph = build(passages)
    assert "lamp" in graph
    assert "moon" not in graph
    for look_up in (graph.neighbours, graph.scores, lambda name: graph.remove([name])):
        with pytest.raises(InputError, match="no passage 'moon'"):
            look_up("moon")


def test_fewer_neighbours_are_the_first_of_them(build, passages):
    graph = build(passages, 4)
    two = graph.limit(2)
    assert two.k == 2
    assert all(two.neighbours(name) == graph.neighbours(name)[:2] for name in graph.ids)
    with pytest.raises(SettingsError, match="4 neighbours a passage, 5 were asked for"):
        graph.limit(5)


def test_a_graph_comes_back_from_its_folder(build, passages, tmp_path):
    graph = build(passages)
    graph.save(tmp_path / "papers")
    again = NeighbourGraph.load(tmp_path / "papers")
    assert edges(again) == edges(graph)
    assert (again.k, again.kind, again.made_with) == (graph.k, graph.kind, graph.made_with)
    assert again.fingerprint == graph.fingerprint


def test_a_loaded_graph_is_memory_mapped(build, passages, tmp_path):
    build(passages).save(tmp_path)
    loaded = NeighbourGraph.load(tmp_path)
    assert isinstance(loaded._nearest.places, np.memmap)
    assert all(isinstance(array, np.memmap) for array in loaded._space.arrays().values())


def test_a_graph_is_replaced_under_a_reader_who_keeps_the_old_one(build, passages, tmp_path):
    build(passages[:6]).save(tmp_path)
    reader = NeighbourGraph.load(tmp_path)
    before = edges(reader)
    build(passages).save(tmp_path)
    assert edges(reader) == before
    assert len(NeighbourGraph.load(tmp_path)) == 8
    assert len([*tmp_path.glob("ids-*.json")]) == 1


def test_the_fingerprint_tells_embeddings_k_and_passages_apart(passages, make_embeddings):
    def fingerprint(passages=passages, k=3, **options):
        return NeighbourGraph.build(passages, make_embeddings(**options), k).fingerprint

    same = fingerprint()
    assert fingerprint() == same
    other_text = [*passages[:-1], Document(id="hills", page_content="Goats graze.")]
    others = [
        fingerprint(k=4),
        fingerprint(model="others"),
        fingerprint(passages[:-1]),
        fingerprint(other_text),
        NeighbourGraph.of_words(passages, 3).fingerprint,
    ]
    assert len({same, *others}) == 6


def damage(folder, how):
    [array] = folder.glob("places-*.npy")
    manifest = folder / "graph.json"
    if how == "missing file":
        array.unlink()
    if how == "short file":
        array.write_bytes(array.read_bytes()[:-8])
    if how == "manifest":
        manifest.write_text("{")
    if how in ("version", "other passages"):
        about = json.loads(manifest.read_text())
        about |= {"format": 99} if how == "version" else {"k": 2}
        manifest.write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing file", "is damaged"),
        ("short file", "is damaged"),
        ("manifest", "is damaged"),
        ("other passages", "is damaged: it is not what was saved"),
        ("version", "another version: build it again"),
    ],
)
def test_a_damaged_graph_is_an_error(build, passages, tmp_path, how, message):
    build(passages).save(tmp_path)
    damage(tmp_path, how)
    with pytest.raises(StoreError, match=message):
        NeighbourGraph.load(tmp_path)


def test_a_folder_without_a_graph_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="no graph in"):
        NeighbourGraph.load(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_written_is_an_error(build, passages, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        build(passages).save(tmp_path / "file" / "graph")


def test_what_is_added_is_as_if_it_had_been_there(build, passages):
    grown = build(passages[:5]).add(passages[5:])
    assert edges(grown) == edges(build(passages))


def test_what_is_removed_is_as_if_it_had_not_been_there(build, passages):
    graph = build(passages)
    assert edges(graph.remove(["lamp", "ebb"])) == edges(
        build([one for one in passages if one.id not in ("lamp", "ebb")])
    )
    assert len(graph) == 8


def test_a_passage_that_has_another_text_now_is_replaced(build, passages):
    changed = Document(id="ebb", page_content="The ebb of the sea turns the mill.")
    graph = build(passages).add([changed])
    others = [one for one in passages if one.id != "ebb"]
    assert edges(graph) == edges(build([*others, changed]))


def test_only_what_is_new_is_embedded(passages, embeddings):
    graph = NeighbourGraph.build(passages[:6], embeddings, 3)
    embeddings.texts.clear()
    graph.add(passages)
    assert embeddings.texts == [one.page_content for one in passages[6:]]
    assert graph.add(passages[:6]) is graph


def test_a_loaded_graph_grows_with_the_embeddings_it_was_built_with(
    passages, make_embeddings, tmp_path
):
    NeighbourGraph.build(passages[:6], make_embeddings(), 3).save(tmp_path)
    graph = NeighbourGraph.load(tmp_path)
    with pytest.raises(SettingsError, match="built with WordEmbeddings:words: give these"):
        graph.add(passages)
    with pytest.raises(SettingsError, match="WordEmbeddings:words, got WordEmbeddings:others"):
        graph.add(passages, make_embeddings(model="others"))
    with pytest.raises(SettingsError, match="vectors of size 64, the embeddings made 32"):
        graph.add(passages, make_embeddings(size=32))
    whole = NeighbourGraph.build(passages, make_embeddings(), 3)
    assert edges(graph.add(passages, make_embeddings())) == edges(whole)


def test_a_graph_of_which_all_was_replaced_is_the_other_one(build, passages):
    changed = [Document(id=one.id, page_content=f"New: {one.page_content}") for one in passages]
    assert edges(build(passages).add(changed)) == edges(build(changed))


def test_fewer_passages_than_neighbours_are_all_neighbours(build, passages):
    left = build(passages, 4).remove([one.id for one in passages[3:]])
    assert all(len(left.neighbours(name)) <= 2 for name in left.ids)
    assert edges(left.add(passages[3:])) == edges(build(passages, 4))


vector = st.tuples(*[st.integers(-2, 2)] * 3)


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(st.lists(vector, min_size=5, max_size=24), st.data())
def test_a_graph_that_changed_is_one_that_was_built_anew(vectors, data):
    names = data.draw(st.permutations([f"v{n:02}" for n in range(len(vectors))]))
    table = Table(dict(zip(names, vectors, strict=True)))
    n_first = data.draw(st.integers(4, len(names)))
    graph = NeighbourGraph.build(plain(names[:n_first]), table, 3)
    gone = data.draw(st.lists(st.sampled_from(names[:n_first]), unique=True, max_size=3))
    changed = graph.remove(gone).add(plain(names[n_first:]))
    kept = [name for name in names if name not in gone]
    if len(kept) > 3:
        assert edges(changed) == edges(NeighbourGraph.build(plain(kept), table, 3))


def test_a_store_gives_what_its_passages_give(passages, make_embeddings):
    embeddings = make_embeddings()
    with open_store("graph", mode="hybrid", embeddings=embeddings) as store:
        store.add(passages)
        embeddings.texts.clear()
        graph = NeighbourGraph.of_store(store, 3, by="meaning")
        by_words = NeighbourGraph.of_store(store, 3)
        asked = NeighbourGraph.of_store(store, 3, by="meaning", own_search=True)
        assert embeddings.texts == []
    assert edges(graph) == edges(NeighbourGraph.build(passages, make_embeddings(), 3))
    assert edges(by_words) == edges(NeighbourGraph.of_words(passages, 3))
    assert [asked.neighbours(name) for name in graph.ids] == [
        graph.neighbours(name) for name in graph.ids
    ]


def test_a_store_is_complemented(passages, make_embeddings):
    """As SUNAR has it: a graph by meaning for a first stage by words, and the other way round."""
    with open_store("dense", mode="dense", embeddings=make_embeddings()) as store:
        store.add(passages)
        assert NeighbourGraph.of_store(store, 3).kind == "words"
    with open_store("sparse") as store:
        store.add(passages)
        assert NeighbourGraph.of_store(store, 3, embeddings=make_embeddings()).kind == "meaning"
        with pytest.raises(SettingsError, match="without vectors needs embeddings"):
            NeighbourGraph.of_store(store, 3)
        with pytest.raises(SettingsError, match=r"by must be one of .*, got 'colour'"):
            NeighbourGraph.of_store(store, 3, by="colour")
        with pytest.raises(SettingsError, match="below the number of passages, 8, got 8"):
            NeighbourGraph.of_store(store, 8, embeddings=make_embeddings())


def test_a_store_whose_passages_cannot_all_be_read_is_refused(passages, make_embeddings):
    vectors = InMemoryVectorStore(make_embeddings())
    graph = NeighbourGraph.of_words(passages, 3)
    for ask in (NeighbourGraph.of_store, graph.update):
        with pytest.raises(SettingsError, match=r"got InMemoryVectorStore; use .*\.build\(docu"):
            ask(vectors)


@pytest.mark.parametrize("by", BUILDERS)
def test_a_graph_is_brought_to_what_a_store_holds_now(passages, make_embeddings, by):
    embeddings = make_embeddings()
    with open_store("now", mode="hybrid", embeddings=embeddings) as store:
        store.add(passages)
        graph = NeighbourGraph.of_store(store, 3, by=by)
        store.add([Document(id="ebb", page_content="The ebb of the sea turns the mill.")])
        store.add([Document(id="mill", page_content="The mill grinds rye.")])
        anew, updated = NeighbourGraph.of_store(store, 3, by=by), graph.update(store)
    assert edges(updated) == edges(anew)


def test_cosines_with_a_question(passages, make_embeddings):
    embeddings = make_embeddings()
    graph = NeighbourGraph.build(passages, embeddings, 3)
    asked = embeddings.embed_query("Where does the river Ebb rise?")
    found = graph.cosines(asked, ["ebb", "lamp"])
    expected = [np.dot(asked, embeddings.embed_query(one)) for one in (
        passages[4].page_content, passages[0].page_content)]  # fmt: skip
    assert found == pytest.approx(expected, abs=1e-6)
    with pytest.raises(SettingsError, match="size 64, got one of 2"):
        graph.cosines([1.0, 0.0], ["ebb"])
    with pytest.raises(SettingsError, match="by words has no vectors"):
        NeighbourGraph.of_words(passages, 3).cosines(asked, ["ebb"])
