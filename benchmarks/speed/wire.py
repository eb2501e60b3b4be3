"""OpenAI's protocol on the wire, as the scripted server of the tests speaks it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.openai_wire import Reply, error_pieces, read_request, texts, whole

__all__ = ["Reply", "error_pieces", "read_request", "texts", "whole"]
