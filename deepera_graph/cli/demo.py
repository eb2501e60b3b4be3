"""The options of `deepera demo`."""

from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES

EPILOG = f"""[bold]Examples:[/bold]

  deepera demo

  deepera demo --question q06

  deepera demo --without-evidence

  deepera demo --hard

  deepera demo --model openai:gpt-5-mini --json

The corpora are invented and come with the package: short abstracts of ten sciences, and for each
question the evidence (golden) and look-alikes that share its subject but prove nothing. The
labels are the corpus's own; a judge sees a question, and of a passage its text and title.

{CODES}"""


def demo(
    *,
    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            metavar="ID",
            help="Only this question; may be repeated.",
            show_default="all",
        ),
    ] = None,
    without_evidence: Annotated[
        bool,
        typer.Option(
            "--without-evidence",
            help="Take the golden passages out first: then nothing should pass.",
        ),
    ] = False,
    hard: Annotated[
        bool,
        typer.Option(
            "--hard",
            help="Use the corpus written against judges that match words, as the rules do.",
        ),
    ] = False,
    backend: options.BackendName = None,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    max_concurrency: options.MaxConcurrency = None,
    threshold: options.Threshold = None,
    top_n: options.TopN = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Show on a built-in corpus how evidence is picked over look-alikes; needs no key."""
    from deepera_graph.cli.work import demo as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        work.Judge(name=backend, model=model, base_url=base_url, api_key_env=api_key_env),
        work.with_threshold(
            options.settings_of(
                no_summaries=False,
                max_concurrency=max_concurrency,
                threshold=threshold,
                top_n=top_n,
            )
        ),
        question_ids=question or [],
        without_evidence=without_evidence,
        hard=hard,
        as_json=as_json,
        quiet=quiet,
    )
