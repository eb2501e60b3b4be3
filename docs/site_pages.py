"""Puts into the site what pages of the documentation link to and what lies beside `docs/`.

README, notebooks, and the pages of benchmarks are read where they are; links to them, and theirs,
are made to lead to their pages in the site. A link to a folder or to a file that is no page is
shown as its path in the repository.
"""

import posixpath
import re
from pathlib import Path

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
BESIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "notebooks/*.ipynb", "benchmarks/**/*.md",
          "deepera_graph/judges/trained/weights/MODEL_CARD.md")  # fmt: skip
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)")
_PICTURE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z]+:|/")
_places: dict[str, str] = {}  # a path in the repository -> the page in the site


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie beside the documentation."""
    _places.clear()
    _places.update({f"docs/{one.src_uri}": one.src_uri for one in files.documentation_pages()})
    found = sorted({path for pattern in BESIDE for path in ROOT.glob(pattern)})
    _places.update({(p := path.relative_to(ROOT).as_posix()): name_page(p) for path in found})
    for path in found:
        uri = _places[path.relative_to(ROOT).as_posix()]
        if path.suffix == ".ipynb":
            for name, content in read_notebook(path, uri).items():
                files.append(File.generated(config, name, content=content))
        else:
            files.append(File.generated(config, uri, content=path.read_text(encoding="utf-8")))
    return files


def name_page(path: str) -> str:
    """Return where in the site a file of the repository is."""
    if path == "README.md":
        return "readme.md"
    folder, name = posixpath.split(path)
    if name == "README.md":
        return f"{folder}.md"
    return posixpath.join(folder, posixpath.splitext(name)[0].lower() + ".md")


def read_notebook(path: Path, uri: str) -> dict[str, str | bytes]:
    """Return a notebook as a page, and its pictures, by their places in the site."""
    book = nbformat.read(path, as_version=4)
    text, resources = MarkdownExporter().from_notebook_node(book)
    folder, stem = posixpath.dirname(uri), posixpath.basename(uri).removesuffix(".md")
    pictures = resources.get("outputs", {})
    for name in pictures:
        text = text.replace(f"({name})", f"({stem}_{name})")
    return {
        uri: text,
        **{posixpath.join(folder, f"{stem}_{name}"): data for name, data in pictures.items()},
    }


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Have links lead to pages of the site, and pictures be those of the documentation."""
    here = next(path for path, uri in _places.items() if uri == page.file.src_uri)

    def lead(match: re.Match[str]) -> str:
        to, anchor = match["to"], match["anchor"] or ""
        if not to or _ELSEWHERE.match(to):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), to))
        if target not in _places:
            is_in_docs = target.startswith("docs/")
            return match[0] if is_in_docs else f"{match['text']} (`{target}`)"
        way = posixpath.relpath(_places[target], posixpath.dirname(page.file.src_uri) or ".")
        return f"[{match['text']}]({way}{anchor})"

    def show(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(here), match["to"]))
        if not target.startswith("docs/"):
            return match[0]
        way = posixpath.relpath(
            target.removeprefix("docs/"), posixpath.dirname(page.file.src_uri) or "."
        )
        return f"![{match['text']}]({way})"

    return _PICTURE.sub(show, _LINK.sub(lead, markdown))
