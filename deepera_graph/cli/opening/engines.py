"""The engine that the work is done on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deepera_graph.cli.shared import options
from deepera_graph.errors import SettingsError

if TYPE_CHECKING:
    from deepera_graph.jobs.ray import RayEngine
    from deepera_graph.reranker import EvidenceReranker
    from deepera_graph.stores.judgements import JudgementCache

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
    from deepera_graph.jobs.ray import check_address, find_ray

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
