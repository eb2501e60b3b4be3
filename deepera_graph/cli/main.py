"""The command `deepera`, for people with a question; `deepera-lab` is for who measures."""

from pathlib import Path

from deepera_graph.cli.shared.program import Program

COMMANDS = {  # and the module that each is a function of
    "demo": "demo",
    "rerank": "judging.rerank",
    "index": "libraries.index",
    "ask": "judging.ask",
    "check": "judging.check",
    "table": "judging.table",
    "serve": "serve",
    "library list": "libraries.library",
    "library show": "libraries.library",
    "library remove": "libraries.index",
    "library rename": "libraries.library",
    "library delete": "libraries.library",
    "library move": "libraries.library",
    "calibrate": "calibrate",
    "doctor": "doctor",
    "config show": "config",
    "config trust": "config",
    "papers build": "papers",
    "papers search": "papers",
    "papers show": "papers",
    "papers cite": "papers",
    "papers serve": "papers",
    "papers ask": "papers_ask",
    "mcp": "serve",
    "cache stats": "cache",
    "cache clear": "cache",
    "cache prune": "cache",
}
MOVED = {  # first words of old names
    **dict.fromkeys(("bench", "bioasq", "judge"), "deepera-lab"),
    "collections": "deepera library",
}
PROGRAM = Program(
    "deepera", "deepera_graph.cli", COMMANDS, Path(__file__).with_name("help.txt"), MOVED
)
app, load_command, run = PROGRAM.app, PROGRAM.load_command, PROGRAM.run
