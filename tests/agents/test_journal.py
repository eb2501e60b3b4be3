"""What is done of a file of questions."""

import errno
import io
import os

import pytest

from deepera_graph.agents.journal import Journal
from deepera_graph.errors import SettingsError
from deepera_graph.text.jsonl import naming_full_file


def test_nothing_is_left_of_a_line_that_a_kill_cut_off(tmp_path):
    path, ran = tmp_path / "journal.jsonl", {"model": "m"}
    with Journal(path, ran).open(resume=False) as journal:
        journal.put("a", {"score": 1})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id": "torn", "text": "' + b"long " * 50)
    with Journal(path, ran).open(resume=True) as journal:
        assert journal.entries == {"a": {"id": "a", "score": 1}}
    assert path.read_bytes() == whole
    with Journal(path, ran).open(resume=True) as journal:
        journal.put("b", {})
    assert path.read_bytes() == whole + b'{"id": "b"}\n'


def test_a_full_disk_is_told_with_the_file_that_has_no_room(tmp_path):
    path = tmp_path / "journal.jsonl"

    class Full(io.BytesIO):
        def flush(self):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Journal(path, {}).open(resume=False) as journal:
        journal._file = Full()
        with pytest.raises(OSError, match="No space left") as told:
            journal.put("a", {})
    assert told.value.filename == str(path)


def test_another_error_is_not_blamed_on_the_file():
    with pytest.raises(BrokenPipeError) as told, naming_full_file("a file"):
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    assert told.value.filename is None


def test_two_runs_do_not_write_one_journal(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {}).open(resume=True) as journal:
        journal.put("a", {"text": "long " * 50})
        with (
            pytest.raises(SettingsError, match="is being written by another process"),
            Journal(path, {}).open(resume=True) as other,
        ):
            other.put("b", {})
        journal.put("c", {})
    assert [*Journal(path, {}).read().entries] == ["a", "c"]
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
