"""What is done of a file of questions."""

from deepera_graph.jobs.journal import Journal


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
