"""The command line, and the material outside this repository where it is there."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deepera_graph.cli.main import app
from deepera_graph.lab.cli.main import app as lab

SHARED = Path(__file__).parents[3] / "shared" / "bioasq"


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    """Collections and caches are the test's own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def deepera(own_folders):
    """Runs a command in this process."""
    return lambda *args: CliRunner().invoke(app, [str(one) for one in args])


@pytest.fixture
def deepera_lab(own_folders):
    """Runs a command for those who measure in this process."""
    return lambda *args: CliRunner().invoke(lab, [str(one) for one in args])
