"""Files of training data, and an encoder of a few hundred numbers."""

import numpy as np
import pytest
from typer.testing import CliRunner

from deepera_graph.lab.cli.main import app
from support.pools import instance_lines, write_lines
from support.tiny_encoder import DEPTH, OPSET, make_tokenizer


@pytest.fixture
def lines(tmp_path):
    """A file of forty questions."""
    return write_lines(tmp_path / "lines.jsonl", instance_lines(40))


@pytest.fixture
def beir(tmp_path):
    """A folder in the layout of BEIR: of q2, BM25 cannot find what answers."""
    folder = tmp_path / "crusts"
    rows = [
        {"_id": "d1", "title": "Roofs", "text": "Copper roofs turn green in the rain."},
        {"_id": "d2", "title": "Lamps", "text": "Harbour lamps were cleaned twice a week."},
        {"_id": "d3", "title": "Rain", "text": "Rain fell on copper roofs in wet summers."},
        {"_id": "d4", "title": "Soot", "text": "Chimneys blacken walls."},
    ]
    write_lines(folder / "corpus.jsonl", rows)
    queries = [("q1", "Do copper roofs turn green?"), ("q2", "How often were lamps cleaned?")]
    write_lines(folder / "queries.jsonl", [{"_id": id, "text": text} for id, text in queries])
    (folder / "qrels").mkdir()
    judged = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td2\t1\nq2\td4\t1\n"
    (folder / "qrels" / "train.tsv").write_text(judged)
    return folder


@pytest.fixture
def weights(tmp_path):
    """A folder with an encoder that gives every token a vector of its own, and no judge."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    folder = tmp_path / "base"
    folder.mkdir()
    tokenizer = make_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    random = np.random.default_rng(0)
    table = random.normal(size=(tokenizer.get_vocab_size(), DEPTH)).astype(np.float32)
    inputs = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])],
        "tiny",
        [helper.make_tensor_value_info(one, TensorProto.INT64, ("texts", "n")) for one in inputs],
        [helper.make_tensor_value_info("tokens", TensorProto.FLOAT, ("texts", "n", DEPTH))],
        [numpy_helper.from_array(table, "table")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.save(made, folder / "encoder.onnx")
    return folder


@pytest.fixture
def deepera_lab():
    """Runs a command in this process."""
    return lambda *args: CliRunner().invoke(app, [str(one) for one in args])
