"""From the options of a command to the engine that does its work."""

import os
from dataclasses import dataclass
from typing import Literal

from deepera_graph.cache.store import JudgementCache
from deepera_graph.errors import SettingsError
from deepera_graph.jobs.ray import JudgingWork, RayEngine, check_address, find_ray
from deepera_graph.reranker import EvidenceReranker

_MOST_WORKERS = 16  # as many calls as are in flight by default


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineChoice:
    """The options that say where work is done, as they were given."""

    name: Literal["local", "ray"] = "local"
    workers: int | None = None
    address: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether this process does it."""
        return self.name == "local"

    def check(self) -> None:
        """Raise `SettingsError` if options do not go together, or Ray is not installed."""
        if self.is_local:
            given = {"--workers": self.workers, "--ray-address": self.address}
            for option, value in given.items():
                if value is not None:
                    raise SettingsError(f"{option} goes with --engine ray")
            return
        check_address(self.address)
        if self.address is not None and self.workers is None:
            raise SettingsError("--ray-address needs --workers: how many the cluster has room for")
        find_ray(alone=self.address is None)

    def build(self, reranker: EvidenceReranker, cache: JudgementCache | None) -> RayEngine | None:
        """Return the engine for work that is done elsewhere; None for this process."""
        if self.is_local:
            return None
        n_workers = self.workers or min(os.cpu_count() or 1, _MOST_WORKERS)
        work = JudgingWork.of(reranker, cache)
        return RayEngine(work, n_workers=n_workers, address=self.address)
