"""The options of `deepera calibrate`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES
from deepera_graph.cli.extras import needing

_FIT = "Curve"
_RANKED = "Scores there are already"
EPILOG = f"""[bold]Examples:[/bold]

  deepera calibrate labelled.jsonl -o curve.json

  deepera calibrate labelled.jsonl -o curve.json --model openai:gpt-5-mini --precision 0.9

  deepera calibrate labelled.jsonl -o curve.json --ranked ranked.jsonl

  deepera rerank questions.jsonl -o ranked.jsonl --curve curve.json --probability 0.8

LABELLED has the lines of `deepera rerank`, and every passage a "label" of 0 or 1 (or
"is_golden"), which the judge never sees; ten passages of each label are the least. A curve turns
scores of one judge into the probability that a passage is evidence, so fit one for every judge.
The report on stdout says what thresholds on it would keep, and how sure that is.

It needs scikit-learn: pip install 'deepera-graph\\[calibrate]'.

{CODES}"""


def calibrate(
    labelled: Annotated[
        Path, typer.Argument(metavar="LABELLED", help="Labelled questions, a JSON object a line.")
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="CURVE", help="Where the curve goes.", show_default="nowhere"
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace CURVE.")] = False,
    method: Annotated[
        Literal["isotonic", "platt"],
        typer.Option(
            help="[b]isotonic[/b] takes any rising shape and wants some hundred passages; "
            "[b]platt[/b] is a logistic curve and wants few.",
            rich_help_panel=_FIT,
        ),
    ] = "isotonic",
    precision: Annotated[
        float,
        typer.Option(
            metavar="P",
            help="Share of evidence among what is kept that a threshold is suggested for, from 0 "
            "to 1.",
            rich_help_panel=_FIT,
        ),
    ] = 0.8,
    resamples: Annotated[
        int,
        typer.Option(metavar="N", help="Resamples for the intervals.", rich_help_panel=_FIT),
    ] = 2000,
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, help="Of the resamples.", rich_help_panel=_FIT)
    ] = 0,
    ranked: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT",
            help="Take the scores from this output of `deepera rerank`, and judge nothing.",
            show_default=False,
            rich_help_panel=_RANKED,
        ),
    ] = None,
    ranked_report: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The report of that run, which names the judge.",
            show_default="beside OUT",
            rich_help_panel=_RANKED,
        ),
    ] = None,
    backend: options.BackendName = None,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    max_concurrency: options.MaxConcurrency = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    cache: options.CachePlace = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit from labelled passages how probable evidence is at which score."""
    with needing("calibrate", "calibrate"):
        from deepera_graph.cli.work import calibrate as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        work.Fit(
            labelled=labelled,
            out=out,
            overwrite=overwrite,
            method=method,
            precision=precision,
            n_resamples=resamples,
            seed=seed,
        ),
        work.Source(
            ranked=ranked,
            ranked_report=ranked_report,
            judge=work.Judge(
                name=backend,
                model=model,
                base_url=base_url,
                api_key_env=api_key_env,
                limits=options.limits_of(
                    requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
                ),
            ),
            cache=cache,
            max_concurrency=max_concurrency,
        ),
        as_json=as_json,
        quiet=quiet,
    )
