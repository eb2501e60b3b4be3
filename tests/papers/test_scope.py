"""A scope holds everywhere: nothing out of it leaves a base, by any route."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepera_graph.errors import SettingsError
from deepera_graph.papers import Paper, Scope
from papers.world import VENUES, invent_papers

WORLD = invent_papers(240)
IDS = [one["id"] for one in WORLD] + [one["doi"] for one in WORLD if one["doi"]]
SCOPES = st.builds(
    Scope,
    year_from=st.none() | st.integers(2004, 2014),
    year_to=st.none() | st.integers(2014, 2025),
    venues=st.lists(st.sampled_from(VENUES[:4]), max_size=3).map(tuple),
    not_venues=st.lists(st.sampled_from(VENUES[:4]), max_size=2).map(tuple),
    hide=st.lists(st.sampled_from(IDS), max_size=30).map(tuple),
    as_of=st.sampled_from(["", "2009", "2015-06", "2020-02-15", "2024"]),
    undated=st.sampled_from(["keep", "drop"]),
)


def breaks(scope: Scope, plain: dict) -> bool:
    """Tell whether a paper may not be seen, by a reading of the rules that is not the code's."""
    year, date = plain["year"], plain["date"]
    keeps = scope.undated == "keep"
    hidden = {one.lower() for one in scope.hide}
    if plain["id"].lower() in hidden or (plain["doi"] and plain["doi"].lower() in hidden):
        return True
    if (scope.venues and plain["venue"] not in scope.venues) or plain["venue"] in scope.not_venues:
        return True
    if (scope.year_from or scope.year_to) and year is None and not keeps:
        return True
    if year is not None and not (scope.year_from or 0) <= year <= (scope.year_to or 9999):
        return True
    return bool(scope.as_of) and is_later(scope.as_of, date or str(year or ""), keeps=keeps)


def is_later(as_of: str, date: str, *, keeps: bool) -> bool:
    """Tell whether a date is later than another, or may be and is not to be kept then."""
    if not date:
        return not keeps
    shared = min(len(date), len(as_of))
    if date[:shared] != as_of[:shared]:
        return date[:shared] > as_of[:shared]
    return not keeps and len(date) < len(as_of)


@pytest.mark.full
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(scope=SCOPES, number=st.integers(0, 239))
def test_nothing_out_of_scope_leaves_by_any_route(base, scope, number):
    known = {one["id"]: one for one in WORLD}
    paper = WORLD[number]
    allowed = {id for id, one in known.items() if not breaks(scope, one)}
    found = {one.paper.id for one in base.search("study", k=300, scope=scope)}
    assert found == allowed
    assert (base.get(paper["id"], scope=scope) is not None) == (paper["id"] in allowed)
    match = base.title(paper["title"], scope=scope)
    assert match.paper is None or match.paper.id in allowed
    references = base.references(paper["id"], scope=scope)
    citations = base.citations(paper["id"], scope=scope)
    if paper["id"] not in allowed:
        assert references.status == citations.status == "unknown"
    else:
        assert [one.id for one in references] == [
            one for one in paper["references"] if one in allowed
        ]
        citing = {id for id, one in known.items() if paper["id"] in one["references"]}
        assert {one.id for one in citations} == citing & allowed
        assert references.total == len(references)


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(scope=SCOPES)
def test_a_scope_says_of_a_paper_what_the_base_says(scope):
    for plain in WORLD:
        fields = {one: plain[one] for one in ("id", "title", "year", "date", "venue")}
        paper = Paper(**fields, doi=plain["doi"].lower())
        assert scope.allows(paper) == (not breaks(scope, plain))


@pytest.mark.full
@given(scope=SCOPES)
def test_a_scope_survives_json(scope):
    assert Scope.from_dict(json.loads(json.dumps(scope.to_dict()))) == scope


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"year_from": 2020, "year_to": 2010}, "no year is from 2020 and up to 2010"),
        ({"year_to": "2010"}, "year_to must be a year such as 2021, got '2010'"),
        ({"as_of": "2021-13"}, "as_of must be a date .* got '2021-13'"),
        ({"as_of": "soon"}, "got 'soon'"),
        ({"venues": "ACL"}, "venues must be a list of names, got 'ACL'"),
        ({"hide": ("",)}, "hide must be a list of names, got ''"),
        ({"undated": "maybe"}, "undated must be keep or drop, got 'maybe'"),
        ({"year_too": 2010}, "no field 'year_too' to limit them by; did you mean 'year_to'"),
    ],
)
def test_a_bad_limit_is_named(limits, message):
    with pytest.raises(SettingsError, match=message):
        Scope.from_dict(limits)


def test_a_paper_is_hidden_by_any_of_its_ids(base):
    plain = next(one for one in WORLD if one["doi"])
    for id in (plain["id"], plain["doi"], f"https://doi.org/{plain['doi'].upper()}"):
        assert base.get(plain["id"], scope=Scope(hide=(id,))) is None


@pytest.mark.parametrize(
    ("where", "scope"),
    [
        ("year>=2015", Scope(year_from=2015)),
        (["year>2015", "year<2020"], Scope(year_from=2016, year_to=2019)),
        ("year=2018", Scope(year_from=2018, year_to=2018)),
        ({"year": {"gte": 2015}}, Scope(year_from=2015)),
        ({"year_from": 2015, "venues": ["ICRS"]}, Scope(year_from=2015, venues=("ICRS",))),
        ("journal=ICRS and venue!=ACL", Scope(venues=("ICRS",), not_venues=("ACL",))),
        ('id!=["W1", "W2"]', Scope(hide=("W1", "W2"))),
        (["date<=2021-08", "undated=drop"], Scope(as_of="2021-08", undated="drop")),
        (None, Scope()),
    ],
)
def test_conditions_limit_papers_in_the_language_of_passages(where, scope):
    assert Scope.of(where) == scope


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("jornal=ICRS", "did you mean 'journal'?"),
        ("colour=red", "there are year, date, journal, id, undated"),
        ("date>=2021-05", "papers can be limited by date<=, not by date>='2021-05'"),
        ("year>=soon", "must be a year such as 2021, got 'soon'"),
        ("year>soon", "must be a year such as 2021, got 'soon'"),
    ],
)
def test_a_condition_that_papers_do_not_have_is_an_error(where, message):
    with pytest.raises(SettingsError) as caught:
        Scope.of(where)
    assert message in str(caught.value)
