import csv
import json
import math
from dataclasses import replace
from io import StringIO

import pytest

from bench.lakes import make_dataset, make_instance
from deepera_graph.calibration.instance import Dataset, DatasetError, MetricError, write_rows
from deepera_graph.errors import SettingsError
from deepera_graph.lab.bench.run import BenchConfig, bench_table, run
from deepera_graph.lab.metrics.ranking import summarize_dataset
from deepera_graph.lab.rankers.base import FirstStage, Random, Ranker, rank_by_score
from deepera_graph.lab.rankers.retrieval import BM25

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
    table = run([FirstStage(), Counting()], [lakes, ponds], BenchConfig(**QUICK))
    assert [(row.dataset, row.ranker) for row in table.rows] == [
        ("lakes", "first stage"), ("lakes", "backwards"),
        ("ponds", "first stage"), ("ponds", "backwards"),
    ]  # fmt: skip
    hit_1, hit_3, rp = table.of("lakes", "first stage").estimates
    assert (hit_1.mean, hit_3.mean, rp.mean) == (0, 1, 0.5)
    assert table.of("lakes", "backwards").estimates[2].mean == 0.25
    assert rp.low == rp.high == 0.5


def test_a_golden_passage_that_was_filtered_out_is_a_miss():
    table = run(
        [Half()], [make_dataset(golden=(4,))], BenchConfig(metrics=("MRR", "HitRate@5"), **QUICK)
    )
    assert [one.mean for one in table.rows[0].estimates] == [0, 0]


def test_the_table_says_of_how_many_questions_there_is_no_answer():
    some = [make_instance(1), make_instance(2, golden=(), outside={})]
    metrics = ("MRR", "Abstention", "FalseKeeps")
    table = run(
        [FirstStage(), Half()],
        [Dataset("lakes", lambda: some)],
        BenchConfig(metrics=metrics, oracle=True, **QUICK),
    )
    assert [one.mean for one in table.of("lakes", "first stage").estimates] == [0.5, 0, 1]
    assert [one.mean for one in table.of("lakes", Half.name).estimates] == [0.5, 0, 0.4]
    assert table.summaries[0].ceiling == 1
    text = table.markdown()
    assert "Nothing answers 1 of the questions: Abstention and FalseKeeps are over these" in text
    assert "the other metrics over the 1 with a golden passage" in text


def test_the_oracle_is_the_ceiling():
    lost = make_instance(2, golden=())
    data = Dataset("lakes", lambda: [make_instance(1, golden=(5,)), lost])
    table = run([FirstStage()], [data], BenchConfig(oracle=True, metrics=("HitRate@1",), **QUICK))
    assert table.of("lakes", "oracle").estimates[0].mean == 0.5
    assert table.summaries[0].ceiling == 0.5


def test_rankers_that_differ_from_run_to_run_are_repeated():
    table = run([Random(), FirstStage()], [make_dataset(20)], BenchConfig(n_repeats=4, **QUICK))
    assert [row.n_repeats for row in table.rows] == [4, 1]
    assert table.rows[0].estimates[0].std > 0
    assert table.rows[1].estimates[0].std == 0


def test_differences_are_taken_from_the_baseline():
    plan = BenchConfig(metrics=("MRR",), baseline="first stage", **QUICK)
    table = run([FirstStage(), Counting()], [make_dataset(8)], plan)
    (one,) = table.differences
    assert (one.ranker, one.baseline, one.metric) == ("backwards", "first stage", "MRR")
    assert (one.mean, one.low, one.high) == (-0.25, -0.25, -0.25)
    assert one.p < 0.05


def test_kept_rankings_are_read_back_to_the_same_bytes(tmp_path):
    plan = BenchConfig(keep=tmp_path, baseline="backwards", **QUICK)
    first = run([Counting(), Random(), BM25()], [make_dataset(6)], plan)
    again = Counting(most=0)
    second = run([again, Random(), BM25()], [make_dataset(6)], plan)
    assert again.asked == []
    assert (first.markdown(), first.csv()) == (second.markdown(), second.csv())
    assert first.differences_csv() == second.differences_csv()


def test_another_version_of_a_ranker_or_of_the_data_is_ranked_anew(tmp_path):
    plan = BenchConfig(keep=tmp_path, **QUICK)
    run([Counting()], [make_dataset(3)], plan)
    newer, other_data = Counting(fingerprint="v2"), Counting()
    run([newer], [make_dataset(3)], plan)
    run([other_data], [make_dataset(3, golden=(1,))], plan)
    assert len(newer.asked) == len(other_data.asked) == 3


def test_a_ranker_without_a_fingerprint_is_never_kept(tmp_path):
    for _ in range(2):
        ranker = Counting(fingerprint=None)
        run([ranker], [make_dataset(3)], BenchConfig(keep=tmp_path, **QUICK))
        assert len(ranker.asked) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    plan = BenchConfig(keep=tmp_path, **QUICK)
    whole = run([Counting()], [make_dataset(40)], BenchConfig(**QUICK))
    with pytest.raises(KeyboardInterrupt):
        run([Counting(most=35)], [make_dataset(40)], plan)
    rest = Counting()
    table = run([rest], [make_dataset(40)], plan)
    assert len(rest.asked) == 8
    assert table.of("lakes", "backwards").estimates == whole.rows[0].estimates


def test_a_torn_line_is_ranked_again(tmp_path):
    plan = BenchConfig(keep=tmp_path, **QUICK)
    run([Counting()], [make_dataset(5)], plan)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    again = Counting()
    run([again], [make_dataset(5)], plan)
    assert again.asked == ["How warm is lake 5?"]


def test_a_metric_with_nothing_to_measure_shows_a_dash():
    table = run([FirstStage()], [make_dataset()], BenchConfig(metrics=("CDR", "MRR"), **QUICK))
    assert "| first stage | – | 50.0 [50.0, 50.0] |" in table.markdown()
    assert "| first stage | – / 50.0 |" in table.overview()
    assert "nan" not in table.csv()


def test_markdown_says_what_was_measured():
    text = run([Random()], [make_dataset(6, distractors=(4, 5))], BenchConfig(**QUICK)).markdown()
    assert text.startswith(
        "### lakes\n\n6 questions, 5.0 candidates each (2.0 labelled distractors); golden among "
        "them for 100.0 %. First stage: by hand.\n\n| ranker | HitRate@1 |"
    )
    assert " ± " in text


def test_csv_has_a_line_a_metric_in_fractions():
    table = run([FirstStage()], [make_dataset()], BenchConfig(**QUICK))
    rows = list(csv.DictReader(StringIO(table.csv())))
    assert [(row["metric"], row["mean"]) for row in rows] == [
        ("HitRate@1", "0"), ("HitRate@3", "1"), ("MRR", "0.5"),
    ]  # fmt: skip
    assert {row["questions"] for row in rows} == {"4"}


def test_an_empty_data_set_is_refused():
    with pytest.raises(DatasetError, match="'none' has no question"):
        run([FirstStage()], [Dataset("none", list)])


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
        run([FirstStage()] * rankers, [make_dataset()] * datasets, BenchConfig(**plan))


@pytest.mark.parametrize(
    "plan", [{"metrics": ("MAP",)}, {"n_repeats": 0}, {"n_resamples": 0}], ids=str
)
def test_plans_that_cannot_be_carried_out_are_refused(plan):
    with pytest.raises(MetricError, match="must be"):
        BenchConfig(**plan)


def test_the_fingerprint_of_data_depends_on_every_label():
    one, same = summarize_dataset(make_dataset()), summarize_dataset(make_dataset())
    other = summarize_dataset(make_dataset(golden=(1,)))
    assert one.fingerprint == same.fingerprint != other.fingerprint


def test_the_command_writes_the_table_and_a_manifest(tmp_path, beir_folder):
    write_rows(tmp_path / "lakes.jsonl", [make_instance(number) for number in range(5)])
    options = BenchConfig(
        data=(tmp_path / "lakes.jsonl", beir_folder),
        rankers=("first-stage", "bm25", "oracle"),
        baseline="BM25",
        keep=tmp_path / "kept",
        **QUICK,
        out=tmp_path / "out",
        limit=2,
    )
    table = bench_table(options)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert sorted(before) == ["differences.csv", "manifest.json", "results.csv", "results.md"]
    assert table.overview() in before["results.md"].decode()
    manifest = json.loads(before["manifest.json"])
    assert manifest["datasets"]["lakes"]["questions"] == 2
    assert manifest["rankers"]["BM25"]["stop_words"] == "en"
    bench_table(options)
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


@pytest.mark.parametrize("changes", [{"data": ()}, {"limit": 0}, {"n_candidates": 0}], ids=str)
def test_options_out_of_range_are_refused(tmp_path, changes):
    with pytest.raises(SettingsError, match="must"):
        bench_table(BenchConfig(**{"data": (tmp_path,), **changes}))


def test_every_question_is_told_to_who_watches():
    steps = []
    plan = BenchConfig(n_repeats=2, **QUICK)
    run([Random(), FirstStage()], [make_dataset(3)], plan, watch=steps.append)
    told = [(one.ranker, one.n_done, one.n_questions) for one in steps]
    assert told == [
        *(("random", n, 6) for n in range(7)),
        *(("first stage", n, 3) for n in range(4)),
    ]


class Failing(Counting):
    """Cannot judge the first passage of lake 2, as long as *broken*."""

    broken = True

    def rank(self, question, passages):
        if self.broken and "lake 2?" in question:
            self.problems.note(1, "HTTP 503")
        return super().rank(question, passages)


def test_passages_that_failed_are_counted_and_told(tmp_path):
    table = run([Failing()], [make_dataset(4)], BenchConfig(**QUICK))
    assert (table.rows[0].failed, table.rows[0].problem) == (1 / 4, "HTTP 503")
    assert (
        "backwards: 5.0 % of the passages could not be judged and keep their first-stage order "
        "among themselves (HTTP 503)." in table.markdown()
    )
    assert table.csv().splitlines()[1].endswith(",0.25,HTTP 503")


def test_kept_failures_are_tried_again_only_when_asked(tmp_path):
    plan, data = BenchConfig(keep=tmp_path, **QUICK), make_dataset(40)
    run([Failing()], [data], plan)
    again, mended = Failing(), Failing()
    again.broken = mended.broken = False
    assert run([again], [data], plan).rows[0].failed == 1 / 40
    assert again.asked == []
    table = run([mended], [data], replace(plan, retry_failed=True))
    assert table.rows[0].failed == 0
    assert len(mended.asked) == 16  # those that were ranked together with the failed one
    assert run([Failing()], [data], plan).csv() == table.csv()
    assert table.rows[0].estimates == run([mended], [data], BenchConfig(**QUICK)).rows[0].estimates


def test_a_retry_that_is_stopped_loses_nothing(tmp_path):
    plan, data = BenchConfig(keep=tmp_path, **QUICK), make_dataset(4)
    first = run([Failing()], [data], plan)
    with pytest.raises(KeyboardInterrupt):
        run([Failing(most=1)], [data], replace(plan, retry_failed=True))
    assert run([Failing(most=0)], [data], plan).csv() == first.csv()


def test_a_ranker_that_judged_nothing_has_no_numbers(tmp_path):
    class AllFail(Failing):
        def rank(self, question, passages):
            self.problems.note(len(passages), "IndexError")
            return rank_by_score(passages, [0] * len(passages))

    table = run([AllFail(), BM25()], [make_dataset(3)], BenchConfig(**QUICK))
    assert table.missing == (("lakes", "backwards", "no passage could be judged: IndexError"),)


def test_a_ranker_that_judged_nothing_is_asked_anew(tmp_path):
    class Gone(Failing):
        def rank(self, question, passages):
            self.problems.note(len(passages), "HTTP 503")
            return rank_by_score(passages, [0] * len(passages))

    plan, data = BenchConfig(keep=tmp_path, **QUICK), make_dataset(3)
    assert run([Gone(), BM25()], [data], plan).missing
    back = Counting()
    assert not run([back], [data], plan).missing
    assert len(back.asked) == 3


def test_rankings_kept_before_failures_were_counted_are_still_read(tmp_path):
    plan = BenchConfig(keep=tmp_path, **QUICK)
    run([Counting()], [make_dataset(3)], plan)
    (path,) = tmp_path.iterdir()
    new = ("failed", "problem", "reasons", "quotes", "unproven")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    old = [{key: row[key] for key in row if key not in new} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in old))
    again = Counting(most=0)
    run([again], [make_dataset(3)], plan)
    assert again.asked == []
