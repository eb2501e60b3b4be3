"""Published numbers on real data; skipped where the data is not at hand."""

import pytest

from bench.lakes import SHARED_DATA
from bench.study_lakes import compare
from deepera_graph.lab.data.readers import open_dataset
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.rankers.retrieval import BM25
from deepera_graph.lab.studies.base import StudyConfig

pytestmark = pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the evaluation data")


def percents(path, ranker, metrics=("HitRate@1", "HitRate@3", "MRR")):
    plan = StudyConfig(metrics=metrics, n_resamples=1)
    table = compare([ranker], [open_dataset(SHARED_DATA / path)], plan)
    return [100 * one.mean for one in table.rows[0].estimates]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("pubmedqa_dev/base.jsonl", (56.6, 73.5, 66.9)),
        ("pubmedqa_dev/natural.jsonl", (7.2, 56.2, 34.2)),
        ("scisumm", (22.8, 41.4, 37.6)),
    ],
)
def test_bm25_over_the_pool_reaches_the_known_numbers(path, expected):
    assert percents(path, BM25()) == pytest.approx(expected, abs=0.5)


@pytest.mark.full
def test_first_stage_order_of_instance_files_is_the_retrievers():
    found = percents("pubmedqa_dev/written.jsonl", FirstStage())
    assert found == pytest.approx((6.0, 35.3, 27.2), abs=0.1)


@pytest.mark.slow
def test_bm25_over_the_scifact_corpus_is_where_others_have_it():
    (ndcg,) = percents("scifact", FirstStage(), ("nDCG@10",))
    assert 66 <= ndcg <= 69
