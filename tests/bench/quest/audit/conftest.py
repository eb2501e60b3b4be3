"""One audit of 450 pairs, for tests that only read it."""

import pytest

from deepera_graph.lab.quest.audit.drawing import Audit, draw_audit
from support.quest_build import write_build


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return write_build(tmp_path_factory.mktemp("quest") / "build", (400, 200, 150))


@pytest.fixture(scope="session")
def drawn(build):
    return draw_audit(build, build.parent / "audit")


@pytest.fixture
def small(build, tmp_path):
    """An audit of six pairs, to be labelled."""
    audit = draw_audit(build, tmp_path / "audit", per_grade=2)
    assert isinstance(audit, Audit)
    return audit
