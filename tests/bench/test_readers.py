import gzip
import json
from pathlib import Path

import pytest

from bench.lakes import make_instance, write_jsonl
from deepera_graph.calibration.instance import DatasetError, write_rows
from deepera_graph.jobs.forms import RunSource
from deepera_graph.lab.data.beir import read_beir, read_judgements
from deepera_graph.lab.data.readers import name_paths, open_dataset, read_plain
from deepera_graph.lab.data.runs import open_judged_run
from deepera_graph.lab.data.sectioned import read_articles
from deepera_graph.lab.rankers.retrieval import IndexHit


def test_beir_candidates_are_what_the_first_stage_finds(beir_folder):
    algae, trout = read_beir(beir_folder, n_candidates=1)
    assert (algae.id, algae.setting, [one.id for one in algae.contexts]) == ("7", "test", ["d2"])
    assert algae.contexts[0].is_golden
    assert algae.contexts[0].grade == 2
    assert trout.contexts[0].title == "Trout"
    assert trout.contexts[0].first_stage_rank == 1
    assert trout.contexts[0].first_stage_score > 0


def test_beir_documents_the_first_stage_missed_are_recorded(beir_folder):
    _, trout = read_beir(beir_folder, n_candidates=1)
    assert trout.golden_outside == {"d3": 1}


def test_a_query_whose_documents_are_all_judged_to_be_none_has_no_answer(beir_folder):
    judged = "query-id\tcorpus-id\tscore\n7\td2\t1\n8\td2\t0\n8\td1\t-1\n"
    (beir_folder / "qrels" / "test.tsv").write_text(judged)
    algae, trout = read_beir(beir_folder)
    assert [one.has_golden for one in (algae, trout)] == [True, False]


def test_a_judged_document_that_the_corpus_lacks_is_named(beir_folder, caplog):
    judged = "query-id\tcorpus-id\tscore\n7\td2\t1\n7\tgone\t1\n"
    (beir_folder / "qrels" / "test.tsv").write_text(judged)
    [algae] = read_beir(beir_folder)
    assert algae.golden_outside == {"gone": 1}
    assert "test.tsv: count as not found, as corpus.jsonl does not have them: gone" in caplog.text


def test_a_beir_first_stage_can_be_the_callers(beir_folder):
    found = [IndexHit("d3", 2.0), IndexHit("d1", 1.0)]
    _, trout = read_beir(beir_folder, search=lambda query, n: found[:n])
    assert [(one.id, one.first_stage_score) for one in trout.contexts] == [("d3", 2.0), ("d1", 1.0)]


def test_a_bad_judgement_is_named_with_its_line(beir_folder):
    (beir_folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n7\td2\tyes\n")
    with pytest.raises(DatasetError, match=r"test.tsv, line 2: .*'yes'"):
        list(read_beir(beir_folder))


def test_a_judged_query_without_text_is_named_and_the_others_are_read(beir_folder, caplog):
    (beir_folder / "qrels" / "test.tsv").write_text("70\td2\t1\n7\td2\t1\n")
    assert [one.id for one in read_beir(beir_folder)] == ["7"]
    assert "test.tsv: left out, as queries.jsonl does not have them: 70" in caplog.text


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("a/mine.jsonl", "b/mine.jsonl"), ["a/mine", "b/mine"]),
        (("a/x/mine.jsonl", "b/x/mine", "c.json"), ["a/x/mine", "b/x/mine", "c"]),
        (("mine.jsonl", "mine.jsonl", "sample-base"), ["mine", "mine", "sample-base"]),
    ],
)
def test_data_of_one_name_has_that_of_its_folder_too(paths, names):
    assert name_paths([Path(one) for one in paths]) == names


def test_the_current_folder_has_its_name(beir_folder, monkeypatch):
    monkeypatch.chdir(beir_folder)
    assert open_dataset(Path()).name == "lakes_beir"


def test_judgements_of_unknown_queries_alone_are_refused(beir_folder):
    (beir_folder / "qrels" / "test.tsv").write_text("70\td2\t1\n")
    with pytest.raises(DatasetError, match=r"none of its queries is in queries\.jsonl: 70"):
        list(read_beir(beir_folder))


def test_candidates_in_an_article_are_all_its_passages(article_folder):
    first, second = read_articles(article_folder)
    assert [(one.id, one.is_golden) for one in first.contexts] == [("A-0", False), ("A-1", True)]
    assert first.contexts[1].section == "RESULTS"
    assert first.contexts[1].title == "Liming of ponds"
    assert first.gold_answer == "increased"
    assert second.contexts[0].title == ""


def test_a_question_is_made_of_its_parts_where_none_is_given(article_folder):
    first, second = read_articles(article_folder)
    assert first.question == "Does lime compared with no lime affect pH.?"
    assert second.question == "Who ate?"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"article": "Z"}, "question '3': unknown article 'Z'", id="article"),
        pytest.param({"golden": ["B-0"]}, r"question '3': golden names no passage", id="golden"),
    ],
)
def test_a_question_about_what_is_not_there_is_refused(article_folder, changes, message):
    row = {"id": "3", "article": "A", "question": "Why?", "golden": ["A-1"], **changes}
    write_jsonl(article_folder / "questions.jsonl", [row])
    with pytest.raises(DatasetError, match=message):
        list(read_articles(article_folder))


def test_plain_lines_hold_texts_or_objects(tmp_path):
    rows = [
        {"question": "Why?", "passages": ["because", "so"], "golden": ["2"]},
        {"id": 5, "question": "Who?", "passages": [{"id": "x", "text": "Ann", "title": "T"}],
         "golden": ["x"], "answer": "Ann"},
    ]  # fmt: skip
    first, second = read_plain(write_jsonl(tmp_path / "x.jsonl", rows))
    assert [(one.id, one.is_golden) for one in first.contexts] == [("1", False), ("2", True)]
    assert (second.id, second.gold_answer, second.contexts[0].title) == ("5", "Ann", "T")


def test_plain_golden_must_name_a_passage(tmp_path):
    rows = [{"question": "Why?", "passages": ["because"], "golden": ["2"]}]
    with pytest.raises(DatasetError, match=r"line 1: golden names no passage: \['2'\]"):
        list(read_plain(write_jsonl(tmp_path / "x.jsonl", rows)))


def test_labels_of_passages_say_what_is_golden_too(tmp_path):
    passages = [{"text": "so", "label": 0}, {"content": "because", "label": 1}]
    path = write_jsonl(tmp_path / "x.jsonl", [{"query": "Why?", "documents": passages}])
    [one] = open_dataset(path)
    assert [(each.id, each.is_golden) for each in one.contexts] == [("1", False), ("2", True)]


@pytest.mark.parametrize("name", ["x.json", "x.jsonl.gz"])
def test_labelled_questions_may_be_a_list_or_compressed(tmp_path, name):
    row = {"question": "Why?", "passages": ["because"], "golden": ["1"]}
    raw = json.dumps([row] if name.endswith("json") else row).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    assert [one.id for one in open_dataset(tmp_path / name)] == ["1"]


def test_labelled_questions_may_be_a_table(tmp_path):
    (tmp_path / "x.csv").write_text("question,text,label\nWhy?,so,0\nWhy?,because,1\n")
    [one] = open_dataset(tmp_path / "x.csv")
    assert [each.is_golden for each in one.contexts] == [False, True]


def test_the_kind_of_a_data_set_is_seen_from_its_files(tmp_path, beir_folder, article_folder):
    write_rows(tmp_path / "a.jsonl", [make_instance(1), make_instance(2)])
    plain = [{"question": "Why?", "passages": ["because"], "golden": ["1"]}]
    write_jsonl(tmp_path / "b.jsonl", plain)
    found = {
        path.stem: (open_dataset(path).name, len(list(open_dataset(path))))
        for path in (tmp_path / "a.jsonl", tmp_path / "b.jsonl", beir_folder, article_folder)
    }
    assert found == {
        "a": ("a", 2), "b": ("b", 1), "lakes_beir": ("lakes_beir", 2),
        "lake_trials": ("lake_trials", 2),
    }  # fmt: skip


def test_a_path_without_data_is_refused(tmp_path):
    with pytest.raises(DatasetError, match="is not a data set"):
        open_dataset(Path(tmp_path))


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file_is_called_empty(tmp_path, content):
    path = tmp_path / "none.jsonl"
    path.write_text(content)
    with pytest.raises(DatasetError, match=r"none\.jsonl is empty"):
        open_dataset(path)


@pytest.fixture
def judged_run(tmp_path):
    """A run over three documents, its queries, its corpus, and judgements."""
    files = {
        "run": "1 Q0 d1 1 9.5 bm25\n1 Q0 d2 2 8 bm25\n2 Q0 d3 1 7 bm25\n3 Q0 d1 1 7 bm25\n",
        "queries": "qid\tquery\n1\tDo trout grow?\n2\tDo pike?\n3\tDo perch?\n",
        "corpus": "".join(
            json.dumps({"id": f"d{n}", "title": "Lakes", "text": f"Text {n}."}) + "\n"
            for n in (1, 2, 3)
        ),
        "qrels": "1 0 d1 0\n1 0 d2 2\n1 0 d9 1\n2 0 d3 0\n4 0 d1 1\n",
    }
    names = {"run": "run.trec", "queries": "queries.tsv", "corpus": "corpus.jsonl"}
    paths = {one: tmp_path / names.get(one, "qrels.txt") for one in files}
    for name, text in files.items():
        paths[name].write_text(text)
    return paths


def open_run_of(paths):
    source = RunSource(paths["run"], queries=paths["queries"], corpus=paths["corpus"])
    return open_judged_run(source, paths["qrels"])


def test_a_run_with_judgements_is_a_data_set_in_its_own_order(judged_run, caplog):
    data = open_run_of(judged_run)
    assert (data.name, data.first_stage) == ("run", "order of the run")
    first, second = data
    assert (first.id, first.question) == ("1", "Do trout grow?")
    assert [(one.id, one.is_golden, one.grade, one.title) for one in first.contexts] == [
        ("d1", False, 1, "Lakes"), ("d2", True, 2, "Lakes"),
    ]  # fmt: skip
    assert [one.first_stage_score for one in first.contexts] == [9.5, 8.0]
    assert first.golden_outside == {"d9": 1}
    assert not second.has_golden
    assert "qrels.txt does not judge them: 3" in caplog.text
    assert "run.trec does not have them: 4" in caplog.text


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("run", "1 Q0 d1 1 bm25\n", "run.trec, line 1: not a line of a TREC run"),
        ("run", "9 Q0 d1 1 2.0 bm25\n", "line 1: query '9' is not in the file of queries"),
        ("qrels", "1 d1 much\n", "or the four columns of TREC's qrels"),
        ("queries", "qid,query\n", "query '1' is not in the file of queries"),
    ],
)
def test_what_is_wrong_with_a_judged_run_is_named(judged_run, name, text, problem):
    judged_run[name].write_text(text)
    with pytest.raises(DatasetError, match=problem):
        list(open_run_of(judged_run))
    judged_run[name].unlink()
    with pytest.raises(DatasetError, match="no such file: '"):
        open_run_of(judged_run)


def test_a_run_and_rankings_are_told_from_questions(judged_run, tmp_path):
    with pytest.raises(DatasetError, match="looks like a TREC run, which bench table and study"):
        open_dataset(judged_run["run"])
    ranked = tmp_path / "ranked.jsonl"
    ranked.write_text('{"id": "1", "question": "Do trout grow?", "ranking": []}\n')
    with pytest.raises(DatasetError, match="holds rankings without labels and texts"):
        open_dataset(ranked)


@pytest.mark.parametrize(
    "judged",
    [
        "7 0 d2 1\n7 0 d1 0\n",
        "7\t0\td2\t1\n7\tQ0\td1\t0\n",
        "7  4.5   d2  1\r\n7 1 d1 0\r\n",
        "query-id\tcorpus-id\tscore\n7\td2\t1\tby hand\n7\td1\t0\tby hand\n",
        "7\td2\t1\n7\td1\t0\n",
    ],
)
def test_judgements_have_the_columns_of_beir_or_of_trec(beir_folder, judged):
    path = beir_folder / "qrels" / "test.tsv"
    path.write_text(judged)
    assert read_judgements(path) == {"7": {"d2": 1}}


@pytest.mark.parametrize(
    ("ranks", "told"),
    [((2, 1), "first_stage_rank of the file"), ((None, None), "order in the file")],
)
def test_the_order_of_instances_is_named(tmp_path, ranks, told):
    contexts = [
        {"id": id, "text": "Trout grow.", "first_stage_rank": rank}
        for id, rank in zip("ab", ranks, strict=True)
    ]
    write_jsonl(tmp_path / "made.jsonl", [{"id": "q", "question": "Why?", "contexts": contexts}])
    assert open_dataset(tmp_path / "made.jsonl").first_stage == told
