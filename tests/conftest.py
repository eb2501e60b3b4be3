"""Lets every test import `support`; keeps files in memory, and reads no list of certificates."""

import gc
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import typer.testing
from hypothesis import settings

MEMORY = Path("/dev/shm")  # pytest makes a folder of the user's own in it
ROOM = 2**30  # bytes; a run of the tests writes about a twentieth of it

if MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # it would call out, once imported

# Compiling the tests anew takes longer than reading all else; so for processes that tests start.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# --hypothesis-profile=default has 100 examples; a busy machine is no fault of what is tested.
settings.register_profile("default", settings.get_profile("default"), deadline=None)
settings.register_profile("short", max_examples=50, deadline=None)
settings.load_profile("short")

# It makes all commands of an app anew at each call, which takes longer than most calls do.
if hasattr(typer.testing, "_get_command"):
    typer.testing._get_command = cache(typer.testing._get_command)


def pytest_configure():
    """Look for nothing to free until all tests are read, as nearly all that reading makes stays."""
    gc.disable()


def pytest_ignore_collect(collection_path, config):
    """Read no module that `make check` leaves to the whole suite, as reading takes time, too."""
    if config.option.markexpr != _FAST or collection_path.suffix != ".py":
        return None
    return True if _WHOLLY_FULL in collection_path.read_text(encoding="utf-8") else None


_FAST = "not (live or slow or tinyllm or browser or full)"  # as the Makefile has it
_WHOLLY_FULL = "\npytestmark = pytest.mark.full\n"


def _share_schemas():
    """Let clients of Qdrant share what each copies of its library: 9 of 10 ms to make one."""
    schemas = sys.modules.get("qdrant_client.embed.schema_parser")
    if schemas is not None:
        schemas.deepcopy = lambda found: found


def _spare_certificates():
    """Point at a folder without certificates: the list of the system takes 30 ms a client."""
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)


def pytest_collection_finish(session):
    """Set aside what stays for the whole run: looking through it again took a tenth of the time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)  # not after every 700 objects, as one test makes thousands
    gc.enable()
    _share_schemas()
    if not any(item.get_closest_marker("live") for item in session.items):
        _spare_certificates()
