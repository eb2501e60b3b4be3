"""Running the server: uvicorn in this process, or in several that share one address."""

import logging
import os
import signal
import sys
import tempfile
from functools import partial
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from deepera_graph.serve import metrics
from deepera_graph.serve.config import ServeConfig

_FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"
_THREADS = "OMP_NUM_THREADS"


def run(config: ServeConfig, *, host: str, port: int, grace: int) -> None:
    """Answer until SIGTERM or Ctrl-C, and then until what is in flight is answered.

    Args:
        config: What is served.
        host: Address to listen at.
        port: Port; 0 is any that is free.
        grace: Most seconds that requests in flight get at the end.
    """
    if config.workers == 1:
        server = uvicorn.Server(_configure(config, host, port, grace))
        _end_quietly()
        server.run()
        return
    with tempfile.TemporaryDirectory(prefix="deepera-metrics-") as folder:
        os.environ[metrics.FOLDER] = folder
        os.environ.setdefault(_THREADS, str(max(1, (os.cpu_count() or 1) // config.workers)))
        made = _configure(config, host, port, grace)
        Multiprocess(made, sockets=[made.bind_socket()]).run()


def _configure(config: ServeConfig, host: str, port: int, grace: int) -> uvicorn.Config:
    return uvicorn.Config(
        partial(_make, config),
        factory=True,
        host=host,
        port=port,
        workers=config.workers,
        access_log=False,
        log_config=_describe_log(),
        timeout_graceful_shutdown=grace,
        server_header=False,
        lifespan="on",
    )


def _make(config: ServeConfig) -> Any:
    """Make the application in the process that runs it."""
    from deepera_graph.serve.app import create_app  # noqa: PLC0415 - after the metrics' folder is set

    return create_app(config)


def _describe_log() -> dict[str, Any]:
    """Return how is logged: one line a request, to stderr, without what it says."""
    level = logging.getLevelName(logging.INFO)
    handlers = {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}}
    own = {"handlers": ["stderr"], "level": level, "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": _FORM}},
        "handlers": handlers,
        "loggers": {"deepera_graph.serve": own, "uvicorn": {**own, "level": "WARNING"}},
    }


def _end_quietly() -> None:
    """Have SIGTERM be the end, without an error: uvicorn raises it again once all is answered."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
