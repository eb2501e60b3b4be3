"""Conformance tests that any LangChain document compressor can run; needs pytest.

Subclass `CompressorTests` in a test file, say what `compressor` is, and pytest does the rest.
"""

from langchain_deepera.testing.compressors import FAILURE_MARK, CompressorTests, RunRecorder

__all__ = ["FAILURE_MARK", "CompressorTests", "RunRecorder"]
