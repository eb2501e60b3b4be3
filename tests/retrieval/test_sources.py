"""Passages read from files."""

import json
from itertools import islice

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.retrieval.sources import read_passages
from deepera_graph.retrieval.store import open_store

LONG = " ".join(f"In plot {number} the otters ate most of the urchins." for number in range(45))


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def read(name, **options):
    return [(d.id, d.page_content, d.metadata) for d in read_passages(name, **options)]


def test_json_lines(write):
    line = {"id": 7, "title": "Kelp", "text": "It grew.", "year": 2019, "metadata": {"doi": "x"}}
    name = write("a.jsonl", json.dumps(line) + "\n")
    metadata = {"source": "a.jsonl", "year": 2019, "doi": "x", "title": "Kelp"}
    assert read(name) == [("7", "It grew.", metadata)]


@pytest.mark.parametrize("field", ["text", "page_content", "contents", "abstract"])
def test_the_text_goes_by_several_names(write, field):
    assert read(write("a.jsonl", json.dumps({field: "It grew."})))[0][1] == "It grew."


def test_a_list_of_sentences_is_a_text(write):
    name = write("a.jsonl", '{"_id": "s", "abstract": ["It grew.", "It died."]}')
    assert read(name) == [("s", "It grew. It died.", {"source": "a.jsonl"})]


def test_without_an_id_the_line_is_one(write):
    name = write("a.jsonl", '{"text": "one"}\n\n  \n{"text": "two"}')
    assert [row[0] for row in read(name)] == ["a.jsonl:1", "a.jsonl:4"]


def test_lines_end_at_line_feeds_only(write):
    text = "a\u2028b\u0085c\x0bd"
    name = write("a.jsonl", json.dumps({"text": text}, ensure_ascii=False) + "\r\n")
    assert read(name)[0][1] == text


def test_a_byte_order_mark_is_no_text(write):
    assert read(write("a.jsonl", b'\xef\xbb\xbf{"text": "one"}'))[0][1] == "one"
    assert read(write("a.csv", b"\xef\xbb\xbftext\none"))[0][1] == "one"


def test_a_source_of_its_own_is_kept(write):
    name = write("a.jsonl", '{"text": "one", "metadata": {"source": "PubMed"}}')
    assert read(name)[0][2] == {"source": "PubMed"}


def test_csv(write):
    header = "id,title,text,year,p,code,note\n"
    rows = header + '007,Kelp,"It grew,\nthen died.",2019,0.05,012,\n2,,b,1e5,,,x'
    assert read(write("a.csv", rows)) == [
        (
            "007",
            "It grew,\nthen died.",
            {"source": "a.csv", "title": "Kelp", "year": 2019, "p": 0.05, "code": "012"},
        ),
        ("2", "b", {"source": "a.csv", "year": "1e5", "note": "x"}),
    ]


def test_csv_rows_without_an_id_are_named_by_their_first_line(write):
    name = write("a.csv", 'text\n"a\nb"\nc\n')
    assert [row[0] for row in read(name)] == ["a.csv:2", "a.csv:4"]


def test_a_text_file_is_one_text_without_a_title(write):
    assert read(write("a.txt", "Kelp grew.\n")) == [("a.txt", "Kelp grew.", {"source": "a.txt"})]


def test_a_markdown_file_is_titled_by_its_first_heading(write):
    name = write("a.md", "\n# Kelp and otters #\n\nThey grew.\n\n## More\n")
    assert read(name)[0][2]["title"] == "Kelp and otters"


def test_a_long_text_is_cut_into_numbered_parts(write):
    name = write("a.jsonl", json.dumps({"id": "x", "title": "Otters", "text": LONG}))
    rows = read(name)
    assert [row[0] for row in rows] == ["x#1", "x#2", "x#3"]
    assert [row[2]["part"] for row in rows] == [1, 2, 3]
    assert {row[2]["title"] for row in rows} == {"Otters"}
    assert " ".join(row[1] for row in rows) == LONG
    assert len(read(name, max_words=1000)) == 1


def test_a_folder_is_read_in_order_of_names_without_hidden_and_other_files(write):
    for name in ("f/b.txt", "f/a/z.md", "f/c.jsonl", "f/.git/x.txt", "f/.y.txt", "f/image.png"):
        write(name, '{"text": "kelp"}')
    assert [row[0] for row in read("f")] == ["f/a/z.md", "f/b.txt", "f/c.jsonl:1"]


def test_passages_come_one_by_one(write):
    name = write("a.jsonl", '{"text": "one"}\n{"text": "two"}\nbroken')
    assert [d.page_content for d in islice(read_passages(name), 2)] == ["one", "two"]


def test_everything_read_can_be_indexed_and_found(write):
    name = write("a.csv", "text,year\nKelp grew.,2019\nKelp died.,2021\n")
    with open_store("csv") as store:
        store.add(read_passages(name))
        assert [d.id for d in store.search("kelp", where={"year": {"gt": 2020}})] == ["a.csv:3"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text":', r"a\.jsonl:2: not JSON: .* column"),
        ("a.jsonl", '{"text": "a"}\n\n[1]', r"a\.jsonl:3: must be a JSON object, got \[1\]"),
        ("a.jsonl", '{"text": "a", "p": NaN}', r"a\.jsonl:1: not JSON: NaN"),
        ("a.jsonl", "[" * 100_000, r"a\.jsonl:1: not JSON"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}', r"a\.jsonl:2: not UTF-8"),
        (
            "a.jsonl",
            '{"question": "a", "id": 1}',
            r"a\.jsonl:1: has no text; .* found question, id",
        ),
        ("a.jsonl", '{"text": "  "}', r"a\.jsonl:1: has no text"),
        ("a.jsonl", '{"text": 3}', r"a\.jsonl:1: has no text"),
        ("a.jsonl", '{"text": "a", "id": [1]}', r"a\.jsonl:1: id must be a string, got \[1\]"),
        ("a.jsonl", '{"text": "a", "id": true}', r"a\.jsonl:1: id must be a string, got True"),
        ("a.jsonl", '{"text": "a", "title": 4}', r"a\.jsonl:1: title must be a string, got 4"),
        ("a.jsonl", '{"text": "a", "metadata": 4}', r"a\.jsonl:1: metadata must be an object"),
        (
            "a.jsonl",
            '{"text": "a", "id": 1}\n{"text": "b", "id": "1"}',
            r"a\.jsonl:2: id '1' is us",
        ),
        ("a.jsonl", "\n \n", r"a\.jsonl: the file is empty"),
        ("a.csv", "", r"a\.csv: the file is empty"),
        ("a.csv", "text,year\n", r"a\.csv: the file is empty"),
        ("a.csv", "text;year\na;3", r"a\.csv:2: has no text; .* found text;year"),
        ("a.csv", "text,year\na,1\nb", r"a\.csv:3: the row has more or fewer cells"),
        ("a.csv", "text\na,b", r"a\.csv:2: the row has more or fewer cells"),
        ("a.csv", 'text\n"a', r"a\.csv:2: not CSV: unexpected end"),
        ("a.csv", b"text\na\n\xff", r"a\.csv:3: not UTF-8"),
        ("a.csv", "text,metadata\na,b", r"a\.csv:2: not JSON"),
        ("a.txt", "", r"a\.txt: the file is empty"),
        ("a.txt", b"ok\n\xff", r"a\.txt:2: not UTF-8"),
        ("f/a.txt", "", r"f/a\.txt: the file is empty"),
    ],
)
def test_bad_input_is_named_by_file_and_line(write, name, content, message):
    write(name, content)
    with pytest.raises(InputError, match=message):
        list(read_passages(name.partition("/")[0]))


def test_lines_before_a_bad_one_are_numbered_over_the_whole_folder(write):
    write("f/a.jsonl", '{"id": "x", "text": "a"}')
    write("f/b.jsonl", '{"id": "y", "text": "a"}\n{"id": "x", "text": "b"}')
    with pytest.raises(InputError, match=r"f/b\.jsonl:2: id 'x' is used twice"):
        list(read_passages("f"))


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.jsonl", "no file 'missing.jsonl'"), ("a.pdf", "a.pdf: cannot read this kind")],
)
def test_a_path_that_cannot_be_read_is_refused_before_reading(write, name, message):
    write("a.pdf", "%PDF")
    with pytest.raises(InputError, match=message):
        read_passages(name)


def test_a_folder_without_passages_is_an_error(write):
    write("f/image.png", "x")
    with pytest.raises(InputError, match=r"folder 'f' holds no \.jsonl, \.csv, \.txt, \.md file"):
        read_passages("f")


@pytest.mark.parametrize("max_words", [0, -3])
def test_max_words_below_one_is_an_error(write, max_words):
    with pytest.raises(SettingsError, match="max_words"):
        read_passages(write("a.txt", "a"), max_words=max_words)
