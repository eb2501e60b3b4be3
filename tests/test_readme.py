"""The README's Python runs and prints what it says; its diagram is the compiled graph's."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from deepera_graph import build_graph, local_backend
from deepera_graph.settings import Settings

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_python_block_prints_what_it_says(block: str) -> None:
    expected = re.findall(r"^# > (.*)$", block, re.MULTILINE)
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(block, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == expected


def test_there_are_blocks_to_run() -> None:
    assert len(BLOCKS) >= 2


def test_the_diagram_is_drawn_from_the_compiled_graph() -> None:
    drawn = build_graph(local_backend(), Settings(answer=True)).get_graph().draw_mermaid()
    assert body(drawn) in README


def body(mermaid: str) -> str:
    """Node and edge lines without front matter and styles."""
    return "\n".join(
        line.strip() for line in mermaid.splitlines() if re.search(r"-->|-\.|\(", line)
    )
