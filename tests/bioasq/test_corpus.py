"""From PubMed's files to a corpus: what wins, what goes, and what a break costs."""

import gzip
import json
import signal
import sqlite3
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bioasq.conftest import SHARED
from deepera_graph.bioasq.pubmed.corpus import write_corpus
from deepera_graph.errors import InputError, SettingsError
from support.pubmed_xml import article, book, deletion, document, write

pytestmark = pytest.mark.full


def read(path):
    """The texts of a corpus by their ids."""
    raw = path.read_bytes()
    lines = (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines()
    return {one["id"]: one["text"] for one in map(json.loads, lines)}


def says(pmid, text, **more):
    return article(pmid, abstract=[("", text)], **more)


@pytest.fixture
def made(tmp_path):
    """Writes files, each a list of elements, and makes a corpus of them."""

    def make(*files, **how):
        paths = [write(tmp_path, n, *elements) for n, elements in enumerate(files, start=1)]
        report = write_corpus(paths, tmp_path / "corpus.jsonl", **how)
        return read(tmp_path / "corpus.jsonl"), report

    return make


def test_a_line_has_what_the_citation_says(tmp_path, made):
    made([article(7, abstract=[("", "Moss grew."), ("RESULTS", "It held.")])])
    assert json.loads((tmp_path / "corpus.jsonl").read_bytes()) == {
        "id": "7",
        "title": "Moss on walls.",
        "text": "Moss grew. RESULTS: It held.",
        "year": 2019,
        "journal": "Annals of invented botany",
        "mesh": ["Bryophyta"],
        "publication_types": ["Journal Article"],
        "language": "eng",
        "retracted": False,
        "parts": [
            {"label": "", "start": 0, "end": 10},
            {"label": "RESULTS", "start": 20, "end": 28},
        ],
        "pmid": "7",
    }


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ([[says(1, "old")], [says(1, "new")]], {"1": "new"}),
        ([[says(1, "old", version=2)], [says(1, "new", version=1)]], {"1": "new"}),
        ([[says(1, "new", version=2), says(1, "old", version=1)]], {"1": "new"}),
        ([[says(1, "old", version=1), says(1, "new", version=2)]], {"1": "new"}),
        ([[says(1, "old"), says(1, "new")]], {"1": "new"}),
        ([[says(1, "old")], [article(1, abstract=None)]], {}),
        ([[says(1, "old"), says(2, "two")], [deletion(1)]], {"2": "two"}),
        ([[says(1, "old")], [says(1, "new"), deletion(1)]], {}),
        ([[says(1, "old")], [deletion(1)], [says(1, "back")]], {"1": "back"}),
        ([[says(1, "old")], [deletion(1, 9)], [book(2)]], {}),
    ],
)
def test_later_files_and_higher_versions_win_and_deletions_delete(made, files, left):
    assert made(*files)[0] == left


def test_every_record_is_in_one_of_the_counts(made):
    retracted = "<PublicationType>Retracted Publication</PublicationType>"
    _, report = made(
        [says(1, "old"), says(2, "two", types=retracted), article(3, abstract=[("", " ")])],
        [book(4), says(5, "gone"), "<PubmedArticle><b></PubmedArticle>", article("x")],
        [says(1, "new"), deletion(5, 6)],
    )
    assert (report.kept, report.without_abstract, report.books) == (2, 1, 1)
    assert (report.deleted, report.replaced, report.retracted) == (1, 1, 1)
    assert report.unknown_deletions == 1
    assert report.broken == {"PMID is no number": 1, "ill-formed": 1}
    assert report.read == 6


def test_what_a_damaged_file_has_does_not_undo_a_deletion(tmp_path):
    files = [write(tmp_path, 1, says(1, "old"), says(2, "old")), write(tmp_path, 2, deletion(1))]
    files.append(tmp_path / "pubmed25n0003.xml")
    files[-1].write_bytes(document(says(1, "cut"), says(2, "new"))[:-15])
    report = write_corpus(files, tmp_path / "corpus.jsonl")
    assert read(tmp_path / "corpus.jsonl") == {"2": "new"}
    assert [one.file for one in report.bad_files] == ["pubmed25n0003.xml"]


_ELEMENT = st.one_of(
    st.tuples(st.just("record"), st.integers(1, 5), st.integers(1, 3)),
    st.tuples(st.just("blank"), st.integers(1, 5), st.integers(1, 3)),
)
_FILE = st.tuples(st.lists(_ELEMENT, max_size=6), st.sets(st.integers(1, 6), max_size=2))


def _merge(files):
    """What should be left, worked out in memory."""
    left = {}
    for number, (elements, gone) in enumerate(files):
        best = {}
        for place, (kind, pmid, version) in enumerate(elements):
            if version >= best.get(pmid, (0,))[0]:
                best[pmid] = (version, f"{number} {place}" if kind == "record" else "")
        left |= {pmid: text for pmid, (_, text) in best.items()}
        left = {pmid: text for pmid, text in left.items() if pmid not in gone}
    return {str(pmid): text for pmid, text in left.items() if text}


def _write_all(folder, files):
    paths = []
    for number, (elements, gone) in enumerate(files):
        xml = [
            says(pmid, f"{number} {place}" if kind == "record" else " ", version=version)
            for place, (kind, pmid, version) in enumerate(elements)
        ]
        paths.append(write(folder, number + 1, *xml, *([deletion(*gone)] if gone else [])))
    return paths


@given(st.lists(_FILE, min_size=1, max_size=4), st.integers(0, 4), st.randoms())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_any_files_in_any_steps_and_any_order_give_what_is_left(tmp_path, files, first, draw):
    for old in tmp_path.iterdir():
        old.unlink()
    paths = _write_all(tmp_path, files)
    shuffled = draw.sample(paths, len(paths))
    whole, steps = tmp_path / "whole.jsonl", tmp_path / "steps.jsonl"
    report = write_corpus(shuffled, whole)
    assert read(whole) == _merge(files)
    n_left_out = report.without_abstract + report.books + report.deleted + report.replaced
    assert report.kept + n_left_out == report.read == sum(len(one) for one, _ in files)
    if first < len(paths):
        write_corpus(paths[: first + 1], steps)
    again = write_corpus(shuffled, steps, resume=True)
    assert steps.read_bytes() == whole.read_bytes()
    assert (again.kept, again.read) == (report.kept, report.read)


_KILLED = """
import os, signal, sys
from deepera_graph.bioasq.pubmed.corpus import write_corpus

steps = []

def watch(step):
    steps.append(step)
    if len(steps) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

write_corpus([sys.argv[1]], sys.argv[2], on_progress=watch)
"""


def test_a_reading_that_was_killed_goes_on_and_ends_as_if_it_had_not_been(tmp_path):
    folder = tmp_path / "pubmed"
    folder.mkdir()
    for number in range(1, 5):
        pmids = range(100 * number, 100 * number + 60)
        write(folder, number, *(says(n, f"{n} is here") for n in pmids), deletion(99 + number))
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    write_corpus([folder], whole)
    for n_steps in (3, 2):  # within the second file, then at its end
        command = [sys.executable, "-c", _KILLED, str(folder), str(killed), str(n_steps)]
        done = subprocess.run(command, check=False, capture_output=True)
        assert done.returncode == -signal.SIGKILL
        assert not killed.exists()
    report = write_corpus([folder], killed)
    assert (report.files, report.files_before) == (4, 2)
    assert killed.read_bytes() == whole.read_bytes()


def test_update_files_are_added_without_reading_the_others_again(tmp_path, made):
    made([says(1, "one"), says(2, "two")])
    steps = []
    later = write(tmp_path, 2, says(1, "new"))
    paths = [tmp_path / "pubmed25n0001.xml.gz", later]
    out = tmp_path / "corpus.jsonl"
    report = write_corpus(paths, out, resume=True, on_progress=steps.append)
    assert read(out) == {"1": "new", "2": "two"}
    assert (report.files, report.files_before, report.read) == (2, 1, 3)
    assert {one.n_bytes_in_all for one in steps} == {later.stat().st_size}
    assert steps[-1].n_bytes == later.stat().st_size
    assert steps[-1].n_records == 1


def test_a_damaged_file_that_was_mended_is_read_again(tmp_path):
    files = [write(tmp_path, n, says(n, "here"), says(10 + n, "there")) for n in (1, 2, 3)]
    whole = files[1].read_bytes()
    files[1].write_bytes(whole[:-20])
    out = tmp_path / "corpus.jsonl"
    assert write_corpus(files, out).bad_files
    files[1].write_bytes(whole)
    report = write_corpus(files, out, resume=True)
    assert (report.bad_files, report.files_before, report.kept) == ([], 2, 6)
    assert report.read == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: write(folder, 1, says(1, "other")), "0001.xml.gz has changed since"),
        (lambda folder: write(folder, 0, says(1, "before")), "0001.xml.gz was read before a file"),
        (lambda folder: (folder / "pubmed25n0001.xml.gz").unlink(), "made of other files"),
    ],
)
def test_a_corpus_of_other_files_is_not_continued(tmp_path, made, change, message):
    folder = tmp_path / "p"
    folder.mkdir()
    write(folder, 1, says(1, "one"))
    out = tmp_path / "corpus.jsonl"
    write_corpus([folder], out)
    write(folder, 2, says(2, "two"))
    change(folder)
    with pytest.raises(SettingsError, match=message):
        write_corpus([folder], out, resume=True)
    assert read(out) == {"1": "one"}
    assert write_corpus([folder], out, overwrite=True).files >= 1


def test_a_corpus_is_not_replaced_unless_it_is_said(made):
    made([says(1, "one")])
    with pytest.raises(SettingsError, match=r"corpus\.jsonl' exists; give --overwrite"):
        made([says(1, "two")])
    assert made([says(1, "two")], overwrite=True)[0] == {"1": "two"}
    with pytest.raises(SettingsError, match="not both"):
        made([says(1, "two")], overwrite=True, resume=True)


def test_there_must_be_something_to_go_on_from(tmp_path, made):
    made([says(1, "one")])
    (tmp_path / "corpus.jsonl.sqlite").unlink()
    with pytest.raises(SettingsError, match="nothing to go on from"):
        made([says(1, "one")], resume=True)


def test_a_state_that_is_none_or_in_use_is_named(tmp_path, made):
    state = tmp_path / "corpus.jsonl.sqlite"
    state.write_bytes(b"no database at all, but long enough for a header" * 40)
    with pytest.raises(SettingsError, match="cannot be used: file is not a database"):
        made([says(1, "one")])
    state.unlink()
    held = sqlite3.connect(state, isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    with pytest.raises(SettingsError, match="another process holds it"):
        made([says(1, "one")])
    held.close()
    state.unlink()
    state.mkdir()
    with pytest.raises(SettingsError, match=r"sqlite' cannot be used: unable to open"):
        made([says(1, "one")])


def test_a_break_leaves_no_corpus_and_no_draft(tmp_path):
    path = write(tmp_path, 1, *(says(n, "here") for n in range(1, 50)))

    def stop(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus([path], tmp_path / "corpus.jsonl", on_progress=stop)
    left = {one.name for one in tmp_path.iterdir()}
    assert left == {path.name, "corpus.jsonl.sqlite"}


def test_a_corpus_can_be_compressed(tmp_path):
    path = write(tmp_path, 1, says(1, "one"))
    write_corpus([path], tmp_path / "corpus.jsonl.gz")
    assert read(tmp_path / "corpus.jsonl.gz") == {"1": "one"}


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    path = write(tmp_path, 1, says(1, "one"))
    with pytest.raises(SettingsError, match=r"none/corpus\.jsonl"):
        write_corpus([path], tmp_path / "none" / "corpus.jsonl")
    with pytest.raises(InputError, match="no such file"):
        write_corpus([tmp_path / "none.xml"], tmp_path / "corpus.jsonl")


def _truth(folder):
    lines = (folder / "truth.jsonl").read_text(encoding="utf-8").split("\n")
    return {one["pmid"]: one for one in map(json.loads, filter(None, lines))}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the generator of records is not here")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("broken", [[], ["--broken"]])
def test_three_thousand_generated_records_are_read_to_the_truth(tmp_path, seed, broken):
    make = [sys.executable, str(SHARED / "make_pubmed_xml.py"), str(tmp_path), "--files", "3"]
    more = ["--records", "1000", "--questions", "0", "--level", "1", "--seed", str(seed), *broken]
    subprocess.run([*make, *more], check=True, capture_output=True)
    report = write_corpus([tmp_path], tmp_path / "corpus.jsonl")
    truth = _truth(tmp_path)
    told = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    with (tmp_path / "corpus.jsonl").open(encoding="utf-8") as file:
        found = {one["id"]: one for one in map(json.loads, file)}
    kept = {pmid: one for pmid, one in truth.items() if one["status"] == "kept"}
    names = {"title": "title", "text": "abstract", "language": "language", "retracted": "retracted"}
    assert found.keys() == kept.keys()
    for pmid, one in kept.items():
        assert {ours: found[pmid][ours] for ours in names} == {
            ours: one[theirs] for ours, theirs in names.items()
        }
    counts = Counter(one["status"] for one in truth.values())
    assert (report.without_abstract, report.books) == (counts["no_abstract"], counts["book"])
    assert report.deleted == counts["deleted"]
    assert sum(report.broken.values()) == sum(told["broken_records"].values())
    assert len({one.file for one in report.bad_files}) == (2 if broken else 0)


def test_the_command_says_what_became_of_the_records(deepera_lab, tmp_path):
    folder = tmp_path / "pubmed"
    folder.mkdir()
    write(folder, 1, says(1, "one"), article(2, abstract=None), article("x"), signed=True)
    (folder / "pubmed25n0002.xml.gz").write_text("<html>no</html>")
    out, report = tmp_path / "corpus.jsonl", tmp_path / "report.json"
    result = deepera_lab("bioasq", "read", folder, "-o", out, "--report", report)
    assert result.exit_code == 1
    assert "1 record in " in result.stdout
    assert "1 without abstract" in " ".join(result.stdout.split())
    assert "pubmed25n0002.xml.gz: not PubMed: it is an HTML page" in result.stderr
    assert "pubmed25n0001.xml.gz, record 3: PMID is no number: got 'x'" in result.stderr
    told = json.loads(report.read_text(encoding="utf-8"))
    assert (told["kept"], told["broken"]) == (1, {"PMID is no number": 1})
    assert told["damaged_files"] == ["pubmed25n0002.xml.gz"]
    again = deepera_lab("bioasq", "read", folder, "-o", out)
    assert again.exit_code == 2
    assert "--resume" in again.stderr
    resumed = deepera_lab("bioasq", "read", folder, "-o", out, "--resume", "--json")
    assert json.loads(resumed.stdout) == {**told, "files_before": 2}


def test_a_report_that_cannot_be_written_is_named_before_the_reading(deepera_lab, tmp_path):
    path, out = write(tmp_path, 1, says(1, "one")), tmp_path / "corpus.jsonl"
    result = deepera_lab(
        "bioasq", "read", path, "-o", out, "--report", tmp_path / "none" / "r.json"
    )
    assert result.exit_code == 2
    assert "--report must be a file that can be written, got " in result.stderr
    assert not out.exists()


def test_a_break_of_reading_tells_how_to_go_on(deepera_lab, tmp_path, monkeypatch):
    path, out = write(tmp_path, 1, says(1, "one")), tmp_path / "corpus.jsonl"

    def stop(*args, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("deepera_graph.bioasq.pubmed.corpus.read_file", stop)
        broken.setattr(sys, "argv", ["deepera-lab", "bioasq", "read", "xml/", "-o", "corpus.jsonl"])
        result = deepera_lab("bioasq", "read", path, "-o", out)
    assert result.exit_code == 130
    assert "files that were read whole are not read again" in result.stderr
    assert "go on with: deepera-lab bioasq read xml/ -o corpus.jsonl\n" in result.stderr
    assert deepera_lab("bioasq", "read", path, "-o", out).exit_code == 0


def test_the_help_of_reading_teaches(deepera_lab):
    result = deepera_lab("bioasq", "read", "--help")
    assert result.exit_code == 0
    assert "deepera-lab bioasq read" in result.stdout
    assert "--resume" in result.stdout
