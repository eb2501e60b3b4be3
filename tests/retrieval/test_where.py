"""Conditions on metadata, asked of a real embedded Qdrant."""

import pytest
from langchain_core.documents import Document
from qdrant_client.models import Filter

from deepera_graph.errors import SettingsError
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.retrieval.conditions import COMPARED, build_filter

ROWS = {
    "a": {"year": 2012, "kind": "trial", "open": True, "p": 0.04, "date": "2012-05-31"},
    "b": {"year": 2015.0, "kind": "review", "open": False, "p": 1, "date": "2015-01-01"},
    "c": {"year": 2018, "kind": "trial", "tags": ["x", "y"], "journal": {"name": "Kelp"}},
    "d": {"kind": None, "a b": "spaced", "tags": [], "year": "2018"},
}


def fill(name, rows):
    with open_store(name) as store:
        store.add(Document(id=id, page_content="kelp", metadata=row) for id, row in rows.items())
        yield store


@pytest.fixture(scope="module")
def store():
    yield from fill("rows", ROWS)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        pytest.param(None, "abcd", id="nothing-asked"),
        pytest.param({}, "abcd", id="nothing-asked-either"),
        pytest.param({"kind": "trial"}, "ac", id="text"),
        pytest.param({"year": 2018}, "cd", id="number-is-its-text"),
        pytest.param({"year": 2015}, "b", id="whole-number-finds-fraction"),
        pytest.param({"p": 1.0}, "b", id="fraction-finds-whole-number"),
        pytest.param({"p": 0.04}, "a", id="fraction"),
        pytest.param({"open": True}, "a", id="true-is-not-one"),
        pytest.param({"tags": "x"}, "c", id="list-contains"),
        pytest.param({"kind": ["trial", "review"]}, "abc", id="any-of"),
        pytest.param({"year": [2012, "2018", None]}, "acd", id="any-of-different-kinds"),
        pytest.param({"year": {"gte": 2015}}, "bcd", id="from"),
        pytest.param({"year": {"gt": 2012, "lte": 2015}}, "b", id="between"),
        pytest.param({"date": {"lt": "2015-01-01"}}, "a", id="date-cut-off"),
        pytest.param({"date": {"gte": "2012-05-31"}}, "ab", id="date-inclusive"),
        pytest.param({"tags": None}, "abd", id="missing-or-empty"),
        pytest.param({"kind": None}, "d", id="null"),
        pytest.param({"journal.name": "Kelp"}, "c", id="nested"),
        pytest.param({"a b": "spaced"}, "d", id="name-with-space"),
        pytest.param({"kind": "trial", "year": {"lt": 2015}}, "a", id="all-must-hold"),
        pytest.param({"unknown": 1}, "", id="unknown-field"),
    ],
)
def test_where(store, where, found):
    assert "".join(document.id for document in store.search("kelp", where=where)) == found


def test_conditions_hold_on_both_sides_of_hybrid(make_embeddings):
    with open_store("h", embeddings=make_embeddings()) as store:
        store.add(
            Document(id=name, page_content="kelp", metadata=row) for name, row in ROWS.items()
        )
        assert [found.id for found in store.search("kelp", where={"kind": "trial"})] == ["a", "c"]


@pytest.mark.parametrize(
    "where",
    [
        {"": 1},
        {"a..b": 1},
        {'a"b': 1},
        {"year": []},
        {"year": {}},
        {"year": {"above": 3}},
        {"year": {"gte": 1, "lte": "2"}},
        {"year": {"gte": True}},
        {"year": {"gte": "soon"}},
        {"year": object()},
        {"year": [[1]]},
    ],
)
def test_a_condition_that_cannot_be_asked_is_an_error(where):
    with pytest.raises(SettingsError, match="where: "):
        build_filter(where)


def test_a_range_that_cannot_be_read_is_shown_as_it_was_understood(store):
    where = {"year": {"gt": "2015 and year<2018"}}
    with pytest.raises(SettingsError) as caught:
        store.search("kelp", where=where)
    assert str(caught.value).endswith("got year > '2015 and year<2018'")


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("year>=2015", "bcd"),
        (["year>2012", "year<=2015"], "b"),
        ("year>2012 and kind=trial", "c"),
        ("kind!=trial", "bd"),
        ({"kind": {"not": ["trial", "review"]}}, "d"),
        ("kind~Trial", "ac"),
        ('kind=["trial", "review"]', "abc"),
        ('year={"gte": 2018}', "cd"),
        ("year=>2018", "cd"),
        ("kind==trial", "ac"),
        ("tags=null", "abd"),
    ],
)
def test_conditions_are_written_as_texts_or_objects(store, where, found):
    assert "".join(document.id for document in store.search("kelp", where=where)) == found


def test_a_journal_and_its_authors_have_one_name_whatever_the_file():
    rows = {"a": {"venue": "Kelp"}, "b": {"journal": "Kelp"}, "c": {"author": "Smith, A."}}
    rows["d"] = {"Authors": "Smith, B."}
    with open_store("spelt") as store:
        store.add(Document(id=id, page_content="kelp", metadata=one) for id, one in rows.items())
        for where, found in {
            "journal=Kelp": "ab",
            "venue=Kelp": "ab",
            "authors~smith": "cd",
        }.items():
            assert "".join(one.id for one in store.search("kelp", where=where)) == found
        assert "".join(one.id for one in store.search("kelp", where={"venue": None})) == "cd"


@pytest.mark.parametrize("where", ["since", ["year"], {"kind": {"contains": True}}])
def test_a_text_that_is_no_condition_is_an_error(where):
    with pytest.raises(SettingsError, match="where: "):
        build_filter(where)


YEARS = {
    "text": {"year": "2021"}, "number": {"year": 2021}, "day": {"year": "2021-05-01"},
    "date": {"date": "2021-05-01"}, "words": {"year": "May 2021"}, "earlier": {"year": "2012"},
    "nothing": {"year": "n.d."},
}  # fmt: skip
OF_2021 = {"text", "number", "day", "date", "words"}


@pytest.fixture(scope="module")
def dated():
    yield from fill("dated", YEARS)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("year>=2018", OF_2021),
        ("year=2021", OF_2021),
        ('year="2021"', OF_2021),
        ("year<2018", {"earlier"}),
        ("year>2021", set()),
        ("year>0 and year<=9999", {*OF_2021, "earlier"}),
        ("year!=2021", {"earlier", "nothing"}),
        ({"year": [2012, 2021]}, {*OF_2021, "earlier"}),
    ],
)
def test_a_year_is_that_of_the_citation_however_it_is_written(dated, where, found):
    assert {one.id for one in dated.search("kelp", where=where)} == found


def test_what_is_stored_for_conditions_changes_no_metadata(dated):
    assert {one.passage.id: one.passage.metadata for one in dated.scan()} == YEARS


def test_a_library_made_before_has_years_that_are_texts_or_dates(dated):
    with open_store("older") as store:
        store.add(
            Document(id=name, page_content="kelp", metadata=row) for name, row in YEARS.items()
        )
        client, name = store.vectorstore.client, store.vectorstore.collection_name
        client.delete_payload(name, [COMPARED], points=Filter())
        found = {one.id for one in store.search("kelp", where="year>=2018")}
    assert found == {"text", "number", "day"}


def test_passages_whose_year_cannot_be_read_are_counted(dated):
    assert dated.count_unknown("kelp", "year>=2018") == {"year": 1}
    assert dated.count_unknown("kelp", "year=2012") == {"year": 1}
    assert dated.count_unknown("kelp", "authors~lee") == {"authors": 7}
    assert dated.count_unknown("kelp", "year=null") == {}
    assert dated.count_unknown("kelp", "year!=2018") == {}
    assert dated.count_unknown("kelp", None) == {}


def test_passages_that_break_another_condition_are_not_counted(store):
    assert store.count_unknown("kelp", "p<=1 and kind=trial") == {"p": 1}


def test_numbers_that_are_texts_are_compared_as_numbers():
    rows = {"a": {"n": "50", "pmid": "123"}, "b": {"n": "0"}, "c": {"n": 70, "pmid": 123}}
    with open_store("numbers") as store:
        store.add(Document(id=id, page_content="kelp", metadata=one) for id, one in rows.items())
        for where, found in {"n>=50": "ac", "n<1": "b", "n=0": "b", "pmid=123": "ac"}.items():
            assert "".join(one.id for one in store.search("kelp", where=where)) == found


@pytest.mark.parametrize("asked", ["Müller", "muller", "MULLER", "mu\u0308ller"])
def test_accents_of_names_do_not_count(asked):
    rows = {
        "a": {"authors": "Müller, J."}, "b": {"authors": ["Lee, A.", "Mu\u0308ller, J."]},
        "c": {"author": "Muller, J."}, "d": {"authors": "Mill, J."},
    }  # fmt: skip
    with open_store("names") as store:
        store.add(Document(id=id, page_content="kelp", metadata=one) for id, one in rows.items())
        found = store.search("kelp", where={"authors": {"contains": asked}})
    assert "".join(one.id for one in found) == "abc"


@pytest.mark.parametrize(
    ("written", "asked"),
    [("Strauß", "strauss"), ("Søren", "soren"), ("Łukasz", "lukasz"), ("Strauss", "strauß")],
)
def test_letters_of_other_alphabets_are_found_as_they_are_typed(written, asked):
    with open_store("letters") as store:
        store.add([Document(id="a", page_content="kelp", metadata={"authors": written})])
        assert store.search("kelp", where=f"authors~{asked}")
