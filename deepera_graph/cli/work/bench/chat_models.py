"""From the options of a command of `deepera bench` to the chat models that rankers ask."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from deepera_graph.bench.rankers.llm import MAX_CONCURRENCY
from deepera_graph.bench.rankers.named import Models, asks_a_model
from deepera_graph.budget import Budget
from deepera_graph.cache.store import JudgementCache, open_cache
from deepera_graph.cli.exits import say
from deepera_graph.cli.work.backend import check_base_url, check_key_variable
from deepera_graph.errors import SettingsError, StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModels:
    """The options that say which chat model is asked, and how, as they were given."""

    model: str | None
    base_url: str | None
    api_key_env: str | None
    max_concurrency: int | None
    limits: Mapping[str, float] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    cache: str | None = None

    @contextmanager
    def opened(self, rankers: Sequence[str]) -> Iterator[Models]:
        """Give what makes the chat models, with the cache open.

        Args:
            rankers: Names; the default cache is opened only if one of them asks a chat model.

        Raises:
            SettingsError: An option is out of range, or does not go with the rankers.
            StoreError: The cache that was asked for cannot be used.
        """
        asking = any(asks_a_model(one) for one in rankers)
        if self.model and not asking:
            raise SettingsError(
                f"--model {self.model} is asked by no ranker in --rankers; name one that does, "
                "e.g. deepera:llm or rankgpt"
            )
        check_base_url(self.base_url)
        check_key_variable(self.api_key_env)
        at_once = MAX_CONCURRENCY if self.max_concurrency is None else self.max_concurrency
        cache = self._cache() if asking else None
        try:
            yield Models(
                model=self.model or "",
                base_url=self.base_url,
                api_key_env=self.api_key_env,
                limits=self.limits,
                cache=cache,
                max_concurrency=at_once,
                budget=Budget(**self.budget) if self.budget else None,  # type: ignore[arg-type]  # counts came in as whole numbers
            )
        finally:
            if cache is not None:
                cache.close()

    def _cache(self) -> JudgementCache | None:
        if self.cache is not None:
            return open_cache(self.cache)
        try:
            return open_cache()
        except StoreError as error:
            say(f"going on without a cache: {error}")
            return None
