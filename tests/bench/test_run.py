import csv
import json
import math
from dataclasses import replace
from io import StringIO

import pytest

from bench.lakes import make_dataset, make_instance
from bench.study_lakes import compare
from deepera_graph.calibration.instance import Dataset, DatasetError, MetricError, write_rows
from deepera_graph.errors import SettingsError
from deepera_graph.lab.metrics.ranking import summarize_dataset
from deepera_graph.lab.rankers.base import FirstStage, Random, Ranker, rank_by_score
from deepera_graph.lab.rankers.retrieval import BM25
from deepera_graph.lab.studies.base import StudyConfig
from deepera_graph.lab.studies.run import TABLE, open_runner, run_studies
from deepera_graph.lab.tables import format_csv

QUICK = {"n_resamples": 200}


class Counting(Ranker):
    """Ranks backwards and counts its questions; stops after *most*."""

    name = "backwards"

    def __init__(self, most=math.inf, fingerprint="v1"):
        self.fingerprint = fingerprint and {"version": fingerprint}
        self.asked, self.most = [], most

    def rank(self, question, passages):
        if len(self.asked) >= self.most:
            raise KeyboardInterrupt
        self.asked.append(question)
        return rank_by_score(passages, range(len(passages)))


class Half(FirstStage):
    """Keeps the first half."""

    name = "half"

    def rank(self, question, passages):
        return super().rank(question, passages)[: len(passages) // 2]


def test_rows_hold_means_and_intervals_data_set_by_data_set():
    lakes, ponds = make_dataset(golden=(2,)), make_dataset(name="ponds", golden=(1,), n=3)
    table = compare([FirstStage(), Counting()], [lakes, ponds], StudyConfig(**QUICK))
    assert [(row.dataset, row.ranker) for row in table.rows] == [
        ("lakes", "first stage"), ("lakes", "backwards"),
        ("ponds", "first stage"), ("ponds", "backwards"),
    ]  # fmt: skip
    hit_1, hit_3, rp = table.of("lakes", "first stage").estimates
    assert (hit_1.mean, hit_3.mean, rp.mean) == (0, 1, 0.5)
    assert table.of("lakes", "backwards").estimates[2].mean == 0.25
    assert rp.low == rp.high == 0.5


def test_a_golden_passage_that_was_filtered_out_is_a_miss():
    table = compare(
        [Half()], [make_dataset(golden=(4,))], StudyConfig(metrics=("MRR", "HitRate@5"), **QUICK)
    )
    assert [one.mean for one in table.rows[0].estimates] == [0, 0]


def test_the_table_says_of_how_many_questions_there_is_no_answer():
    some = [make_instance(1), make_instance(2, golden=(), outside={})]
    metrics = ("MRR", "Abstention", "FalseKeeps")
    table = compare(
        [FirstStage(), Half()],
        [Dataset("lakes", lambda: some)],
        StudyConfig(metrics=metrics, oracle=True, **QUICK),
    )
    assert [one.mean for one in table.of("lakes", "first stage").estimates] == [0.5, 0, 1]
    assert [one.mean for one in table.of("lakes", Half.name).estimates] == [0.5, 0, 0.4]
    assert table.summaries[0].ceiling == 1
    text = table.text()
    assert "Nothing answers 1 of the questions: Abstention and FalseKeeps are over these" in text
    assert "the other metrics over the 1 with a golden passage" in text


def test_a_set_that_nothing_answers_can_be_measured_by_what_is_kept(tmp_path):
    rows = [
        {"id": f"q{n}", "question": "Why?", "contexts": [{"id": "a", "text": "So."}]}
        for n in range(10)
    ]
    path = tmp_path / "none.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    known = {"data": (path,), "rankers": ("first-stage",)}
    for metrics, needs in ((("Abstention", "FalseKeeps"), False), (("Abstention", "MRR"), True)):
        [opened] = StudyConfig(**known, metrics=metrics).open_datasets()
        assert opened.needs_golden == needs
    config = StudyConfig(**known, metrics=("FalseKeeps",), n_resamples=20)
    [(_, made)] = run_studies([TABLE], open_runner(config))
    assert "nothing answers any of them" in made.findings[0]
    assert made.findings[0].endswith(
        "Where all 10 come out alike, up to 30 % of other questions may still not."
    )
    assert made.grids[1].rows[0][3].mean == 1


def test_what_few_questions_say_is_over_those_with_a_golden_passage():
    some = [make_instance(n, golden=(2,) if n > 3 else (), outside={}) for n in range(1, 17)]
    text = compare([FirstStage()], [Dataset("lakes", lambda: some)], StudyConfig(**QUICK)).text()
    assert "golden among them for 100.0 % of the 13 that have one; first stage" in text
    assert "Where all 13 come out alike, up to 23 % of other questions may still not." in text
    three = Dataset("lakes", lambda: some[-3:])
    text = compare([FirstStage()], [three], StudyConfig(**QUICK)).text()
    assert " So few questions say nothing of others." in text


def test_the_oracle_is_the_ceiling():
    lost = make_instance(2, golden=())
    data = Dataset("lakes", lambda: [make_instance(1, golden=(5,)), lost])
    table = compare(
        [FirstStage()], [data], StudyConfig(oracle=True, metrics=("HitRate@1",), **QUICK)
    )
    assert table.of("lakes", "oracle").estimates[0].mean == 0.5
    assert table.summaries[0].ceiling == 0.5


def test_rankers_that_differ_from_run_to_run_are_repeated():
    table = compare([Random(), FirstStage()], [make_dataset(20)], StudyConfig(n_repeats=4, **QUICK))
    assert [row.n_repeats for row in table.rows] == [4, 1]
    assert table.rows[0].estimates[0].std > 0
    assert table.rows[1].estimates[0].std == 0


def test_differences_are_taken_from_the_baseline():
    plan = StudyConfig(metrics=("MRR",), baseline="first stage", **QUICK)
    table = compare([FirstStage(), Counting()], [make_dataset(8)], plan)
    grid = table.grids["differences"]
    assert grid.title == "Minus first stage, on the same questions"
    [(data, ranker, metric, one, p)] = grid.rows
    assert (data, ranker, metric) == ("lakes", "backwards", "MRR")
    assert one[:3] == (-0.25, -0.25, -0.25)
    assert p < 0.05


def test_kept_rankings_are_read_back_to_the_same_bytes(tmp_path):
    plan = StudyConfig(keep=tmp_path, baseline="backwards", **QUICK)
    first = compare([Counting(), Random(), BM25()], [make_dataset(6)], plan)
    again = Counting(most=0)
    second = compare([again, Random(), BM25()], [make_dataset(6)], plan)
    assert again.asked == []
    assert (first.text(), first.csv()) == (second.text(), second.csv())


def test_another_version_of_a_ranker_or_of_the_data_is_ranked_anew(tmp_path):
    plan = StudyConfig(keep=tmp_path, **QUICK)
    compare([Counting()], [make_dataset(3)], plan)
    newer, other_data = Counting(fingerprint="v2"), Counting()
    compare([newer], [make_dataset(3)], plan)
    compare([other_data], [make_dataset(3, golden=(1,))], plan)
    assert len(newer.asked) == len(other_data.asked) == 3


@pytest.mark.parametrize(
    "fingerprint",
    [
        None,
        {"backend": {"kind": "factory", "path": "my_judges:make"}},
        {"backend": {"kind": "mixed", "judge": {"kind": "factory", "path": "my_judges:make"}}},
    ],
)
def test_a_ranker_that_may_be_another_one_next_time_is_never_kept(tmp_path, fingerprint):
    for _ in range(2):
        ranker = Counting()
        ranker.fingerprint = fingerprint
        compare([ranker], [make_dataset(3)], StudyConfig(keep=tmp_path, **QUICK))
        assert len(ranker.asked) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    plan = StudyConfig(keep=tmp_path, **QUICK)
    whole = compare([Counting()], [make_dataset(40)], StudyConfig(**QUICK))
    with pytest.raises(KeyboardInterrupt):
        compare([Counting(most=35)], [make_dataset(40)], plan)
    rest = Counting()
    table = compare([rest], [make_dataset(40)], plan)
    assert len(rest.asked) == 8
    assert table.of("lakes", "backwards").estimates == whole.rows[0].estimates


def test_a_torn_line_is_ranked_again(tmp_path):
    plan = StudyConfig(keep=tmp_path, **QUICK)
    compare([Counting()], [make_dataset(5)], plan)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    again = Counting()
    compare([again], [make_dataset(5)], plan)
    assert again.asked == ["How warm is lake 5?"]


def test_a_pool_that_questions_share_is_told():
    def told(*instances):
        data = Dataset("lakes", lambda: list(instances))
        return compare([FirstStage()], [data], StudyConfig(**QUICK)).text()

    one, *others = (make_instance(n) for n in range(1, 5))
    shared = [each.model_copy(update={"contexts": one.contexts}) for each in others]
    assert " have " not in told(one, *others)
    assert (
        " The 4 questions have 1 pool of passages between them: intervals, which take them as "
        "independent, may be too narrow. Where all 4 come out" in told(one, *shared)
    )
    assert " The 4 questions have 2 pools of" in told(one, *shared[:2], others[2])


def test_a_metric_with_nothing_to_measure_shows_a_dash():
    table = compare([FirstStage()], [make_dataset()], StudyConfig(metrics=("CDR", "MRR"), **QUICK))
    assert "| lakes | first stage | 1 | – | 50.0 [50.0, 50.0] |" in table.text()
    assert "| first stage | – / 50.0 |" in table.text()
    assert "nan" not in table.csv()


def test_markdown_says_what_was_measured():
    text = compare([Random()], [make_dataset(6, distractors=(4, 5))], StudyConfig(**QUICK)).text()
    assert (
        "- lakes: 6 questions, 5.0 candidates each (2.0 labelled distractors), golden among them "
        "for 100.0 %; first stage: by hand. Where all 6 come out alike, up to 50 % of other "
        "questions may still not.\n" in text
    )
    assert " ± " in text


def test_csv_has_fractions():
    table = compare([FirstStage()], [make_dataset()], StudyConfig(**QUICK))
    (row,) = csv.DictReader(StringIO(format_csv(table.grids["results"])))
    assert [row[one] for one in ("HitRate@1", "HitRate@3", "MRR")] == ["0", "1", "0.5"]


def test_an_empty_data_set_is_refused():
    with pytest.raises(DatasetError, match="'none' has no question"):
        compare([FirstStage()], [Dataset("none", list)])


@pytest.mark.parametrize(
    ("rankers", "datasets", "plan", "message"),
    [
        pytest.param(2, 1, {}, "names must differ", id="ranker-twice"),
        pytest.param(1, 2, {}, "names must differ", id="data-set-twice"),
        pytest.param(1, 1, {"baseline": "x"}, "baseline must be one of", id="baseline"),
    ],
)
def test_names_must_be_clear(rankers, datasets, plan, message):
    with pytest.raises(MetricError, match=message):
        compare([FirstStage()] * rankers, [make_dataset()] * datasets, StudyConfig(**plan))


@pytest.mark.parametrize(
    "plan", [{"metrics": ("MAP",)}, {"n_repeats": 0}, {"n_resamples": 0}], ids=str
)
def test_plans_that_cannot_be_carried_out_are_refused(plan):
    with pytest.raises((MetricError, SettingsError), match="must be"):
        StudyConfig(**plan)


def test_the_fingerprint_of_data_depends_on_every_label():
    one, same = summarize_dataset(make_dataset()), summarize_dataset(make_dataset())
    other = summarize_dataset(make_dataset(golden=(1,)))
    assert one.fingerprint == same.fingerprint != other.fingerprint


@pytest.mark.full
def test_the_table_is_written_with_a_manifest(tmp_path, beir_folder):
    write_rows(tmp_path / "lakes.jsonl", [make_instance(number) for number in range(5)])
    config = StudyConfig(
        data=(tmp_path / "lakes.jsonl", beir_folder),
        rankers=("first-stage", "bm25"),
        oracle=True,
        baseline="bm25",
        keep=tmp_path / "kept",
        **QUICK,
        limit=2,
    )
    out = tmp_path / "out"
    run_studies([TABLE], open_runner(config), lambda study: out)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(before) == [
        "differences.csv", "manifest.json", "overview.csv", "results.csv", "results.md",
    ]  # fmt: skip
    written = json.loads(before["manifest.json"])
    assert written["datasets"]["lakes"]["questions"] == 2
    assert written["rankers"]["BM25"]["stop_words"] == "en"
    assert written["setup"]["baseline"] == "BM25"
    run_studies([TABLE], open_runner(config), lambda study: out)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("changes", [{"data": ()}, {"limit": 0}, {"n_candidates": 0}], ids=str)
def test_options_out_of_range_are_refused(tmp_path, changes):
    with pytest.raises(SettingsError, match="must"):
        open_runner(StudyConfig(**{"data": (tmp_path,), **changes}))


def test_every_question_is_told_to_who_watches():
    steps = []
    plan = StudyConfig(n_repeats=2, **QUICK)
    compare([Random(), FirstStage()], [make_dataset(3)], plan, watch=steps.append)
    told = [(one.ranker, one.n_done, one.n_questions) for one in steps]
    assert told == [
        *(("random", n, 3) for _ in range(2) for n in range(1, 4)),
        *(("first stage", n, 3) for n in range(1, 4)),
    ]


class Failing(Counting):
    """Cannot judge the first passage of lake 2, as long as *broken*."""

    broken = True

    def rank(self, question, passages):
        if self.broken and "lake 2?" in question:
            self.problems.note(1, "HTTP 503")
        return super().rank(question, passages)


def test_passages_that_failed_are_counted_and_told(tmp_path):
    table = compare([Failing()], [make_dataset(4)], StudyConfig(**QUICK))
    assert table.rows[0].failed == 1 / 4
    (row,) = table.grids["failures"].rows
    assert row == ("lakes", "backwards", "passages not judged", 1 / 20, "HTTP 503")


def test_kept_failures_are_tried_again_only_when_asked(tmp_path):
    plan, data = StudyConfig(keep=tmp_path, **QUICK), make_dataset(40)
    compare([Failing()], [data], plan)
    again, mended = Failing(), Failing()
    again.broken = mended.broken = False
    assert compare([again], [data], plan).rows[0].failed == 1 / 40
    assert again.asked == []
    table = compare([mended], [data], replace(plan, retry_failed=True))
    assert table.rows[0].failed == 0
    assert len(mended.asked) == 16  # those that were ranked together with the failed one
    assert compare([Failing()], [data], plan).csv() == table.csv()
    assert (
        table.rows[0].estimates == compare([mended], [data], StudyConfig(**QUICK)).rows[0].estimates
    )


def test_a_retry_that_is_stopped_loses_nothing(tmp_path):
    plan, data = StudyConfig(keep=tmp_path, **QUICK), make_dataset(4)
    first = compare([Failing()], [data], plan)
    with pytest.raises(KeyboardInterrupt):
        compare([Failing(most=1)], [data], replace(plan, retry_failed=True))
    assert compare([Failing(most=0)], [data], plan).csv() == first.csv()


def test_a_ranker_that_judged_nothing_has_no_numbers(tmp_path):
    class AllFail(Failing):
        def rank(self, question, passages):
            self.problems.note(len(passages), "IndexError")
            return rank_by_score(passages, [0] * len(passages))

    table = compare([AllFail(), BM25()], [make_dataset(3)], StudyConfig(**QUICK))
    reason = "no passage could be judged: IndexError"
    assert table.missing == {("lakes", "backwards"): reason}
    assert "| backwards | not available |" in table.text()


def test_a_ranker_that_judged_nothing_is_asked_anew(tmp_path):
    class Gone(Failing):
        def rank(self, question, passages):
            self.problems.note(len(passages), "HTTP 503")
            return rank_by_score(passages, [0] * len(passages))

    plan, data = StudyConfig(keep=tmp_path, **QUICK), make_dataset(3)
    assert compare([Gone(), BM25()], [data], plan).missing
    back = Counting()
    assert not compare([back], [data], plan).missing
    assert len(back.asked) == 3


def test_rankings_kept_before_failures_were_counted_are_still_read(tmp_path):
    plan = StudyConfig(keep=tmp_path, **QUICK)
    compare([Counting()], [make_dataset(3)], plan)
    (path,) = tmp_path.iterdir()
    new = ("failed", "problem", "reasons", "quotes", "unproven")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    old = [{key: row[key] for key in row if key not in new} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in old))
    again = Counting(most=0)
    compare([again], [make_dataset(3)], plan)
    assert again.asked == []
