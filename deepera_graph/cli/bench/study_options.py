"""Options that `deepera bench study` and `deepera bench report` have in common."""

from pathlib import Path
from typing import Annotated

import typer

_DATA = "Data"
_MEASURE = "Measure"
_ANSWERS = "Answers"

Data = Annotated[list[Path], typer.Argument(metavar="DATA", help="Files and folders.")]
Rankers = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="What to compare; see `deepera bench table --help`.",
        show_default="first-stage,random,bm25,deepera:local",
        rich_help_panel=_MEASURE,
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...",
        help="Of the main table.",
        show_default="HitRate@1,HitRate@3,RP",
        rich_help_panel=_MEASURE,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="T",
        help="Lowest score kept, from 0 to 1, where it is not what is studied.",
        show_default="0.8",
        rich_help_panel=_MEASURE,
    ),
]
TopN = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most passages kept, where it is not what is studied.",
        show_default="10",
        rich_help_panel=_MEASURE,
    ),
]
Thresholds = Annotated[
    str | None,
    typer.Option(
        metavar="T,...",
        help="What [b]threshold[/b] tries: numbers from 0 to 1, gap[:FLOOR] and "
        "quantile:SHARE[:FLOOR].",
        show_default="0.3,0.4,0.5,0.6,0.7,0.8,0.9,gap,quantile:0.1",
        rich_help_panel=_MEASURE,
    ),
]
Cutoffs = Annotated[
    str | None,
    typer.Option(
        metavar="N,...",
        help="What [b]cutoff[/b] tries.",
        show_default="1,2,3,5,10,15,20,30",
        rich_help_panel=_MEASURE,
    ),
]
Shares = Annotated[
    str | None,
    typer.Option(
        metavar="S,...",
        help="Shares of the look-alikes that [b]embeddings[/b] puts into the store.",
        show_default="0.1,0.5,1",
        rich_help_panel=_MEASURE,
    ),
]
EmbeddingNames = Annotated[
    str | None,
    typer.Option(
        "--embeddings",
        metavar="NAME,...",
        help="What [b]embeddings[/b] compares: bm25, lsa (both without a model), "
        "dense:module:factory, dense-st:NAME.",
        show_default="bm25,lsa",
        rich_help_panel=_MEASURE,
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Data set without look-alikes, which the others are compared with in [b]main[/b].",
        show_default='those whose setting is "base"',
        rich_help_panel=_MEASURE,
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Runs of a ranker that differs from run to run, and of [b]stability[/b].",
        show_default="3",
        rich_help_panel=_MEASURE,
    ),
]
Sampled = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        help="Questions of each data set that [b]stability[/b] takes.",
        show_default="50",
        rich_help_panel=_MEASURE,
    ),
]
Resamples = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Resamples for the intervals.",
        show_default="10000",
        rich_help_panel=_MEASURE,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="S",
        min=0,
        help="Of whatever is drawn at random.",
        show_default="0",
        rich_help_panel=_MEASURE,
    ),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Stop when a ranker cannot run here.", rich_help_panel=_MEASURE),
]
Generator = Annotated[
    str,
    typer.Option(
        metavar="first|llm|PROVIDER:MODEL",
        help="Who answers from what was handed on; adds F1, P and R of the answers. [b]first[/b] "
        "is the first sentence of the best passage, [b]llm[/b] the --model.",
        show_default="no answers",
        rich_help_panel=_ANSWERS,
    ),
]
AnswerJudge = Annotated[
    str,
    typer.Option(
        metavar="llm|PROVIDER:MODEL",
        help="Who scores the answers, from 1 to 5; adds LFS. Not the one that answers.",
        show_default="no LFS",
        rich_help_panel=_ANSWERS,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Only the first N questions of each.",
        show_default="all",
        rich_help_panel=_DATA,
    ),
]
Split = Annotated[
    str,
    typer.Option(metavar="NAME", help="Judgements of a BEIR folder to use.", rich_help_panel=_DATA),
]
Candidates = Annotated[
    int,
    typer.Option(
        metavar="K",
        min=1,
        help="Documents BM25 finds for a question of a BEIR folder.",
        rich_help_panel=_DATA,
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Keep rankings here, and take those that are there already.",
        show_default="keep none",
    ),
]
