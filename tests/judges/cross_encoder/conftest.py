"""A tiny cross-encoder in a folder."""

import pytest


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "tiny"


@pytest.fixture
def twin(folder):
    """Writes the model into the folder, and is the same in NumPy."""
    from support.tiny_encoder import write_model

    return write_model(folder)
