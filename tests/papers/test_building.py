"""Building a base: what is broken costs itself alone, and nothing that was committed is lost."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from deepera_graph.errors import InputError, SettingsError, StoreError
from deepera_graph.papers import PaperBase, Scope
from deepera_graph.papers.library.building import import_files
from deepera_graph.papers.library.writing import Writer
from papers.world import invent_papers, write_lines

pytestmark = pytest.mark.full

HERE = Path(__file__).parents[2]


def everything(base):
    """Return what a base answers, as one value."""
    found = [(one.paper, one.score) for one in base.search("study sites", k=1000)]
    cited = [(one.id, base.references(one.id), base.citations(one.id)) for one, _ in found[:40]]
    return found, cited


def test_what_is_broken_is_counted_by_kind_and_the_rest_is_read(tmp_path):
    lines = [
        '{"id": "a", "title": "Harbour logs"}',
        "{broken",
        '{"id": "b"}',
        '{"title": "No id"}',
        '{"id": "a", "title": "Another text"}',
        '["a list"]',
        '{"id": "c", "title": "Tide \\ud800 tables", "year": 20250204, '
        '"references": ["a", "zz", "c"]}',
        '{"arxiv": "2101.00001v2", "title": "Known by arXiv", "year": "x"}',
    ]
    source = tmp_path / "p.jsonl"
    source.write_text("\n".join(lines))
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        assert base.report.problems == {
            "bad_line": 2,
            "duplicate_id": 1,
            "no_id": 1,
            "no_title": 1,
        }
        assert (base.report.read, base.report.added, base.report.papers) == (8, 3, 3)
        assert len(base.report.told) == 5
        assert base.get("a").title == "Harbour logs"
        paper = base.get("c")
        assert (paper.year, paper.date, paper.title) == (2025, "2025-02-04", "Tide ��� tables")
        assert base.get("arXiv:2101.00001").year is None
        references = base.references("c")
        assert ([one.id for one in references], references.outside) == (["a"], 1)


def test_a_truncated_gzip_gives_what_is_before_the_end(tmp_path):
    papers = invent_papers(400)
    whole = write_lines(tmp_path / "p.jsonl.gz", papers)
    data = whole.read_bytes()
    whole.write_bytes(data[: len(data) // 2])
    with PaperBase.build(tmp_path / "b.papers", whole) as base:
        assert base.report.problems["damaged_file"] == 1
        assert 50 < base.report.papers < 400
        assert base.describe()["unfinished"] == ["p.jsonl.gz"]
    whole.write_bytes(data)
    with PaperBase.build(tmp_path / "b.papers", whole) as base:
        assert (base.report.papers, base.report.problems) == (400, {})
        assert base.describe()["references_outside"] == 0


def test_a_build_that_was_killed_goes_on_to_the_same_base(tmp_path):
    source = write_lines(tmp_path / "p.jsonl", invent_papers(1500))
    code = (
        "import sys; from deepera_graph.papers import PaperBase; "
        "PaperBase.build(sys.argv[1], sys.argv[2], batch_size=20, "
        "on_progress=lambda *_: print(flush=True))"
    )
    for n_lines in (5, 20):
        running = subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "killed.papers", source],
            stdout=subprocess.PIPE,
            cwd=HERE,
        )
        for _ in range(n_lines):
            running.stdout.readline()
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        running.stdout.close()
    with PaperBase.open(tmp_path / "killed.papers") as base:
        assert 0 < len(base.search("study", k=2000)) < 1500
    with (
        PaperBase.build(tmp_path / "killed.papers", source) as resumed,
        PaperBase.build(tmp_path / "whole.papers", source) as whole,
    ):
        assert resumed.report.added == 1500
        assert everything(resumed) == everything(whole)


def test_a_file_is_read_again_after_a_change_amid_it_that_keeps_its_length(tmp_path):
    papers = [
        {"id": f"p{n}", "title": f"Study {n}", "year": 2019, "abstract": "logs " * 100}
        for n in range(900)
    ]
    source = write_lines(tmp_path / "p.jsonl", papers)
    PaperBase.build(tmp_path / "b.papers", source).close()
    papers[450]["year"] = 2020
    write_lines(source, papers)
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        assert (base.report.added, base.report.updated, base.report.unchanged) == (0, 1, 899)
        assert base.get("p450").year == 2020


def test_a_file_that_was_read_in_a_wrong_form_is_read_again_in_another(tmp_path):
    source = tmp_path / "a.bib"
    source.write_text("@article{a, title={Tea}, author={Lee, A.}, doi={10.5555/tea}}")
    with PaperBase.build(tmp_path / "b.papers", source, form="openalex") as base:
        assert base.get("10.5555/tea").authors == ()
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        assert base.get("10.5555/tea").authors == ("A. Lee",)


def test_a_file_that_was_read_is_not_read_again_and_more_papers_are_added(tmp_path):
    papers = invent_papers(300)
    first, more = papers[:200], papers[200:]
    base_file = tmp_path / "b.papers"
    PaperBase.build(base_file, write_lines(tmp_path / "1.jsonl", first)).close()
    with PaperBase.build(base_file, tmp_path / "1.jsonl") as base:
        assert (base.report.added, base.report.unchanged) == (0, 200)
    sources = [tmp_path / "1.jsonl", write_lines(tmp_path / "2.jsonl", more)]
    with (
        PaperBase.build(base_file, sources) as grown,
        PaperBase.build(tmp_path / "w.papers", write_lines(tmp_path / "w.jsonl", papers)) as whole,
    ):
        assert everything(grown) == everything(whole)


def test_a_later_file_brings_a_paper_up_to_date(tmp_path):
    old = {"id": "a", "title": "Harbour logs", "abstract": "Old words.", "venue": "ICRS"}
    new = {"id": "a", "title": "Harbour logs", "abstract": "Fresh words.", "year": 2020}
    files = [write_lines(tmp_path / f"{n}.jsonl", [one]) for n, one in enumerate((old, new))]
    with PaperBase.build(tmp_path / "b.papers", files) as base:
        assert (base.report.added, base.report.updated) == (1, 1)
        paper = base.get("a")
        assert (paper.abstract, paper.venue, paper.year) == ("Fresh words.", "ICRS", 2020)
        assert base.search("old").status == "empty"
        assert base.search("fresh").papers == (paper,)
        assert base.get("a", scope=Scope(year_to=2019)) is None


def test_one_paper_under_several_ids_is_one(tmp_path):
    papers = [
        {"id": "2101.00001", "title": "Tide tables by kernels", "year": 2021},
        {"id": "P1", "title": "Tide Tables by Kernels", "doi": "10.1/X", "arxiv": "2101.00001v3",
         "abstract": "On tides.", "year": 2022},
        {"id": "P2", "title": "A wrong DOI on something else", "doi": "10.1/x"},
        {"id": "P3", "title": "Cites it", "references": ["P1", "arXiv:2101.00001v1", "10.1/X"]},
        {"id": "P4", "title": "tide tables by kernels", "year": 2022},
    ]  # fmt: skip
    source = write_lines(tmp_path / "p.jsonl", papers)
    with PaperBase.build(tmp_path / "b.papers", source) as base:
        assert (base.report.added, base.report.merged) == (4, 1)
        paper = base.get("P1")
        assert paper == base.get("10.1/x") == base.get("2101.00001")
        assert (paper.id, paper.year, paper.abstract) == ("2101.00001", 2021, "On tides.")
        assert base.get("P2").id == "P2"
        assert [one.id for one in base.references("P3")] == ["2101.00001"]
        assert [one.id for one in base.citations("P1")] == ["P3"]
        assert base.get("2101.00001", scope=Scope(hide=("P1",))) is None
    with PaperBase.build(tmp_path / "t.papers", source, merge="titles") as base:
        assert base.get("P4").id == "2101.00001"
    with PaperBase.build(tmp_path / "n.papers", source, merge="none") as base:
        assert base.report.added == 5


def test_a_second_writer_is_refused_and_readers_go_on(tmp_path, world):
    source = write_lines(tmp_path / "p.jsonl", world)
    with PaperBase.build(tmp_path / "b.papers", source) as base, Writer(tmp_path / "b.papers"):
        with pytest.raises(StoreError, match="another process is writing"):
            PaperBase.build(tmp_path / "b.papers", source)
        assert base.search("glacier")


def test_readers_see_whole_states_while_papers_are_added(tmp_path):
    papers = invent_papers(600)
    base_file = tmp_path / "b.papers"
    PaperBase.build(base_file, write_lines(tmp_path / "1.jsonl", papers[:100])).close()
    more = write_lines(tmp_path / "2.jsonl", papers[100:])
    adding = threading.Thread(
        target=lambda: PaperBase.build(base_file, more, batch_size=50).close()
    )
    sizes = set()
    with PaperBase.open(base_file) as base:
        adding.start()
        while adding.is_alive():
            sizes.add(len(base.search("study", k=1000)))
        adding.join()
        sizes.add(len(base.search("study", k=1000)))
    assert max(sizes) == 600
    assert all(one % 50 == 0 for one in sizes)


def test_a_file_that_is_no_base_is_refused_and_stays(tmp_path):
    other = tmp_path / "notes.papers"
    other.write_text("These are my notes on tides, longer than a header of SQLite is, indeed.")
    for attempt in (PaperBase.open, lambda path: PaperBase.build(path, [], overwrite=True)):
        with pytest.raises(StoreError, match=r"notes\.papers.*is not a database"):
            attempt(other)
    assert other.read_text().startswith("These are my notes")
    database = tmp_path / "other.papers"
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE t (x)")
    db.close()
    with pytest.raises(StoreError, match="is a database of another program"):
        PaperBase.open(database)


def test_a_base_of_another_version_is_refused(tmp_path):
    PaperBase.build(tmp_path / "b.papers", []).close()
    db = sqlite3.connect(tmp_path / "b.papers")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(
        StoreError, match=r"has format 99, and this .* reads format 1: build it again"
    ):
        PaperBase.open(tmp_path / "b.papers")


def test_a_base_can_be_read_where_nothing_can_be_written(tmp_path, world):
    folder = tmp_path / "kept"
    folder.mkdir()
    PaperBase.build(folder / "b.papers", write_lines(tmp_path / "p.jsonl", world)).close()
    assert sorted(one.name for one in folder.iterdir()) == ["b.papers"]
    (folder / "b.papers").chmod(0o444)
    folder.chmod(0o555)
    try:
        with PaperBase.open(folder / "b.papers") as base:
            assert base.search("glacier")
        if os.geteuid():
            with pytest.raises(StoreError, match="cannot be written"):
                PaperBase.build(folder / "b.papers", tmp_path / "p.jsonl")
    finally:
        folder.chmod(0o755)


def test_a_missing_source_or_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"no\.jsonl"):
        PaperBase.build(tmp_path / "b.papers", tmp_path / "no.jsonl")
    with pytest.raises(StoreError, match="no such folder"):
        PaperBase.build(tmp_path / "none" / "b.papers", [])
    with pytest.raises(SettingsError, match=r"form must be one of .* got 's3'"):
        PaperBase.build(tmp_path / "c.papers", [], form="s3")


def test_a_closed_base_says_so(tmp_path):
    base = PaperBase.build(tmp_path / "b.papers", [])
    base.close()
    with pytest.raises(StoreError, match="is closed"):
        base.search("glacier")


def test_a_full_disk_loses_nothing_that_was_committed(tmp_path, world):
    source = write_lines(tmp_path / "p.jsonl", world)
    base_file = tmp_path / "b.papers"
    with PaperBase.build(base_file, source) as base, Writer(base_file) as writer:
        before = everything(base)
        n_pages = writer.db.execute("PRAGMA page_count").fetchone()[0]
        writer.db.execute(f"PRAGMA max_page_count = {n_pages}")
        more = write_lines(tmp_path / "2.jsonl", invent_papers(900, seed=4)[300:])
        with pytest.raises(StoreError, match="the disk is full"):
            import_files(writer, [more])
        assert everything(base) == before


class CountingEmbeddings:
    """Vectors of letters, and of nothing else."""

    model = "letters"

    def __init__(self, n=26, shift=0, bad=""):
        self.n, self.shift, self.bad, self.embedded = n, shift, bad, 0

    def embed_documents(self, texts):
        self.embedded += len(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        counts = [1.0 + text.lower().count(chr(97 + (i + self.shift) % 26)) for i in range(self.n)]
        return [float("nan")] * self.n if self.bad and self.bad in text else counts


@pytest.fixture
def dense(tmp_path, world):
    source = write_lines(tmp_path / "p.jsonl", world)
    with PaperBase.build(tmp_path / "d.papers", source, embeddings=CountingEmbeddings()) as base:
        yield base


def test_a_search_by_meaning_equals_brute_force(dense, world):
    embeddings = CountingEmbeddings()
    rows = np.array([embeddings.embed_query(dense.get(one["id"]).text) for one in world])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = np.array(embeddings.embed_query("zinc jewels"))
    cosines = np.round(rows @ query / np.linalg.norm(query), 5)
    scope = Scope(year_from=2010, undated="drop")
    shown = {one["id"]: score for one, score in zip(world, cosines, strict=True)
             if one["year"] and one["year"] >= 2010}  # fmt: skip
    hits = dense.search("zinc jewels", mode="dense", k=200, scope=scope)
    assert {one.paper.id for one in hits} == set(shown)
    assert [one.score for one in hits] == pytest.approx(
        sorted(shown.values(), reverse=True), abs=1e-4
    )
    assert hits[0].by == {"dense": 1}


def test_a_hybrid_search_joins_both_rankings_by_rank(dense):
    by_words = {one.paper.id: one.rank for one in dense.search("glacier", mode="sparse", k=100)}
    by_meaning = {one.paper.id: one.rank for one in dense.search("glacier", mode="dense", k=100)}
    score = {
        id: sum(1 / (60 + ranks[id]) for ranks in (by_words, by_meaning) if id in ranks)
        for id in {*by_words, *by_meaning}
    }
    hits = dense.search("glacier", k=len(score))
    assert hits.mode == "hybrid"
    assert [one.paper.id for one in hits] == sorted(score, key=lambda id: (-score[id], id))
    first = hits[0]
    assert first.by == {"sparse": by_words[first.paper.id], "dense": by_meaning[first.paper.id]}


def test_pages_of_a_hybrid_search_continue_to_the_last_paper(dense, world):
    whole = dense.search("glacier", k=1000)
    assert len({one.paper.id for one in whole}) == len(world)
    pages = [dense.search("glacier", k=13, offset=offset) for offset in range(0, 247, 13)]
    assert [one for page in pages for one in page] == list(whole)


def test_papers_that_are_added_later_get_vectors_and_others_keep_theirs(dense, tmp_path):
    more = write_lines(tmp_path / "2.jsonl", [{"id": "new", "title": "Fresh tide tables"}])
    embeddings = CountingEmbeddings()
    with PaperBase.build(tmp_path / "d.papers", more, embeddings=embeddings) as base:
        assert (base.report.embedded, embeddings.embedded) == (1, 1)
        assert base.search("tide tables", mode="dense")[0].paper.id == "new"


def test_vectors_that_an_older_version_wrote_are_read_and_grow(dense, tmp_path):
    path = tmp_path / "d.papers.vectors"
    rows = np.load(path)  # vectors are in NumPy's format
    header = {"papers": "vectors", "base": "b", "embeddings": "e", "dimensions": rows.shape[1]}
    path.write_bytes(json.dumps(header).encode().ljust(512) + rows.astype("<f4").tobytes())
    before = [one.paper.id for one in dense.search("glacier", mode="dense")]
    more = write_lines(tmp_path / "2.jsonl", [{"id": "new", "title": "Fresh tide tables"}])
    with PaperBase.build(tmp_path / "d.papers", more, embeddings=CountingEmbeddings()) as base:
        assert base.search("tide tables", mode="dense")[0].paper.id == "new"
        assert [one.paper.id for one in base.search("glacier", mode="dense")] == before
    assert path.stat().st_size == 512 + 4 * rows.shape[1] * (len(rows) + 1)


def test_embedding_that_was_stopped_goes_on(tmp_path):
    papers = invent_papers(600)
    source = write_lines(tmp_path / "p.jsonl", papers)
    broken = CountingEmbeddings(bad="study 400")
    with pytest.raises(InputError, match="the vector of the paper 'w0400' is not finite"):
        PaperBase.build(tmp_path / "b.papers", source, embeddings=broken)
    mended = CountingEmbeddings()
    with PaperBase.build(tmp_path / "b.papers", source, embeddings=mended) as base:
        assert 0 < mended.embedded < 600
        assert base.describe()["vectors"] == 600


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (CountingEmbeddings(n=20), "have 26 dimensions, those of .* now have 20"),
        (CountingEmbeddings(shift=9), "with other weights"),
        ("local", "made by the embeddings 'CountingEmbeddings:letters', not by 'local'"),
    ],
)
def test_vectors_of_other_embeddings_are_refused(dense, tmp_path, other, message):
    with PaperBase.open(tmp_path / "d.papers", embeddings=other) as base:
        with pytest.raises(StoreError, match=message):
            base.search("glacier", mode="dense")
        assert base.search("glacier", mode="sparse")


def test_a_base_without_its_vectors_or_with_foreign_ones_says_so(dense, tmp_path, world):
    kept = (tmp_path / "d.papers.vectors").read_bytes()

    def search():
        with PaperBase.open(tmp_path / "d.papers", embeddings=CountingEmbeddings()) as base:
            assert base.search("glacier", mode="sparse")
            return base.search("glacier")

    for data, message in (
        (None, "are missing: no such file"),
        (kept[:-40], "are cut off"),
        (kept[:-4] + b"\1\2\3\4", "checksum differs"),
        (b"x" * len(kept), "is not a file of vectors"),
    ):
        (tmp_path / "d.papers.vectors").unlink()
        if data is not None:
            (tmp_path / "d.papers.vectors").write_bytes(data)
        else:
            assert not (tmp_path / "d.papers.vectors").exists()
        with pytest.raises(StoreError, match=message):
            search()
        (tmp_path / "d.papers.vectors").write_bytes(kept)
    assert search()
    source = write_lines(tmp_path / "o.jsonl", world[::-1])
    PaperBase.build(tmp_path / "o.papers", source, embeddings=CountingEmbeddings()).close()
    (tmp_path / "d.papers.vectors").write_bytes((tmp_path / "o.papers.vectors").read_bytes())
    with pytest.raises(StoreError, match="or of another base"):
        search()


def test_a_base_without_vectors_says_how_to_get_them(base):
    with pytest.raises(SettingsError, match="has no vectors to search by meaning"):
        base.search("glacier", mode="dense")


def test_vectors_that_were_made_before_are_taken(tmp_path, world):
    source = write_lines(tmp_path / "p.jsonl", world)
    embeddings = CountingEmbeddings()
    with PaperBase.build(tmp_path / "a.papers", source, embeddings=embeddings) as base:
        texts = [base.get(one["id"]).text for one in world]
        expected = base.search("glacier", mode="dense", k=9)
    rows = np.array([embeddings.embed_query(text) for text in texts])
    small = np.round(127 * rows / rows.max(axis=1, keepdims=True)).astype(np.int8)
    np.save(tmp_path / "v.npy", small)
    taking = CountingEmbeddings()
    with PaperBase.build(
        tmp_path / "b.papers", source, embeddings=taking, vectors=tmp_path / "v.npy"
    ) as base:
        assert base.report.embedded == 240
        assert taking.embedded < 20
        found = base.search("glacier", mode="dense", k=9)
        assert len({*found.papers} & {*expected.papers}) >= 6
    np.save(tmp_path / "v.npy", small[::-1])
    with pytest.raises(InputError, match="or in another order: for the paper"):
        PaperBase.build(
            tmp_path / "c.papers", source, embeddings=taking, vectors=tmp_path / "v.npy"
        )
    np.save(tmp_path / "v.npy", small[:-1])
    with pytest.raises(InputError, match=r"has 239 vectors, and .* 240 records"):
        PaperBase.build(
            tmp_path / "e.papers", source, embeddings=taking, vectors=tmp_path / "v.npy"
        )
