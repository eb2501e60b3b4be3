"""The command `deepera-lab`, for people who measure and train."""

from pathlib import Path

from deepera_graph.cli.shared.program import Program

STUDIES = (  # of rerankers
    *("main", "ranks", "look-alikes", "counts", "threshold", "cutoff", "ablations", "embeddings"),
    *("stability", "drift", "cost", "all"),
)
COMMANDS = {  # and the module that each is a function of
    "bench table": "study",
    "bench report": "study",
    "bench quest build": "quest",
    "bench quest judge": "quest",
    "bench quest audit draw": "audit",
    "bench quest audit label": "audit",
    "bench quest audit report": "audit",
    "bench build": "build",
    "bench natural": "bench",
    "bench mix": "bench",
    "bench prompts": "bench",
    "bench realism": "bench",
    **{f"study {name}": "study:study" for name in STUDIES},
    "study multihop": "multihop",
    "study bioasq": "bioasq.study",
    "study papers": "papers",
    "bioasq read": "bioasq.corpus",
    "bioasq index": "bioasq.corpus",
    "bioasq search": "bioasq.search",
    "bioasq ensemble": "bioasq.evaluate",
    "bioasq tune": "bioasq.tune",
    "bioasq answer": "bioasq.answer",
    "bioasq check": "bioasq.answer",
    "bioasq evaluate": "bioasq.evaluate",
    "judge train": "judge",
    "judge reader": "judge",
    "judge evaluate": "judge",
    "judge export": "judge",
}
_MOVED = {
    "bench study": "deepera-lab study",
    **{f"bench {one}": f"deepera-lab study {one}" for one in ("multihop", "bioasq", "papers")},
}
PROGRAM = Program(
    "deepera-lab", "deepera_graph.lab.cli", COMMANDS, Path(__file__).with_name("help.txt"), _MOVED
)
app, load_command, run = PROGRAM.app, PROGRAM.load_command, PROGRAM.run
