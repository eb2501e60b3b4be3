"""The five services on this machine, on a port of each test's own, where no limit holds yet."""

import pytest

from support.literature import Literature


@pytest.fixture
def world(monkeypatch):
    with Literature() as running:
        for name, value in running.variables.items():
            monkeypatch.setenv(name, value)
        for name in ("NCBI_API_KEY", "OPENALEX_API_KEY", "S2_API_KEY", "DEEPERA_CONTACT"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield running
