import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

COMMAND = Path(__file__).parents[2] / "benchmarks" / "faults" / "run.py"


@pytest.mark.parametrize(
    "faults",
    ["prose,score 70", pytest.param("prose,score 70,20 % mixed", marks=pytest.mark.slow)],
)
def test_the_fault_matrix_command_reports_the_hit_passage_and_keeps_the_rest(faults: str) -> None:
    options = ["--only", "DeepEra", "--questions", "1", "--passages", "4", "--faults"]
    run = subprocess.run(
        [sys.executable, str(COMMAND), *options, faults],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    row = " | ".join(["| DeepEra", *["rest exact"] * len(faults.split(","))])
    assert row in run.stdout, run.stdout + run.stderr
