import subprocess
import sys
from pathlib import Path

import pytest

from bench.lakes import make_instance
from deepera_graph.calibration.instance import write_rows

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="counts memory in Linux units"),
    pytest.mark.slow,
]


def long_instance(number):
    one = make_instance(number, n=30)
    contexts = tuple(
        context.model_copy(update={"text": context.text * 20}) for context in one.contexts
    )
    return one.model_copy(update={"contexts": contexts})


def test_1000_questions_of_30_passages_stream_in_little_memory(tmp_path):
    path = tmp_path / "many.jsonl"
    write_rows(path, map(long_instance, range(1000)))
    assert path.stat().st_size > 25_000_000
    script = Path(__file__).with_name("stream_many.py")
    done = subprocess.run(
        [sys.executable, str(script), str(path), str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 300
