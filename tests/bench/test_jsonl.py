import pytest

from bench.lakes import make_instance
from deepera_graph.calibration.instance import DatasetError, Instance, read_rows, write_rows
from deepera_graph.lab.data.readers import read_instances


def test_what_is_written_is_read_back(tmp_path):
    instances = [make_instance(number, distractors=(3, 4)) for number in range(3)]
    assert write_rows(tmp_path / "x.jsonl", instances) == 3
    assert list(read_instances(tmp_path / "x.jsonl")) == instances


def test_line_separators_inside_a_text_do_not_end_a_line(tmp_path):
    context = make_instance().contexts[0].model_copy(update={"text": "one\u2028two\x85three"})
    one = make_instance(golden=(2,)).model_copy(
        update={"contexts": (context, *make_instance().contexts[1:])}
    )
    write_rows(tmp_path / "x.jsonl", [one])
    assert list(read_instances(tmp_path / "x.jsonl")) == [one]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    for name in ("a", "b"):
        write_rows(tmp_path / name, [make_instance(1), make_instance(2)])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    def rows():
        yield make_instance(1)
        raise ValueError("no more")

    write_rows(tmp_path / "x.jsonl", [make_instance(9)])
    with pytest.raises(ValueError, match="no more"):
        write_rows(tmp_path / "x.jsonl", rows())
    assert [one.id for one in read_instances(tmp_path / "x.jsonl")] == ["q9"]


def test_reading_is_lazy(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(make_instance(1).model_dump_json() + "\n{broken\n")
    assert next(read_rows(path, Instance)).id == "q1"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param("{broken", "line 3: Invalid JSON", id="not-json"),
        pytest.param('{"id": "x"}', "line 3: question: Field required", id="field-missing"),
        pytest.param(
            '{"id": "x", "question": "?", "contexts": [{"id": "a", "text": 3}]}',
            "line 3: contexts.0.text: Input should be a valid string",
            id="wrong-type",
        ),
    ],
)
def test_a_bad_line_is_named_with_file_and_number(tmp_path, line, message):
    path = tmp_path / "x.jsonl"
    path.write_text(f"{make_instance(1).model_dump_json()}\n\n{line}\n")
    with pytest.raises(DatasetError, match=message) as caught:
        list(read_instances(path))
    assert str(caught.value).startswith(f"{path}, line 3: ")


def test_bytes_that_are_not_utf8_are_a_bad_line(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(DatasetError, match="line 1"):
        list(read_instances(tmp_path / "x.jsonl"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DatasetError, match=r"x\.jsonl cannot be read: No such file"):
        list(read_instances(tmp_path / "x.jsonl"))


def test_an_instance_id_used_twice_is_refused(tmp_path):
    write_rows(tmp_path / "x.jsonl", [make_instance(1), make_instance(1)])
    with pytest.raises(DatasetError, match="instance id 'q1' is used twice"):
        list(read_instances(tmp_path / "x.jsonl"))
