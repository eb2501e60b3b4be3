"""The first stages of `benchmarks/judge`, over four documents."""

import importlib.util
import json
from pathlib import Path

import pytest

from deepera_graph.judges.trained.backend import SUMS, Weights

pytestmark = pytest.mark.full

FILE = Path(__file__).parents[2] / "benchmarks" / "judge" / "first_stage.py"
DOCUMENTS = {
    "tides": "Tides lifted the boats twice a day.",
    "moon": "The moon pulls the sea and makes tides.",
    "bread": "Bread rises because of yeast.",
    "ovens": "Ovens of brick hold heat for hours.",
}
CLAIMS = {"moon": "The moon makes tides.", "bread": "Yeast makes bread rise."}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "qrels").mkdir()
    rows = {
        "corpus.jsonl": [{"_id": id, "text": text} for id, text in DOCUMENTS.items()],
        "queries.jsonl": [{"_id": f"about {id}", "text": text} for id, text in CLAIMS.items()],
    }
    for name, its in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in its))
    judged = "".join(f"about {id}\t{id}\t1\n" for id in CLAIMS)
    (tmp_path / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    return tmp_path


@pytest.mark.skipif(not (Weights().place() / SUMS).is_file(), reason="this checkout has no weights")
def test_every_way_is_measured_on_the_same_claims(folder, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("first_stage", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr("sys.argv", ["first_stage.py", str(folder)])
    module.main()
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "4 documents, 2 questions"
    assert [line.count("100.0 [100.0, 100.0]") for line in told[4:]] == [2, 2, 2, 2]
