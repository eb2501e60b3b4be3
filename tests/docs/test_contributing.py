"""The map of the folders names what is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "deepera_graph"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_FOLDER, _ROW = re.compile(r"\| `(\w+)/` \| \|"), re.compile(r"\| `((?:\w+/)+)`[^|]*\|")


def test_every_file_of_a_large_folder_that_is_named_exists() -> None:
    part = TEXT.partition("### Inside the large folders")[2].partition("\n## ")[0]
    folder, missing, n_named = "", [], 0
    for line in part.splitlines():
        if begun := _FOLDER.fullmatch(line):
            folder = begun[1]
            continue
        row = _ROW.match(line)
        places = [PACKAGE / folder, PACKAGE / folder / (row[1] if row else "")]
        for name in re.findall(r"`([\w/]+\.(?:py|js|json))`", line):
            n_named += 1
            if not any((place / name).exists() for place in places):
                missing.append(f"{folder}/{name}")
    assert missing == []
    assert n_named > 80


def test_every_folder_and_module_of_the_package_is_in_the_table() -> None:
    there = {
        f"{path.name}/" if path.is_dir() else path.name
        for path in PACKAGE.iterdir()
        if not path.name.startswith(("_", "py.typed"))
    }
    assert {name for name in there if f"`{name}`" not in TEXT} == set()
