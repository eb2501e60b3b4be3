"""The page of an audit in a real Chromium: keyboard and pointer, any width, dark and light."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deepera_graph.lab.quest.audit.drawing import draw_audit
from deepera_graph.lab.quest.audit.labels import read_labels
from deepera_graph.lab.quest.audit.report import study_audit
from support.quest_build import published_labels

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
SHOTS = os.environ.get("SCREENSHOTS")  # a folder, to look at what is tested
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM, reason="there is no Chromium; CHROMIUM names one"),
]
RUN = "from deepera_graph.lab.cli.main import run; run()"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def start():
    """Starts the command, and returns the process and the address that it writes."""
    running = []

    def run(folder, *args):
        command = [
            sys.executable,
            "-c",
            RUN,
            "bench",
            "quest",
            "audit",
            "label",
            str(folder),
            *args,
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process, process.stdout.readline().strip()

    yield run
    for one in running:
        one.send_signal(signal.SIGINT)
        assert one.wait(30) in (0, -signal.SIGKILL)
        one.stdout.close()


@pytest.fixture
def audit(build, tmp_path):
    return draw_audit(build, tmp_path / "audit", per_grade=2)


def open_page(browser, address, width=800, height=900, **how):
    """Open a page that fails the test if anything is asked of another host, or a script fails."""
    context = browser.new_context(viewport={"width": width, "height": height}, **how)
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    asked = []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(address)
    page.asked = asked
    return page


def shot(page, name):
    if SHOTS:
        Path(SHOTS).mkdir(exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png")


def test_450_pairs_are_labelled_by_keyboard_over_a_restart(browser, start, build, tmp_path):
    audit = draw_audit(build, tmp_path / "audit")
    labels = published_labels(audit)
    process, address = start(audit.folder, "--rater", "anna")
    page = open_page(browser, address)
    for number, label in enumerate(labels.values(), start=1):
        if number == 200:
            process.kill()
            process.wait()
            page.keyboard.press(str(label))
            page.locator("#alert", has_text="not saved").wait_for()
            assert len(read_labels(audit, {})["anna"]) == number - 1
            page.close()
            process, address = start(audit.folder, "--rater", "anna")
            page = open_page(browser, address)
        page.locator("#place", has_text=f"Pair {number} of 450").wait_for()
        page.keyboard.press(str(label))
        page.locator("#count", has_text=f"{number} of 450 labelled").wait_for()
    page.locator("#status", has_text="All pairs have a label").wait_for()
    found = read_labels(audit, {})
    assert {pair: one.label for pair, one in found["anna"].items()} == labels
    tables = {one.name: one.rows for one in study_audit(audit, found, n_resamples=50).grids}
    assert round(dict(tables["agreement"])["Pearson"].mean, 5) == 0.86686
    page.keyboard.press("u")
    page.locator("#status", has_text="differ on 71 pairs").wait_for()
    page.locator("#failure").select_option("implicit")
    page.locator("#status", has_text="is saved").wait_for()
    assert sum(one.failure == "implicit" for one in read_labels(audit, {})["anna"].values()) == 1
    assert {one.split("/")[2] for one in page.asked} == {address.split("/")[2]}
    shot(page, "disagreement-800")


def test_notes_going_back_and_the_judges_grade(browser, start, audit):
    page = open_page(browser, start(audit.folder)[1])
    page.get_by_label("Your name").fill("Ben Oak")
    page.keyboard.press("Enter")
    page.locator("#place", has_text="Pair 1 of 6").wait_for()
    page.keyboard.press("j")  # there is no label yet
    assert page.locator("#judge").is_hidden()
    page.keyboard.press("t")
    page.keyboard.type("2 of 10 boards, n = 12")  # typed, not taken for keys
    page.keyboard.press("Escape")
    page.get_by_role("button", name="1 partial").click()
    page.locator("#place", has_text="Pair 2 of 6").wait_for()
    page.keyboard.press("b")
    page.locator("#place", has_text="Pair 1 of 6, labelled 1").wait_for()
    assert page.get_by_label("Note").input_value() == "2 of 10 boards, n = 12"
    pressed = page.get_by_role("button", name="1 partial").get_attribute("aria-pressed")
    assert pressed == "true"
    page.keyboard.press("2")
    page.locator("#place", has_text="Pair 2 of 6").wait_for()  # saved, and gone on
    page.keyboard.press("b")
    page.keyboard.press("j")
    heading = page.locator("#judge-heading")
    heading.wait_for()
    assert heading.inner_text() == f"The judge says {audit.key['p001'].grade}, you say 2"
    page.keyboard.press("0")
    page.locator("#status", has_text="the label 2 stands").wait_for()
    kept = read_labels(audit, {})["ben-oak"]["p001"]
    assert (kept.label, kept.note, kept.shown) == (2, "2 of 10 boards, n = 12", True)


def test_keys_can_be_turned_off_and_the_page_used_by_tab_alone(browser, start, audit):
    page = open_page(browser, start(audit.folder, "-r", "cleo", "--blind")[1])
    page.locator("#place", has_text="Pair 1").wait_for()
    assert page.locator("#show").is_hidden()
    page.locator("summary").click()
    page.get_by_label("Use these keys").uncheck()
    page.keyboard.press("1")
    page.get_by_role("button", name="2 strict match").focus()
    page.keyboard.press("Enter")
    page.locator("#place", has_text="Pair 2").wait_for()
    assert page.evaluate("document.activeElement.id") == "place"  # from where a reader reads on
    for _ in range(4):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.dataset.label") == "0":
            break
    page.keyboard.press("Space")
    page.locator("#place", has_text="Pair 3").wait_for()
    labels = read_labels(audit, {})["cleo"]
    assert {pair: one.label for pair, one in labels.items()} == {"p001": 2, "p002": 0}


def test_two_raters_label_on_one_page(browser, start, audit):
    page = open_page(browser, start(audit.folder, "-r", "anna")[1])
    page.locator("#place", has_text="Pair 1").wait_for()
    page.keyboard.press("0")
    page.locator("#place", has_text="Pair 2").wait_for()
    page.get_by_role("button", name="not you?").click()
    page.get_by_role("button", name="anna (1 of 6)").wait_for()
    page.get_by_label("Your name").fill("../x")
    page.get_by_role("button", name="Begin").click()
    page.locator("#alert", has_text="must be letters").wait_for()
    page.get_by_label("Your name").fill("ben")
    page.get_by_role("button", name="Begin").click()
    page.locator("#place", has_text="Pair 1 of 6").wait_for()
    assert page.locator("#alert").is_hidden()
    page.keyboard.press("2")
    page.locator("#place", has_text="Pair 2").wait_for()
    found = read_labels(audit, {})
    assert {name: one["p001"].label for name, one in found.items()} == {"anna": 0, "ben": 2}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_cut_off(browser, start, audit, width, scheme):
    page = open_page(
        browser, start(audit.folder)[1], width, 640 if width == 360 else 900, color_scheme=scheme
    )
    page.locator("#rater").wait_for()
    shot(page, f"name-{width}-{scheme}")
    page.locator("#rater").fill("anna")
    page.keyboard.press("Enter")
    page.locator("#place", has_text="Pair 1").wait_for()
    shot(page, f"pair-{width}-{scheme}")
    page.keyboard.press("1")
    page.locator("#place", has_text="Pair 2").wait_for()
    page.keyboard.press("b")
    page.keyboard.press("j")
    page.locator("#judge-heading").wait_for()
    shot(page, f"judge-{width}-{scheme}")
    page.locator("summary").click()
    shot(page, f"help-{width}-{scheme}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("0", "1", "2"):
        box = page.locator(f"[data-label='{name}']").bounding_box()
        assert box["width"] >= 44
        assert box["height"] >= 44
    assert contrast(page, "#venue") >= 4.5
    assert contrast(page, "[data-label='1']") >= 4.5


CONTRAST = """(one) => {
  const light = (text) => {
    const parts = text.match(/[0-9.]+/g).slice(0, 3).map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  let back = one;
  while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
  const text = light(getComputedStyle(one).color);
  const behind = light(getComputedStyle(back).backgroundColor);
  return (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
}"""


def contrast(page, selector):
    """Return the contrast of a text and what is behind it, as WCAG 2.2 defines it, 1 to 21."""
    return page.locator(selector).evaluate(CONTRAST)
