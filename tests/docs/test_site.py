"""The site of the documentation has a page for everything."""

import re
from pathlib import Path

import yaml

import deepera_graph

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


class Loader(yaml.SafeLoader):
    """Reads the settings of the site, whose functions are of no matter here."""


Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda *_: None)


def listed(entry: object) -> list[str]:
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    assert not isinstance(parts, str)
    return [page for part in parts for page in listed(part)]  # type: ignore[attr-defined]


def test_every_public_name_is_in_the_reference() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    named = re.findall(r"^::: deepera_graph\.(\w+)$", text, re.MULTILINE)
    assert sorted(named) == [one for one in deepera_graph.__all__ if one != "__version__"]


def test_every_page_and_notebook_is_in_the_navigation_and_the_index() -> None:
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader)
    places = listed(settings["nav"])
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    books = {f"notebooks/{page.stem}.md" for page in (ROOT / "notebooks").glob("*.ipynb")}
    assert pages | books <= set(places)
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    flat = {page for page in pages if "/" not in page and page != "index.md"}
    assert {page for page in flat if f"]({page})" not in index} == set()
