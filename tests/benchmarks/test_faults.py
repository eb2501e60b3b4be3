import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

COMMAND = Path(__file__).parents[2] / "benchmarks" / "faults" / "run.py"


def test_the_fault_matrix_command_reports_the_hit_passage_and_keeps_the_rest() -> None:
    options = ["--only", "DeepEra", "--questions", "1", "--passages", "4", "--faults"]
    run = subprocess.run(
        [sys.executable, str(COMMAND), *options, "prose,score 70,20 % mixed"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "| DeepEra | rest exact | rest exact | rest exact" in run.stdout, run.stdout + run.stderr
