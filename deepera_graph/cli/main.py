"""The command `deepera`."""

from typing import Annotated

import typer

from deepera_graph import __version__
from deepera_graph.cli import ask, cache, calibrate, demo, doctor, index, rerank
from deepera_graph.cli.bench.app import app as bench_app
from deepera_graph.cli.exits import CODES, INTERRUPTED, Commands, leave
from deepera_graph.cli.judge.app import app as judge_app
from deepera_graph.cli.quiet import quiet_dropped_coroutines

_EPILOG = f"""[bold]Examples:[/bold]

  deepera demo

  deepera rerank questions.jsonl -o ranked.jsonl

  deepera index papers.jsonl --collection papers

  deepera ask "Does wax coating keep apples firm?" --collection papers --answer

  deepera calibrate labelled.jsonl -o curve.json

  deepera bench table lakes.jsonl --rankers first-stage,bm25,deepera:local

  deepera judge evaluate --data labelled.jsonl

  deepera cache stats

  deepera doctor

Each command has a --help of its own, and --json for programs.

{CODES}"""

app = typer.Typer(
    name="deepera",
    cls=Commands,
    epilog=_EPILOG,
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog=demo.EPILOG)(demo.demo)
app.command(epilog=rerank.EPILOG)(rerank.rerank)
app.command(epilog=index.EPILOG)(index.index)
app.command(epilog=ask.EPILOG)(ask.ask)
app.command(epilog=calibrate.EPILOG)(calibrate.calibrate)
app.command(epilog=doctor.EPILOG)(doctor.doctor)
app.add_typer(bench_app, name="bench")
app.add_typer(judge_app, name="judge")
app.add_typer(cache.app, name="cache")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"deepera {__version__}")
        raise typer.Exit


@app.callback()
def deepera(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """DeepEra reads retrieved passages as evidence, and keeps those that prove something."""


def run() -> None:
    """Run the command line and end the process."""
    quiet_dropped_coroutines()
    try:
        app()
    except KeyboardInterrupt:
        leave(INTERRUPTED)
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)
