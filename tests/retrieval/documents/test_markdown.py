"""Passages read from Markdown."""

import pytest

from deepera_graph.errors import InputError
from deepera_graph.retrieval.sources import read_passages

NOTES = """---
title: Notes on kelp
author: [Kim Lee, Ann Roy]
date: 2019-08-28
doi: 10.1000/kelp
tags: [kelp, otters]
---
# Notes on kelp

Kelp *grew* by [40 %](https://example.org/kelp) in `plot 1`.
![a chart](chart.png)

Results
-------
It was a_b_c, said <b>Lee</b>.<!-- not shown -->

```python
# no heading
grow(kelp)
```

### Urchins

| plot | cover |
|------|-------|
| A    | 40    |

- They died.
- All of them.

## References

1. Roy A. Urchins. 2001.
"""


def read(name):
    return list(read_passages(name))


def test_front_matter_is_metadata_and_headings_begin_sections(write):
    first, second = read(write("a.md", NOTES))
    assert first.metadata == {
        "source": "a.md", "title": "Notes on kelp", "authors": "Kim Lee; Ann Roy", "year": 2019,
        "date": "2019-08-28", "doi": "10.1000/kelp", "tags": ["kelp", "otters"], "part": 1,
    }  # fmt: skip
    assert first.page_content == "Kelp grew by 40 % in plot 1. a chart"
    assert second.metadata["section"] == "Results"
    assert second.page_content.split("\n\n") == [
        "It was a_b_c, said Lee.", "# no heading\ngrow(kelp)", "Urchins", "plot | cover", "A | 40",
        "They died.", "All of them.",
    ]  # fmt: skip


def test_several_headings_of_the_first_level_are_sections_and_the_first_is_the_title(write):
    found = read(write("a.markdown", "# Kelp\n\nIt grew.\n\n# Otters\n\nThey ate.\n"))
    assert [one.metadata["section"] for one in found] == ["Kelp", "Otters"]
    assert {one.metadata["title"] for one in found} == {"Kelp"}


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("2. Rooms", "Rooms"),
        ("2.1 Rooms", "Rooms"),
        ("2 Rooms", "Rooms"),
        ("Trial 2 results", "Trial 2 results"),
        ("3 mm mesh", "3 mm mesh"),
        ("X. laevis", "X. laevis"),
        ("3 METHODS:", "Methods"),
    ],
)
def test_the_number_of_a_heading_is_no_part_of_the_name(write, heading, section):
    one, _ = read(write("a.md", f"# T\n\n## {heading}\n\nKelp grew.\n\n## More\n\nIt fell.\n"))
    assert one.metadata["section"] == section


def test_a_line_of_dashes_is_no_front_matter(write):
    [document] = read(write("a.md", "---\n\nKelp grew.\n"))
    assert document.page_content == "Kelp grew."


def test_front_matter_that_is_no_yaml_is_named_and_the_text_is_read(write):
    skipped = []
    name = write("a.md", "---\ntitle: [kelp\n---\nKelp grew.\n")
    [document] = read_passages(name, on_skip=skipped.append)
    assert document.page_content == "Kelp grew."
    assert [str(one)[:40] for one in skipped] == ["a.md: the front matter is no YAML: while"]


def test_aliases_that_grow_without_end_are_no_metadata(write):
    lines = ["a0: &a0 [x, x]"] + [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)
    ]
    [document] = read(write("a.md", "\n".join(["---", *lines, "---", "Kelp grew."])))
    assert document.metadata == {"source": "a.md", "a0": ["x", "x"]}


def test_a_file_of_a_heading_alone_is_named(write):
    with pytest.raises(InputError, match=r"^a\.md: has no text but a heading"):
        read(write("a.md", "# Kelp\n"))
