"""A manuscript over HTTP: as text and as files, its works, its events, what is wrong with it."""

import base64
import json
import re
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker, ManuscriptCheck, WorkLibrary
from deepera_graph.evidence.check.report import CheckReport, export_check
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.serve.backing.stores import Collections
from deepera_graph.serve.config import RequestLimits, ServeConfig
from support.literature import TRIAL
from support.serving import running

pytestmark = pytest.mark.full

WAX = "Wax coating kept apples firm after 90 days in storage."
TEXT = f"{WAX[:-1]} [1].\n\n# References\n\n1. Lund A. Wax on apples. 2019. doi:10.1000/wax\n"
WORKS = [{"id": "wax", "text": WAX, "title": "Wax on apples", "metadata": {"doi": "10.1000/wax"}}]
BIB = "@article{lund2019, title={Wax on apples}, author={Lund, A}, year={2019}, doi={10.1000/wax}}"


def as_file(name, content):
    data = content if isinstance(content, bytes) else content.encode()
    return {"name": name, "content": base64.b64encode(data).decode()}


@pytest.fixture(scope="module")
def site(tmp_path_factory, world):
    """A server with a library, and a service that may be asked."""
    from functools import partial

    from deepera_graph.cli.opening.sources import open_literature
    from deepera_graph.cli.shared.places import LiteratureOptions

    folder = tmp_path_factory.mktemp("check")
    with open_store("wax", path=folder) as store:
        metadata = {"title": "Wax on apples", "doi": "10.1000/wax"}
        store.add([Document(id="wax", page_content=WAX, metadata=metadata)])
    config = ServeConfig(
        collections=Collections(path=folder),
        literature=partial(open_literature, LiteratureOptions(sources="pubmed"), "off"),
        limits=RequestLimits(documents=3),
    )
    with running(config) as client:
        yield client


def check(site, **given):
    return site.post("/v1/check", json={"manuscript": TEXT, **given})


@pytest.mark.parametrize("place", [{"passages": WORKS}, {"library": "wax"}])
def test_a_text_is_checked_as_in_process(site, place):
    told = check(site, **place)
    assert told.status_code == 200
    works = WorkLibrary([Document(id="wax", page_content=WAX, metadata=WORKS[0]["metadata"])])
    here = ManuscriptCheck(EvidenceReranker("local"), library=works).check_text(TEXT)
    plain = told.json()
    assert plain["counts"] == here.counts == {"supported": 1}
    assert plain["pairs"][0]["quote"] == here.pairs[0].quote
    assert (plain["judge"], plain["manuscript"]["path"]) == ("local", "manuscript.md")
    assert CheckReport.from_dict(plain).counts == here.counts


def test_a_file_and_its_references_are_checked(site):
    tex = "\\begin{document}" + WAX[:-1] + " \\cite{lund2019}.\\bibliography{refs}\\end{document}"
    given = {"manuscript": as_file("My draft.tex", tex), "passages": WORKS}
    alone = check(site, **given)
    assert (alone.status_code, "names refs.bib: give it as references" in alone.text) == (422, True)
    told = check(site, **given, references=as_file("refs.bib", BIB)).json()
    assert (told["counts"], told["manuscript"]["path"]) == ({"supported": 1}, "My draft.tex")


def test_no_file_of_the_server_is_read_for_a_manuscript(site, tmp_path):
    secret = tmp_path / "secret.bib"
    secret.write_text(BIB)
    for text in (f"---\nbibliography: {secret}\n---\n\n{WAX[:-1]} [@lund2019].\n",
                 f"---\nbibliography: [../../{secret.name}]\n---\n\nA [@lund2019].\n"):  # fmt: skip
        told = check(site, manuscript=text)
        assert (told.status_code, "give it as references" in told.text) == (422, True)


def test_a_service_is_asked_only_if_it_is_named(site, world):
    text = (
        f"Green tea lowered fasting glucose [1].\n\n# References\n\n1. Lee A. {TRIAL}. Tea. 2019.\n"
    )
    world.sent.clear()
    assert check(site, manuscript=text).json()["counts"] == {"unavailable": 1}
    assert world.sent == []
    assert check(site, manuscript=text, source="pubmed").json()["counts"] == {"supported": 1}
    assert world.sent
    assert check(site, manuscript=text, source="arxiv").status_code == 404


def test_verdicts_come_event_by_event(site):
    headers = {"Accept": "text/event-stream"}
    told = site.post("/v1/check", json={"manuscript": TEXT, "library": "wax"}, headers=headers)
    events = re.findall(r"^event: (\w+)\ndata: (.*)$", told.text, re.M)
    assert [name for name, _ in events] == ["read", "pair", "result"]
    assert json.loads(events[0][1]) == {"n_pairs": 1}
    assert json.loads(events[1][1])["verdict"] == "supported"
    assert json.loads(events[2][1])["counts"] == {"supported": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"manuscript": "Nothing is cited."}, "file; give it as references"),
        ({"manuscript": "A.\n\n# References\n\n1. Lund A. Wax on apples."}, "nothing cites"),
        ({"manuscript": as_file("x.exe", "a")}, "a file must be one of .docx"),
        ({"manuscript": as_file("x.docx", "a")}, "x.docx"),
        ({"references": {"name": "x.bib", "content": "*"}}, "references.content must be base64"),
        ({"passages": WORKS, "library": "wax"}, "give passages or library"),
        ({"passages": WORKS * 4}, "a request may have 3 passages, got 4"),
        ({"manuscript": TEXT.replace("[1]", "[1, 2, 3, 4]")}, "may have 3 pairs"),
        ({"references": as_file("refs.pdf", "a")}, "a file must be one of .bib"),
        ({"manuscrpt": "x"}, "did you mean 'manuscript'?"),
        ({"manuscript": {"name": "x.md"}}, "; manuscript.content is missing"),
        ({"references": {**as_file("x.bib", "a"), "text": ""}}, "unknown field 'references.text'"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_manuscript_is_told(site, given, message):
    told = check(site, **given)
    assert told.status_code == 422
    assert message in told.json()["error"]["message"]
    assert "/tmp" not in told.text
    assert "--bib" not in told.text
    assert "GivenFile" not in told.text
    assert "references.text'; it takes" not in told.text


def test_references_in_a_file_of_a_long_name_are_read(site):
    given = as_file(f"{chr(0x20000) * 80}.bib", BIB)
    assert check(site, manuscript=f"{WAX[:-1]} [@lund2019].", references=given).status_code == 200


@pytest.mark.parametrize(("field", "name"), [("manuscript", "a.docx"), ("references", "a.bib")])
def test_no_file_of_a_check_unpacks_to_far_more_than_a_body_may_have(site, field, name):
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", " " * (41 * 2**20))
    told = check(site, **{field: as_file(name, packed.getvalue())})
    assert (told.status_code, told.json()["error"]["kind"]) == (413, "too_large")


def test_a_library_that_is_not_there_is_missing(site):
    assert check(site, library="wacks").status_code == 404


def test_a_check_is_exported_in_every_form(site):
    plain = check(site, library="wax").json()
    for form in ("text", "markdown", "html", "csv", "json"):
        told = site.post("/v1/export", json={"result": plain, "format": form})
        assert told.text == export_check(CheckReport.from_dict(plain), form)
    for asked, said in (
        ({"format": "bibtex"}, "format must be one of 'text'"),
        ({"format": "csv", "threshold": 0.0}, "threshold goes with a result of /v1/evidence"),
    ):
        told = site.post("/v1/export", json={"result": plain, **asked})
        assert (told.status_code, said in told.json()["error"]["message"]) == (422, True)
    bad = site.post("/v1/export", json={"result": {**plain, "format": 9}, "format": "csv"})
    assert (bad.status_code, "none of /v1/check" in bad.text) == (422, True)
