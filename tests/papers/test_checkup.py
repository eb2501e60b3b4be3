"""The lines of `deepera doctor` on a base of papers."""

import sqlite3

import pytest

from deepera_graph.doctor.checks import check_sqlite
from deepera_graph.papers import PaperBase
from deepera_graph.papers.library.checkup import check_base
from papers.test_building import CountingEmbeddings
from papers.world import invent_papers, write_lines
from support.qdrant_vectors import QdrantVectors


@pytest.fixture
def path(tmp_path):
    source = write_lines(tmp_path / "p.jsonl", invent_papers(12))
    file = tmp_path / "b.papers"
    PaperBase.build(file, source, embeddings=CountingEmbeddings()).close()
    return file


def find(path):
    return {one.name: one for one in check_base(str(path))}


def test_a_sound_base_tells_its_format_and_its_vectors(path):
    found = find(path)
    assert {one.status for one in found.values()} == {"ok"}
    assert "12 papers" in found["base of papers"].found
    assert "(format 1)" in found["base of papers"].found
    assert found["vectors of papers"].found == "12 by CountingEmbeddings:letters, 26 dimensions"


def test_a_base_without_vectors_is_no_failure(path, tmp_path):
    PaperBase.build(tmp_path / "w.papers", tmp_path / "p.jsonl").close()
    found = find(tmp_path / "w.papers")["vectors of papers"]
    assert (found.status, found.found) == ("skipped", "none: the base is searched by words")


def test_a_missing_base_one_of_another_format_and_damaged_vectors_fail(path, tmp_path):
    assert find(tmp_path / "no.papers")["base of papers"].status == "fail"
    vectors = path.with_name("b.papers.vectors")
    vectors.write_bytes(vectors.read_bytes()[:-4] + b"\1\2\3\4")
    assert "checksum differs" in find(path)["vectors of papers"].found
    vectors.unlink()
    assert "are missing" in find(path)["vectors of papers"].found
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    assert "has format 99" in find(path)["base of papers"].found


@pytest.mark.full
def test_papers_without_a_vector_and_files_not_read_to_their_end_are_warnings(path, tmp_path):
    whole = write_lines(tmp_path / "2.jsonl.gz", invent_papers(400, seed=1))
    whole.write_bytes(whole.read_bytes()[:-300])
    PaperBase.build(path, whole).close()
    found = find(path)
    assert [one.status for one in found.values()] == ["warn", "warn"]
    assert "not read to the end of 2.jsonl.gz" in found["base of papers"].found
    assert "papers have none" in found["vectors of papers"].found


@pytest.mark.full
def test_a_server_of_vectors_is_asked(path):
    with QdrantVectors() as server:
        embeddings = CountingEmbeddings()
        PaperBase.build(path, embeddings=embeddings, vectors_url=server.url).close()
        found = find(path)["server of vectors"]
        assert (found.status, server.url in found.found) == ("ok", True)
    assert find(path)["server of vectors"].status == "fail"
    assert find("http://127.0.0.1:9")["server of papers"].status == "fail"


def test_an_sqlite_without_fts5_is_a_warning(monkeypatch):
    assert [one.status for one in check_sqlite()] == ["ok"]

    class Bare(sqlite3.Connection):
        def execute(self, sql, *_):
            raise sqlite3.OperationalError("no such module: fts5")

    real = sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda name: real(name, factory=Bare))
    (found,) = check_sqlite()
    assert (found.status, "without FTS5" in found.found) == ("warn", True)
