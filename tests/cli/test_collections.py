"""`deepera collections`: list, show, rename and delete."""

import json

import pytest

PAPERS = [
    {"id": "a", "text": "Kelp grew.", "year": 2019, "doi": "10.1/kelp"},
    {"id": "b", "text": "Otters ate.", "year": 2021},
]


@pytest.fixture
def collections(deepera, tmp_path, monkeypatch):
    """Runs a command over the usual folder, which is a fresh one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*args, given=None):
        return deepera("collections", *args, given=given)

    return run


@pytest.fixture
def indexed(collections, deepera, questions):
    assert deepera("index", questions(*PAPERS, name="p.jsonl"), "-c", "papers").exit_code == 0


@pytest.mark.usefixtures("indexed")
def test_collections_are_listed_shown_renamed_and_deleted(collections):
    assert collections("list").stdout == "papers       2 passages  sparse\n"
    shown = collections("show", "papers").stdout.splitlines()
    assert shown[0] == "papers: 2 passages, sparse"
    assert any(one.startswith("        2  year  e.g. 20") for one in shown)
    assert "        1  doi  e.g. '10.1/kelp'" in shown
    assert collections("rename", "papers", "old").stdout == "'papers' is 'old' now (2 passages)\n"
    assert collections("delete", "old", "--yes").stdout == "'old' deleted (2 passages)\n"
    assert collections("list").stdout.startswith("there are no collections in ")


@pytest.mark.usefixtures("indexed")
def test_json_is_for_programs(collections):
    [papers] = json.loads(collections("list", "--json").stdout)["collections"]
    assert papers == {"name": "papers", "n_passages": 2, "mode": "sparse", "embeddings": ""}
    shown = json.loads(collections("show", "papers", "--json").stdout)
    assert shown["sample"]["fields"] == {"source": 2, "year": 2, "doi": 1}


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("given", ["n\n", ""])
def test_nothing_is_deleted_without_a_yes(collections, given):
    result = collections("delete", "papers", given=given)
    assert result.exit_code == 1
    assert "Delete 'papers' with its 2 passages?" in result.stderr
    assert "papers" in collections("list").stdout


@pytest.mark.usefixtures("indexed")
def test_a_yes_deletes(collections):
    assert collections("delete", "papers", given="y\n").exit_code == 0
    assert "there are no collections" in collections("list").stdout


def test_no_store_is_no_error_for_a_list(collections):
    result = collections("list")
    assert result.exit_code == 0
    assert "deepera index makes them" in result.stdout


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (("show", "none"), 2, "there is no collection 'none'; there are 'papers'"),
        (("delete", "none"), 2, "there is no collection 'none'"),
        (("rename", "papers", "papers"), 2, "'papers' exists already"),
        (("list", "--path", "nowhere"), 2, "there is no passage store in the folder 'nowhere'"),
        (("list", "--path", ":memory:"), 2, "--path must be a folder"),
    ],
)
def test_what_cannot_be_is_one_line(collections, args, code, problem):
    result = collections(*args)
    assert result.exit_code == code
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1
