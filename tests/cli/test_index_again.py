"""A source that is indexed again, and what is taken out of a library."""

import json

import pytest
from langchain_core.documents import Document

from deepera_graph.retrieval.collections.store import open_store

pytestmark = pytest.mark.full

LONG = " ".join(
    f"Drip irrigation saved {n}% of the water of tomatoes in year {n}." for n in range(40)
)
NOTE = f"# Trials of drip irrigation\n\n## One\n\n{LONG}\n\n## Two\n\nMulch kept the soil moist.\n"
SHORT = "# Trials of drip irrigation\n\nMulch was laid between the rows.\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with libraries of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


@pytest.fixture
def index(deepera, here):
    """Fills the library `lib` and returns what is told, as JSON has it."""

    def run(*args, code=0):
        done = deepera("index", *args, "-l", "lib", "--json")
        assert done.exit_code == code, done.stderr
        return {**json.loads(done.stdout), "stderr": done.stderr}

    return run


def held(here):
    """Return the passages of the library by their ids."""
    with open_store("lib", path=here.parent / "data" / "deepera", must_exist=True) as store:
        return {one.passage.id: one.passage for one in store.scan()}


def papers(deepera):
    found = json.loads(deepera("papers", "search", "drip", "-l", "lib", "--json").stdout)
    return {one["paper"]["id"] for one in found["hits"]}


def test_a_document_that_was_shortened_leaves_no_passage_of_its_old_text(deepera, index, here):
    note = here / "n.md"
    note.write_text(NOTE)
    assert index("n.md")["passages"] == 3
    note.write_text(SHORT)
    again = index("n.md")
    assert (again["indexed"], again["removed"], again["passages"]) == (1, 3, 1)
    asked = deepera("ask", "Does drip irrigation save water?", "-l", "lib", "--json", "-v")
    assert "saved" not in asked.stdout
    note.write_text(NOTE)
    told = deepera("index", "n.md", "-l", "lib").stdout
    assert "(sparse), 1 removed that the source has no more; it holds 3 now" in told


def test_records_that_a_table_has_no_more_are_removed_with_their_papers(deepera, index, here):
    one, two = (
        json.dumps({"id": f"k{n}", "title": f"Drip irrigation, trial {n}", "text": f"Drip {n}."})
        for n in (1, 2)
    )
    table = here / "t.jsonl"
    table.write_text(f"{one}\n{two}\n")
    index("t.jsonl")
    assert papers(deepera) == {"k1", "k2"}
    table.write_text(f"{two}\n")
    again = index("t.jsonl")
    assert (again["removed"], again["papers"], [*held(here)]) == (1, 1, ["k2"])
    assert papers(deepera) == {"k2"}


def test_a_paper_that_another_passage_names_stays(deepera, index, here):
    record = {"title": "Drip irrigation of tomatoes", "doi": "10.1/drip", "text": "Drip saved 3%."}
    (here / "a.jsonl").write_text(json.dumps({"id": "a", **record}))
    (here / "b.jsonl").write_text(json.dumps({"id": "b", **record}))
    index("a.jsonl", "b.jsonl")
    done = deepera("library", "remove", "lib", "a.jsonl", "--yes", "--json")
    assert json.loads(done.stdout) == {"library": "lib", "removed": 1, "passages": 1}
    assert len(papers(deepera)) == 1


def test_a_file_with_a_record_that_fails_loses_nothing(index, here):
    table = here / "t.jsonl"
    lines = [json.dumps({"id": str(n), "text": f"Drip {n}."}) for n in range(3)]
    table.write_text("\n".join(lines))
    index("t.jsonl")
    table.write_text(f"{lines[0]}\n{lines[1]}\n{{broken\n")
    assert index("t.jsonl", code=1)["removed"] == 0
    assert len(held(here)) == 3


def test_a_break_leaves_the_old_passages_there(deepera, index, here, monkeypatch):
    note = here / "n.md"
    note.write_text(NOTE)
    index("n.md")
    note.write_text(SHORT)

    def fail(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("deepera_graph.retrieval.collections.passage_store.PassageStore.put", fail)
        assert deepera("index", "n.md", "-l", "lib").exit_code == 130
    assert len(held(here)) == 3
    told = "'lib' was not indexed to its end; the same deepera index again adds the rest"
    assert told in deepera("ask", "Is soil moist?", "-l", "lib", "--backend", "rules").stderr
    assert told in " ".join(deepera("doctor", "-l", "lib", "--json").stdout.split())
    assert index("n.md")["removed"] == 3
    assert told not in deepera("ask", "Is soil moist?", "-l", "lib", "--backend", "rules").stderr


def test_a_first_index_that_was_killed_is_told_from_a_library_without_papers(deepera, index, here):
    (here / "n.md").write_text(SHORT)
    index("n.md")
    file = here.parent / "data" / "deepera" / "papers" / "lib.sqlite"
    file.rename(file.with_name("lib.sqlite.unfinished"))  # as kill -9 leaves it before papers
    told = deepera("doctor", "-l", "lib", "--json").stdout
    assert "the same deepera index again adds the rest" in told
    assert deepera("library", "delete", "lib", "--yes").exit_code == 0
    assert not any(file.parent.iterdir())


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_is_there_once_however_its_path_is_typed(index, here, monkeypatch, changed):
    (here / "v").mkdir()
    note = here / "v" / "a.txt"
    note.write_text("Drip irrigation saved water.")
    index("v")
    if changed:
        note.write_text("Drip irrigation wasted water.")
    index(str(note))
    monkeypatch.chdir(here / "v")
    index("a.txt")
    index("../v/a.txt", "a.txt")
    [(id, passage)] = held(here).items()
    assert (id, passage.metadata["source"]) == ("v/a.txt", "v/a.txt")
    assert ("wasted" in passage.page_content) == changed


def test_what_was_indexed_by_an_older_version_is_found_as_the_same_file(index, here):
    note = here / "a.txt"
    with open_store("lib", path=here.parent / "data" / "deepera") as store:
        store.add(
            Document(id=id, page_content="Drip saved 7%.", metadata={"source": source})
            for id, source in [
                ("a.txt#1", "a.txt"), (f"{note}#2", str(note)), ("b.txt", "b.txt"),
                ("own", "https://example.org/a.txt"),
            ]
        )  # fmt: skip
    note.write_text("Drip irrigation saved water.")
    assert index("a.txt")["removed"] == 2
    assert {*held(here)} == {"a.txt", "b.txt", "own"}


def test_another_file_of_the_same_name_is_another(index, here, monkeypatch):
    for name in ("one", "two"):
        (here / name).mkdir()
        (here / name / "a.txt").write_text(f"Drip irrigation, notes {name}.")
        monkeypatch.chdir(here / name)
        index("a.txt")
    assert {*held(here)} == {"a.txt", (here / "two" / "a.txt").as_posix()}


def test_a_folder_that_was_moved_is_the_same(index, here, monkeypatch):
    (here / "old" / "v").mkdir(parents=True)
    (here / "old" / "v" / "a.md").write_text(NOTE)
    monkeypatch.chdir(here / "old")
    index("v")
    (here / "old").rename(here / "new")
    monkeypatch.chdir(here / "new")
    (here / "new" / "v" / "a.md").write_text(SHORT)
    again = index("v")
    assert (again["removed"], again["missing"], [*held(here)]) == (3, [], ["v/a.md"])


def test_files_that_are_gone_are_named_and_stay_until_they_are_removed(deepera, index, here):
    (here / "v").mkdir()
    for name in "ab":
        (here / "v" / f"{name}.md").write_text(f"# Drip irrigation, trial {name}\n\nSaved 3%.\n")
    (here / "c.txt").write_text("Mulch.")
    index("v", "c.txt")
    (here / "v" / "b.md").unlink()
    again = index("v")
    assert again["missing"] == ["v/b.md"]
    assert "1 file is gone from the source" in again["stderr"]
    assert "deepera library remove lib v/b.md" in again["stderr"]
    done = deepera("library", "remove", "lib", "v/b.md", given="n\n")
    assert (done.exit_code, len(held(here))) == (1, 3)
    done = deepera("library", "remove", "lib", "v/b.md", "-y")
    assert done.stdout == "1 passage removed; 'lib' holds 2 now\n"
    assert index("v")["missing"] == []
    assert papers(deepera) == {"v/a.md"}


def test_a_folder_or_one_passage_is_removed(deepera, index, here):
    (here / "v").mkdir()
    (here / "v" / "a.md").write_text(NOTE)
    (here / "t.jsonl").write_text('{"id": "own", "text": "Drip."}\n{"text": "Mulch."}\n')
    index("v", "t.jsonl")
    assert deepera("library", "remove", "lib", "v/a.md#2", "own", "-y").exit_code == 0
    assert {*held(here)} == {"v/a.md#1", "v/a.md#3", "t.jsonl:2"}
    assert deepera("library", "remove", "lib", str(here / "v"), "-y").exit_code == 0
    assert {*held(here)} == {"t.jsonl:2"}
    none = deepera("library", "remove", "lib", "v", "-y")
    assert none.exit_code == 2
    assert "'lib' has nothing of 'v'; deepera library show lib lists" in none.stderr
    assert deepera("library", "rename", "lib", "my lib").exit_code == 0
    none = deepera("library", "remove", "my lib", "v", "-y")
    assert "deepera library show 'my lib' lists" in none.stderr


def test_neighbours_and_vectors_follow(deepera, index, here):
    for name in "abc":
        (here / f"{name}.txt").write_text(f"Drip irrigation saved water, trial {name}.")
    (here / "n.md").write_text(NOTE)
    how = ("--embeddings", "local", "--neighbours", "2")
    assert index(".", *how)["neighbours"]["passages"] == 6
    (here / "n.md").write_text(SHORT)
    again = index(".")
    assert (again["removed"], again["neighbours"]["passages"], again["papers"]) == (3, 4, 1)
    assert deepera("library", "remove", "lib", "n.md", "-y").exit_code == 0
    for mode in ("--adaptive", "--quiet"):
        asked = deepera("ask", "Does mulch help?", "-l", "lib", mode, "--json")
        assert {one["id"] for one in json.loads(asked.stdout)["ranking"]} == {
            "a.txt", "b.txt", "c.txt",
        }  # fmt: skip
