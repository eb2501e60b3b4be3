"""Run the command line: ``python -m deepera_graph``."""

from deepera_graph.cli.main import run

if __name__ == "__main__":
    run()
