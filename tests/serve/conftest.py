"""One server for all tests of this folder."""

from collections.abc import Iterator

import httpx
import pytest

from deepera_graph.serve.config import ServeConfig
from support.literature import Literature
from support.serving import running


@pytest.fixture(scope="session")
def server() -> Iterator[httpx.Client]:
    """A client of a server with the local judge."""
    with running(ServeConfig()) as client:
        yield client


@pytest.fixture(scope="module")
def world() -> Iterator[Literature]:
    """Services of literature on this machine."""
    with Literature() as services, pytest.MonkeyPatch.context() as patch:
        for name, value in {**services.variables, "NO_PROXY": "127.0.0.1"}.items():
            patch.setenv(name, value)
        yield services
