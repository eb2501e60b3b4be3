"""From the options of a study, as they were given, to what the benchmark takes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from deepera_graph.bench.rankers.named import Models
from deepera_graph.bench.studies.base import SEARCHERS, StudySettings
from deepera_graph.bench.studies.run import (
    StudyConfig,
    as_ranker_names,
    find_answer_judge,
    find_embeddings,
    find_generator,
)
from deepera_graph.cli.work.bench.chat_models import ChatModels
from deepera_graph.cli.work.bench.names import split_names
from deepera_graph.cli.work.threshold import read_threshold
from deepera_graph.errors import SettingsError
from deepera_graph.thresholds import Gap, Quantile

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The options of a study, as they were given."""

    data: tuple[Path, ...]
    rankers: str | None = None
    metrics: str | None = None
    threshold: float | None = None
    top_n: int | None = None
    thresholds: str | None = None
    cutoffs: str | None = None
    shares: str | None = None
    embeddings: str | None = None
    base: str | None = None
    n_repeats: int | None = None
    n_sampled: int | None = None
    n_resamples: int | None = None
    seed: int | None = None
    strict: bool = False
    generator: str = ""
    answer_judge: str = ""
    limit: int | None = None
    split: str = "test"
    n_candidates: int = 100
    keep: Path | None = None

    @contextmanager
    def opened(self, chat_models: ChatModels) -> Iterator[StudyConfig]:
        """Give the options as the benchmark takes them, with the cache of chat models open.

        Raises:
            SettingsError: An option is out of range, or does not go with another.
            MetricError: A metric is unknown.
            UnavailableError: Embeddings, the generator or the judge of answers are not available.
            StoreError: The cache that was asked for cannot be used.
        """
        if self.answer_judge and not self.generator:
            raise SettingsError("--answer-judge goes with --generator")
        plain = self._plain()
        asking = as_ranker_names(self.generator, self.answer_judge)
        with chat_models.opened((*plain.rankers, *asking)) as models:
            yield replace(plain, settings=self._settings(plain.settings, models), models=models)

    def _plain(self) -> StudyConfig:
        plain = StudyConfig(
            data=self.data, limit=self.limit, split=self.split, n_candidates=self.n_candidates
        )
        if self.rankers is None:
            return plain
        return replace(plain, rankers=split_names("--rankers", self.rankers))

    def _settings(self, settings: StudySettings, models: Models) -> StudySettings:
        names = split_names("--embeddings", self.embeddings) if self.embeddings else SEARCHERS
        given: dict[str, Any] = {
            "metrics": self.metrics and split_names("--metrics", self.metrics),
            "threshold": self.threshold,
            "top_n": self.top_n,
            **_thresholds(self.thresholds),
            "cutoffs": _numbers("--cutoffs", self.cutoffs, int),
            "shares": _numbers("--shares", self.shares, float),
            "searchers": tuple(name for name in names if name in SEARCHERS),
            "embeddings": find_embeddings(names),
            "base": self.base,
            "n_repeats": self.n_repeats,
            "n_sampled": self.n_sampled,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "keep": self.keep,
            "strict": self.strict,
            "generator": find_generator(self.generator, models),
            "answer_judge": find_answer_judge(self.answer_judge, models),
        }
        return replace(
            settings, **{key: value for key, value in given.items() if value is not None}
        )


def _thresholds(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    read = {name: _threshold(name) for name in split_names("--thresholds", text)}
    return {
        "thresholds": tuple(one for one in read.values() if isinstance(one, float)),
        "rules": {name: one for name, one in read.items() if not isinstance(one, float)},
    }


def _threshold(text: str) -> float | Gap | Quantile:
    problem = (
        "--thresholds must be numbers from 0 to 1, gap[:FLOOR] and quantile:SHARE[:FLOOR] with "
        f"commas between them, got {text!r}"
    )
    try:
        found = read_threshold(text)
    except SettingsError as error:
        raise SettingsError(problem) from error
    if not isinstance(found, float | Gap | Quantile):
        raise SettingsError(problem)
    return found


def _numbers(option: str, text: str | None, read: Callable[[str], N]) -> tuple[N, ...] | None:
    if text is None:
        return None
    try:
        return tuple(read(part) for part in split_names(option, text))
    except ValueError as error:
        raise SettingsError(
            f"{option} must be numbers with commas between them, got {text!r}"
        ) from error
