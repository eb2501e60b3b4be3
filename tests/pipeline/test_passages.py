"""Passages as callers hand them in, and windows of long ones."""

import copy
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from deepera_graph import InputError
from deepera_graph.passages import read_passages, retrieval_place, windows

SIZES = st.integers(20, 120)
SPACED = st.text(alphabet="ab \n", max_size=600)
UNSPACED = st.text(alphabet="abc", min_size=121, max_size=600)


@pytest.mark.full
@given(SPACED | UNSPACED | st.text(max_size=300), SIZES)
def test_windows_cover_the_text_and_move_on(text, size):
    found = windows(text, size)
    assert found[0][0] == 0
    assert found[-1][1] == len(text)
    assert all(0 <= end - start <= size for start, end in found)
    for (start, end), (next_start, next_end) in itertools.pairwise(found):
        assert start < next_start <= end < next_end


@pytest.mark.full
@given(UNSPACED, SIZES)
def test_windows_of_a_text_without_spaces_overlap_by_a_tenth(text, size):
    found = windows(text, size)
    for (_, end), (next_start, _) in itertools.pairwise(found):
        assert end - next_start == int(size * 0.1)


@pytest.mark.full
@given(st.lists(st.text("ab", min_size=1, max_size=4), min_size=60, max_size=200))
def test_windows_cut_at_spaces_where_words_are_short(words):
    text = " ".join(words)
    for start, end in windows(text, 80):
        assert start == 0 or text[start - 1] == " "
        assert end == len(text) or text[end] == " "


@given(st.text(max_size=100), st.integers(100, 200))
def test_a_text_that_fits_is_one_window(text, size):
    assert windows(text, size) == [(0, len(text))]


def test_two_hundred_thousand_characters_are_few_windows():
    assert len(windows("evidence " * 22_223, 12_000)) < 20


def test_strings_get_their_place_as_id():
    assert [(one.id, one.metadata["retrieval_rank"]) for one in read_passages(["a", "b"])] == [
        ("1", 1), ("2", 2),
    ]  # fmt: skip


def test_a_dict_keeps_its_unknown_fields_as_metadata():
    [one] = read_passages(
        [{"id": 7, "text": "a", "title": "T", "metadata": {"year": 2020}, "score": 3}]
    )
    assert (one.id, one.page_content) == ("7", "a")
    place = {"retrieval_rank": 1, "retrieval_score": 3.0}
    assert one.metadata == {"title": "T", "year": 2020, **place}


@pytest.mark.parametrize("name", ["page_content", "contents", "content", "Abstract", "abstract"])
def test_the_text_goes_by_the_names_that_files_have(name):
    assert read_passages([{name: "a"}])[0].page_content == "a"


def test_a_list_of_sentences_is_a_text():
    [one] = read_passages([{"_id": "s", "abstract": ["It grew.", "It died."]}])
    assert one.page_content == "It grew. It died."


def test_a_text_goes_before_an_abstract():
    [one] = read_passages([{"abstract": "a", "text": "b"}])
    assert (one.page_content, one.metadata["abstract"]) == ("b", "a")


@pytest.mark.parametrize("name", ["id", "_id", "docid"])
def test_the_id_goes_by_several_names(name):
    assert read_passages([{name: "x", "text": "a"}])[0].id == "x"


def test_a_doi_is_metadata_as_passages_of_one_paper_share_it():
    found = read_passages([{"doi": "10.1/x", "text": "a"}, {"doi": "10.1/x", "text": "b"}])
    assert [one.id for one in found] == ["1", "2"]
    assert found[1].metadata["doi"] == "10.1/x"


def test_a_document_brings_its_first_stage_rank_and_score():
    document = Document(
        id="d", page_content="a", metadata={"retrieval_rank": 9, "retrieval_score": 0.5, "k": 1}
    )
    [one] = read_passages([document])
    assert one == document


@pytest.mark.parametrize("rank", [0, -1, True, "3", None, 2.5])
def test_an_odd_first_stage_rank_gives_way_to_the_place(rank):
    document = Document(page_content="a", metadata={"retrieval_rank": rank})
    assert retrieval_place(document, 4)[0] == 5


def test_documents_with_one_id_are_told_apart():
    ids = ["a", "a#2", "a", "a", "b"]
    found = read_passages([Document(id=name, page_content=name) for name in ids])
    assert [one.id for one in found] == ["a", "a#2", "a#3", "a#4", "b"]


@pytest.mark.full
@given(st.lists(st.sampled_from(["a", "a#2", "a#2#2", "1", "2", None]), max_size=12))
def test_ids_of_documents_are_always_unique(ids):
    found = read_passages([Document(id=name, page_content="x") for name in ids])
    assert len({one.id for one in found}) == len(ids)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), 10**400, True, "0.5", [1]])
def test_a_score_that_is_no_number_is_named(score):
    with pytest.raises(InputError, match="passage 1: score must be a finite number"):
        read_passages([{"text": "a", "score": score}])


def test_a_numpy_score_is_a_score():
    numpy = pytest.importorskip("numpy")
    [one] = read_passages([{"text": "a", "score": numpy.float32(0.5)}])
    assert one.metadata["retrieval_score"] == 0.5
    assert type(one.metadata["retrieval_score"]) is float


@pytest.mark.parametrize(
    ("items", "named"),
    [
        ("one text", "must be a list, got one str"),
        (b"one text", "must be a list, got one bytes"),
        ({"text": "a"}, "must be a list, got one dict"),
        (Document(page_content="a"), "must be a list, got one Document"),
        (None, "must be a list, got one NoneType"),
        (3, "must be a list, got one int"),
        ([3], "passage 1 must be a string, dict or Document, got 3"),
        (["a", None], "passage 2 must be a string, dict or Document, got None"),
        (["a", " \n"], "passage 2 has no text"),
        ([{"id": "x"}], "passage 1 has no text; expected one of text, .*, abstract, .*, found id"),
        ([{"text": 5}], "passage 1 has no text, got 5"),
        ([{"text": "a", "id": ""}], "passage 1: id must be a string, got ''"),
        ([{"text": "a", "id": True}], "passage 1: id must be a string, got True"),
        ([{"text": "a", "id": ["x"]}], "passage 1: id must be a string"),
        ([{"text": "a", "metadata": [1]}], r"passage 1: metadata must be an object, got \[1\]"),
        ([{"text": "a", "id": "x"}, {"text": "b", "id": "x"}], "passage 2: id 'x' is used twice"),
        ([{"text": "a", "id": 1}, {"text": "b", "id": "1"}], "passage 2: id '1' is used twice"),
    ],
)
def test_what_cannot_be_used_is_named(items, named):
    with pytest.raises(InputError, match=named):
        read_passages(items)


def test_a_document_without_text_is_no_error():
    assert read_passages([Document(page_content="")])[0].page_content == ""


def test_any_iterable_will_do():
    assert len(read_passages(iter(["a", "b"]))) == len(read_passages(("a", "b"))) == 2
    assert read_passages([]) == []


def test_what_was_handed_in_stays_as_it_was():
    items = [
        {"text": "a", "metadata": {"nested": {"list": [1]}}},
        Document(id="d", page_content="b", metadata={"retrieval_rank": 3, "nested": {"list": [2]}}),
    ]
    before = copy.deepcopy(items)
    for passage in read_passages(items):
        passage.metadata["nested"]["list"].append(99)
    assert items == before


def test_the_travelling_form_reads_back():
    [one] = read_passages([{"id": "x", "text": "a", "score": 2.0, "metadata": {"k": 1}}])
    assert read_passages([one]) == [one]
