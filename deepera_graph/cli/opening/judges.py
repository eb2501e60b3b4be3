"""The judge of a run, its chat model with key and rates, its cache, and the engine it works on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.console import say
from deepera_graph.cli.shared.declaring import given
from deepera_graph.cli.shared.values import (
    check_call_timeout,
    check_url,
    check_variable,
    read_threshold,
)
from deepera_graph.errors import SettingsError, StoreError
from deepera_graph.judges import NAMED, load_backend, parse_option
from deepera_graph.packages import call_foreign
from deepera_graph.settings import Preset, preset

if TYPE_CHECKING:
    from deepera_graph.jobs.ray import RayEngine
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.schema import Backend
    from deepera_graph.stores.judgements import JudgementCache

_NO_PRESET = Preset(name="", about="")
T = TypeVar("T")


def settings_of(judge: options.JudgeOptions, **more: Any) -> dict[str, Any]:
    """Return the settings that were given, over those of a preset."""
    chosen = given(judge, of=options.FilterOptions)
    chosen |= {name: value for name, value in more.items() if value}
    chosen |= limits_of(judge)
    return {**preset_of(judge).settings, **_with_threshold(chosen)}


def limits_of(asked: options.ChatOptions) -> dict[str, Any]:
    """Return the settings of all calls that were given: how many at once, and their budget."""
    budget = given(asked, of=options.BudgetOptions) or None
    limits = {"max_concurrency": asked.max_concurrency, "budget": budget}
    return {name: value for name, value in limits.items() if value is not None}


def preset_of(judge: options.JudgeOptions) -> Preset:
    """Return the preset that was given, or one that sets nothing."""
    return _NO_PRESET if judge.preset is None else preset(judge.preset)


def _with_threshold(chosen: dict[str, Any]) -> dict[str, Any]:
    """Read the threshold from its text, or draw it on a curve if one is given."""
    curve, probability = chosen.pop("curve", None), chosen.pop("probability", None)
    if curve is None:
        if probability is not None:
            raise SettingsError("--probability goes with --curve")
        if "threshold" in chosen:
            chosen["threshold"] = read_threshold(chosen["threshold"])
        return chosen
    if "threshold" in chosen:
        raise SettingsError("give --threshold or --curve, not both")
    from deepera_graph.settings.thresholds import Calibrated, Curve

    more = {} if probability is None else {"probability": probability}
    return {**chosen, "threshold": Calibrated(curve=Curve.load(curve), **more)}


def load_foreign(what: str, build: Callable[[], T]) -> T:
    """Call the user's code with the current directory on the path; its errors get one line."""
    search_here()
    return call_foreign(f"{what} cannot be built", build)


def search_here() -> None:
    """Put the current directory on the path, where modules of the user's are looked for too."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)


KEY_VARIABLE = "OPENAI_API_KEY"


def chat_backend(chat: options.ChatOptions, **how: Any) -> Backend:
    """Build the backend of a chat model; *how* are more options of `llm_backend`."""
    name = str(chat.model)
    check_server(chat)
    if chat.base_url is not None:
        name = "openai:" + name.removeprefix("openai:")
    elif ":" not in name:
        raise SettingsError(
            f"--model must be 'provider:model', e.g. openai:{name}, got {name!r}; "
            "with --base-url the bare name is enough"
        )
    from deepera_graph.judges.llm.backend import llm_backend

    return load_foreign(
        f"--model {name}",
        lambda: llm_backend(
            name,
            base_url=chat.base_url,
            api_key_env=chat.api_key_env,
            retry=retry_of(chat),
            limits=rates_of(chat),
            **how,
        ),
    )


def check_server(chat: options.ServerOptions) -> None:
    """Raise `SettingsError` unless the address is one, and the variable holds a key."""
    variable = chat.api_key_env
    if variable is not None:
        check_variable(variable)
        if not os.environ.get(variable):
            raise SettingsError(
                f"no API key: the environment variable {variable} (--api-key-env) is not set"
            )
    of_openai = (chat.model or "").startswith("openai:") and chat.base_url is None
    if of_openai and variable is None and not os.environ.get(KEY_VARIABLE):
        raise SettingsError(
            f"no API key: set the environment variable {KEY_VARIABLE}, or give --base-url for a "
            "server that needs none"
        )
    if chat.base_url is not None:
        check_url(chat.base_url)


def retry_of(chat: options.ChatOptions) -> dict[str, float]:
    """Return how long a call may take, if that was given: a field of `RetryPolicy`."""
    if chat.call_timeout is None:
        return {}
    check_call_timeout(chat.call_timeout)
    return {"timeout": chat.call_timeout}


def rates_of(chat: options.ChatOptions) -> dict[str, float]:
    """Return the limits that were given: of calls at once, and a minute."""
    rates: dict[str, float | None] = {
        "calls_at_once": chat.max_concurrency,
        "requests_per_minute": chat.requests_per_minute,
        "tokens_per_minute": chat.tokens_per_minute,
    }
    return {name: value for name, value in rates.items() if value is not None}


@contextmanager
def open_reranker(
    judge: options.CachedJudgeOptions,
    settings: Mapping[str, Any],
    *,
    keep: Mapping[str, Any] | None = None,
    dry_run: bool = False,
) -> Iterator[tuple[EvidenceReranker, JudgementCache | None]]:
    """Open who judges, and the cache of the replies; nobody is asked in a *dry_run*."""
    # *keep* says where a local judge keeps vectors, see `keep_with`.
    backend = open_unasked(judge) if dry_run else open_judge(judge, keep)
    from deepera_graph.reranker import EvidenceReranker  # takes a second, so after all checks

    with judgements_of(backend, "off" if dry_run else judge.cache) as judgements:
        yield EvidenceReranker(backend, cache=judgements, **settings), judgements


@contextmanager
def open_chat(
    asked: options.ModelOptions | options.JudgingOptions, **how: Any
) -> Iterator[tuple[Backend, JudgementCache | None]]:
    """Open the chat model of a command, and the cache of its replies; *how* as `chat_backend`."""
    backend = chat_backend(asked, **how)
    with judgements_of(backend, asked.cache) as kept:
        yield backend, kept


@contextmanager
def judgements_of(backend: Backend, where: str | None) -> Iterator[JudgementCache | None]:
    """Open the cache that a backend is to use, and close it again."""
    # The local backend has none. Left to itself (*where* is None), a backend has one if a chat
    # model judges and its spec tells it from all others; code that is known by its name alone may
    # change between two runs, so it has one only if a folder is named.
    from deepera_graph.stores.judgements import open_cache

    kinds = set(_kinds(backend.spec))
    if where is not None:
        cache = open_cache(where) if kinds - {"local"} else None
    else:
        cache = default_cache() if "llm" in kinds and "factory" not in kinds else None
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def default_cache() -> JudgementCache | None:
    """Open the default cache; one that nobody asked for is no error if it cannot be opened."""
    from deepera_graph.stores.judgements import open_cache

    try:
        return open_cache()
    except StoreError as error:
        say(f"going on without a cache: {error}")
        return None


def _kinds(spec: Any) -> Iterator[str]:
    """Yield what kinds of backends a spec is made of."""
    if not isinstance(spec, Mapping):
        return
    if isinstance(spec.get("kind"), str):
        yield spec["kind"]
    for part in spec.values():
        yield from _kinds(part)


def judge_kind(judge: options.JudgeOptions) -> str:
    """Return ``llm``, ``encoder``, ``factory`` or a name that stands alone."""
    for_llm = [
        name for name in given(judge, of=options.JudgeOptions) if name not in options.FOR_ALL_JUDGES
    ]
    name = judge.backend or ("llm" if for_llm else "local")
    if name == "llm":
        if not judge.model:
            asking = "backend llm" if judge.backend else for_llm[0].replace("_", "-")
            raise SettingsError(f"--{asking} needs --model, e.g. --model openai:gpt-5-mini")
        return name
    if for_llm:
        option = f"--{for_llm[0].replace('_', '-')}"
        raise SettingsError(f"{option} goes with --backend llm, not with {name!r}")
    return parse_option(name)


def open_judge(judge: options.JudgeOptions, keep: Mapping[str, Any] | None = None) -> Backend:
    """Build the backend; *keep* says where a local judge keeps vectors, see `keep_with`."""
    local = {"kind": "local", **(keep or {})}
    kind, name = judge_kind(judge), judge.backend or "local"
    if kind == "llm":
        backend = chat_backend(judge, domain=judge.domain, **call_options(judge))
        return _behind_cascade(backend, judge, local)
    if name == "local":
        return load_backend(local)
    if kind != "factory":
        return load_backend(name)
    return load_foreign(
        f"--backend {name}", lambda: load_backend({"kind": "factory", "path": name})
    )


def open_unasked(judge: options.JudgeOptions) -> Backend:
    """Build the backend to estimate with: a chat model is a stand-in, which needs no key."""
    if judge_kind(judge) != "llm":
        return open_judge(judge)
    from deepera_graph.agents.role import CountingModel
    from deepera_graph.judges.llm.backend import llm_backend

    backend = llm_backend(CountingModel(), domain=judge.domain, **call_options(judge))
    return _behind_cascade(backend, judge, NAMED["local"])


def _behind_cascade(
    backend: Backend, judge: options.JudgeOptions, local: Mapping[str, Any]
) -> Backend:
    n_best = judge.cascade or preset_of(judge).cascade  # None: the chat model reads all
    if n_best is None:
        return backend
    from deepera_graph.judges.cascade import cascade_backend

    return cascade_backend(load_backend(local), backend, n_best)


def call_options(judge: options.JudgeOptions) -> dict[str, Any]:
    """Return what one call does, as far as that was said: options of `llm_backend`."""
    chosen = {"mode": judge.mode, "group_size": judge.group_size}
    explicit = {name: value for name, value in chosen.items() if value is not None}
    options = {**preset_of(judge).backend, **explicit}
    if judge.group_size is None and options.get("mode") != "grouped":
        options.pop("group_size", None)  # of a preset whose mode was changed
    return options


_MAX_WORKERS = 16  # as many calls as are in flight by default


def check_engine(engine: options.EngineOptions) -> None:
    """Raise `SettingsError` if options do not go together, or Ray is not installed."""
    if engine.engine == "local":
        for option, value in {
            "--workers": engine.workers,
            "--ray-address": engine.ray_address,
        }.items():
            if value is not None:
                raise SettingsError(f"{option} goes with --engine ray")
        return
    from deepera_graph.jobs.cluster import check_address, find_ray

    check_address(engine.ray_address)
    if engine.ray_address is not None and engine.workers is None:
        raise SettingsError("--ray-address needs --workers: how many the cluster has room for")
    find_ray(alone=engine.ray_address is None)


def open_engine(
    engine: options.EngineOptions, reranker: EvidenceReranker, cache: JudgementCache | None
) -> RayEngine | None:
    """Return the engine for work that is done in other processes; None for this one."""
    if engine.engine == "local":
        return None
    from deepera_graph.jobs.ray import JudgingWork, RayEngine

    work = JudgingWork.of(reranker, cache)
    return RayEngine(work, n_workers=count_workers(engine), address=engine.ray_address)


def count_workers(engine: options.EngineOptions) -> int:
    """Return how many workers there are to be on Ray."""
    return engine.workers or min(os.cpu_count() or 1, _MAX_WORKERS)
