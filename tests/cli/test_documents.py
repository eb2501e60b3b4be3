"""`deepera index` and `deepera ask` on a folder of documents: ten PDFs and what else there is."""

import csv
import io
import json

import pypdf
import pytest

from deepera_graph import RerankResult, export_result
from support.pdfs import write_pdf

QUESTION = "Does a warm foot bath shorten sleep onset latency in older adults?"
FIRST = [
    "We asked whether warm feet help older adults to fall asleep in nursing homes.",
    "Forty residents took part in the trial, and none of them left it early.",
    "Half of them had a warm foot bath of twenty minutes before they went to bed.",
]
SECOND = [
    "A warm foot bath shortened sleep onset latency in older adults by 12 minutes (p < 0.001).",
    "No resident was harmed by it.",
]
HEAD = "Lee and Roy: warm feet"
FILLER = [
    f"On evening {number} the staff noted the temperature of the room." for number in range(12)
]
LEFT = [f"the left column goes on in its line {n}" for n in range(9)]
RIGHT = [f"and the right one follows with line {n}" for n in range(9)]
CITED = ["References", "1. Roy A. Warm foot bath and sleep onset latency in older adults. 2001."]


def encrypt(content):
    writer, out = pypdf.PdfWriter(clone_from=io.BytesIO(content)), io.BytesIO()
    writer.encrypt("secret", algorithm="AES-256")
    writer.write(out)
    return out.getvalue()


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    trial = write_pdf(FIRST, SECOND, info={"Title": "Warm feet in nursing homes"})
    files = {
        "broken.pdf": trial[: len(trial) // 2],
        "columns.pdf": write_pdf([], columns={0: [LEFT, RIGHT]}),
        "across.pdf": write_pdf([], columns={0: [LEFT, RIGHT]}, across=True),
        "empty.pdf": b"",
        "heads.pdf": write_pdf(*([HEAD, *FILLER[n : n + 4], str(n)] for n in (0, 4, 8))),
        "hyphens.pdf": write_pdf(["The temper-", "ature was noted.", *FILLER[:3], *CITED]),
        "protected.pdf": encrypt(trial),
        "scanned.pdf": write_pdf(None),
        "table.pdf": write_pdf(
            ["Rooms."], columns={0: [["A", "B"], ["20.5", "21.5"]]}, across=True
        ),
        "trial.pdf": trial,
        "notes.md": "# Notes\n\nThe staff noted the temperature.\n",
        "plot.png": b"x",
    }
    for name, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def indexed(deepera, library, tmp_path):
    place = ("--library", "papers", "--path", tmp_path / "store")
    return place, deepera("index", library, *place, "--json")


@pytest.mark.full
def test_ten_pdfs_are_indexed_or_named_with_the_reason(indexed, library):
    _, result = indexed
    told = json.loads(result.stdout)
    assert result.exit_code == 1
    assert told["files"] == {".pdf": 6, ".md": 1}
    reasons = {
        one["place"].removeprefix(f"{library.as_posix()}/"): one["reason"]
        for one in told["skipped"]
    }
    assert {name: reason[:24] for name, reason in reasons.items()} == {
        "plot.png": "cannot read this kind of",
        "broken.pdf": "broken, or not a PDF fil",
        "empty.pdf": "the file is empty",
        "protected.pdf": "protected by a password;",
        "scanned.pdf": "has no text on its only ",
    }


@pytest.mark.full
def test_a_quote_names_its_page_from_the_file_to_every_form_of_the_result(indexed, deepera):
    place, _ = indexed
    ask = ("ask", QUESTION, *place, "--backend", "local")
    plain = json.loads(deepera(*ask, "--json").stdout)
    best = plain["ranking"][0]
    assert best["quote"] == SECOND[0]
    assert best["quote_page"] == best["citation"]["page"] == "2"
    assert (best["metadata"]["page"], best["metadata"]["last_page"]) == (1, 2)
    assert best["citation"]["text"].endswith("trial.pdf, p. 2")
    result = RerankResult.from_dict(plain)
    [row] = csv.DictReader(export_result(result, "csv").splitlines())
    assert row["page"] == "2"
    assert all("p. 2" in export_result(result, form) for form in ("html", "markdown", "bibtex"))
    [document] = result.to_documents()
    assert document.metadata["deepera"]["citation"].endswith("p. 2")
    assert "p. 2" in " ".join(deepera(*ask).stdout.split())


def test_several_sources_are_counted_by_form(deepera, library, tmp_path):
    result = deepera(
        "index", library / "trial.pdf", library / "notes.md", f"{library}/h*.pdf",
        "--library", "some", "--path", tmp_path / "store", "--pdf-reader", "pdfium",
    )  # fmt: skip
    assert result.exit_code == 0
    assert result.stdout.endswith(", of 2 papers, from 3 .pdf and 1 .md\n")
