"""Draws the pictures of pages that README and docs show, as the page and the judge are now.

    pip install -e '.[serve,browser]' pillow
    python benchmarks/house/pictures.py

Chromium is what ``CHROMIUM`` names, or found by its name. `deepera serve` runs meanwhile.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "docs" / "figures"
PORT, COLOURS = 8765, 128
DEEPERA = [sys.executable, "-m", "deepera_graph"]
DONE = "#found:not([hidden])"


@contextmanager
def open_page(browser: Browser, path: str, height: int, **how: Any) -> Iterator[Page]:
    """Give a page of the server, ready, and 1280 pixels wide."""
    context = browser.new_context(viewport={"width": 1280, "height": height}, **how)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{PORT}{path}")
    page.wait_for_selector("#judge option", state="attached")
    yield page
    context.close()


def draw_page(browser: Browser, file: Path) -> None:
    """One judge, on the example."""
    with open_page(browser, "/", 900) as page:
        page.click("#example")
        page.wait_for_selector(DONE)
        page.screenshot(path=file)


def draw_compared(browser: Browser, file: Path) -> None:
    """Two judges, in the dark."""
    with open_page(browser, "/", 960, color_scheme="dark") as page:
        page.select_option("#other", "rules")
        page.click("#example")
        page.wait_for_selector(DONE)
        page.locator("input[type=number]:visible").last.fill("0.2")
        page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        page.screenshot(path=file)


def draw_check(browser: Browser, file: Path) -> None:
    """A manuscript."""
    with open_page(browser, "/check", 860) as page:
        page.click("#example")
        page.wait_for_selector(DONE)
        page.screenshot(path=file)


def draw_report(browser: Browser, file: Path) -> None:
    """The report of docs/report.md."""
    asked = ["Does wax coating keep apples firm?", "notebooks/apples.jsonl", "--report"]
    with TemporaryDirectory() as scratch:
        written = Path(scratch, "report.html")
        told = subprocess.run(
            [*DEEPERA, "ask", *asked, "--format", "html"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
        written.write_bytes(told.stdout)
        context = browser.new_context(viewport={"width": 900, "height": 760})
        page = context.new_page()
        page.goto(written.as_uri())
        page.screenshot(path=file)
        context.close()


def shrink(file: Path) -> None:
    """Keep `COLOURS`: a third of the bytes."""
    whole = Image.open(file).convert("RGB")
    whole.quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


PICTURES: dict[str, Callable[[Browser, Path], None]] = {
    "page.png": draw_page,
    "page-compare.png": draw_compared,
    "page-check.png": draw_check,
    "written-report.png": draw_report,
}


def main() -> None:
    """Draw all."""
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    server = subprocess.Popen(
        [*DEEPERA, "serve", "--port", str(PORT)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        for line in server.stderr or ():
            if str(PORT).encode() in line:
                break
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
            for name, draw in PICTURES.items():
                draw(browser, FIGURES / name)
                shrink(FIGURES / name)
            browser.close()
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
