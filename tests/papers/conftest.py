"""One base of invented papers, shared by tests that only read it."""

import pytest

from deepera_graph.papers import PaperBase
from papers.world import invent_papers, write_lines


@pytest.fixture(scope="session")
def world():
    return invent_papers(240)


@pytest.fixture(scope="session")
def base(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("papers")
    source = write_lines(folder / "world.jsonl.gz", world)
    with PaperBase.build(folder / "world.papers", source) as made:
        yield made
