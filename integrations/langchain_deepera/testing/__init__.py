"""Conformance tests that any LangChain document compressor can run; needs pytest.

Subclass `CompressorTests` in a test file, say what `compressor` is, and pytest does the rest.
"""

from langchain_deepera.testing.compressors import CompressorTests
from langchain_deepera.testing.recorder import RunRecorder
from langchain_deepera.testing.subject import FAILURE_MARK

__all__ = ["FAILURE_MARK", "CompressorTests", "RunRecorder"]
