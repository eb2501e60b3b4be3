"""One server for all tests of this folder."""

from collections.abc import Iterator

import httpx
import pytest

from deepera_graph.serve.config import ServeConfig
from support.serving import running


@pytest.fixture(scope="session")
def server() -> Iterator[httpx.Client]:
    """A client of a server with the local judge."""
    with running(ServeConfig()) as client:
        yield client
