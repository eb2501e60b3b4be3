"""The pages with a map in a real Chromium: what axe finds, their width, and paper."""

from importlib.resources import files

import pytest

from deepera_graph import export_table
from evidence.test_map import effect, study, table
from serve.test_page_browser import browser, find_faults, open_page, pytestmark  # noqa: F401

ROWS = [
    effect("0.72", "0.58", "0.90", says="contradicts", n="600", design="randomised trial"),
    effect("1.9", "0.9", "4.0", band="possible", n="45", name="Interdisciplinary " * 6),
    effect("2.1", "1.5", "2.9", status="retracted", n="15000", design="cohort"),
    *(study(n=str(n), year=str(2000 + n)) for n in range(20)),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_a_page_with_a_map_has_no_fault_and_fits(open_page, tmp_path, width, scheme):  # noqa: F811
    axe = pytest.importorskip("axe_playwright_python")
    place = tmp_path / "table.html"
    place.write_text(export_table(table(*ROWS), "html"), encoding="utf-8")
    page = open_page(place.as_uri(), color_scheme=scheme, viewport={"width": width, "height": 800})
    page.evaluate(files(axe).joinpath("axe.min.js").read_text(encoding="utf-8"))
    assert find_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for text in page.locator("svg text").all():
        assert text.evaluate("one => one.getBBox().x + one.getBBox().width") <= 404
    page.emulate_media(media="print")
    assert page.locator("svg").first.evaluate("one => getComputedStyle(one).display") == "block"
    assert page.said == []
