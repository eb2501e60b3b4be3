"""Files of questions in memory."""

import io
import json

import pytest

QUESTION = "Does green tea lower fasting glucose?"


@pytest.fixture
def make_line():
    def make(name, *texts, **fields):
        passages = [{"id": f"p{n}", "text": text} for n, text in enumerate(texts, start=1)]
        return {"id": name, "question": QUESTION, "passages": passages, **fields}

    return make


@pytest.fixture
def make_file():
    """Objects become JSON, bytes stay as they are."""

    def make(*lines):
        raw = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines]
        return io.BytesIO(b"".join(one + b"\n" for one in raw))

    return make
