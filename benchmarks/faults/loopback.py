"""The scripted chat server of the tests, importable from here."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.openai_server import ChatServer, Reply, Request
from support.openai_wire import texts

__all__ = ["ChatServer", "Reply", "Request", "texts"]
