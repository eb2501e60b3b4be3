"""Running the server: uvicorn in this process, or in several that share one address."""

import logging
import os
import signal
import socket
import sys
import tempfile
from functools import partial
from threading import Timer
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from deepera_graph.serve import metrics
from deepera_graph.serve.config import ServeConfig

_FORM = "%(asctime)s %(levelname)s %(name)s %(message)s"
_THREADS = "OMP_NUM_THREADS"
_SECONDS_LEFT = 5.0  # for threads, once all requests have ended


def run(config: ServeConfig, listening: socket.socket, *, grace: int, quiet: bool) -> None:
    """Answer until SIGTERM or Ctrl-C, and then until what is in flight is answered.

    Args:
        config: What is served.
        listening: Where; see `deepera_graph.web.listen`.
        grace: Most seconds that requests in flight get at the end.
        quiet: Whether requests get no line in the log.
    """
    made = _configure(config, grace, logging.WARNING if quiet else logging.INFO)
    if config.workers == 1:
        _end_quietly()
        uvicorn.Server(made).run(sockets=[listening])
        return
    with tempfile.TemporaryDirectory(prefix="deepera-metrics-") as folder:
        os.environ[metrics.FOLDER] = folder
        os.environ.setdefault(_THREADS, str(max(1, (os.cpu_count() or 1) // config.workers)))
        Multiprocess(made, sockets=[listening]).run()


def _configure(config: ServeConfig, grace: int, level: int) -> uvicorn.Config:
    return uvicorn.Config(
        partial(_make, config),
        factory=True,
        workers=config.workers,
        access_log=False,
        log_config=_describe_log(level),
        timeout_graceful_shutdown=grace,
        server_header=False,
        lifespan="on",
    )


def _make(config: ServeConfig) -> Any:
    """Make the application in the process that runs it."""
    from deepera_graph.serve.app import create_app  # noqa: PLC0415 - after the metrics' folder is set

    return create_app(config, on_end=_leave_soon)


def _leave_soon() -> None:
    """End the process, even if a judge goes on with what nobody waits for."""
    leaving = Timer(_SECONDS_LEFT, os._exit, (0,))
    leaving.daemon = True
    leaving.start()


def _describe_log(level: int) -> dict[str, Any]:
    """Return how is logged: one line a request, to stderr, without what it says."""
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
