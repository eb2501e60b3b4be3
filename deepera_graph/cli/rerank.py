"""The options of `deepera rerank`."""

from pathlib import Path
from typing import Annotated

import typer

from deepera_graph.cli import options
from deepera_graph.cli.exits import CODES

_FILES = "Files"
EPILOG = f"""[bold]Examples:[/bold]

  deepera rerank questions.jsonl -o ranked.jsonl

  deepera rerank questions.jsonl -o ranked.jsonl --model openai:gpt-5-mini --dry-run

  deepera rerank questions.jsonl -o ranked.jsonl --model qwen3 --base-url http://localhost:8000/v1

  deepera rerank questions.jsonl -o ranked.jsonl --model openai:gpt-5-mini --max-calls 5000

  deepera rerank questions.jsonl -o ranked.jsonl --model openai:gpt-5-mini --cascade 30

  deepera rerank questions.jsonl -o ranked.jsonl --model openai:gpt-5-mini --enough 3

  deepera rerank questions.jsonl -o ranked.jsonl --backend my_judges:build --threshold 0.7

  deepera rerank questions.jsonl -o ranked.jsonl --model openai:gpt-5-mini --resume

  deepera rerank questions.jsonl -o ranked.jsonl --engine ray --workers 8

  zcat questions.jsonl.gz | deepera rerank - | jq .outcome

[bold]An input line[/bold] is one JSON object in UTF-8:

  {{"id": "q1", "question": "...", "passages": \\[{{"id": "p1", "text": "...", "score": 0.4}},
  ...]}}

Passages come in first-stage order. `contexts` is accepted for `passages`, `first_stage_score`
for `score`; without an id, a line is named by its number and a passage by its place. Fields
that are not named here are metadata: of a passage, its `title` and `section` reach the judge
and nothing else does; of the line, none does, and all are written back on the output line as
`metadata`. A line without a question, with a passage without text, or with an id used twice, is
reported with its number and not written; the others run.

[bold]An output line[/bold], in the same order:

  {{"id", "question", "intent": {{...}}, "outcome", "threshold", "ranking":
  \\[{{"id", "rank", "score", "kept", "status", "reason", "quote", "summary"}}, ...],
  "usage": {{"calls", "input_tokens", "output_tokens"}}}}

`ranking` has every passage once. `status` is scored, repaired (asked for twice), not_needed (there
was --enough without it), failed or skipped_budget; the last three have no score, are last, and
`reason` says why. With --on-error drop the failed ones are under `left_out` instead.
`quote_status` (verbatim, normalised, not_found) and `quote_span` (characters) say whether and where
a quote stands in its passage; `summary_status` says that a summary took two replies (repaired), is
the passage's own words (drifted, failed, skipped_budget) or was not to be had (none); `windowed`
marks a passage read in pieces.
`survey`, of a judge that is told how the passages look together, says whether that failed.
Equal judgements give equal bytes: times are in the report only. [bold]The report[/bold]
goes beside OUT as OUT.report.json, without OUT's .jsonl: counts, seconds, calls and tokens a
stage, failures by cause, and signs of failure. With --json it also goes to stdout, or to stderr
if OUT is stdout.

[bold]A limit[/bold] on calls, tokens, seconds or money holds for the whole file. Once it
is reached, no call is started: the passages left have the status skipped_budget, their questions
the outcome budget_stop, and every line is still written. Run again with --resume and
without the limit, and only what is missing is paid for.

[bold]After a break[/bold], even a kill, --resume goes on where the run stopped, and OUT ends as
if there had been none. Beside OUT stands OUT.manifest, without OUT's .jsonl: what ran, and a
line for every line of IN that is done. --resume refuses OUT if backend, model, prompts,
settings or version have changed since, or a line of IN that is done; limits may change, they
count anew, and lines may be added at the end of IN. Done again are questions with the outcome
budget_stop, those that failed as a whole, those in flight when the run stopped, and bad lines
that were mended; they are put in their places when the run ends. A torn last line is cut. The report is of the whole file; its `earlier` has
what was done before, and only `wall` is of this run alone. With nothing there, it begins.

[bold]With --engine ray[/bold] worker processes judge, and OUT, its manifest and the report are the
same: a run begun with one engine can go on with the other. Each worker has an equal part of
--max-concurrency, of the limits a minute and of the budget; what one does not use, no other gets.
A worker that is lost is replaced, and what it had in hand is judged again; a line over which three
are lost is reported. Keys are read where the workers are.

{CODES} When the backend cannot be reached, or after Ctrl-C, the lines finished by then are kept."""


def rerank(
    source: Annotated[
        str, typer.Argument(metavar="IN", help="Questions, a JSON object a line; - is stdin.")
    ],
    *,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="OUT", help="Rankings; - is stdout."),
    ] = "-",
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Where the report goes.",
            show_default="beside OUT; none for stdout",
            rich_help_panel=_FILES,
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace OUT and its report.", rich_help_panel=_FILES),
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with OUT where an earlier run of the same command stopped.",
            rich_help_panel=_FILES,
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Only the first N lines.",
            show_default="all",
            rich_help_panel=_FILES,
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say how many calls and tokens it would take; no call, no key, no OUT.",
        ),
    ] = False,
    backend: options.BackendName = None,
    model: options.ModelName = None,
    base_url: options.BaseUrl = None,
    api_key_env: options.KeyVariable = None,
    domain: options.DomainName = None,
    mode: options.CallMode = None,
    group_size: options.GroupSize = None,
    cascade: options.Cascade = None,
    max_concurrency: options.MaxConcurrency = None,
    requests_per_minute: options.RequestsPerMinute = None,
    tokens_per_minute: options.TokensPerMinute = None,
    cache: options.CachePlace = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_seconds: options.MaxSeconds = None,
    max_cost: options.MaxCost = None,
    input_price: options.InputPrice = None,
    output_price: options.OutputPrice = None,
    threshold: options.Threshold = None,
    curve: options.CurvePath = None,
    probability: options.Probability = None,
    top_n: options.TopN = None,
    order: options.Order = None,
    on_empty: options.OnEmpty = None,
    on_error: options.OnError = None,
    enough: options.Enough = None,
    wave_size: options.WaveSize = None,
    no_summaries: options.NoSummaries = False,
    engine: options.EngineName = "local",
    workers: options.Workers = None,
    ray_address: options.RayAddress = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Rerank the passages of every question of a file."""
    from deepera_graph.cli.work import rerank as work  # noqa: PLC0415 - keeps --help quick

    work.run(
        work.Files(source=source, out=out, report=report, overwrite=overwrite, resume=resume),
        work.Judge(
            name=backend,
            model=model,
            base_url=base_url,
            api_key_env=api_key_env,
            domain=domain,
            mode=mode,
            group_size=group_size,
            cascade=cascade,
            limits=options.limits_of(
                requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute
            ),
        ),
        work.with_threshold(
            options.settings_of(
                no_summaries=no_summaries,
                max_concurrency=max_concurrency,
                threshold=threshold,
                top_n=top_n,
                order=order,
                on_empty=on_empty,
                on_error=on_error,
                enough=enough,
                wave_size=wave_size,
                budget=options.limits_of(
                    max_calls=max_calls,
                    max_tokens=max_tokens,
                    max_seconds=max_seconds,
                    max_cost=max_cost,
                    input_price=input_price,
                    output_price=output_price,
                )
                or None,
            ),
            curve,
            probability,
        ),
        cache=cache,
        engine=work.EngineChoice(name=engine, workers=workers, address=ray_address),
        limit=limit,
        dry_run=dry_run,
        as_json=as_json,
        quiet=quiet,
    )
