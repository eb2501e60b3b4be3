"""Audits: what is drawn, labels from sheets and from the page, and the report."""

import csv
import json
from dataclasses import replace
from io import StringIO

import pytest

from deepera_graph.errors import InputError, SettingsError
from deepera_graph.lab.quest.audit.drawing import Audit, draw_audit
from deepera_graph.lab.quest.audit.labels import (
    FAILURES,
    Label,
    LabelBook,
    read_labels,
    read_rater,
    read_sheet,
)
from deepera_graph.lab.quest.audit.report import study_audit
from deepera_graph.lab.quest.audit.server import AuditDesk
from support.quest_build import fill_sheet, published_labels, write_build, write_lines

pytestmark = pytest.mark.full


def grids(result):
    return {one.name: one.rows for one in result.grids}


def as_labels(labels):
    return {pair: Label(label=one) for pair, one in labels.items()}


def test_as_many_pairs_of_each_grade_are_drawn_in_an_order_that_tells_nothing(drawn):
    assert drawn.drawn == (150, 150, 150)
    assert drawn.judged == (400, 200, 150)
    grades = [one.grade for one in drawn.key.values()]
    assert [*drawn.pairs] == sorted(drawn.pairs)
    first = [grades[:150].count(grade) for grade in (0, 1, 2)]
    assert min(first) > 30


def test_raters_are_shown_no_grade(drawn):
    for name in ("pairs.jsonl", "sheet.csv"):
        text = (drawn.folder / name).read_text(encoding="utf-8-sig")
        for word in ('"grade', "evidence", "adjudicated", "first", "second"):
            assert word not in text
    rows = [*csv.DictReader(StringIO((drawn.folder / "sheet.csv").read_text("utf-8-sig")))]
    assert len(rows) == 450
    assert rows[0]["question"] == drawn.pairs["p001"].question
    assert rows[0]["constraints"].endswith("exclude: under water; in soil")


def test_the_same_seed_draws_the_same_bytes_whatever_the_order_of_the_lines(build, tmp_path):
    turned = write_build(tmp_path / "build", (400, 200, 150))
    for path in turned.glob("*.jsonl"):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(reversed(lines)), "utf-8")
    one, two = draw_audit(build, tmp_path / "a", seed=5), draw_audit(turned, tmp_path / "b", seed=5)
    for name in ("pairs.jsonl", "key.jsonl", "sheet.csv"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
    other = draw_audit(build, tmp_path / "c", seed=6)
    assert other.about["pairs_sha256"] != one.about["pairs_sha256"]


def test_of_a_grade_with_fewer_pairs_all_are_drawn_and_that_is_told(tmp_path):
    audit = draw_audit(write_build(tmp_path / "build", (9, 0, 3)), tmp_path / "audit", per_grade=5)
    assert audit.drawn == (5, 0, 3)
    labels = {"anna": as_labels({pair: one.grade for pair, one in audit.key.items()})}
    result = study_audit(audit, labels, n_resamples=10)
    assert "Of grade 1 the build has 0 pairs; 5 were asked for." in result.findings
    assert grids(result)["confusion"][1][-2] == 0
    assert "build" in grids(result)


def test_pairs_that_cannot_be_shown_are_counted_by_reason(tmp_path):
    build = write_build(tmp_path / "build", (3, 0, 0))
    path = build / "judgements.jsonl"
    lines = [json.loads(one) for one in path.read_text("utf-8").splitlines()]
    lines[0]["paper_id"], lines[1]["query_id"], lines[2]["grade"] = "gone", "gone", None
    write_lines(path, lines)
    with pytest.raises(InputError, match="no judged pair has a grade, a question and a paper"):
        draw_audit(build, tmp_path / "audit")
    write_lines(path, [*lines, {"query_id": "q0", "paper_id": "paper-0-0", "grade": 1}])
    assert draw_audit(build, tmp_path / "audit").about["left_out"] == {
        "without a grade": 1, "without a paper": 1, "without a question": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"grade": 1.5}, "record 2: 'grade' must be 0, 1 or 2, got 1.5"),
        ({"grade": True}, "'grade' must be 0, 1 or 2, got True"),
        ({"paper_id": "paper-0-0", "query_id": "q0"}, "'q0' and 'paper-0-0' are judged twice"),
        ({"query_id": ""}, "'query_id' must be a text, got ''"),
        ({"grades": [1]}, r"'grades' must be an object, got \[1\]"),
    ],
)
def test_a_judgement_that_is_none_is_named(tmp_path, fields, message):
    build = write_build(tmp_path / "build", (2, 0, 0))
    path = build / "judgements.jsonl"
    lines = [json.loads(one) for one in path.read_text("utf-8").splitlines()]
    write_lines(path, [lines[0], {**lines[1], **fields}])
    with pytest.raises(InputError, match=message):
        draw_audit(build, tmp_path / "audit")


def test_an_audit_with_labels_is_never_drawn_over(build, small):
    with pytest.raises(SettingsError, match="give --overwrite"):
        draw_audit(build, small.folder)
    with LabelBook(small, "Anna") as book:
        book.put("p001", {"label": 2})
    with pytest.raises(SettingsError, match="has labels of anna; draw into another folder"):
        draw_audit(build, small.folder, overwrite=True)


def test_changed_pairs_are_refused(small):
    path = small.folder / "pairs.jsonl"
    path.write_text(path.read_text("utf-8").replace("outdoors", "indoors"), "utf-8")
    with pytest.raises(InputError, match="was changed after it was drawn"):
        Audit.open(small.folder)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pairs.jsonl", '{"a": 1}\n'),
        ("pairs.jsonl", ""),
        ("key.jsonl", '{"a": 1}\n'),
        ("key.jsonl", '{"pair": "p001", "grade": 2}\n'),
        ("key.jsonl", '{"pair": ["p001"], "evidence": 3}\n'),
        ("audit.json", '{"format": 1}'),
        ("audit.json", '{"format": 1, "grades": []}'),
        ("audit.json", "[]"),
        ("audit.json", ""),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_named(small, name, text):
    (small.folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        Audit.open(small.folder)


def test_counts_that_are_gone_are_an_error(small):
    path = small.folder / "audit.json"
    plain = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**plain, "grades": {"0": {}}}), "utf-8")
    with pytest.raises(InputError, match=r"audit\.json"):
        Audit.open(small.folder)


def test_pairs_that_are_missing_are_an_error(small):
    (small.folder / "pairs.jsonl").unlink()
    with pytest.raises(InputError, match=r"pairs\.jsonl.*cannot be read"):
        Audit.open(small.folder)


def test_a_copy_without_the_key_can_be_labelled_blind_and_nothing_else(small):
    (small.folder / "key.jsonl").unlink()
    copy = Audit.open(small.folder)
    assert copy.pairs == small.pairs
    AuditDesk(copy, blind=True).close()
    with pytest.raises(SettingsError, match=r"has no key\.jsonl; it can be labelled with --blind"):
        AuditDesk(copy)
    with pytest.raises(SettingsError, match=r"has no key\.jsonl; measure with the folder"):
        study_audit(copy, {"anna": as_labels({"p001": 1})})


def test_a_cell_is_no_formula(tmp_path):
    build = write_build(tmp_path / "build", (1, 0, 0))
    papers = json.loads((build / "papers.jsonl").read_text("utf-8"))
    write_lines(build / "papers.jsonl", [{**papers, "title": "=HYPERLINK(1)", "abstract": "@b"}])
    question = json.loads((build / "questions.jsonl").read_text("utf-8").splitlines()[0])
    write_lines(build / "questions.jsonl", [{**question, "query": "\t=1+1"}])
    draw_audit(build, tmp_path / "audit")
    sheet = (tmp_path / "audit" / "sheet.csv").read_text("utf-8-sig")
    assert ",'=HYPERLINK(1),'@b," in sheet
    assert ",'\t=1+1," in sheet


SHEETS = {
    "commas": b"pair,label\np001,2\np002,0\n",
    "excel": "\ufeffpair;question;label;note\r\np001;a, b;2;süß\r\np002;;0;\r\n".encode(),
    "windows": "pair;label;note\r\np001;2;süß\r\np002;0;\r\n".encode("cp1252"),
    "tabs": "Pair\tLabel\np001\t2\np002\t0\n".encode("utf-16"),
    "numbers": b"pair,label\np001,2.0\np002,0.00\n",
    "empty rows": b"pair,label,failure\np001,2,\n,,\np002, 0 ,\np003,,\n",
    "quotes": b'pair,abstract,label\np001,"two\nlines, ""so""",2\np002,,0\n',
}


@pytest.mark.parametrize("data", SHEETS.values(), ids=[*SHEETS])
def test_a_sheet_is_read_as_spreadsheets_write_it(small, tmp_path, data):
    path = tmp_path / "sheet.csv"
    path.write_bytes(data)
    found = read_sheet(path, small)
    assert {pair: one.label for pair, one in found.items()} == {"p001": 2, "p002": 0}
    if "ß".encode() in data or "ß".encode("cp1252") in data:
        assert found["p001"].note == "süß"


BAD_SHEETS = [
    ("pair,label\np999,1\n", "row 2: unknown pair 'p999' in this audit"),
    ("pair,label\np001,1\np002,1.5\n", "row 3: label must be 0, 1 or 2, got '1.5' for p002"),
    ("pair,label\np001,3\n", "got '3' for p001"),
    ("pair,label\np001,yes\n", "got 'yes' for p001"),
    ("pair,label\np001,1\np002,0\np001,2\n", "row 4: p001 comes twice, first in row 2"),
    ("pair,label\np001,\np002,\n", "no labels; fill in the column 'label'"),
    ("", "column 'pair' is missing; the first row must name the columns, got nothing"),
    ("p001,2\n", "column 'pair' is missing; the first row must name the columns, got p001, 2"),
    ("pair,grade\np001,2\n", "column 'label' is missing"),
    ("pair,label,label\np001,2,1\n", "there are two columns 'label'"),
    ("pair,label,failure\np001,2,keywort\n", "failure must be one of keyword.* got 'keywort'"),
    ('pair,label,note\np001,2,"open\np002,1,\n', "no CSV: a quotation mark is not closed"),
    ("PK\x03\x04zip", "is a spreadsheet, not CSV; save it as CSV"),
]


@pytest.mark.parametrize(("text", "message"), BAD_SHEETS)
def test_a_bad_sheet_is_named_with_its_row(small, tmp_path, text, message):
    path = tmp_path / "anna.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"anna.csv.*{message}"):
        read_sheet(path, small)


def test_a_failure_type_may_be_written_out(small, tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("pair,label,failure\np001,1,Terminology mismatch\np002,1,OTHER\n")
    assert [one.failure for one in read_sheet(path, small).values()] == ["terminology", "other"]


def test_a_label_is_on_disk_at_once_and_a_torn_line_is_dropped(small):
    path = small.folder / "labels" / "anna-berg.jsonl"
    with LabelBook(small, " Anna  Berg ") as book:
        book.put("p001", {"label": 1, "note": "off subject"})
        book.put("p001", {"label": 2})
        assert json.loads(path.read_bytes().splitlines()[-1]) == {
            "id": "p001", "label": 2, "failure": "", "note": "off subject", "shown": False,
        }  # fmt: skip
    with path.open("ab") as file:
        file.write(b'{"id": "p002", "lab')
    assert read_labels(small, {})["anna-berg"] == {"p001": Label(label=2, note="off subject")}
    with LabelBook(small, "anna berg") as book:
        book.put("p002", {"label": 0})
        assert {pair: one.label for pair, one in book.labels.items()} == {"p001": 2, "p002": 0}


def test_a_label_stands_once_the_judges_grade_was_shown(small):
    with LabelBook(small, "anna") as book:
        with pytest.raises(InputError, match="p001 has no label yet"):
            book.show("p001")
        book.put("p001", {"label": 1})
        assert book.show("p001").shown
        with pytest.raises(InputError, match="was shown, so that the label 1 stands"):
            book.put("p001", {"label": 2})
        assert book.put("p001", {"failure": "keyword"}).label == 1


def test_two_processes_do_not_label_under_one_name(small):
    with LabelBook(small, "anna"):
        with (
            pytest.raises(SettingsError, match="'anna' labels in another process"),
            LabelBook(small, "Anna"),
        ):
            pass
        with LabelBook(small, "ben"):
            pass


def test_a_name_is_one_name_however_its_accents_are_written():
    assert read_rater("Jose\u0301") == read_rater("jos\u00e9")


@pytest.mark.parametrize("name", ["CON", "nul", "con.berg", "Lpt1"])
def test_a_name_that_windows_keeps_for_itself_is_refused(name):
    with pytest.raises(SettingsError, match=f"Windows.*{name!r}"):
        read_rater(name)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "x" * 41, ".hidden", "a\x00b"])
def test_a_name_that_is_no_file_is_refused(name):
    with pytest.raises(SettingsError, match="the name of a rater must be"):
        read_rater(name)


def test_labels_of_other_pairs_are_refused(build, small, tmp_path):
    with LabelBook(small, "anna") as book:
        book.put("p001", {"label": 1})
    other = draw_audit(build, tmp_path / "other", per_grade=2, seed=9)
    (other.folder / "labels").mkdir()
    path = small.folder / "labels" / "anna.jsonl"
    (other.folder / "labels" / "anna.jsonl").write_bytes(path.read_bytes())
    with pytest.raises(SettingsError, match="pairs was"):
        read_labels(other, {})


def test_a_rater_comes_once_and_somebody_must_have_labelled(small, tmp_path):
    with pytest.raises(InputError, match="has no labels yet"):
        read_labels(small, {})
    with LabelBook(small, "anna") as book:
        book.put("p001", {"label": 1})
    with pytest.raises(SettingsError, match="there are two sets of labels of 'anna'"):
        read_labels(small, {"Anna": tmp_path / "anna.csv"})


def test_three_raters_give_the_published_matrix_by_majority(drawn, tmp_path):
    majority = published_labels(drawn)
    turned = {pair: (label + 1) % 3 for pair, label in majority.items()}
    half = {pair: n % 2 for n, pair in enumerate(majority)}
    raters = {
        "anna": majority,
        "ben": {pair: majority[pair] if half[pair] else turned[pair] for pair in majority},
        "cleo": {pair: turned[pair] if half[pair] else majority[pair] for pair in majority},
    }
    for name, labels in raters.items():
        (tmp_path / f"{name}.csv").write_bytes(fill_sheet(drawn, labels))
    sheets = {name: tmp_path / f"{name}.csv" for name in raters}
    result = study_audit(drawn, read_labels(drawn, sheets), n_resamples=200)
    tables = grids(result)
    assert [row[1:4] for row in tables["confusion"][:3]] == [
        (133, 16, 1), (21, 117, 12), (2, 19, 129),
    ]  # fmt: skip
    assert round(dict(tables["agreement"])["quadratic kappa"].mean, 5) == 0.86622
    assert [row[:3] for row in tables["rater-pairs"]] == [
        ("anna", "ben", 450), ("anna", "cleo", 450), ("ben", "cleo", 450),
    ]  # fmt: skip
    assert tables["rater-pairs"][2][3] == 0  # these two never agree
    assert "unresolved" not in tables
    assert [row[0] for row in tables["intents"]] == ["comparison", "method", "scope", "setting"]


def test_a_tie_of_three_is_unresolved_and_left_out(small):
    key = {pair: one.grade for pair, one in small.key.items()}
    labels = {name: as_labels({**key, "p001": n}) for n, name in enumerate(("anna", "ben", "cleo"))}
    labels["ben"]["p001"] = replace(labels["ben"]["p001"], note="could be any")
    result = study_audit(small, labels, n_resamples=10)
    [row] = grids(result)["unresolved"]
    assert row[0] == "p001"
    assert row[2] == "anna 0, ben 1, cleo 2"
    assert row[-1] == "ben: could be any"
    assert grids(result)["confusion"][3][4] == 5
    assert any("between 83.3 and 100.0 %" in one for one in result.findings)
    decided = study_audit(small, {**labels, "dora": as_labels({"p001": 1})}, n_resamples=10)
    assert len(grids(decided)["unresolved"]) == 1  # two of four are not more than half
    more = {"dora": as_labels({"p001": 1}), "emil": as_labels({"p001": 1})}
    assert "unresolved" not in grids(study_audit(small, {**labels, **more}, n_resamples=10))


def test_failure_types_are_counted_by_direction(small):
    by_grade = {one.grade: pair for pair, one in small.key.items()}
    given = {pair: Label(label=one.grade) for pair, one in small.key.items()}
    given[by_grade[2]] = Label(label=0, failure="keyword", note="only the word")
    given[by_grade[0]] = Label(label=2, failure="terminology")
    given[by_grade[1]] = Label(label=0)
    second = {pair: replace(one, failure="") for pair, one in given.items()}
    second[by_grade[0]] = replace(second[by_grade[0]], failure="over-strict")
    tables = grids(study_audit(small, {"anna": given, "ben": second}, n_resamples=10))
    assert {row[0]: row[2:5] for row in tables["failures"]} == {
        "keyword": (1, 0, 1),
        "over-strict or terminology": (0, 1, 1),
        "not named": (1, 0, 1),
    }
    assert len(tables["disagreements"]) == 3


def test_pairs_without_a_label_are_named(small):
    labels = {"anna": as_labels({"p001": 0, "p002": 0})}
    labels["anna"]["p003"] = Label(note="hard")
    result = study_audit(small, labels, n_resamples=10)
    assert "anna has not labelled 4 pairs: p003, p004, p005, p006." in result.findings
    assert grids(result)["confusion"][3][4] == 2


def test_every_failure_type_of_the_judge_is_offered():
    assert [*FAILURES] == ["keyword", "over-strict", "implicit", "terminology", "other"]
