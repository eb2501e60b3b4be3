"""A scripted model server, and builds against it."""

import pytest

from bench.build.lake_builds import build_from_lakes
from bench.build.model_script import answer
from support.openai_server import ChatServer


@pytest.fixture
def server():
    with ChatServer(answer) as running:
        yield running


@pytest.fixture
def build_lakes(tmp_path):
    """Build in a folder, see `build_from_lakes`."""

    def made(server, out=tmp_path / "out", **options):
        return build_from_lakes(server.base_url, out, **options)

    return made
