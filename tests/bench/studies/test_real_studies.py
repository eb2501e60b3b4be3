"""Studies on real questions, where the data is at hand."""

import pytest

from bench.lakes import SHARED_DATA
from bench.study_lakes import column, lab
from deepera_graph import EvidenceReranker
from deepera_graph.lab.data.readers import open_dataset
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.rankers.deepera import DeepEra
from deepera_graph.lab.studies.rerank import filtering as cutoff
from deepera_graph.lab.studies.rerank import look_alikes
from deepera_graph.lab.studies.rerank import retrieval as embedding

WRITTEN = SHARED_DATA / "pubmedqa_dev" / "written.jsonl"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WRITTEN.exists(), reason="needs the data"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    ranker = DeepEra(EvidenceReranker("local", content="passage"))
    keep = tmp_path_factory.mktemp("kept")
    return lab([FirstStage(), ranker], [open_dataset(WRITTEN).first(40)], keep=keep)


def test_no_filter_lifts_a_golden_passage(made):
    _, finding = cutoff.study_cutoff(made).findings
    assert "on all 40 questions the filtered list is the beginning" in finding
    assert "stands higher with it on 0 questions" in finding


def test_look_alikes_stand_above_the_golden_less_often_than_in_the_first_stage(made):
    (grid,) = look_alikes.study_look_alikes(made).grids
    above = dict(zip(zip(column(grid, "ranker"), column(grid, "type"), strict=True),
                     column(grid, "above the golden"), strict=True))  # fmt: skip
    assert above["DeepEra local", "all look-alikes"] < above["first stage", "all look-alikes"]


def test_more_look_alikes_in_the_store_lower_nrs(made):
    (grid,) = embedding.study_embeddings(made).grids
    shares = column(grid, "NRS@10")
    assert shares[:3] == sorted(shares[:3], reverse=True)
    assert shares[3:] == sorted(shares[3:], reverse=True)
