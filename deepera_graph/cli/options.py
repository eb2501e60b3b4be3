"""Options that several commands have."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

_JUDGE = "Who judges"
_FILTER = "What is kept"
_COST = "What it may cost"
_STORE = "Store"
_ENGINE = "Where it runs"
_COLLECTION = typer.Option(
    "--collection",
    "-c",
    metavar="C",
    help="Name of the collection.",
    show_default=False,
    rich_help_panel=_STORE,
)

NeededCollection = Annotated[str, _COLLECTION]
Collection = Annotated[str | None, _COLLECTION]
StorePath = Annotated[
    str | None,
    typer.Option(
        "--path",
        metavar="FOLDER",
        help="Folder of local collections.",
        show_default="$XDG_DATA_HOME/deepera or ~/.local/share/deepera",
        rich_help_panel=_STORE,
    ),
]
QdrantUrl = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="A Qdrant server, instead of a folder.",
        show_default=False,
        rich_help_panel=_STORE,
    ),
]
EmbeddingsName = Annotated[
    str | None,
    typer.Option(
        "--embeddings",
        metavar="local|openai:MODEL|MODULE:FACTORY",
        help="[b]local[/b]: those of the local judge, no key. Or a model of OpenAI, or a function "
        "that returns LangChain Embeddings. A collection made with embeddings is searched with "
        "the same.",
        show_default=False,
        rich_help_panel=_STORE,
    ),
]

BackendName = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="local|rules|llm|encoder:MODEL|MODULE:FACTORY",
        help="[b]local[/b]: a small trained judge, no key. [b]rules[/b]: hand-written rules, "
        "nothing to load. [b]llm[/b]: a chat model, see --model. "
        "[b]encoder:MODEL[/b]: a cross-encoder, by ONNX file, folder or name. "
        "Or a function of yours that returns a Backend; the current directory is searched too.",
        show_default="llm with --model, else local",
        rich_help_panel=_JUDGE,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="PROVIDER:MODEL",
        help="Chat model, e.g. openai:gpt-5-mini; with --base-url the name the server knows.",
        show_default=False,
        rich_help_panel=_JUDGE,
    ),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="A server that speaks OpenAI's chat protocol, e.g. http://localhost:8000/v1; it needs "
        "no key unless --api-key-env is given or OPENAI_API_KEY is set.",
        show_default=False,
        rich_help_panel=_JUDGE,
    ),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable that holds the key. A key is never printed or stored.",
        show_default="OPENAI_API_KEY",
        rich_help_panel=_JUDGE,
    ),
]
DomainName = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME|FILE",
        help="Field whose rules are added to the prompts of a chat model: law, medicine, finance, "
        "or a TOML file of yours.",
        show_default="science in general",
        rich_help_panel=_JUDGE,
    ),
]
CallMode = Annotated[
    Literal["separate", "fused", "grouped"] | None,
    typer.Option(
        "--mode",
        help="What one call to a chat model does. [b]separate[/b]: a score, or a summary. "
        "[b]fused[/b]: a score and, if it passes, the summary. [b]grouped[/b]: the same for "
        "several passages, see --group-size.",
        show_default="separate",
        rich_help_panel=_JUDGE,
    ),
]
GroupSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="With --mode grouped: most passages a call, 2 or more.",
        show_default="10",
        rich_help_panel=_JUDGE,
    ),
]
Cascade = Annotated[
    int | None,
    typer.Option(
        metavar="KEEP",
        min=1,
        help="Have the local judge read all passages, and the chat model the best KEEP of each "
        "question alone, e.g. 30 of 500.",
        show_default="the chat model reads all",
        rich_help_panel=_JUDGE,
    ),
]
MaxConcurrency = Annotated[
    int | None,
    typer.Option(
        metavar="C",
        help="Most model calls in flight, over all questions.",
        show_default="16",
        rich_help_panel=_JUDGE,
    ),
]
RequestsPerMinute = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Most requests a minute to a chat model, evenly spaced.",
        show_default="no limit",
        rich_help_panel=_JUDGE,
    ),
]
TokensPerMinute = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Most tokens a minute of a chat model, prompt and answer.",
        show_default="no limit",
        rich_help_panel=_JUDGE,
    ),
]
CachePlace = Annotated[
    str | None,
    typer.Option(
        "--cache",
        metavar="DIR|off",
        help="Folder for the answers of the judge, so that no equal one is asked for twice; "
        "[b]off[/b] keeps none. A function of yours has a cache only if DIR is given: what it "
        "does may change under the same name. The local backend has none.",
        show_default="with a chat model $XDG_CACHE_HOME/deepera or ~/.cache/deepera",
        rich_help_panel=_JUDGE,
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most calls, those tried again included; answers from the cache are free.",
        show_default="no limit",
        rich_help_panel=_COST,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most tokens, prompt and answer; calls in flight at the limit are finished.",
        show_default="no limit",
        rich_help_panel=_COST,
    ),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(
        metavar="S",
        help="Start no call after so many seconds.",
        show_default="no limit",
        rich_help_panel=_COST,
    ),
]
Enough = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Ask about the passages of a question in waves, first stage's best first, and stop "
        "once N are surely above the threshold: 0.1 over it, or half the way to 1 if that is less. "
        "The rest gets no score, and the status not_needed.",
        show_default="ask about all",
        rich_help_panel=_COST,
    ),
]
WaveSize = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Passages of a question asked about at the same time. The fewer, the fewer calls "
        "--enough makes in vain, and the longer it takes.",
        show_default="all; with --enough twice as many as that, 8 or more",
        rich_help_panel=_COST,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        metavar="M",
        help="Most money, in the currency of the prices; needs both prices.",
        show_default="no limit",
        rich_help_panel=_COST,
    ),
]
InputPrice = Annotated[
    float | None,
    typer.Option(
        metavar="M",
        help="Price of a million prompt tokens.",
        show_default=False,
        rich_help_panel=_COST,
    ),
]
OutputPrice = Annotated[
    float | None,
    typer.Option(
        metavar="M",
        help="Price of a million answer tokens.",
        show_default=False,
        rich_help_panel=_COST,
    ),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        metavar="T|RULE",
        help="Lowest score kept, from 0 to 1, inclusive. Or a rule: [b]gap[/b] cuts at the widest "
        "gap between scores, [b]quantile:0.1[/b] keeps the best tenth (neither goes under 0.5, or "
        "under FLOOR: gap:FLOOR, quantile:SHARE:FLOOR), [b]mechanism=0.7,default=0.8[/b] goes by "
        "the kind of question.",
        show_default="0.8",
        rich_help_panel=_FILTER,
    ),
]
CurvePath = Annotated[
    Path | None,
    typer.Option(
        "--curve",
        metavar="PATH",
        help="A curve of `deepera calibrate`, instead of --threshold: keep what is probable "
        "evidence, see --probability.",
        show_default=False,
        rich_help_panel=_FILTER,
    ),
]
Probability = Annotated[
    float | None,
    typer.Option(
        metavar="P",
        help="With --curve: lowest probability kept, from 0 to 1.",
        show_default="0.8",
        rich_help_panel=_FILTER,
    ),
]
TopN = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Most passages kept, 1 or more.",
        show_default="10",
        rich_help_panel=_FILTER,
    ),
]
Order = Annotated[
    Literal["score", "retrieval"] | None,
    typer.Option(
        help="Order of the kept passages: by score, or as they were retrieved.",
        show_default="score",
        rich_help_panel=_FILTER,
    ),
]
OnEmpty = Annotated[
    Literal["empty", "top1", "topn", "original"] | None,
    typer.Option(
        help="What to keep when no passage passes: nothing, the best one, the best N, or the "
        "first N as they were retrieved.",
        show_default="empty",
        rich_help_panel=_FILTER,
    ),
]
OnError = Annotated[
    Literal["keep_last", "drop", "raise"] | None,
    typer.Option(
        help="A passage that could not be judged stays last in the ranking, is listed apart as "
        "left_out, or fails its question. It is never kept.",
        show_default="keep_last",
        rich_help_panel=_FILTER,
    ),
]
NoSummaries = Annotated[
    bool,
    typer.Option(
        "--no-summaries",
        help="Keep passages as they are, and save a call for each.",
        rich_help_panel=_FILTER,
    ),
]
EngineName = Annotated[
    Literal["local", "ray"],
    typer.Option(
        "--engine",
        help="[b]local[/b]: this process. [b]ray[/b]: worker processes, here or on a cluster, "
        "with the same results (needs deepera-graph\\[ray]).",
        rich_help_panel=_ENGINE,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="With --engine ray: worker processes, one CPU each. Limits are divided among them.",
        show_default="one a CPU, at most 16",
        rich_help_panel=_ENGINE,
    ),
]
RayAddress = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT",
        help="With --engine ray: a Ray cluster that this machine is part of.",
        show_default="a cluster of this machine alone, for this run",
        rich_help_panel=_ENGINE,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar and no closing words.")]


def settings_of(*, no_summaries: bool, **given: Any) -> dict[str, Any]:
    """Return the settings that were given; the reranker has defaults for the others."""
    settings = {name: value for name, value in given.items() if value is not None}
    return {**settings, "content": "passage"} if no_summaries else settings


def limits_of(**given: float | None) -> dict[str, float]:
    """Return the limits that were given, by name."""
    return {name: value for name, value in given.items() if value is not None}
