"""The command line, and the material outside this repository where it is there."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepera_graph.cli.main import app

SHARED = Path(__file__).parents[3] / "shared" / "bioasq"


@pytest.fixture
def deepera(tmp_path, monkeypatch):
    """Runs a command in this process; collections and caches are the test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    runner = CliRunner()

    def run(*args):
        return runner.invoke(app, [str(one) for one in args])

    return run
