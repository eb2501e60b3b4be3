"""Every reader of texts: nothing raised, and time linear in the length, whatever is repeated."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from bench.build.lake_abstracts import lake_abstracts

pytestmark = pytest.mark.full

FOLDER = Path(__file__).parents[2] / "benchmarks" / "readers"


@pytest.fixture
def run(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "run", raising=False)
    import run

    yield run
    sys.modules.pop("run", None)


def test_every_reader_is_found_where_it_is_and_reads_an_abstract(run):
    one = lake_abstracts()[0]
    found = run.measure([run.Text("it", one.title, one.text)])
    assert {name: one.raised for name, one in found.items() if one.raised} == {}


@pytest.mark.parametrize("part", range(8))
def test_no_reader_raises_on_what_is_repeated(part, run):
    found = run.measure(
        run.Text(repr(unit), unit * 9, (unit * 200)[:200]) for unit in run.UNITS[part::8]
    )
    assert {name: one.raised for name, one in found.items() if one.raised} == {}


@pytest.mark.parametrize(
    ("reader", "unit"),
    [
        ("text: brackets", "("),
        ("text: BibTeX", "@a{"),
        ("text: BibTeX", "@a{b,"),
        ("build: gates", "\n"),
        ("build: gates", "- \n"),
        ("build: gates", "Fig. 1"),
        ("rules: intent", "or "),
        ("rules: summary", ". "),
        ("quotes of an answer", "“"),
        ("quotes of an answer", "„"),
        ("quotes of an answer", "«"),
        ("documents: .md", "<!--"),
        ("documents: .md", "<p "),
        ("bioasq: list", "a, b1 and "),
        ("bioasq: list", "and the frost of NF-1 "),
        ("papers: limits", "and "),
        ("papers: limits", ";"),
        ("papers: limits", "from 2010 "),
        ("papers: limits", "without "),
        ("papers: limits", "show that "),
    ],
)
def test_a_text_four_times_as_long_takes_no_sixteen_times_as_long(reader, unit, run):
    def is_linear(length):
        short, long, raised = run.measure_growth(run.READERS[reader], unit, length)
        return not raised and long < 8 * max(short, 5.0)

    assert any(map(is_linear, (8000, 8001, 8002)))


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ("rules: intent", " \n"),
        ("rules: entities", " "),
        ("multihop: forms of an answer", "1" * 5000),
        ("build: quantities", "2,4-D and 1,2-dichloroethane in 12,5 % of samples, 0,0005 g"),
    ],
)
def test_a_strange_text_raises_nothing(reader, text, run):
    assert run.measure([run.Text("it", text, text)], {reader: run.READERS[reader]})[
        reader
    ].raised == []  # fmt: skip


def test_the_table_counts_texts_and_exceptions_and_names_the_slowest(
    run, tmp_path, monkeypatch, capsys
):
    def fails(one):
        if one.id == "line 2":
            raise KeyError("trap")

    rows = [{"title": one.title, "abstract": [one.text]} for one in lake_abstracts()[:3]]
    rows.append({"question": "Which?", "contexts": [{"text": "One."}, {"text": "Two."}]})
    path = tmp_path / "corpus.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in rows)
    monkeypatch.setattr(run, "READERS", {"failing": fails, **run.READERS})
    monkeypatch.setattr(sys, "argv", ["run.py", str(path), "--readers", "i", "--without", "bioasq"])
    run.main()
    said = capsys.readouterr()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.out.splitlines()[2:]]
    counted = {name: (texts, raised) for name, texts, raised, *_ in cells}
    assert counted.pop("failing") == ("5", "1")
    assert set(counted.values()) == {("5", "0")}
    assert said.err == "failing: line 2: KeyError: 'trap'\n"
    assert all(of.startswith("line ") for *_, of in cells)


def test_a_refusal_is_no_exception_but_a_number_that_cannot_be_read_is(run):
    def reads(one):
        return int(one.text)

    found = run.measure(
        [run.Text("it", "Which?", "No list at all.")],
        {"list": run.READERS["bioasq: written list"], "number": reads},
    )
    assert found["list"].raised == []
    assert len(found["number"].raised) == 1


def test_ctrl_c_leaves_the_table_so_far(run, tmp_path, monkeypatch, capsys):
    def stops(one):
        if one.text == "Two.":
            raise KeyboardInterrupt

    path = tmp_path / "corpus.jsonl"
    path.write_text('{"title": "A", "text": "One."}\n{"title": "B", "text": "Two."}\n')
    words = run.READERS["text: words"]
    monkeypatch.setattr(run, "READERS", {"words": words, "stopping": stops})
    monkeypatch.setattr(run, "TEXTS_PER_LINE", 1)
    monkeypatch.setattr(sys, "argv", ["run.py", str(path)])
    run.main()
    said = capsys.readouterr()
    counted = {line.split("|")[1].strip(): line.split("|")[2] for line in said.out.splitlines()[2:]}
    assert counted == {"words": " 2 ", "stopping": " 1 "}
    assert said.err == "1 texts, 0 s\nstopped\n"


def test_the_first_call_of_a_reader_is_not_timed(run):
    read = []
    found = run.measure(
        [run.Text("it", "Which?", "Moths.")], {"one": lambda one: read.append(one.id)}
    )
    assert set(read[: read.index("it")]) == {run.WARMING.id}
    assert set(read[read.index("it") :]) == {"it"}
    assert len(found["one"].times) == 1


def test_what_would_be_the_slowest_is_read_again_as_if_for_the_first_time(run, monkeypatch):
    ticks = iter([0.0, 0.009, 1.0, 1.002, 2.0, 2.005, 3.0, 3.001])
    monkeypatch.setattr(run, "process_time", lambda: next(ticks))
    n_held = []

    def reads(one):
        n_held.append(run.faults.read_quantities.cache_info().currsize)
        run.faults.read_quantities(one.text)
        raise KeyError(one.id)

    run.forget()
    figures = run.Figures()
    figures.add(reads, run.Text("slow", "Which?", "5 mg"))
    figures.add(reads, run.Text("fast", "Which?", "6 mg"))
    assert (round(figures.slowest_ms, 3), figures.slowest) == (2.0, "slow")
    assert [round(one, 3) for one in figures.times] == [2.0, 1.0]
    assert n_held == [0, 0, 0, 1]
    assert figures.raised == ["slow: KeyError: 'slow'", "fast: KeyError: 'fast'"]
