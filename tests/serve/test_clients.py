"""The clients of other services themselves, those that are installed, against a running server."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "serve" / "clients.py"


def load():
    spec = spec_from_file_location("rerank_clients", SCRIPT)
    module = sys.modules["rerank_clients"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CLIENTS = load()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS.CLIENTS)
def test_a_client_ranks_as_the_server_does(server, name):
    url = str(server.base_url).rstrip("/")
    tried = CLIENTS.try_client(url, name, CLIENTS.ask_directly(url))
    if tried.verdict == "not installed":
        pytest.skip(f"{tried.client} is not installed")
    assert tried.verdict == "right"
