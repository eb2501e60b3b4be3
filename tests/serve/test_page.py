"""The page without a browser: its files and their headers, passages of files, exports."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

import httpx
import pytest

from deepera_graph import EvidenceReranker, export_table
from deepera_graph.evidence.table.table import EvidenceTable
from deepera_graph.export import describe_result, export_result
from deepera_graph.result import RerankResult
from deepera_graph.serve.app import create_app
from deepera_graph.serve.config import RequestLimits, ServeConfig
from deepera_graph.serve.page import PAGES, draw_line
from support.serving import PASSAGES, QUESTION

FOLDER = files("deepera_graph.serve.page")
NAMES = sorted(one.name for one in FOLDER.iterdir() if not one.name.endswith((".py", "__")))
KEY = "a-key-of-the-test"
LOADED = re.compile(
    r"""(?:src|href)=["']([^"']+)|(?:from|import|fetch|url)\s*\(?\s*["']([^"']+)|url\(([^)"']+)"""
)


@pytest.fixture
def page():
    """A client of an application that asks for a key; its judge is not loaded."""
    config = ServeConfig(backend="rules", keys=(KEY,), limits=RequestLimits(documents=3))
    transport = httpx.ASGITransport(create_app(config))
    return httpx.AsyncClient(transport=transport, base_url="http://server.test")


def path_of(name):
    return PAGES.get(name, f"/page/{name}")


async def post(page, path, content, **more):
    return await page.post(
        path, content=content, headers={"Authorization": f"Bearer {KEY}"}, **more
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("check.html", "text/html; charset=utf-8"),
        ("page.css", "text/css; charset=utf-8"),
        ("page.js", "text/javascript; charset=utf-8"),
        ("example.json", "application/json"),
        ("icon.svg", "image/svg+xml"),
    ],
)
async def test_files_of_the_page_are_served_without_a_key_and_in_their_type(page, name, type):
    told = await page.get(path_of(name))
    assert (told.status_code, told.headers["content-type"]) == (200, type)
    assert told.content == FOLDER.joinpath(name).read_bytes()


async def test_a_browser_may_load_nothing_but_from_this_server(page):
    for name in NAMES:
        headers = (await page.get(path_of(name))).headers
        policy = headers["content-security-policy"]
        assert policy.startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            "img-src 'self' data:"
        )
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


async def test_a_file_that_a_browser_has_is_not_sent_again(page):
    first = await page.get("/page/page.js")
    again = await page.get("/page/page.js", headers={"If-None-Match": first.headers["etag"]})
    other = await page.get("/page/page.js", headers={"If-None-Match": '"x"'})
    assert (again.status_code, again.content) == (304, b"")
    assert (other.status_code, other.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize("name", [one for one in NAMES if not one.endswith(".json")])
def test_no_file_loads_anything_from_another_host(name):
    text = FOLDER.joinpath(name).read_text(encoding="utf-8")
    for found in LOADED.findall(text):
        assert not re.match(r"(?:\w+:)?//", "".join(found)), found


@pytest.mark.parametrize("name", [one for one in NAMES if one.endswith((".html", ".js"))])
def test_no_file_has_code_that_the_policy_forbids_or_reads_text_as_html(name):
    text = FOLDER.joinpath(name).read_text(encoding="utf-8")
    bad = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|<style"
    assert not re.search(bad, text)
    if name.endswith(".html"):
        assert not re.search(r"\s(?:on\w+|style)=|<script(?![^>]* src=)", text)


@pytest.mark.parametrize("name", PAGES)
def test_every_element_that_the_scripts_name_is_in_the_page(name):
    html = FOLDER.joinpath(name).read_text(encoding="utf-8")
    there = set(re.findall(r'\bid="([^"]+)"', html))
    own = {"index.html": {"page.js", "column.js", "cards.js"}, "check.html": {"check.js"}}[name]
    shared = {"said.js", "dom.js", "api.js"}
    code = "".join(FOLDER.joinpath(one).read_text("utf-8") for one in own | shared)
    there |= set(re.findall(r'\bid: "([^"]+)"', code))
    named = set(re.findall(r'byId\("([^"]+)"\)', code))
    assert named
    assert named <= there


def test_the_example_can_be_judged_and_says_that_it_is_invented():
    example = json.loads(FOLDER.joinpath("example.json").read_text(encoding="utf-8"))
    result = EvidenceReranker("rules").rerank(example["question"], example["passages"])
    assert (len(result.passages), result.failed) == (8, ())
    assert "Invented" in example["note"]


async def test_a_file_becomes_passages_and_says_what_was_left_out(page):
    table = 'id,Title,abstract,Year\n1,Tea,"Tea kept 30 adults awake.",2019\n2,None,,2020\n'
    told = await post(page, "/v1/passages", table.encode(), params={"name": "C:\\me\\my tea.csv"})
    metadata = {"source": "my tea.csv", "Year": 2019, "title": "Tea", "year": 2019}
    (passage,) = told.json()["passages"]
    assert (passage["id"], passage["text"]) == ("1", "Tea kept 30 adults awake.")
    assert passage["metadata"].items() <= metadata.items()
    (skipped,) = told.json()["skipped"]
    assert skipped.startswith("my tea.csv:3: has no text")


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("x.exe", "a", "'x.exe'"),
        ("x.csv.gz", "a", "'x.csv.gz'"),
        ("../../etc/x.jsonl", '{"text": ', "x.jsonl"),
        ("x.json", "[]", "x.json"),
        ("x.md", "\n%PDF-1.7", "x.md is a document"),
        ("x.csv", "PK\x03\x04", "x.csv is a document"),
        ("x.jsonl", "\n".join('{"text": "a"}' for _ in range(4)), "more than the 3 passages"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_by_its_name_alone(page, name, content, word):
    told = await post(page, "/v1/passages", content.encode(), params={"name": name})
    message = told.json()["error"]["message"]
    assert told.status_code == 422
    assert word in message
    assert "deepera-" not in message


async def test_a_file_whose_name_is_longer_than_a_file_system_takes_is_read(page):
    told = await post(page, "/v1/passages", b"Wax.", params={"name": f"{chr(0x20000) * 80}.txt"})
    assert told.status_code == 200
    assert told.json()["passages"][0]["metadata"]["source"].endswith(f"{chr(0x20000)}.txt")


async def test_a_file_that_unpacks_to_far_more_than_a_body_may_have_is_refused_unread(page):
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", " " * (41 * 2**20))
    told = await post(page, "/v1/passages", packed.getvalue(), params={"name": "a.docx"})
    assert told.status_code == 413
    assert told.json()["error"]["message"] == "a.docx unpacks to more than 41943040 bytes"


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("gruen.txt", "Gründüngung hob den Ertrag."),
        ("gruen.html", "<html><body><p>Gründüngung hob den Ertrag.</p></body></html>"),
        ("gruen.md", "# Versuch\n\nGründüngung hob den Ertrag."),
    ],
)
async def test_a_text_keeps_its_letters_in_every_form_or_says_that_it_cannot(page, name, content):
    told = await post(page, "/v1/passages", content.encode(), params={"name": name})
    assert [one["text"] for one in told.json()["passages"]] == ["Gründüngung hob den Ertrag."]
    old = await post(page, "/v1/passages", content.encode("latin-1"), params={"name": name})
    assert "Gr\ufffdn" not in old.text
    assert (old.status_code, "UTF-8" in old.text) == (422, True) or "Gründ" in old.text


async def test_files_and_exports_need_the_key(page):
    for path in ("/v1/passages", "/v1/export", "/v1/table"):
        assert (await page.post(path, content=b"{}")).status_code == 401


def result_of(**settings):
    return EvidenceReranker("rules", threshold=0.2, **settings).rerank(QUESTION, PASSAGES)


@pytest.mark.full
async def test_a_result_is_exported_as_the_line_is_drawn(page):
    plain = describe_result(result_of(), whole=True)
    for format in ("csv", "bibtex", "ris", "markdown"):
        asked = {"result": plain, "format": format, "threshold": 0.0}
        told = await post(page, "/v1/export", json.dumps(asked).encode())
        assert told.text == export_result(draw_line(result_of(), 0.0), format)
        assert "Apples were coated with wax" in told.text


async def test_an_export_that_cannot_be_made_is_told(page):
    plain = describe_result(result_of(), whole=True)
    for asked, word in (
        ({"result": {}, "format": "csv"}, "format"),
        ({"result": plain, "format": "pdf"}, "'pdf'"),
        ({"result": plain, "format": "csv", "threshold": 2}, "threshold"),
        ({"result": {**plain, "ranking": [{"id": 1}]}, "format": "csv"}, "/v1/evidence"),
    ):
        told = await post(page, "/v1/export", json.dumps(asked).encode())
        assert told.status_code == 422
        assert word in told.json()["error"]["message"]


@pytest.mark.full
async def test_a_result_is_tabulated_as_the_line_is_drawn(page):
    plain = describe_result(result_of(), whole=True)
    table = EvidenceTable.of_result(draw_line(result_of(), 0.0), ["n", "p"])
    for format in ("csv", "markdown", "html", "json"):
        asked = {"result": plain, "format": format, "threshold": 0.0, "columns": ["n", "p"]}
        told = await post(page, "/v1/table", json.dumps(asked).encode())
        assert told.text == export_table(table, format)
        assert "Apples were coated with wax" in told.text or "wax" in told.text


async def test_a_table_that_cannot_be_made_is_told(page):
    plain = describe_result(result_of(), whole=True)
    for asked, word in (
        ({"result": plain, "format": "pdf"}, "format must be one of 'markdown'"),
        ({"result": plain, "columns": ["n", "N"]}, "columns must be"),
        ({"result": plain, "format": "svg"}, "a map needs a question of yes or no"),
    ):
        told = await post(page, "/v1/table", json.dumps(asked).encode())
        assert (told.status_code, word in told.json()["error"]["message"]) == (422, True)


def kept_at(threshold, **settings):
    moved = draw_line(result_of(**settings), threshold)
    fresh = EvidenceReranker("rules", threshold=threshold, **settings).rerank(QUESTION, PASSAGES)
    assert [one.id for one in moved.kept] == [one.id for one in fresh.kept]
    assert (moved.outcome, moved.fallback, moved.threshold) == (
        "ok" if moved.kept else "no_evidence",
        None,
        threshold,
    )
    return len(moved.kept)


@pytest.mark.full
def test_a_line_drawn_anew_keeps_what_a_run_with_that_threshold_keeps():
    assert kept_at(0.0) == 3
    assert kept_at(0.0, top_n=2) == 2
    assert kept_at(0.99) == 0


def test_what_was_held_back_stays_out_however_low_the_line_is():
    result = result_of()
    best = result.passages[0]
    held = replace(result, passages=(replace(best, kept=False), *result.passages[1:]))
    assert best.id not in {one.id for one in draw_line(held, 0.0).kept}


def test_what_was_kept_although_nothing_passed_is_judged_by_the_new_line():
    result = EvidenceReranker("rules", threshold=0.99, on_empty="topn").rerank(QUESTION, PASSAGES)
    assert result.fallback
    assert len(draw_line(result, 0.98).kept) == 0
    assert draw_line(result, 0.99) is result


def test_a_drawn_line_leaves_the_result_as_it_was():
    result = result_of()
    before = result.to_json()
    draw_line(result, 1.0)
    assert result.to_json() == before
    assert isinstance(draw_line(result, 1.0), RerankResult)
