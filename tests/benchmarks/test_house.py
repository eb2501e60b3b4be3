"""The counts of `benchmarks/house`, over a package of five files."""

import importlib.util
import sys
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "house" / "size.py"
FILES = {
    "__init__.py": "",
    "loose.py": "from pkg.room.a import name\n",
    "room/__init__.py": "",
    "room/a.py": "def name():\n    from pkg.room import b\n    return b\n",
    "room/b.py": (
        "from importlib import import_module\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from pkg.loose import name\n"
        "HIDDEN = 'pkg.room.a'\n"
    ),
}


@pytest.fixture(scope="module")
def size():
    spec = importlib.util.spec_from_file_location("house_size", FILE)
    module = sys.modules["house_size"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(tmp_path):
    for name, source in FILES.items():
        path = tmp_path / "pkg" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "pkg"


def test_files_lines_folders_and_lengths_are_counted(size, folder):
    found = size.measure(folder)
    assert (found["files"], found["lines"], found["loose modules"]) == ("5", "9", "1")
    assert (found["folders"], found["functions"], found["function length, median"]) == (
        "1",
        "1",
        "3",
    )


def test_an_import_within_a_function_and_one_by_string_make_a_cycle(size, folder):
    running = size.Package.read(folder).find_imports(running=True)
    assert size.find_cycles(running) == [["pkg.room.a", "pkg.room.b"]]
    seen = size.Package.read(folder).find_imports(running=True, by_string=False)
    assert size.find_cycles(seen) == []


def test_an_import_for_type_checking_counts_as_an_importer_and_in_no_cycle(size, folder):
    imports = size.Package.read(folder).find_imports(running=False)
    assert size.find_sole_importers(imports) == {
        "pkg.loose": "pkg.room.b",
        "pkg.room.b": "pkg.room.a",
    }
    assert (
        size.find_cycles(size.find_rooms(size.Package.read(folder).find_imports(running=True)))
        == []
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        pytest.param("from . import b", "pkg.room.b", id="from-the-folder"),
        pytest.param("from .b import HIDDEN", "pkg.room.b", id="from-a-neighbour"),
        pytest.param("from ..loose import name", "pkg.loose", id="from-above"),
        pytest.param("import pkg.loose as it", "pkg.loose", id="by-its-name"),
    ],
)
def test_an_import_is_found_however_it_is_written(size, folder, source, target):
    (folder / "room" / "a.py").write_text(source)
    imports = size.Package.read(folder).find_imports(running=False)
    assert imports["pkg.room.a"] == {target}


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 90, 9), ([7], 90, 7), ([3, 1, 2], 50, 2)],
)
def test_a_percentile_is_one_of_the_values(size, values, percent, expected):
    assert size.percentile(values, percent) == expected


@pytest.mark.full
def test_no_two_files_of_this_package_import_each_other(size):
    package = Path(__file__).parents[2] / "deepera_graph"
    assert size.find_cycles(size.Package.read(package).find_imports(running=True)) == []
