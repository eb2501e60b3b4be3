"""Lets every test import `support`; keeps files in memory, and reads no list of certificates."""

import gc
import os
import shutil
from functools import cache
from pathlib import Path

import typer.testing

MEMORY = Path("/dev/shm")  # pytest makes a folder of the user's own in it
ROOM = 2**30  # bytes; a run of the tests writes about a twentieth of it

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # it would call out, once imported

# It makes all commands of an app anew at each call, which takes longer than most calls do.
typer.testing._get_command = cache(typer.testing._get_command)


def pytest_configure(config):
    """Point at a folder without certificates: the list of the system takes 20 ms a client."""
    if "not live" in config.option.markexpr:
        os.environ.pop("SSL_CERT_FILE", None)
        os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


def pytest_collection_finish():
    """Set aside what stays for the whole run: looking through it again took a tenth of the time."""
    gc.collect()
    gc.freeze()
