"""Files of documents, written where the test runs."""

import pytest


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file below the current folder; return its name."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write
