"""The table of settings is that of the code."""

import re
from dataclasses import fields
from pathlib import Path

from deepera_graph import Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"


def test_the_table_has_every_setting_with_its_default() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {name: default.strip('`"').replace(" ", "") for name, default in rows}
    assert told == {one.name: str(one.default).strip('"') for one in fields(Settings)}
