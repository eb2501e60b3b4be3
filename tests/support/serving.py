"""Servers on loopback, in a thread of this process, and what they are asked."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep

import httpx
import uvicorn

from deepera_graph.serve.app import create_app
from deepera_graph.serve.config import ServeConfig

QUESTION = "Does wax coating keep apples firm in storage?"
PASSAGES = (
    "Whether wax coating keeps apples firm in storage has been debated for decades.",
    "Wax coating kept apples firm: after 90 days in storage, firmness had fallen by 6% in coated "
    "apples and by 31% in uncoated apples (p < 0.001).",
    "Apples were coated with wax and stored; firmness will be measured with a penetrometer.",
)


@contextmanager
def running(config: ServeConfig) -> Iterator[httpx.Client]:
    """Run a server, and yield a client of it."""
    with running_server(config) as (client, _):
        yield client


@contextmanager
def running_server(config: ServeConfig) -> Iterator[tuple[httpx.Client, uvicorn.Server]]:
    """Run a server, and yield a client of it, and what can be told to stop."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = create_app(config)
    server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_config=None, access_log=False))
    thread = Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            wait_until_ready(client)
            yield client, server
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def wait_until_ready(client: httpx.Client, seconds: float = 60) -> None:
    """Ask for its health until the judge is loaded."""
    end = monotonic() + seconds
    while monotonic() < end:
        try:
            if client.get("/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        sleep(0.02)
    raise TimeoutError("the server did not get ready")


def wait_for(claim: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait until a claim is true; return whether it is."""
    end = monotonic() + seconds
    while not claim() and monotonic() < end:
        sleep(0.01)
    return claim()


def write_request(body: bytes, length: int, more: str = "") -> bytes:
    """Return a request for evidence as it goes over a socket; *more* are lines of its head."""
    lines = ("POST /v1/evidence HTTP/1.1", "Host: localhost", f"Content-Length: {length}")
    return "\r\n".join([*lines, f"{more}\r\n"]).encode() + body
