"""Rank 1 000 questions of 30 passages from a file and say how much memory that took, in MB."""

import re
import sys
from pathlib import Path

from bench.study_lakes import compare
from deepera_graph.lab.data.readers import open_dataset
from deepera_graph.lab.rankers.base import FirstStage
from deepera_graph.lab.rankers.retrieval import BM25
from deepera_graph.lab.studies.base import StudyConfig

plan = StudyConfig(n_resamples=100, keep=Path(sys.argv[2]), oracle=True)
table = compare([FirstStage(), BM25()], [open_dataset(Path(sys.argv[1]))], plan)
assert table.summaries[0].n_questions == 1000
status = Path("/proc/self/status").read_text(encoding="ascii")  # ru_maxrss counts the parent's
peak = re.search(r"VmHWM:\s*(\d+) kB", status)
assert peak is not None
sys.stdout.write(str(int(peak.group(1)) // 1024))
