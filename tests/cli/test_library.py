"""`deepera library`: list, show, rename and delete."""

import json

import pytest

pytestmark = pytest.mark.full

PAPERS = [
    {"id": "a", "text": "Kelp grew.", "year": 2019, "doi": "10.1/kelp"},
    {"id": "b", "text": "Otters ate.", "year": 2021},
]


@pytest.fixture
def library(deepera, tmp_path, monkeypatch):
    """Runs a command over the usual folder, which is a fresh one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))

    def run(*args, given=None):
        return deepera("library", *args, given=given)

    return run


@pytest.fixture
def indexed(library, deepera, questions):
    assert deepera("index", questions(*PAPERS, name="p.jsonl"), "-l", "papers").exit_code == 0


@pytest.mark.usefixtures("indexed")
def test_libraries_are_listed_shown_renamed_and_deleted(library):
    assert library("list").stdout == "papers       2 passages  sparse\n"
    shown = library("show", "papers").stdout.splitlines()
    assert shown[0] == "papers: 2 passages, sparse"
    assert any(one.startswith("        2  year  e.g. 20") for one in shown)
    assert "        1  doi  e.g. '10.1/kelp'" in shown
    assert library("rename", "papers", "old").stdout == "'papers' is 'old' now (2 passages)\n"
    assert library("delete", "old", "--yes").stdout == "'old' deleted (2 passages)\n"
    assert library("list").stdout.startswith("no libraries in ")


@pytest.mark.usefixtures("indexed")
def test_json_is_for_programs(library):
    [papers] = json.loads(library("list", "--json").stdout)["libraries"]
    assert papers == {"name": "papers", "n_passages": 2, "mode": "sparse", "embeddings": ""}
    shown = json.loads(library("show", "papers", "--json").stdout)
    assert shown["sample"]["fields"] == {"source": 2, "year": 2, "doi": 1}


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize("given", ["n\n", ""])
def test_nothing_is_deleted_without_a_yes(library, given):
    result = library("delete", "papers", given=given)
    assert "nothing was changed; with --yes" in result.output
    assert result.exit_code == 1
    assert "Delete 'papers' with its 2 passages?" in result.stderr
    assert "papers" in library("list").stdout


@pytest.mark.usefixtures("indexed")
def test_a_yes_deletes(library):
    assert library("delete", "papers", given="y\n").exit_code == 0
    assert "no libraries" in library("list").stdout


def test_no_store_is_no_error_for_a_list(library):
    result = library("list")
    assert result.exit_code == 0
    assert "deepera index makes them" in result.stdout


@pytest.mark.usefixtures("indexed")
@pytest.mark.parametrize(
    ("args", "code", "problem"),
    [
        (("show", "none"), 2, "unknown library 'none'; available: 'papers'"),
        (("delete", "none"), 2, "unknown library 'none'"),
        (("rename", "papers", "papers"), 2, "'papers' exists already"),
        (("list", "--path", "nowhere"), 2, "no passage store in the folder 'nowhere'"),
        (("list", "tea"), 2, "; deepera library show tea describes one library (see"),
        (("list", "--path", ":memory:"), 2, "--path must be a folder"),
    ],
)
def test_what_cannot_be_is_one_line(library, args, code, problem):
    result = library(*args)
    assert result.exit_code == code
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


RECORDS = [
    {"id": "k1", "title": "Kelp growth in cold water", "text": "Kelp grew fast.", "year": 2019},
    {
        "id": "k2",
        "title": "Kelp growth in warm water",
        "text": "Kelp grew less than in cold water.",
        "year": 2021,
        "references": ["k1"],
    },
    {"id": "k3", "title": "A survey of kelp forests", "references": ["k1", "k2"], "year": 2023},
]


@pytest.fixture
def kelp(library, deepera, questions):
    """A library of three papers, one of them without an abstract."""
    done = deepera("index", questions(*RECORDS, name="kelp.jsonl"), "-l", "kelp", "--json")
    assert done.exit_code == 0
    return json.loads(done.stdout)


def test_index_fills_what_ask_and_papers_read(deepera, kelp):
    assert (kelp["library"], kelp["passages"], kelp["papers"]) == ("kelp", 2, 3)
    found = json.loads(deepera("papers", "search", "kelp", "-l", "kelp", "--json").stdout)
    assert {one["paper"]["id"] for one in found["hits"]} == {"k1", "k2", "k3"}
    asked = json.loads(deepera("ask", "Did kelp grow?", "-l", "kelp", "--json").stdout)
    assert {one["id"] for one in asked["ranking"]} == {"k1", "k2"}
    papers = deepera("papers", "ask", "kelp growth, since 2020", "-l", "kelp", "--json")
    assert papers.exit_code == 0


def test_ask_says_how_often_the_library_cites_a_paper(deepera, kelp):
    shown = " ".join(deepera("ask", "Did kelp grow fast?", "-l", "kelp").stdout.split())
    assert "cited by 2 in your library; [k1]" in shown
    assert "cited by 1 in your library; [k2]" in shown or "[k2]" not in shown


def test_a_pdf_and_a_record_of_one_paper_are_one_paper_of_the_library(
    deepera, library, questions, tmp_path
):
    (tmp_path / "k.md").write_text("# Kelp growth in cold water\n\nKelp grew by 3 cm a day.\n")
    source = questions(*RECORDS, name="kelp.jsonl")
    done = deepera("index", source, tmp_path / "k.md", "-l", "kelp", "--json")
    assert json.loads(done.stdout)["papers"] == 3


def test_papers_alone_are_asked_as_evidence(deepera, library, questions, tmp_path):
    source = questions(*RECORDS, name="kelp.jsonl")
    for place in ("kelp", tmp_path / "kelp.papers"):
        assert deepera("papers", "build", source, "-l", place).exit_code == 0
        asked = deepera("ask", "Did kelp grow?", "-l", place, "--where", "year<=2020", "--json")
        assert [one["id"] for one in json.loads(asked.stdout)["ranking"]] == ["k1"]


def test_what_was_indexed_apart_is_moved_into_one_library(deepera, library, kelp, tmp_path):
    papers = tmp_path / "data" / "deepera" / "papers"
    (papers / "kelp.sqlite").unlink()  # as it was before libraries had papers
    missing = deepera("papers", "search", "kelp", "-l", "kelp")
    assert missing.exit_code == 2
    assert "deepera library move kelp" in missing.stderr
    moved = library("move", "kelp")
    assert (moved.exit_code, moved.stdout) == (0, "library 'kelp' has 2 papers now\n")
    assert deepera("papers", "show", "k2", "-l", "kelp").stdout.startswith(
        "k2  Kelp growth in warm"
    )
    (papers / "kelp.sqlite").rename(tmp_path / "old.papers")
    assert library("move", "kelp", tmp_path / "old.papers").exit_code == 0
    assert not (tmp_path / "old.papers").exists()
    assert library("move", "kelp", papers / "kelp.sqlite").exit_code == 2
    cited = json.loads(deepera("papers", "cite", "k1", "-l", "kelp", "--json").stdout)
    assert cited["citations"]["total"] == 1


def test_papers_go_where_their_library_goes(deepera, library, kelp, tmp_path):
    assert library("rename", "kelp", "weed").exit_code == 0
    assert deepera("papers", "show", "k1", "-l", "weed").exit_code == 0
    assert deepera("papers", "show", "k1", "-l", "kelp").exit_code == 2
    assert library("delete", "weed", "--yes").exit_code == 0
    assert deepera("index", tmp_path / "kelp.jsonl", "-l", "kelp").exit_code == 0
    for asked in (("ask", "Did kelp grow?"), ("papers", "search", "kelp")):
        said = deepera(*asked, "-l", "kelpp").stderr
        assert "unknown library 'kelpp'; available: 'kelp'; deepera index" in said
        assert said.endswith("did you mean 'kelp'?\n")
    gone = deepera("papers", "show", "k1", "-l", "weed")
    assert (
        "unknown library 'weed'; available: 'kelp'; deepera index FILES -l weed makes it"
        in gone.stderr
    )


def test_old_names_work_and_say_the_new_one(deepera, kelp, tmp_path, monkeypatch):
    old = deepera("papers", "search", "kelp", "--base", "kelp", "--year-from", "2020", "--json")
    new = deepera("papers", "search", "kelp", "-l", "kelp", "--where", "year>=2020", "--json")
    assert old.stdout == new.stdout
    assert {one["paper"]["id"] for one in json.loads(new.stdout)["hits"]} == {"k2", "k3"}
    assert "--base is now --library; the old name ends with 0.11" in old.stderr
    assert "--year-from is now --where 'year>=...'" in old.stderr
    asked = deepera("ask", "Did kelp grow?", "-c", "kelp", "-q")
    assert (asked.exit_code, "-c is now --library" in asked.stderr) == (0, True)
    listed = deepera("collections", "list")
    assert "kelp" in listed.stdout
    assert "deepera collections is now deepera library" in listed.stderr
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deepera.toml").write_text('collection = "kelp"\n')
    assert deepera("ask", "Did kelp grow?", "-q").exit_code == 0


def test_a_configured_library_may_be_a_plain_name_alone(deepera, kelp, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in ("http://127.0.0.1:9", "some/file.papers"):
        (tmp_path / "deepera.toml").write_text(f'library = "{given}"\n')
        refused = deepera("papers", "search", "kelp")
        assert refused.exit_code == 2
        assert "the file is not trusted" in refused.stderr


def test_a_library_of_papers_alone_is_listed_shown_renamed_and_deleted(deepera, library, questions):
    papers = ({"id": "a", "title": "Kelp grew"}, {"id": "b", "title": "Otters ate"})
    file = questions(*papers, name="p.jsonl")
    assert deepera("papers", "build", file, "-l", "sea").exit_code == 0
    assert library("list").stdout == "sea         2 papers  without passages\n"
    assert json.loads(library("list", "--json").stdout)["libraries"][0]["n_papers"] == 2
    assert library("show", "sea").stdout == "sea: 2 papers without passages\n"
    assert library("rename", "sea", "sea").exit_code == 2
    assert library("rename", "sea", "ocean").stdout == "'sea' is 'ocean' now (2 papers)\n"
    assert "Delete 'ocean' with its 2 papers?" in library("delete", "ocean", given="n\n").stderr
    assert library("delete", "ocean", "--yes").stdout == "'ocean' deleted (2 papers)\n"
    assert library("list").stdout.startswith("no libraries in ")
