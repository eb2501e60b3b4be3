"""Options of the command line: each is declared once, as a field of a dataclass for its kind."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from deepera_graph.cli.shared.declaring import A_KEY, Configurable, Key, opt, opt_of
from deepera_graph.cli.shared.values import (
    check_call_timeout,
    check_preset,
    check_url,
    check_variable,
    read_threshold,
)
from deepera_graph.errors import SettingsError
from deepera_graph.judges import parse_option
from deepera_graph.settings import Content, OnEmpty, OnError, Order, Settings
from deepera_graph.settings.budget import Budget
from deepera_graph.settings.ranges import check_at_least, check_positive, check_share

FOR_ALL_JUDGES = ("preset", "backend", "max_concurrency")  # also of one that is no chat model


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """What is shown."""

    as_json: bool = opt("Write JSON, for programs.", "--json", default=False)
    quiet: bool = opt(
        "No progress bar, no remarks, no closing line.",
        "--quiet",
        "-q",
        brief="Show the result alone.",
        default=False,
    )

    def check_form(self, form: str | None) -> None:
        """Raise `SettingsError` for two forms at once."""
        if self.as_json and form not in (None, "text", "json"):
            raise SettingsError(f"give --json or --format {form}, not both")


@dataclass(frozen=True, kw_only=True)
class ShowOptions(OutputOptions):
    """What is shown to a reader."""

    verbose: bool = opt(
        "Also show how the question was read, and all that was dropped.",
        "--verbose",
        "-v",
        brief="Also show all that was dropped.",
        default=False,
    )


_judge = partial(opt, panel="Who judges")


def _chat(text: str, *beside: str, **key: Any) -> Any:
    """Declare an option of a chat model, which a judge that is given leaves no place for."""
    how = {name: key.pop(name) for name in [*key] if name not in Key._fields}
    return _judge(text, config=Key(yields_to=("backend", *beside), **key), **how)


@dataclass(frozen=True, kw_only=True)
class ServerOptions(Configurable):
    """Which chat model is asked, and where."""

    model: str | None = _chat(
        "Chat model, e.g. openai:gpt-5-mini; with --base-url, the name that server knows.",
        brief="Chat model, e.g. openai:gpt-5-mini.",
        metavar="NAME",
    )
    base_url: str | None = _chat(
        "Server with OpenAI's chat protocol, e.g. http://localhost:1234/v1. It is sent no key, "
        "unless --api-key-env names one for it.",
        brief="Its server, e.g. http://localhost:1234/v1.",
        metavar="URL",
        is_address=True,
        check=check_url,
    )
    api_key_env: str | None = _chat(
        "Environment variable that holds the API key. A key is never printed or stored.",
        "base_url",  # it is the key of another server
        check=check_variable,
        metavar="VAR",
        shown="OPENAI_API_KEY for openai: without --base-url, else none",
    )


@dataclass(frozen=True, kw_only=True)
class ChatOptions(ServerOptions):
    """How fast the chat model is asked."""

    max_concurrency: int | None = opt_of(Settings, "max_concurrency", panel="Who judges")
    call_timeout: float | None = _chat(
        "Longest time for one answer of a chat model, in seconds; then it is asked again, four "
        "times in all. A slow model, or one that thinks first, needs more.",
        metavar="SECONDS",
        shown="60",
        check=check_call_timeout,
    )
    requests_per_minute: float | None = _chat(
        "Upper bound of requests a minute to a chat model, evenly spaced.",
        metavar="N",
        shown="no limit",
        check=partial(check_positive, "requests_per_minute"),
    )
    tokens_per_minute: float | None = _chat(
        "Upper bound of tokens a minute of a chat model, prompts and replies together.",
        metavar="N",
        shown="no limit",
        check=partial(check_positive, "tokens_per_minute"),
    )


@dataclass(frozen=True, kw_only=True)
class _BackendOptions:
    """The two options that come first, as they matter most."""

    preset: str | None = _judge(
        "Settings under one name: [b]fast[/b], [b]careful[/b] or [b]cheap[/b]; options that are "
        "given override it. Its settings of calls are for a chat model: with another judge fast "
        "and cheap only leave out summaries. `deepera doctor --settings` prints them.",
        brief="[b]fast[/b], [b]careful[/b] or [b]cheap[/b]; see `deepera doctor --settings`.",
        metavar="NAME",
        config=Key(harmless=None, check=check_preset),
    )
    backend: str | None = _judge(
        "[b]local[/b]: a small trained judge, no key. [b]rules[/b]: hand-written rules, nothing to "
        "load. [b]llm[/b]: a chat model, see --model. [b]encoder:MODEL[/b]: a cross-encoder, by "
        "ONNX file, folder or name. [b]MODULE:FACTORY[/b]: a function of yours that returns a "
        "Backend; modules in the current directory are found too.",
        brief="[b]local[/b] (default), [b]rules[/b], [b]encoder:MODEL[/b] or a function of yours.",
        metavar="NAME",
        shown="llm with --model, else local",
        config=Key(
            harmless=("local", "rules"), yields_to=("model", "base_url"), check=parse_option
        ),
    )


@dataclass(frozen=True, kw_only=True)
class JudgeOptions(ChatOptions, _BackendOptions):
    """Who judges, and how a chat model is asked to."""

    domain: str | None = _chat(
        "Field whose rules are added to the prompts of a chat model: law, medicine, finance, or a "
        "TOML file of yours.",
        metavar="NAME|FILE",
        shown="science in general",
        harmless=("law", "medicine", "finance"),
    )
    mode: Literal["separate", "fused", "grouped"] | None = _chat(
        "What one call to a chat model returns. [b]separate[/b]: a score, or a summary. "
        "[b]fused[/b]: a score and, if the passage passes, its summary. [b]grouped[/b]: the same "
        "for several passages, see --group-size.",
        metavar="HOW",
        shown="separate",
    )
    group_size: int | None = _chat(
        "With --mode grouped: upper bound of passages in one call, 2 or more. 10 costs the fewest "
        "prompt tokens, 2 the least time.",
        "mode",
        check=partial(check_at_least, "group_size", least=2),
        metavar="N",
        shown="2",
    )
    cascade: int | None = _chat(
        "The local judge reads all passages of a question, and the chat model only the best KEEP "
        "of them, e.g. 30 of 500.",
        metavar="KEEP",
        least=1,
        shown="the chat model reads all",
    )


@dataclass(frozen=True, kw_only=True)
class CacheOptions:
    """Where judgements are kept."""

    cache: str | None = _judge(
        "Folder that keeps the replies of the judge, so that the same question is not paid for "
        "twice; [b]off[/b] keeps none. A function of yours is cached only if DIR is given, because "
        "its code may change under the same name. The local judges need no cache.",
        metavar="DIR|off",
        shown="with a chat model $XDG_CACHE_HOME/deepera or ~/.cache/deepera",
        config=Key(harmless=("off",), is_path=True),
    )


_COST, _KEPT = "Limits on cost", "What is kept"


_limit = partial(opt_of, Budget, panel=_COST)


@dataclass(frozen=True, kw_only=True)
class BudgetOptions:
    """What all calls together may cost."""

    max_calls: int | None = _limit("max_calls")
    max_tokens: int | None = _limit("max_tokens")
    max_seconds: float | None = _limit("max_seconds")
    max_cost: float | None = _limit("max_cost")
    input_price: float | None = _limit("input_price")
    output_price: float | None = _limit("output_price")


@dataclass(frozen=True, kw_only=True)
class PaidChatOptions(BudgetOptions, ChatOptions):
    """Which chat model is asked, and what it may cost."""


@dataclass(frozen=True, kw_only=True)
class ModelOptions(BudgetOptions, CacheOptions, ChatOptions):
    """Which chat model is asked, where its replies are kept, and what it may cost."""


_filter = partial(opt_of, Settings, panel=_KEPT)


@dataclass(frozen=True, kw_only=True)
class FilterOptions:
    """How passages are filtered and returned: the settings of `deepera_graph.Settings`."""

    threshold: str | None = _filter(
        "threshold",
        config=Key(
            harmless=None,
            yields_to=("curve",),
            check=lambda text: Settings.of({"threshold": read_threshold(text)}),
        ),
    )
    curve: Path | None = opt(
        "Curve made by `deepera calibrate`, instead of --threshold: keep what is probably "
        "evidence, see --probability.",
        metavar="PATH",
        panel=_KEPT,
        config=Key(is_path=True, yields_to=("threshold",)),
    )
    probability: float | None = opt(
        "With --curve: lowest probability that is kept, from 0 to 1.",
        metavar="P",
        shown="0.8",
        panel=_KEPT,
        config=Key(yields_to=("threshold",), check=partial(check_share, "probability")),
    )
    top_n: int | None = _filter("top_n")
    order: Order | None = _filter("order")
    on_empty: OnEmpty | None = _filter("on_empty")
    on_error: OnError | None = _filter("on_error")
    require_evidence: Literal["yes", "no"] | None = _filter(
        "require_evidence", means={"yes": True, "no": False}
    )
    no_summaries: bool = opt(
        "Return kept passages as they are, which saves a call for each.",
        default=False,
        setting="content",
        means={True: "passage"},
        panel=_KEPT,
        config=Key(yields_to=("content",)),
    )
    content: Content | None = _filter("content", config=Key(yields_to=("no_summaries",)))
    max_failed_share: float | None = _filter("max_failed_share")
    max_passage_chars: int | None = _filter("max_passage_chars")
    stop_after: int | None = _filter("stop_after", panel=_COST)
    stop_margin: float | None = _filter("stop_margin", panel=_COST)
    round_size: int | None = _filter("round_size", panel=_COST)


@dataclass(frozen=True, kw_only=True)
class CachedJudgeOptions(CacheOptions, JudgeOptions):
    """Who judges, and where the replies are kept."""


@dataclass(frozen=True, kw_only=True)
class PaidJudgeOptions(BudgetOptions, CachedJudgeOptions):
    """Who judges, and what it may cost."""


@dataclass(frozen=True, kw_only=True)
class JudgingOptions(FilterOptions, PaidJudgeOptions):
    """Who judges, what it may cost, and what is kept."""


_engine = partial(opt, panel="Where it runs")


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Where the work is done."""

    engine: Literal["local", "ray"] = _engine(
        "[b]local[/b]: in this process. [b]ray[/b]: in worker processes, here or on a cluster, "
        "with the same results (needs the extra ray).",
        default="local",
        config=A_KEY,
    )
    workers: int | None = _engine(
        "With --engine ray: number of worker processes, one CPU each. `rerank` divides its limits "
        "among them.",
        metavar="N",
        least=1,
        shown="one a CPU, at most 16",
        config=Key(yields_to=("engine",)),
    )
    ray_address: str | None = _engine(
        "With --engine ray: a Ray cluster that this machine is part of.",
        metavar="auto|HOST:PORT",
        shown="a cluster of this machine alone, for this run",
        config=Key(is_address=True, yields_to=("engine",)),
    )
