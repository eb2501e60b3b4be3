"""The judge of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deepera_graph.cli.opening.chat import chat_backend
from deepera_graph.cli.opening.foreign import load_foreign
from deepera_graph.cli.opening.settings import preset_of
from deepera_graph.cli.shared import options
from deepera_graph.cli.shared.declaring import given
from deepera_graph.errors import SettingsError
from deepera_graph.judges import NAMED, load_backend, parse_name
from deepera_graph.settings import suggest_value

if TYPE_CHECKING:
    from deepera_graph.schema import Backend

_NAMES = (*NAMED, "llm", "encoder:MODEL")


def judge_kind(judge: options.JudgeOptions) -> str:
    """Return ``llm``, ``encoder``, ``factory`` or a name that stands alone."""
    for_llm = [name for name in given(judge) if name not in options.FOR_ALL_JUDGES]
    name = judge.backend or ("llm" if for_llm else "local")
    if name == "llm":
        if not judge.model:
            raise SettingsError("--backend llm needs --model, e.g. --model openai:gpt-5-mini")
        return name
    if for_llm:
        option = f"--{for_llm[0].replace('_', '-')}"
        raise SettingsError(f"{option} goes with --backend llm, not with {name!r}")
    return parse_kind(name)


def parse_kind(name: str) -> str:
    """Return what kind of judge `--backend` names, as `judge_kind` says it."""
    try:
        kind = parse_name(name).kind
    except SettingsError as error:
        raise SettingsError(
            f"--backend must be {', '.join(map(repr, _NAMES))} or "
            f"'package.module:factory', got {name!r}{suggest_value(name, _NAMES)}"
        ) from error
    if kind == "llm":  # chat models are named by --model, so this is a module without a dot
        return "factory"
    return kind


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
    from deepera_graph.agents.llm_role import CountingModel
    from deepera_graph.judges.llm.backend import llm_backend

    backend = llm_backend(CountingModel(), domain=judge.domain, **call_options(judge))
    return _behind_cascade(backend, judge, NAMED["local"])


def _behind_cascade(
    backend: Backend, judge: options.JudgeOptions, local: Mapping[str, Any]
) -> Backend:
    n_best = cascade_of(judge)
    if n_best is None:
        return backend
    from deepera_graph.judges.cascade import cascade_backend

    return cascade_backend(load_backend(local), backend, n_best)


def call_options(judge: options.JudgeOptions) -> dict[str, Any]:
    """Return what one call does, as far as that was said: options of `llm_backend`."""
    chosen = {"mode": judge.mode, "group_size": judge.group_size}
    explicit = {name: value for name, value in chosen.items() if value is not None}
    return {**preset_of(judge).backend, **explicit}


def cascade_of(judge: options.JudgeOptions) -> int | None:
    """Return how many passages of a question the chat model reads; None is all."""
    return judge.cascade or preset_of(judge).cascade
