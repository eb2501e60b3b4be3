"""Files of questions as JSON, tables, TREC runs, and compressed; and TREC runs written."""

import gzip
import json

import pytest

from deepera_graph.errors import InputError
from deepera_graph.jobs.forms import RunSource, open_run, read_run, write_run
from deepera_graph.jobs.lines import BadLine, open_questions, read_lines

QUESTIONS = [
    {"id": "q1", "question": "Why?", "passages": [{"id": "a", "text": "One."}, {"text": "Two."}]},
    {"id": "q2", "question": "How?", "passages": [{"id": "b", "text": "Three.", "score": 0.5}]},
]
TABLE = "QID,Question,DocID,Text,Score\nq1,Why?,a,One.,\nq1,Why?,,Two.,\nq2,How?,b,Three.,0.5\n"


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return file

    return write


def read(path):
    with open_questions(path) as (source, size):
        assert size == len(source.read())
        source.seek(0)
        return list(read_lines(source))


def seen(lines):
    return [
        (one.id, one.question, [(each.get("id"), each["text"]) for each in one.passages])
        for one in lines
    ]


def test_rows_of_a_question_that_stand_apart_are_one_question(write):
    rows = ["qid,question,docid,text", "q1,Why?,a,One.", "q2,How?,b,Three.", "q1,Why?,,Two."]
    first, second = read(write("q.csv", "\n".join(rows)))
    assert seen([first]) == [("q1", "Why?", [("a", "One."), (None, "Two.")])]
    assert seen([second]) == [("q2", "How?", [("b", "Three.")])]
    assert (first.number, second.number) == (2, 3)
    [*_, bad] = read(write("q.csv", "\n".join([*rows, "q1,Another?,c,Four."])))
    assert bad.error == "id 'q1' is used twice, first in line 2"


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.jsonl", "\n".join(map(json.dumps, QUESTIONS))),
        ("q.ndjson", "\n".join(map(json.dumps, QUESTIONS))),
        ("q.json", json.dumps(QUESTIONS, indent=1)),
        ("q.csv", TABLE),
        ("q.tsv", TABLE.replace(",", "\t")),
        ("questions", "\n".join(map(json.dumps, QUESTIONS))),
    ],
)
def test_the_same_questions_are_read_from_every_kind_of_file(write, name, content, compress):
    raw = content.encode()
    lines = read(write(f"{name}.gz", gzip.compress(raw)) if compress else write(name, raw))
    assert seen(lines) == [
        ("q1", "Why?", [("a", "One."), (None, "Two.")]),
        ("q2", "How?", [("b", "Three.")]),
    ]
    assert lines[1].passages[0]["score"] == 0.5


def test_one_request_is_a_file_of_one_question(write):
    [line] = read(write("q.json", '{"query": "Why?", "documents": ["One."]}'))
    assert (line.id, line.question, line.passages) == ("1", "Why?", ["One."])


def test_questions_of_a_table_are_named_by_their_first_line(write):
    lines = read(write("q.csv", 'query,text\n"Why\nnot?",a\n"Why\nnot?",b\nHow?,c\n'))
    assert [(one.number, one.id, len(one.passages)) for one in lines] == [(2, "2", 2), (6, "6", 1)]


def test_a_bad_row_of_a_table_costs_itself_alone(write):
    lines = read(write("q.csv", b"query,text\nWhy?,a\nWhy?,caf\xe9\nWhy?,b\nHow?,c,d\n"))
    assert [isinstance(one, BadLine) for one in lines] == [False, True, True]
    assert [one["text"] for one in lines[0].passages] == ["a", "b"]
    assert [one.number for one in lines] == [2, 3, 5]
    assert "not UTF-8" in lines[1].error
    assert "the row has" in lines[2].error


def test_a_table_without_questions_says_what_it_has(write):
    [line] = read(write("q.csv", "Title,Abstract\nKelp,It grew.\n"))
    assert (line.error, line.kind) == ("has no question or query, found Title, Abstract", "corpus")


@pytest.mark.parametrize("cut", [3, 12])
def test_a_damaged_file_is_named(write, cut):
    path = write("q.jsonl.gz", gzip.compress(json.dumps(QUESTIONS[0]).encode())[:-cut])
    with (
        pytest.raises(InputError, match=r"q\.jsonl\.gz cannot be read"),
        open_questions(path) as (source, _),
    ):
        list(read_lines(source))


def test_what_fails_while_a_file_is_open_is_not_blamed_on_it(write):
    def fail():
        with open_questions(write("q.jsonl.gz", gzip.compress(b"{}"))):
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        fail()


RUN = "q1 Q0 b 2 1.5 bm25\nq1\tQ0\ta\t1\t2.5\tbm25\nq1 Q0 gone 3 1 bm25\nq2 Q0 a 1 0.1 bm25\n"


@pytest.fixture
def run(write):
    write(
        "corpus.jsonl", '{"_id": "a", "title": "T", "text": "One."}\n{"_id": "b", "text": "Two."}'
    )
    write("queries.tsv", "q1\tWhy?\nq2\tHow?\nq3\tWho?\n")
    run = write("bm25.trec", RUN)
    return RunSource(
        run, queries=run.with_name("queries.tsv"), corpus=run.with_name("corpus.jsonl")
    )


def test_a_trec_run_is_read_with_its_queries_and_documents(run):
    told = []
    with open_run(run, tell=told.append) as (source, _):
        one, two = read_lines(source)
    assert (one.id, one.question, two.question) == ("q1", "Why?", "How?")
    assert [(each["id"], each["text"], each["score"]) for each in one.passages] == [
        ("a", "One.", 2.5),
        ("b", "Two.", 1.5),
    ]
    assert one.passages[0]["metadata"]["title"] == "T"
    assert len(told) == 1
    assert told[0].startswith("1 of 3 documents of ")
    assert told[0].endswith("e.g. 'gone'")


def test_a_document_without_text_costs_itself_and_not_the_run(run, write):
    texts = [{"_id": "a", "text": "One."}, {"_id": "b", "title": "Two.", "text": ""}]
    corpus = write("blank.jsonl", "\n".join(map(json.dumps, texts)))
    told = []
    with open_run(run._replace(corpus=corpus), tell=told.append) as (source, _):
        assert [len(one.passages) for one in read_lines(source)] == [1, 1]
    assert told[0].startswith("skipped ")
    assert "blank.jsonl:2: has no text" in told[0]
    assert told[1].startswith("2 of 3 documents of ")


@pytest.mark.parametrize(
    "queries",
    [
        '{"_id": "q1", "text": "Why?"}\n{"_id": "q2", "text": "How?"}',
        '{"qid": "q1", "query": "Why?"}\n{"qid": "q2", "query": "How?"}',
    ],
)
def test_queries_may_be_json_lines(run, write, queries):
    with open_run(run._replace(queries=write("queries.jsonl", queries))) as (source, _):
        assert [one.question for one in read_lines(source)] == ["Why?", "How?"]


def test_of_a_folder_in_the_layout_of_beir_the_corpus_alone_is_read(run, tmp_path):
    (tmp_path / "beir" / "qrels").mkdir(parents=True)
    (tmp_path / "beir" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    (tmp_path / "beir" / "corpus.jsonl").write_text('{"_id": "a", "text": "So."}\n')
    told = []
    with open_run(run._replace(corpus=tmp_path / "beir"), tell=told.append) as (source, _):
        one = next(iter(read_lines(source)))
    assert [passage["text"] for passage in one.passages] == ["So."]
    assert not any("skipped" in line for line in told)


def test_a_query_without_a_text_is_a_bad_line(run, write):
    with open_run(run._replace(queries=write("few.tsv", "q2\tHow?\n"))) as (source, _):
        one, two = read_lines(source)
    assert "query 'q1' is not in the file of queries" in one.error
    assert two.id == "q2"


def test_a_document_that_a_query_has_twice_names_both_lines_of_the_run(run):
    run.run.write_text(
        "q1 Q0 a 1 3 x\nq1 Q0 b 2 2 x\n\nq2 Q0 a 1 3 x\nq2 Q0 b 2 2 x\nq2 Q0 a 3 1 x\n"
    )
    with open_run(run) as (source, _):
        one, two = read_lines(source)
    assert one.id == "q1"
    assert two.number == 4
    assert two.error == (
        "line 6 of the same query: query 'q2' has document 'a' twice, first in line 4"
    )
    with pytest.raises(
        InputError, match="line 6: query 'q2' has document 'a' twice, first in line 4"
    ):
        read_run(run.run)


@pytest.mark.parametrize("bad", ["q1 Q0 a 1 high bm25", "q1 Q0 a 1", "qid Q0 doc rank score run"])
def test_a_line_of_a_run_that_cannot_be_read_costs_its_query_alone(run, bad):
    run.run.write_text(f"q1 Q0 b 2 1.5 bm25\n{bad}\nq2 Q0 a 1 0.1 bm25\n")
    with open_run(run) as (source, _):
        lines = [*read_lines(source)]
    [wrong] = [one for one in lines if isinstance(one, BadLine)]
    assert "not a line of a TREC run" in wrong.error
    assert f"got {bad}" in wrong.error
    assert [one.id for one in lines if one is not wrong][-1] == "q2"


@pytest.mark.parametrize("line", ["q1 a 1 2.5", "q1 Q0 a 1 high bm25", "{}"])
def test_a_file_that_is_no_run_is_named_by_its_line(write, line):
    with pytest.raises(InputError, match="line 2: not a line of a TREC run"):
        read_run(write("bm25.trec", f"q1 Q0 a 1 2.5 bm25\n{line}\n"))


def test_a_run_is_written_in_the_order_of_the_ranking(write, tmp_path):
    scores = [("a b", 0.9), ("c", 0.9), ("d", 0.2), ("e", None), ("f", None)]
    ranking = [{"id": name, "score": score} for name, score in scores]
    ranked = write("out.jsonl", json.dumps({"id": "q 1", "ranking": ranking}) + "\n")
    write_run(ranked, tmp_path / "out.trec")
    assert (tmp_path / "out.trec").read_text() == (
        "q_1 Q0 a_b 1 0.900000 deepera\n"
        "q_1 Q0 c 2 0.899999 deepera\n"
        "q_1 Q0 d 3 0.200000 deepera\n"
        "q_1 Q0 e 4 0.199999 deepera\n"
        "q_1 Q0 f 5 0.199998 deepera\n"
    )
    order = [name for name, _ in read_run(tmp_path / "out.trec")["q_1"]]
    assert order == ["a_b", "c", "d", "e", "f"]
