"""Imports by name: import-linter does not see them, and they keep to the same layers."""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = re.compile(r"(?:langchain|llama_index|haystack)_deepera|deepera_graph\.\w+")
CALLS = {"import_module", "__import__", "import_extra"}


def read_layers():
    """Return the height of each part of the package, and of what stands on top of it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    heights = {
        part: height
        for height, layer in enumerate(reversed(layers))
        for part in re.findall(r"\w+", layer)
    }
    return heights | dict.fromkeys(
        ("langchain_deepera", "llama_index_deepera", "haystack_deepera"), len(layers)
    )


def find_named(source):
    """Return the modules of ours that strings name in a file which imports by name."""
    if not any(one in source for one in CALLS):
        return set()
    tree = ast.parse(source)
    names = {
        getattr(one.func, "id", getattr(one.func, "attr", ""))
        for one in ast.walk(tree)
        if isinstance(one, ast.Call)
    }
    if not CALLS & names:
        return set()
    strings = [one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)]
    found = {
        match[0]
        for text in strings
        if isinstance(text, str) and "\n" not in text
        for match in [OURS.match(text)]
        if match
    }
    return {one.removeprefix("deepera_graph.") for one in found}


def upward(path, source, heights):
    """Return what a file names that stands above it."""
    parts = path.split("/")
    own = heights.get(parts[1].removesuffix(".py"), len(heights))  # __init__, __main__: on top
    named = find_named(source)
    return [one for one in sorted(named) if heights[one] > own]


@pytest.mark.full
def test_no_module_is_imported_by_name_from_a_layer_above():
    heights, found = read_layers(), {}
    for file in sorted((ROOT / "deepera_graph").rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        if named := upward(path, file.read_text(encoding="utf-8"), heights):
            found[path] = named
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        'import_module("langchain_deepera").EvidenceEmbeddings()',
        'importlib.import_module("deepera_graph.serve.app")',
        'PLACE = "deepera_graph.lab.run:main"\nimport_module(PLACE.partition(":")[0])',
        'import_module(f"deepera_graph.cli.{name}")',
    ],
)
def test_a_name_of_a_layer_above_is_seen(source):
    assert upward("deepera_graph/multihop/path.py", source, read_layers())
    assert not upward("deepera_graph/multihop/path.py", 'x = "langchain_deepera"', read_layers())


TWICE = {"QueryReply"}  # a model sees the name of a reply's form, and answers kept go by it


@pytest.mark.full
def test_a_public_class_name_stands_once():
    places = defaultdict(list)
    for file in sorted((ROOT / "deepera_graph").rglob("*.py")):
        for name in re.findall(
            r"^class ([^\W_]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE
        ):
            places[name].append(file.relative_to(ROOT).as_posix())
    assert {name for name, found in places.items() if len(found) > 1} == TWICE


def test_a_file_has_at_most_400_lines():
    package = ROOT / "deepera_graph"
    n_lines = {
        file.relative_to(package).as_posix(): len(file.read_text(encoding="utf-8").splitlines())
        for file in package.rglob("*.py")
    }
    assert not {name: n for name, n in n_lines.items() if n > 400}


def test_a_folder_has_at_most_ten_modules():
    modules = (ROOT / "deepera_graph").rglob("*.py")
    fronts = {"__init__.py", "__main__.py"}
    counts = Counter(one.parent for one in modules if one.name not in fronts)
    assert not {str(folder): n for folder, n in counts.items() if n > 10}
