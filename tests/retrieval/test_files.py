"""Which files a source names, and what each of them is."""

import gzip
import io
from zipfile import ZipFile

import pytest

from deepera_graph.errors import InputError
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.text.records import begins_table
from support.pdfs import write_pdf

PDF = write_pdf(["Kelp grew."])
BIBTEX = """% exported
@string{sea = {Journal of the } # "sea"}
@comment{nothing}
@article{lee2019,
  title = {Kelp forests and {O}tters},
  author = {Lee, Kim and Ann Roy},
  journal = sea, year = 2019, doi = {10.1000/kelp},
  abstract = {Kelp grew by 40\\% in {\\"O}resund.}
}
@book{roy2001, title = {Urchins}, year = {2001}}
@misc{broken, title = {Never closed
@article{moon, title = "A \\emph{moon}", date = {2020-05}, abstract = "It rose.",
  archiveprefix = {arXiv}, eprint = {2005.00001}}
"""
CSL = """[
 {"id": "lee2019", "type": "article-journal", "title": "Kelp", "DOI": "10.1000/kelp", "page": "1-9",
  "author": [{"family": "Lee", "given": "Kim"}, {"literal": "The kelp group"}],
  "container-title": "Sea", "issued": {"date-parts": [[2019, 8]]},
  "abstract": "<jats:p>Kelp grew by <jats:italic>40</jats:italic> %.</jats:p>"},
 {"id": "roy2001", "type": "book", "title": ["Urchins"], "issued": {"raw": "2001"}}
]"""


def ids(source, **options):
    return [one.id for one in read_passages(source, **options)]


def pack(members):
    out = io.BytesIO()
    with ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def test_a_folder_an_archive_and_a_pattern_give_the_same_passages(write):
    files = {
        "f/a/b.pdf": PDF,
        "f/a.md": "Kelp.",
        "f/c.jsonl.gz": gzip.compress(b'{"id": "x", "text": "Kelp."}'),
        "f/d.png": "x",
        "f/.hidden.md": "Kelp.",
        "f/~$c.docx": "x",
    }
    for name, content in files.items():
        write(name, content)
    write("g.zip", pack({**files, "__MACOSX/f/a.md": "x"}))
    skipped = []
    assert ids("f") == ids("f/**", on_skip=list) == ["f/a/b.pdf", "f/a.md", "x"]
    assert ids("g.zip", on_skip=skipped.append) == ["g.zip/f/a/b.pdf", "g.zip/f/a.md", "x"]
    assert [str(one) for one in skipped] == ["g.zip/f/d.png: cannot read this kind of file"]


def test_a_folder_has_more_archives_than_files_may_be_open(write):
    resource = pytest.importorskip("resource")
    names = [f"f/{n:03}.zip" for n in range(90)]
    for name in names:
        write(name, pack({"c.md": "Kelp."}))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
    skipped = []
    try:
        found = ids("f", on_skip=skipped.append)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert (found, skipped) == ([f"{name}/c.md" for name in names], [])


def test_archives_in_a_folder_are_looked_into_and_a_broken_one_is_named(write):
    write("f/a.md", "Kelp.")
    write("f/b.zip", pack({"c.md": "Kelp.", "d.zip": pack({"e.md": "Kelp."}), "f.png": "x"}))
    write("f/g.zip", "no archive")
    for source in ("f", "f/*"):
        skipped = []
        assert ids(source, on_skip=skipped.append) == ["f/a.md", "f/b.zip/c.md"]
        assert [(one.place, one.other_kind) for one in skipped] == [
            ("f/b.zip/d.zip", ".zip"), ("f/b.zip/f.png", ".png"), ("f/g.zip", ""),
        ]  # fmt: skip
        assert "File is not a zip file" in skipped[-1].reason


def test_several_sources_are_read_and_a_file_of_two_once(write):
    for name in ("f/a.txt", "f/b.txt", "c.txt"):
        write(name, f"Kelp in {name}.")
    assert ids(["c.txt", "f/b*", "f"]) == ["c.txt", "f/b.txt", "f/a.txt"]


def test_forms_are_told_once_a_file_that_has_a_passage(write):
    for name, content in {"f/a.pdf": PDF, "f/b.pdf": PDF, "f/c.txt": "", "f/d.txt": PDF}.items():
        write(name, content)
    forms = []
    assert len(ids("f", on_file=forms.append, on_skip=list)) == 3
    assert forms == [".pdf"] * 3


def test_links_are_followed_into_no_folder_twice_and_one_to_nowhere_is_named(write, tmp_path):
    write("elsewhere/a.txt", "Kelp.")
    write("f/b.txt", "Otters.")
    (tmp_path / "f/loop").symlink_to(tmp_path / "f")
    (tmp_path / "f/far").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "f/lost.txt").symlink_to(tmp_path / "nowhere.txt")
    skipped = []
    assert ids("f", on_skip=skipped.append) == ["f/b.txt", "f/far/a.txt"]
    assert [str(one) for one in skipped] == ["f/lost.txt: the link leads nowhere"]


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.txt", PDF, "Kelp grew."),
        ("paper", PDF, "Kelp grew."),
        ("old.doc", "<html><body>Kelp grew.", ""),
        ("a.txt", "<!doctype html><title>T</title><p>Kelp grew.", "Kelp grew."),
        ("a.md", "<article><body><p>Kelp grew.</p></body></article>", "Kelp grew."),
        ("a.txt", "PMID- 1\nAB  - Kelp grew.\n", "Kelp grew."),
        ("a.txt", "TY  - JOUR\nAB  - Kelp grew.\nER  - \n", "Kelp grew."),
        ("a.txt", 'title,abstract,doi\n"Kelp, red",Kelp grew.,10.1000/kelp\n', "Kelp grew."),
        ("a.dat", "Title\tAbstract\nKelp\tKelp grew.\n", "Kelp grew."),
        ("a.txt", "\ufeffTitle;Abstract\nKelp;Kelp grew.\n".encode("utf-16-le"), "Kelp grew."),
        ("a.csv", PDF, "Kelp grew."),
        ("a.pdf", b"junk\n" + PDF, "Kelp grew."),
        ("a.jsonl", '{"text": "It begins with %PDF-1.4."}', "It begins with %PDF-1.4."),
        ("a.html", "<article class=x><p>Kelp grew.", "Kelp grew."),
    ],
)
def test_a_file_is_what_its_content_says(write, name, content, text):
    write(name, content)
    if text:
        assert [one.page_content for one in read_passages(name)] == [text]
    else:
        with pytest.raises(InputError, match="cannot read this kind of file"):
            read_passages(name)


@pytest.mark.parametrize("length", [11, 3000, 6000])
def test_a_table_under_the_name_of_a_text_is_known_however_long_its_first_row_is(write, length):
    row = "Kelp grew. " * (length // 11)
    name = write("a.txt", f'Abstract,Title\n"{row}",Kelp\nOtters ate.,Otters\n')
    found = list(read_passages(name, max_words=None))
    assert [one.metadata["title"] for one in found] == ["Kelp", "Otters"]


@pytest.mark.parametrize(
    "text",
    [
        "Title, abstract and body of the kelp, as it grew.\nIt grew, in fact, and grew.",
        "Title, abstract\n\nKelp grew, as did otters, in all years.",
        "Kelp, otters, urchins\nred, brown, black",
        "Abstract\nKelp grew.",
        "Title, Abstract",
        "",
        "Year, journal, authors\n2001, Sea, Lee",
    ],
)
def test_prose_is_no_table(text):
    assert not begins_table(text, whole=True)


def test_a_page_of_html_under_the_name_of_a_pdf_is_refused(write):
    name = write("a.pdf", b"\n<!DOCTYPE html>\n<html><body>Please sign in.")
    with pytest.raises(InputError, match=r"^a\.pdf: a page of HTML and no PDF, maybe one that"):
        ids(name)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "Café."),
        ("a.md", "Café."),
        ("a.csv", "id,text\n1,Café."),
        ("a.jsonl", '{"text": "Café."}'),
        ("a.bib", "@article{x, abstract = {Café.}}"),
    ],
)
def test_a_text_that_marks_its_encoding_is_read(write, name, content, encoding):
    [document] = read_passages(write(name, content.encode(encoding)))
    assert document.page_content == "Café."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.zip", b"nope", r"a\.zip cannot be read: File is not a zip file"),
        ("a.zip", pack({"x.png": b""}), r"the archive 'a\.zip' holds no .*skipped 1 file"),
        ("a.zip", pack({"x.txt": b"Kelp" * 99}).replace(b"KelpKelp", b"Kelp_elp"), "Bad CRC-32"),
        ("a.txt", "Café.".encode("utf-16")[:-1], r"a\.txt: not UTF-16: truncated data in line 1"),
        (
            "a.bib",
            b"@article{x, abstract = {Caf\xe9}}",
            r"a\.bib:1: not UTF-8; save the file as UTF-8",
        ),
        ("a.bib", b"Nothing.", r"a\.bib: holds no records"),
        ("b*.txt", "", r"no such file: 'a\.pdf'"),
    ],
)
def test_what_cannot_be_read_is_named(write, name, content, message):
    write(name, content)
    with pytest.raises(InputError, match=message):
        ids("a.pdf" if "*" in name else name)


def test_a_pattern_that_nothing_matches_is_named(write):
    write("a.txt", "Kelp.")
    with pytest.raises(InputError, match=r"no file matches 'b\*\.txt'"):
        ids("b*.txt")


def test_references_in_bibtex_are_read_and_one_without_an_abstract_is_no_failure(write):
    skipped = []
    one, other = read_passages(write("a.bib", BIBTEX), on_skip=skipped.append)
    assert (one.id, one.page_content) == ("10.1000/kelp", "Kelp grew by 40% in Öresund.")
    assert one.metadata == {
        "source": "a.bib", "key": "lee2019", "title": "Kelp forests and Otters", "year": 2019,
        "authors": "Lee, Kim; Ann Roy", "journal": "Journal of the sea", "doi": "10.1000/kelp",
        "type": "article",
    }  # fmt: skip
    assert (other.metadata["title"], other.metadata["year"]) == ("A moon", 2020)
    assert other.metadata["arxiv"] == "2005.00001"
    assert [(str(one), one.without_text) for one in skipped] == [
        ("a.bib:10: has no abstract", True),
        ("a.bib:11: the entry is not closed", False),
    ]


def test_references_in_csl_are_read(write):
    skipped = []
    [one] = read_passages(write("a.json", CSL), on_skip=skipped.append)
    assert (one.id, one.page_content) == ("10.1000/kelp", "Kelp grew by 40 %.")
    assert one.metadata == {
        "source": "a.json", "key": "lee2019", "title": "Kelp", "year": 2019, "journal": "Sea",
        "authors": "Lee, Kim; The kelp group", "doi": "10.1000/kelp", "pages": "1-9",
        "type": "article-journal",
    }  # fmt: skip
    assert [(str(one), one.without_text) for one in skipped] == [
        ("a.json:2: has no abstract", True)
    ]


@pytest.mark.full
def test_a_long_library_in_bibtex_takes_time_linear_in_its_length(write):
    entries = "".join(f"@article{{k{n}, abstract = {{Kelp grew in {n}.}}}}\n" for n in range(3000))
    assert len(ids(write("a.bib", entries))) == 3000


@pytest.mark.parametrize("source", ["", ["a.txt", ""]])
def test_an_empty_name_is_an_error_and_not_the_current_folder(write, source):
    write("a.txt", "Kelp grew.")
    with pytest.raises(InputError, match="a source must be a file, a folder or a pattern, got ''"):
        read_passages(source)
