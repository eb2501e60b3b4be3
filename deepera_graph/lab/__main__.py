"""Run the command line of those who measure: ``deepera-lab``, ``python -m deepera_graph.lab``."""

from collections.abc import Callable

from deepera_graph.__main__ import start


def main() -> None:
    """Run `deepera-lab`."""
    start("deepera-lab", _find)


def _find() -> Callable[[], None]:
    from deepera_graph.lab.cli.main import run  # noqa: PLC0415 - what may be interrupted

    return run


if __name__ == "__main__":
    main()
