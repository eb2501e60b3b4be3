"""Hop expansion: what it finds in a small corpus, in which order, and within which limits."""

import asyncio
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.multihop.passages.expansion import aexpand_hops, expand_hops
from deepera_graph.stores.words import WordIndex

PASSAGES = {
    "The Salt Road": "The Salt Road is a film of 1971, directed by Edda Quill and shot in Vorn.",
    "Edda Quill": "Edda Quill was a director. She was born in the harbour town of Tarrow.",
    "Tarrow": "Tarrow is a town at the mouth of the Ebbing. Boats and nets are made there.",
    "Grey Harvest": "Grey Harvest is a film of 1975, directed by Tobin Ashe.",
    "Tobin Ashe (director)": "Tobin Ashe, a director of plays, was born in 1931 in Lower Marl.",
    "Vorn": "Vorn is a hill country of quarries and sheep.",
    "Salt (film)": "Salt is a film about a mine. It was directed by Una Pell.",
    "Una Pell": "Una Pell made films about miners, and taught.",
    "Road films": "A road film follows travellers. Where it was shot is often where it was set.",
    "Birth register": "A register tells who was born where, and of which father.",
    "Harbour": "A harbour shelters boats where a river meets the sea.",
    "Directors": "Film directors were seldom born where their films were shot.",
    "Settlements": "A town is larger than a village, and often has a river in its name.",
    "Sheep": "Sheep graze in hill country.",
}
WHERE_BORN = "Which river is the town on where the director of The Salt Road was born?"
WHICH_OLDER = "Whose director was born earlier, The Salt Road or Grey Harvest?"


def make_passages(passages=PASSAGES, **metadata):
    return [
        Document(id=title, page_content=text, metadata={"title": title, **metadata})
        for title, text in passages.items()
    ]


@pytest.fixture
def index():
    with WordIndex() as store:
        store.add(make_passages())
        yield store


def test_what_the_question_names_leads_to_what_it_means(index):
    found = expand_hops(WHERE_BORN, index.search, budget=8, k=3)
    assert [one.id for one in found.passages] == ["The Salt Road", "Edda Quill", "Tarrow"]
    assert [one.hop for one in found.passages] == [0, 1, 2]
    assert [one.via for one in found.passages] == [None, "The Salt Road", "Edda Quill"]
    director, town = found.passages[1:]
    assert "Edda Quill" in director.query
    assert "Tarrow" in town.query


def test_a_search_with_the_question_alone_misses_it(index):
    alone = expand_hops(WHERE_BORN, index.search, budget=8, k=3, width=0)
    assert "Tarrow" not in {one.id for one in alone.passages}
    assert alone.followed == ()
    assert all(one.via is None and one.hop == 0 for one in alone.ranked)


def test_a_comparison_has_a_path_for_each_side(index):
    path = [one.id for one in expand_hops(WHICH_OLDER, index.search, k=4).passages]
    assert sorted(path) == ["Edda Quill", "Grey Harvest", "The Salt Road", "Tobin Ashe (director)"]
    for film, director in (
        ("The Salt Road", "Edda Quill"),
        ("Grey Harvest", "Tobin Ashe (director)"),
    ):
        assert path.index(director) == path.index(film) + 1


def test_the_path_has_each_passage_after_the_one_that_led_to_it(index):
    found = expand_hops(WHERE_BORN, index.search, k=10)
    places = {one.id: place for place, one in enumerate(found.passages)}
    assert len(places) == 10
    assert all(places[one.via] < places[one.id] for one in found.passages if one.via in places)
    assert {one.id for one in found.ranked[:10]} == places.keys()


@pytest.mark.full
@settings(deadline=None, max_examples=25)
@given(
    budget=st.integers(1, 20),
    k=st.integers(1, 20),
    width=st.integers(0, 6),
    question=st.sampled_from([WHERE_BORN, WHICH_OLDER, "sheep", "Is Vorn a Town or a Harbour?"]),
)
def test_each_passage_is_read_once_and_none_over_the_budget(budget, k, width, question):
    with WordIndex() as index:
        index.add(make_passages())
        found = expand_hops(question, index.search, budget=budget, k=k, width=width)
    names = [one.id for one in found.ranked]
    assert len(names) == len(set(names)) <= budget
    assert len(found.passages) == min(k, len(names))
    assert len(found.followed) == len(set(found.followed)) <= width
    scores = [one.score for one in found.ranked]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    by_name = {one.id: one for one in found.ranked}
    assert all(one.hop == by_name[one.via].hop + 1 for one in found.ranked if one.via)
    assert all(one.via in found.followed for one in found.ranked if one.via)


@pytest.mark.parametrize("question", [WHERE_BORN, WHICH_OLDER])
def test_sync_and_async_find_the_same(index, question):
    async def search(query, k):
        await asyncio.sleep(0)
        return index.search(query, k)

    assert asyncio.run(aexpand_hops(question, search)) == expand_hops(question, index.search)


def test_the_question_is_searched_by_one_search_and_names_by_the_other(index):
    asked = {"search": [], "look_up": []}

    def note(name):
        def search(query, k):
            asked[name].append(query)
            return index.search(query, k)

        return search

    found = expand_hops(WHERE_BORN, note("search"), look_up=note("look_up"))
    assert asked["search"] == [WHERE_BORN]
    assert found.n_searches == 1 + len(asked["look_up"])
    assert found == expand_hops(WHERE_BORN, index.search)


def test_what_a_passage_leaves_open_of_the_question_is_asked_with_its_names(index):
    asked = []

    def search(query, k):
        asked.append(query)
        return index.search(query, k)

    expand_hops("Where was the director of The Salt Road born?", search, width=1)
    assert "Edda Quill born" in asked  # the film's passage has director, salt and road, not born
    assert "Edda Quill" in asked


def test_passages_are_given_back_as_they_came(index):
    passages = make_passages(year=1971)
    before = deepcopy(passages)
    found = expand_hops(WHERE_BORN, lambda query, k: passages[:k])
    assert passages == before
    assert all(any(one.passage is passage for passage in passages) for one in found.ranked)


def test_passages_without_titles_are_followed_by_their_names():
    passages = [
        Document(id=title, page_content=text, metadata={"title": None})
        for title, text in PASSAGES.items()
    ]
    with WordIndex() as index:
        index.add(passages)
        found = expand_hops(WHERE_BORN, index.search, budget=8, k=4)
    assert {"The Salt Road", "Edda Quill"} <= {one.id for one in found.passages}


def test_passages_without_ids_are_told_apart_by_their_texts():
    passages = [Document(page_content=text) for text in PASSAGES.values()]
    with WordIndex() as index:
        index.add(passages)
        found = expand_hops(WHERE_BORN, index.search)
    assert len({one.id for one in found.ranked}) == len(found.ranked) > 5


def test_a_search_that_finds_nothing_gives_nothing():
    found = expand_hops(WHERE_BORN, lambda query, k: [])
    assert (found.passages, found.ranked, found.followed) == ((), (), ())
    assert found.n_searches == 2  # the question, and its one name


def test_a_search_that_gives_more_than_asked_for_and_twice_is_cut(index):
    def search(query, k):
        return [*index.search(query, k), *index.search(query, 14), *index.search(query, k)]

    found = expand_hops(WHERE_BORN, search, budget=6)
    assert len(found.ranked) == len({one.id for one in found.ranked}) == 6


def test_an_error_of_the_search_is_not_swallowed():
    def search(query, k):
        raise SettingsError("no store")

    with pytest.raises(SettingsError, match="no store"):
        expand_hops(WHERE_BORN, search)


@pytest.mark.parametrize("name", ["budget", "k"])
def test_numbers_below_one_are_refused(index, name):
    with pytest.raises(SettingsError, match=f"{name}.*0"):
        expand_hops(WHERE_BORN, index.search, **{name: 0})


def test_a_width_below_zero_is_refused(index):
    with pytest.raises(SettingsError, match=r"width.*-1"):
        expand_hops(WHERE_BORN, index.search, width=-1)


@pytest.mark.parametrize("question", ["", " \n"])
def test_a_blank_question_is_refused(index, question):
    with pytest.raises(InputError, match="empty"):
        expand_hops(question, index.search)
