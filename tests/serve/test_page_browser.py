"""The page in a real Chromium: what people do with it, and what it must never do."""

import csv
import json
import os
import re
import shutil
from functools import partial
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from threading import Event

import httpx
import pytest
from langchain_core.documents import Document

from deepera_graph import EvidenceReranker
from deepera_graph.cli.opening.sources import open_literature
from deepera_graph.cli.shared.places import LiteratureOptions
from deepera_graph.export import describe_outcome, export_result
from deepera_graph.papers import PaperBase
from deepera_graph.result import RerankResult
from deepera_graph.retrieval.collections.store import open_store
from deepera_graph.serve.backing.stores import Collections
from deepera_graph.serve.config import RequestLimits, ServeConfig
from deepera_graph.serve.page import draw_line
from support.literature import QUESTION as TEA
from support.literature import TRIAL
from support.page_judge import NAME, scripted_backend
from support.pdfs import write_pdf
from support.serving import running

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium; CHROMIUM names one"),
]
docx = pytest.importorskip("docx")
playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

QUESTION = "Does tea keep people awake?"
EVIL = "<img src=x onerror=\"document.body.dataset.broken='yes'\"><script>alert(1)</script>"
TEXTS = {
    "Green": "[0.91 supports] In a trial >tea kept 30 adults awake<.",
    "Black": "[0.85 contradicts] >Tea made nobody stay awake< in 40 adults.",
    "Mint": "[0.60 no_difference] Mint tea >made no difference<.",
    "Chai": "[0.10] Chai is tea with milk.",
}
PASTED = "\n\n".join(TEXTS.values())
KEY = "a-key-of-the-test"


@pytest.fixture(scope="module")
def gate():
    return Event()


@pytest.fixture(scope="module")
def site(tmp_path_factory, gate, world):
    """A server with a scripted judge, a collection, a base of papers and two services."""
    folder = tmp_path_factory.mktemp("site")
    with open_store("teas", path=folder / "store") as store:
        store.add([Document(id=name, page_content=text) for name, text in TEXTS.items()])
    papers = [
        {"id": f"tea:{n}", "title": f"Tea {n}", "abstract": f"[0.9 supports] Tea {n}: >awake<."}
        for n in range(3)
    ]
    lines = folder / "papers.jsonl"
    lines.write_text("\n".join(map(json.dumps, papers)), encoding="utf-8")
    PaperBase.build(folder / "base.papers", lines)
    config = ServeConfig(
        backend=scripted_backend(gate),
        settings={"threshold": 0.5},
        collections=Collections(path=folder / "store"),
        papers=str(folder / "base.papers"),
        literature=partial(open_literature, LiteratureOptions(sources="pubmed,openalex"), "off"),
    )
    with running(config) as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture(scope="module")
def guarded():
    """A server that asks for a key, and takes no more than 3 kB."""
    config = ServeConfig(backend="rules", keys=(KEY,), limits=RequestLimits(body_bytes=3000))
    with running(config) as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as made:
        opened = made.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser):
    """Opens a page; what it says on the console is kept in `page.said`."""
    contexts = []

    def start(url, **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(5_000)
        contexts.append(context)
        page = context.new_page()
        page.said = []
        page.on("console", lambda one: page.said.append(one.text))
        page.on("pageerror", lambda one: page.said.append(str(one)))
        page.goto(url)
        return page

    yield start
    for one in contexts:
        one.close()


@pytest.fixture
def page(open_page, site):
    """The page of the server, ready; in the end its console is empty."""
    opened = open_page(site)
    opened.wait_for_selector("#judge option", state="attached")
    yield opened
    assert opened.said == []


def ask(page, passages=PASTED, question=QUESTION, judge="", other=""):
    page.fill("#question", question)
    if passages is not None:
        page.fill("#passages", passages)
    if judge:
        page.select_option("#judge", judge)
    page.select_option("#other", other)
    page.click("#run")


def ask_and_wait(page, *arguments, **named):
    ask(page, *arguments, **named)
    page.wait_for_selector("#found:not([hidden])")


def ids(page, selector):
    return page.eval_on_selector_all(f"{selector} > li", "all => all.map(one => one.dataset.id)")


def move(page, threshold, n=0):
    """Move a slider as a hand does: its value, then the event."""
    code = "(one, to) => { one.value = to; one.dispatchEvent(new Event('input')); }"
    page.locator(".slider").nth(n).evaluate(code, threshold)


def read(one):
    """Read what is seen of an element; a card is not drawn before it comes into view."""
    one.scroll_into_view_if_needed()
    expect(one).not_to_have_text("", use_inner_text=True)
    return one.inner_text()


def outcome(page, n=0):
    return page.locator(".outcome").nth(n).inner_text()


def unfold(page):
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    expect(page.locator(".lines").last).to_be_visible()


def link_of(page):
    page.click("#link")
    expect(page.locator("#link-text")).to_be_visible()
    return page.input_value("#link-text")


def test_pasted_passages_are_ranked_and_told_apart_with_reasons(page):
    ask_and_wait(page)
    assert ids(page, ".kept") == ["1", "2", "3"]
    assert ids(page, ".dropped") == ["4"]
    said = "Evidence: 3 of 4 passages reached 0.5 (1 supports, 1 contradicts, 1 no difference)."
    assert outcome(page) == said
    page.click(".dropped-part summary")
    dropped = page.locator(".dropped .card")
    expect(dropped).to_be_visible()
    expect(dropped).to_contain_text("below the threshold", use_inner_text=True)
    expect(dropped).to_contain_text("Why: it says 0.10", use_inner_text=True)


def test_a_run_that_begins_before_the_collections_are_known_waits_for_them(open_page, site):
    page = open_page("about:blank")
    held = []

    def hold(route):
        held.append(route)

    page.route("**/v1/libraries", hold)
    page.goto(site)
    page.fill("#question", QUESTION)
    page.fill("#passages", PASTED)
    page.press("#passages", "Control+Enter")
    page.press("#passages", "Control+Enter")
    expect(page.locator("#status")).to_have_text("Waiting for the server.")
    for one in held:
        one.continue_()
    page.wait_for_selector("#found:not([hidden])")
    assert ids(page, ".kept") == ["1", "2", "3"]


def test_the_sentence_that_counts_is_marked_where_it_stands(page):
    text = "[0.9 supports] 𝔘𝔫𝔦 🍵 first. " + "Long before. " * 60 + ">Tea 🍵 woke them<. After."
    ask_and_wait(page, text + "\n\n[0.8] No quote.")
    assert [read(one) for one in page.locator("mark").all()] == ["Tea 🍵 woke them"]
    card = page.locator(".card").first
    assert "first" not in read(card.locator(".text"))
    card.get_by_role("button", name="Show the whole passage").click()
    assert "𝔘𝔫𝔦 🍵 first" in read(card.locator(".text"))
    assert read(card.locator("mark")) == "Tea 🍵 woke them"


def test_a_direction_is_said_in_words_and_with_a_sign(page):
    ask_and_wait(page)
    assert [read(one) for one in page.locator(".kept .side").all()] == [
        "✓ supports",
        "✕ contradicts",
        "= no difference",
    ]


def test_moving_the_threshold_filters_at_once_and_asks_nobody(page):
    ask_and_wait(page)
    asked = []
    page.on("request", lambda one: asked.append(one.url))
    move(page, 0.88)
    assert ids(page, ".kept") == ["1"]
    assert outcome(page) == "Evidence: 1 of 4 passages reached 0.88 (1 supports)."
    move(page, 0.99)
    assert outcome(page).startswith("No evidence: none of 4 passages reaches 0.99.")
    page.locator(".slider").focus()
    page.keyboard.press("Home")
    assert ids(page, ".kept") == ["1", "2", "3", "4"]
    assert page.locator(".slider").get_attribute("aria-valuetext") == "0: 4 of 4 kept"
    page.get_by_role("button", name="Back to 0.5").click()
    assert ids(page, ".kept") == ["1", "2", "3"]
    page.fill(".exact", "0.855")
    page.keyboard.press("Enter")
    assert ids(page, ".kept") == ["1"]
    assert asked == []


def test_the_ranking_before_and_after_is_shown(page):
    ask_and_wait(page, "\n\n".join(reversed(TEXTS.values())))
    before, after = page.locator(".bump ol").all()
    labels = "all => all.map(one => one.textContent)"
    assert before.locator(".label").evaluate_all(labels)[0].startswith("[0.10] Chai")
    assert after.locator(".label").evaluate_all(labels)[0].startswith("[0.91 supports]")
    assert page.locator(".lines path").count() == 4
    assert "was 4 ▲3" in read(page.locator(".kept .card").first)


def test_a_passage_that_could_not_be_judged_is_told_as_failed_and_has_no_score(page):
    ask_and_wait(page, PASTED + "\n\n[broken] Nobody can read this.")
    failed = page.locator(".failed .card")
    assert ids(page, ".failed") == ["5"]
    assert "not judged: the judge failed" in read(failed)
    assert "the model gave no number" in read(failed)
    assert failed.locator(".meter").count() == 0
    assert "0.00" not in read(failed)
    assert "1 of 5 passages could not be judged: the model gave no number." in outcome(page)
    move(page, 0)
    assert ids(page, ".failed") == ["5"]


BROKEN = "[broken] Nobody can read this."


@pytest.mark.parametrize(
    "texts",
    [[*TEXTS.values()], [*TEXTS.values(), BROKEN], ["[0.9] Tea.", BROKEN, BROKEN], [BROKEN]],
)
def test_the_outcome_is_told_in_the_words_of_the_package(page, site, texts):
    given = {"question": QUESTION, "passages": texts}
    told = httpx.post(f"{site}/v1/evidence", json=given, trust_env=False).json()
    ask_and_wait(page, "\n\n".join(texts))
    for threshold in (0.5, 0.0, 0.85, 1.0):
        move(page, threshold)
        result = draw_line(RerankResult.from_dict(told), threshold)
        assert outcome(page) == describe_outcome(result)
        assert ids(page, ".kept") == [one.id for one in result.kept]


def test_two_judges_are_compared(page):
    ask_and_wait(page, other="rules")
    page.wait_for_selector("#columns.two")
    assert page.locator(".judge-name").all_inner_texts() == [NAME, "rules"]
    said = "The judges agree on 1 of 4 passages: both keep 0, both drop 1. Only scripted keeps 3."
    assert page.locator("#agreement > p").inner_text() == said
    first = page.locator(".column").first.locator(".card").first
    assert re.search(r"disagree: rules drops it \(.*rank.*0\.\d\d\)", read(first))
    move(page, 0, n=1)
    said = "The judges agree on 3 of 4 passages: both keep 3, both drop 0. Only rules keeps 1."
    assert said in page.locator("#agreement > p").inner_text()
    assert "agree: rules keeps it, too" in read(first)
    assert page.locator("#agreement .lines path").count() == 4


def test_passages_appear_as_they_are_judged_and_a_run_can_be_cancelled(page, gate):
    gate.clear()
    try:
        ask(page, PASTED + "\n\n[held 0.5 mixed] This one takes its time.")
        expect(page.locator("#judged li")).to_have_count(4)
        assert page.locator("#judged b").all_inner_texts() == ["0.91", "0.85", "0.60", "0.10"]
        row = page.locator("#judged li").nth(1).inner_text()
        assert row.split("\n") == ["0.85", TEXTS["Black"], "✕ contradicts"]
        assert page.locator("#progress-words").inner_text() == "Judged 4 of 5"
        assert page.locator("#bar").evaluate("one => [one.value, one.max]") == [4, 5]
        page.click("#cancel")
        expect(page.locator("#status")).to_have_text("Cancelled after 4 judgements.")
        assert page.evaluate("document.activeElement.id") == "run"
        assert page.locator("#found").is_hidden()
    finally:
        gate.set()
    ask_and_wait(page)
    assert ids(page, ".kept") == ["1", "2", "3"]


def test_escape_cancels_and_control_with_enter_runs(page, gate):
    gate.clear()
    try:
        page.fill("#question", QUESTION)
        page.fill("#passages", "[held 0.9] Slow.")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#cancel")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#status")).to_contain_text("Cancelled")
    finally:
        gate.set()


def test_a_collection_is_searched(page):
    page.check("[name=from][value=library]")
    assert page.locator("#library option").all_inner_texts() == ["teas (4 passages)"]
    page.fill("#k", "3")
    ask_and_wait(page, None)
    assert len(ids(page, ".kept")) + len(ids(page, ".dropped")) <= 3
    assert "Green" in ids(page, ".kept")


def test_sources_are_offered_where_the_server_has_them(page):
    page.check("[name=from][value=source]")
    assert page.locator("#source option").all_inner_texts() == [
        "all services together", "the base of papers", "PubMed", "OpenAlex",
    ]  # fmt: skip
    assert page.locator("#leaves").is_visible()
    page.select_option("#source", "papers")
    assert page.locator("#leaves").is_hidden()
    ask_and_wait(page, None)
    assert len(ids(page, ".kept")) == 3
    assert read(page.locator(".kept h4").first).startswith("Tea ")


def test_a_service_that_does_not_answer_is_told_beside_those_that_did(page, world):
    world.faults["openalex"] = "hours"
    page.check("[name=from][value=source]")
    try:
        ask_and_wait(page, None, question=TEA, judge="rules")
        assert "PubMed: 3 papers · OpenAlex: rate limited" in page.locator("#intent").inner_text()
        assert "openalex" in page.locator(".notes").inner_text()
        expect(page.locator("#columns")).to_contain_text(TRIAL, use_inner_text=True)
        world.faults["pubmed"] = "500"
        page.click("#run")
        expect(page.locator("#trouble")).to_contain_text("the literature could not be searched")
        page.said.clear()  # the browser notes the status itself
    finally:
        world.forget()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("teas.jsonl", "\n".join(json.dumps({"id": i, "text": t}) for i, t in TEXTS.items())),
        ("teas.json", json.dumps([{"id": i, "text": t} for i, t in TEXTS.items()])),
        ("teas.csv", "id,text\n" + "".join(f"{i},{t}\n" for i, t in TEXTS.items())),
    ],
)
def test_a_file_gives_the_passages(page, name, text):
    page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": text.encode()})
    expect(page.locator("#loaded-name")).to_have_text(f"4 passages of {name}")
    ask_and_wait(page, None)
    assert ids(page, ".kept") == ["Green", "Black", "Mint"]
    page.get_by_role("button", name="Remove").click()
    assert page.locator("#passages").is_visible()


def write_word(text):
    document, held = docx.Document(), BytesIO()
    document.add_paragraph(text)
    document.save(held)
    return held.getvalue()


@pytest.mark.parametrize(
    ("name", "write"),
    [("tea.pdf", lambda text: write_pdf([text])), ("tea.docx", write_word)],
)
def test_a_document_gives_the_passages(page, name, write):
    content = write("[0.91 supports] In a trial tea kept 30 adults awake.")
    page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": content})
    expect(page.locator("#loaded-name")).to_have_text(f"1 passage of {name}")
    ask_and_wait(page, None)
    assert ids(page, ".kept") == [name]


def hold_reading(page):
    """Return what holds the requests to read a file, which do not go on by themselves."""
    held = []

    def hold(route):
        held.append(route)

    page.route("**/v1/passages*", hold)
    return held


def test_what_is_asked_before_a_file_is_read_waits_for_it(page):
    held = hold_reading(page)
    line = json.dumps({"id": "file", "text": "[0.9 supports] Tea kept adults awake."}).encode()
    with page.expect_request("**/v1/passages*"):
        page.set_input_files("#file", {"name": "a.jsonl", "mimeType": "", "buffer": line})
    ask(page, None)
    page.wait_for_timeout(100)
    expect(page.get_by_text("Give at least one passage")).to_be_hidden()
    held[0].continue_()
    page.wait_for_selector("#found:not([hidden])")
    assert ids(page, ".kept") == ["file"]


def test_the_passages_of_a_study_are_folded_under_its_best(page):
    doi = {"doi": "10.5555/tea", "title": "Tea and sleep"}
    lines = [
        {"id": "record", "text": "[0.7 supports] Tea kept adults awake.", **doi},
        {"id": "pdf", "text": "[0.9 supports] Tea kept 30 adults awake.", **doi},
        {"id": "other", "text": "[0.8 supports] Mate kept adults awake."},
    ]
    text = "\n".join(map(json.dumps, lines)).encode()
    page.set_input_files("#file", {"name": "a.jsonl", "mimeType": "", "buffer": text})
    ask_and_wait(page, None)
    assert ids(page, ".kept") == ["pdf", "other"]
    best = page.locator(".kept > li").first
    assert ids(page, ".kept > li:first-child .others ol") == ["record"]
    expect(best.locator(".others li")).to_be_hidden()
    best.get_by_text("1 more passage of this study").click()
    expect(best.locator(".others li")).to_be_visible()
    move(page, 0.75)
    assert (ids(page, ".kept"), ids(page, ".dropped")) == (["pdf", "other"], ["record"])
    expect(best.locator(".others")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_is_readable_on_a_phone_and_whole_on_paper(open_page, tmp_path, scheme):
    axe = pytest.importorskip("axe_playwright_python")
    about = {"doi": "10.5555/tea", "title": "Tea and sleep"}
    texts = ["[0.9 supports] Tea kept >30 adults awake<.", "[0.8 supports] Tea >kept me up<."]
    given = [Document(id=str(n), page_content=one, metadata=about) for n, one in enumerate(texts)]
    given.append(Document(id="2", page_content="[0.1] Chai is " + "tea" * 90))
    result = EvidenceReranker(scripted_backend(Event()), threshold=0.5).rerank(QUESTION, given)
    report = tmp_path / "report.html"
    report.write_text(export_result(result, "html"), encoding="utf-8")
    page = open_page(report.as_uri(), color_scheme=scheme, viewport={"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.evaluate(files(axe).joinpath("axe.min.js").read_text(encoding="utf-8"))
    folded = page.locator("details li")
    expect(folded).to_be_hidden()
    assert find_faults(page) == []
    page.get_by_text("1 more passage of this study").click()
    expect(folded).to_be_visible()
    assert find_faults(page) == []
    page.locator("summary").click()
    page.emulate_media(media="print")
    assert folded.bounding_box()["height"] > 40


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_text_file_of_an_older_encoding_keeps_its_letters(page, encoding):
    text = "Gründüngung hob den Ertrag."
    page.set_input_files(
        "#file", {"name": "a.txt", "mimeType": "", "buffer": text.encode(encoding)}
    )
    expect(page.locator("#passages")).to_have_value(text)


def test_a_file_can_be_dropped_in_and_json_can_be_pasted(page):
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "dropped.txt"));
            document.body.dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        PASTED,
    )
    expect(page.locator("#passages-count")).to_have_text("4 passages")
    ask_and_wait(page, json.dumps([{"id": i, "text": t} for i, t in TEXTS.items()]))
    assert ids(page, ".kept") == ["Green", "Black", "Mint"]


@pytest.mark.parametrize(
    ("format", "suffix", "word"),
    [("JSON", "json", '"threshold": 0.88'), ("CSV", "csv", "evidence,1,0.91,supports"),
     ("BibTeX", "bib", "@misc{"), ("RIS", "ris", "TY  - GEN")],
)  # fmt: skip
def test_what_is_kept_can_be_exported(page, format, suffix, word):
    ask_and_wait(page)
    move(page, 0.88)
    with page.expect_download() as download:
        page.get_by_role("button", name=format, exact=True).click()
    text = Path(download.value.path()).read_text(encoding="utf-8")
    assert download.value.suggested_filename == f"evidence.{suffix}"
    assert word in text
    if format == "CSV":
        assert [one["id"] for one in csv.DictReader(text.splitlines())] == ["1"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_the_studies_that_are_kept_have_a_map_and_a_table(page, width, scheme):
    page.set_viewport_size({"width": width, "height": 740})
    page.emulate_media(color_scheme=scheme)
    evil = f"[0.90 supports] Tea >{EVIL}< (odds ratio 2.0, 95% CI 1.1 to 3.2)."
    ask_and_wait(page, f"{PASTED}\n\n{evil}")
    page.get_by_text("Studies: map and table").click()
    expect(page.locator(".studies figure")).to_have_count(1)
    expect(page.locator(".studies tbody tr")).to_have_count(4)
    assert page.locator(".studies [data-study]").count() == 4
    assert page.get_by_role("img", name="Harvest plot: 4 studies").count() == 1
    assert "data-broken" not in page.locator("body").evaluate("one => one.outerHTML.slice(0, 200)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    move(page, 0.88)
    expect(page.locator(".studies tbody tr")).to_have_count(2)


def test_a_link_shows_the_same_view_again(page, open_page, site):
    ask_and_wait(page, judge="rules", other="local")
    move(page, 0.05)
    move(page, 0.02, n=1)
    url = link_of(page)
    assert url.startswith(f"{site}/#")
    again = open_page(url)
    again.wait_for_selector("#columns.two")
    assert again.input_value("#passages") == PASTED
    for n in (0, 1):
        assert outcome(again, n) == outcome(page, n)
    assert "0.05" in outcome(again)
    assert again.said == []


def test_a_link_names_a_collection_and_does_not_run_a_judge_that_may_cost_money(
    page, open_page, site
):
    page.check("[name=from][value=library]")
    ask_and_wait(page, None)
    move(page, 0.7)
    url = link_of(page)
    assert "library=teas" in url
    again = open_page(url)
    expect(again.locator("#status")).to_contain_text("may cost money")
    assert again.locator("#found").is_hidden()
    again.click("#run")
    again.wait_for_selector("#found:not([hidden])")
    assert again.input_value(".exact") == "0.7"


def test_a_view_that_is_too_large_for_a_link_is_told_so(page):
    words = " ".join(f"{n * 7919 % 104729:x}" for n in range(6000))
    ask_and_wait(page, f"[0.9] {words}")
    page.click("#link")
    said = page.locator("#link-said")
    expect(said).to_contain_text("does not fit in a link")
    expect(said).to_contain_text("8,000")


@pytest.mark.parametrize(
    ("fragment", "word"),
    [("q=Tea%3F&p=%25%25", "damaged"), ("q=Tea%3F&judge=nobody", "nobody"),
     ("q=Tea%3F&collection=gone", "gone")],
)  # fmt: skip
def test_a_link_that_cannot_be_followed_is_told_so(open_page, site, fragment, word):
    opened = open_page(f"{site}/#{fragment}")
    expect(opened.locator("#trouble")).to_contain_text(word)


def test_no_text_of_others_is_ever_read_as_html(page):
    passages = [{"id": EVIL, "text": f"[0.9 supports] >{EVIL}< {EVIL}", "title": EVIL,
                 "metadata": {"year": "2020", "journal": EVIL, "url": "javascript:alert(1)"}},
                {"id": "2", "text": f"[0.1] {EVIL}", "metadata": {"doi": EVIL}},
                {"id": "3", "text": f"[broken] {EVIL}"}]  # fmt: skip
    ask_and_wait(page, json.dumps(passages), question=f"Tea? {EVIL}", other="rules")
    page.click("#link")
    unfold(page)
    assert page.evaluate("document.body.dataset.broken") is None
    assert page.locator("main img, main script, main a[href^='javascript:']").count() == 0
    made = "import('/page/dom.js').then(({ link }) => link('javascript:alert(1)', 'x'))"
    assert page.evaluate(made) == "x"
    assert EVIL in page.locator("#asked").inner_text()
    assert EVIL in read(page.locator(".kept .card").first.locator("h4"))


def test_what_is_missing_is_said_beside_its_field(page):
    page.click("#run")
    assert page.locator("#question-error").inner_text() == "Ask something first."
    assert page.evaluate("document.activeElement.id") == "question"
    page.fill("#question", QUESTION)
    page.click("#run")
    assert page.locator("#passages-error").inner_text() == "Give at least one passage."
    assert page.locator("#passages").get_attribute("aria-invalid") == "true"


def test_the_example_runs(page):
    page.select_option("#judge", "local")
    page.get_by_role("button", name="Show an example").first.click()
    page.wait_for_selector("#found:not([hidden])")
    assert "Invented" in page.locator("#loaded-name").inner_text()
    example = json.loads(files("deepera_graph.serve.page").joinpath("example.json").read_text())
    own = EvidenceReranker("local", threshold=0.5).rerank(example["question"], example["passages"])
    shown = [one for name in (".kept", ".dropped") for one in ids(page, name)]
    assert shown == [one.id for one in own.passages]


def test_a_server_that_went_away_is_told_in_words_and_can_be_tried_again(open_page, site):
    page = open_page(site)
    page.wait_for_selector("#judge option", state="attached")
    page.context.set_offline(True)
    ask(page)
    expect(page.locator("#trouble")).to_contain_text("does not answer. Is it still running?")
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("#found:not([hidden])")
    assert page.locator("#trouble").inner_text() == ""


def test_a_key_is_asked_for_and_kept_for_the_tab_alone(open_page, guarded):
    page = open_page(guarded)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This server asks for a key")
    page.fill("#key", "a-wrong-key")
    page.click("#ask-key .main")
    expect(dialog).to_contain_text("was refused")
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#judge option", state="attached")
    ask_and_wait(page, "Tea kept 30 adults awake (p < 0.01).")
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 1]
    assert KEY not in page.evaluate("document.documentElement.outerHTML + location.href")
    page.get_by_role("button", name="Forget the key").click()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_request_that_is_too_large_is_told_with_the_limit(open_page, guarded):
    page = open_page(guarded)
    page.fill("#key", KEY)
    page.keyboard.press("Enter")
    page.wait_for_selector("#judge option", state="attached")
    ask(page, "Tea. " * 1000)
    expect(page.locator("#trouble")).to_contain_text("too much for this server")
    expect(page.locator("#trouble")).to_contain_text("3000 bytes")


def test_what_the_server_refuses_is_told_in_its_words(page):
    broken = {"name": "broken.json", "mimeType": "", "buffer": b'[{"text": '}
    page.set_input_files("#file", broken)
    expect(page.locator("#trouble")).to_contain_text("broken.json")
    expect(page.locator("#trouble")).to_contain_text("JSON")
    page.said.clear()  # the browser notes the status itself


def tab_to(page, name, most=12):
    """Press Tab until an element has the focus."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("name => document.activeElement.matches(name)", name):
            return
    raise AssertionError(f"{most} tabs do not lead to {name}")


def test_the_page_can_be_used_with_the_keyboard_alone(page):
    tab_to(page, ".skip", most=1)
    tab_to(page, "#question")
    page.keyboard.type(QUESTION)
    tab_to(page, "#passages")
    page.keyboard.type("[0.905] Tea.")
    tab_to(page, "#run")
    page.keyboard.press("Enter")
    page.wait_for_selector("#found:not([hidden])")
    assert page.evaluate("document.activeElement.id") == "asked"
    assert page.locator("#status").inner_text() == (
        "scripted: Evidence: 1 of 1 passage reached 0.5."
    )
    tab_to(page, ".slider")
    page.keyboard.press("End")
    assert ids(page, ".kept") == []
    assert page.locator(".slider").get_attribute("aria-valuetext") == "1: 0 of 1 kept"
    tab_to(page, "[data-format=json]")


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_wider_than_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 740})
    long_word = "[0.9 supports] " + "immuno" * 60
    ask_and_wait(page, f"{PASTED}\n\n{long_word}", other="rules")
    page.click("#link")
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(open_page, guarded, site, gate, scheme):
    axe = pytest.importorskip("axe_playwright_python")
    source = files(axe).joinpath("axe.min.js").read_text(encoding="utf-8")
    locked = open_page(guarded, color_scheme=scheme)
    locked.wait_for_selector("#ask-key[open]")
    page = open_page(site, color_scheme=scheme)
    page.wait_for_selector("#judge option", state="attached")
    for one in (locked, page):
        one.evaluate(source)
        assert find_faults(one) == []
    gate.clear()
    try:
        ask(page, PASTED + "\n\n[held 0.5] Slow.")
        expect(page.locator("#judged li")).to_have_count(4)
        assert find_faults(page) == []
    finally:
        gate.set()
    page.wait_for_selector("#found:not([hidden])")
    ask_and_wait(page, f"{PASTED}\n\n{BROKEN}", other="rules")
    page.wait_for_selector("#columns.two")
    unfold(page)
    page.wait_for_selector(".studies figure")
    link_of(page)
    page.fill("#passages", "")
    page.click("#run")
    assert find_faults(page) == []
    page.evaluate("document.querySelector('label[for=question]').remove()")
    assert "label" in {one[0] for one in find_faults(page)}  # it does look


def check_of(open_page, site, **options):
    page = open_page(f"{site}/check", **options)
    page.wait_for_selector("#judge option", state="attached")
    return page


def verdicts(page):
    return [read(one) for one in page.locator("#claims .side").all()]


DRAFT = (
    "# Teas\n\nTea kept adults awake [1]. Mint tea made a difference [2, 9].\n\n# References\n\n"
    "1. Lund A. Green tea at night. 2018.\n2. Ito B. Mint tea at night. 2019.\n"
)


def test_verdicts_stand_beside_the_sentences_of_a_manuscript(open_page, site, tmp_path):
    page = check_of(open_page, site)
    works = tmp_path / "works.jsonl"
    both = zip(("Green", "Mint"), ("Green tea at night", "Mint tea at night"), strict=True)
    lines = [json.dumps({"id": name, "text": TEXTS[name], "title": title}) for name, title in both]
    works.write_text("\n".join(lines))
    page.click("#run")
    expect(page.locator("#manuscript-error")).to_have_text("Give a manuscript first.")
    page.fill("#manuscript", DRAFT)
    page.set_input_files("#works-file", works)
    expect(page.locator("#works-loaded")).to_contain_text("2 passages of works.jsonl")
    page.click("#run")
    page.wait_for_selector("#found:not([hidden])")
    assert [one.split(" ", 1)[1] for one in verdicts(page)] == [
        "supported",
        "not found",
        "missing reference",
    ]
    assert read(page.locator("#claims mark").first) == "tea kept 30 adults awake"
    expect(page.locator("#notes")).to_contain_text("Not in the list of references: 9.")
    page.check("#only-doubtful")
    expect(page.locator("#claims > li:visible")).to_have_count(1)
    with page.expect_download() as saved:
        page.click("[data-format=csv]")
    written = Path(saved.value.path()).read_text(encoding="utf-8")
    assert len(list(csv.DictReader(written.splitlines()))) == 3
    assert page.said == []


@pytest.mark.parametrize("is_read", [True, False])
def test_a_check_that_is_asked_for_before_a_work_is_read_waits_for_it(open_page, site, is_read):
    page = check_of(open_page, site)
    held = hold_reading(page)
    page.fill("#manuscript", DRAFT)
    line = json.dumps({"id": "Green", "text": TEXTS["Green"], "title": "Green tea at night"})
    with page.expect_request("**/v1/passages*"):
        page.set_input_files(
            "#works-file", {"name": "a.jsonl", "mimeType": "", "buffer": line.encode()}
        )
    page.click("#run")
    page.wait_for_timeout(100)
    expect(page.locator("#found")).to_be_hidden()
    if is_read:
        held[0].continue_()
        page.wait_for_selector("#found:not([hidden])")
        assert verdicts(page)[0].endswith("supported")
    else:
        held[0].abort()
        expect(page.locator("#trouble")).to_be_visible()
        page.wait_for_timeout(100)
        assert page.locator("#trouble").is_visible()
        assert page.locator("#found").is_hidden()


def test_a_manuscript_in_files_is_checked_against_a_library(open_page, site, tmp_path):
    page = check_of(open_page, site)
    draft, listed = tmp_path / "draft.tex", tmp_path / "refs.bib"
    draft.write_text("\\begin{document}Tea keeps people awake \\cite{a}.\\bibliography{refs}")
    listed.write_text("@article{a, title={Nothing of the kind}, author={Lund, A}, year={2018}}")
    page.set_input_files("#manuscript-file", draft)
    page.set_input_files("#references-file", listed)
    page.check("[name=from][value=library]")
    page.click("#run")
    page.wait_for_selector("#found:not([hidden])")
    assert verdicts(page) == ["? unavailable"]
    expect(page.locator("#claims")).to_contain_text("Best other study")
    page.click("#references-loaded button")
    page.click("#run")
    expect(page.locator("#trouble")).to_contain_text("draft.tex names refs.bib: give it")
    assert page.said != []  # the browser notes the 422


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_axe_finds_no_fault_where_manuscripts_are_checked(open_page, site, scheme, width):
    axe = pytest.importorskip("axe_playwright_python")
    size = {"width": width, "height": 900}
    page = check_of(open_page, site, color_scheme=scheme, viewport=size)
    page.evaluate(files(axe).joinpath("axe.min.js").read_text(encoding="utf-8"))
    assert find_faults(page) == []
    page.click("#example")
    page.wait_for_selector("#found:not([hidden])")
    assert find_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def find_faults(page):
    found = page.evaluate("axe.run().then(({violations}) => violations)")
    return [(one["id"], one["help"], [node["html"] for node in one["nodes"]]) for one in found]


def test_motion_is_left_out_where_it_is_not_wanted(open_page, site):
    page = open_page(site, reduced_motion="reduce")
    how = "getComputedStyle(document.documentElement).scrollBehavior"
    assert page.evaluate(how) == "auto"
